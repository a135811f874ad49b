"""Executors come and go on a cluster unless somebody says otherwise, within the bounds of the group."""

from __future__ import annotations

from pathlib import Path

import pytest

from icewright.configuration.load import load_config
from icewright.model.policy.resource_groups import ResourceGroup
from icewright.work.launch.dynamic_allocation import EXECUTORS_MAX, with_dynamic_allocation
from icewright.work.launch.optimizer import spark_conf_of
from tests.cases import each_case

GIB = 1 << 30
MASTERS = ("spark://head:7077", "yarn", "k8s://https://api:6443")
OF = "spark.dynamicAllocation"


def conf(
    master: str = "yarn", given: dict[str, str] | None = None, group: ResourceGroup | None = None
) -> dict[str, str]:
    return dict(with_dynamic_allocation(master, "2g", given or {}, group))


@each_case("master", MASTERS)
def test_it_is_on_by_default_with_tracked_shuffles_and_a_bound(master: str) -> None:
    assert conf(master) == {
        f"{OF}.enabled": "true",
        f"{OF}.shuffleTracking.enabled": "true",
        f"{OF}.minExecutors": "0",
        f"{OF}.maxExecutors": str(EXECUTORS_MAX),
    }


@each_case(
    ("master", "given"),
    [
        ("local[4]", {}),
        ("yarn", {f"{OF}.enabled": "false"}),
        ("yarn", {"spark.executor.instances": "3"}),
        ("yarn", {f"{OF}.enabled": "true", "spark.executor.instances": "3"}),
    ],
)
def test_who_says_otherwise_is_followed(master: str, given: dict[str, str]) -> None:
    assert conf(master, given) == given


def test_what_is_set_stands_over_the_defaults() -> None:
    given = {f"{OF}.minExecutors": "2", f"{OF}.maxExecutors": "50", "spark.shuffle.service.enabled": "true"}
    assert conf(given=given) == {f"{OF}.enabled": "true", **given}


@pytest.mark.parametrize(
    ("group", "given", "most"),
    [
        (ResourceGroup("etl", cores=20), {"spark.executor.cores": "4"}, 5),
        (ResourceGroup("etl", cores=20), {}, 20),
        (ResourceGroup("etl", cores=3), {"spark.executor.cores": "4"}, 1),
        (ResourceGroup("etl", memory_bytes=24 * GIB), {"spark.executor.memory": "10g"}, 2),
        (ResourceGroup("etl", memory_bytes=GIB), {}, 1),
        (ResourceGroup("etl", cores=20, memory_bytes=24 * GIB), {"spark.executor.memory": "4g"}, 5),
        (ResourceGroup("etl", tasks_max=3), {}, EXECUTORS_MAX),
        (None, {"spark.cores.max": "10", "spark.executor.cores": "4"}, 3),
    ],
)
def test_the_group_bounds_it(group: ResourceGroup | None, given: dict[str, str], most: int) -> None:
    assert conf(given=given, group=group)[f"{OF}.maxExecutors"] == str(most)


def test_on_a_standalone_cluster_the_group_bounds_the_cores() -> None:
    group = ResourceGroup("etl", cores=12)
    assert conf("spark://head:7077", group=group)["spark.cores.max"] == "12"
    assert conf("spark://head:7077", {"spark.cores.max": "4"}, group)["spark.cores.max"] == "4"
    assert "spark.cores.max" not in conf("yarn", group=group)


def test_an_optimizer_is_started_with_the_bounds_of_its_own_group(tmp_path: Path) -> None:
    file = tmp_path / "icewright.toml"
    file.write_text(
        '[optimizer]\nmaster = "yarn"\nresource_group = "etl"\n[groups.etl]\ncores = 6\n[groups.other]\ncores = 2\n'
    )
    found = spark_conf_of(load_config(file, {"HOME": str(tmp_path)}, tmp_path))
    assert found[f"{OF}.maxExecutors"] == "6"
