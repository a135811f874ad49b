"""``[groups.NAME]`` of the configuration file."""

from pathlib import Path

import pytest

from icewright.configuration.load import load_config
from icewright.core.errors import InvalidConfiguration, InvalidResourceGroup
from icewright.core.times import Window
from icewright.model.policy.policies import Policies
from icewright.model.policy.resource_groups import ResourceGroup, TenantCaps
from icewright.policy.rules.difference import Comparison
from icewright.policy.rules.files import read_policies
from icewright.policy.rules.named_rules import check_policies
from tests.cases import each_case

WRITTEN = """
[groups.etl]
tasks = 8
cores = 32
memory = "128g"
applications = 4
optimizers = 1
large_share = 0.25
normal_min = 0
normal_max = 8
large_min = 1
large_max = 3
windows = [
  { cron = "0 22 * * *", time_zone = "Europe/Berlin", duration = "PT8H" },
  { cron = "0 12 * * 6", duration = "PT1H" },
]

[groups.etl.tenants.sales]
cores = 8
memory = 1073741824
tasks = 2

[groups.default]
"""


def read(folder: Path, text: str) -> tuple[ResourceGroup, ...]:
    file = folder / "icewright.toml"
    file.write_text(text, encoding="utf-8")
    return load_config(file, {"HOME": str(folder)}, folder).groups


def test_groups_are_read_with_all_their_caps(tmp_path: Path) -> None:
    windows = (Window("0 22 * * *", "Europe/Berlin", 8 * 3_600_000), Window("0 12 * * 6", "UTC", 3_600_000))
    etl = ResourceGroup("etl", 32, 128 << 30, 4, 1, windows, 0.25, (TenantCaps("sales", 8, 1 << 30, 2),), 8, 0, 8, 1, 3)
    assert read(tmp_path, WRITTEN) == (ResourceGroup("default"), etl)


@each_case(
    ("text", "said"),
    [
        ("groups = 3", "groups: expected a table for each"),
        ("[groups]\netl = 3", "groups: expected a table for each"),
        ("[groups.server]", "'server' is no name of a resource group"),
        ("[groups.etl]\ncors = 3", "unknown key cors"),
        ("[groups.etl]\ncores = 0", "cores: write a whole number, at least 1"),
        ("[groups.etl]\ncores = -1", "cores: write a whole number"),
        ("[groups.etl]\ncores = 1.5", "cores: write a whole number"),
        ("[groups.etl]\ncores = true", "cores: write a whole number"),
        ('[groups.etl]\nmemory = "12q"', "memory: write bytes"),
        ("[groups.etl]\nlarge_share = 1.0", "large_share: must be more than 0 and less than 1"),
        ("[groups.etl]\nlarge_share = 'x'", "large_share: write a number"),
        ("[groups.etl]\nnormal_max = -1", "normal_max: write a whole number, 0 to 1000"),
        ("[groups.etl]\nlarge_min = 'x'", "large_min: write a whole number, 0 to 1000"),
        ("[groups.etl]\nlarge_max = 1_001", "large_max: write a whole number, 0 to 1000"),
        ("[groups.etl]\nnormal_min = 3", "the maximum not below the minimum"),
        ("[groups.etl]\nwindows = 3", "windows: expected a list"),
        ("[groups.etl]\nwindows = [3]", "windows: expected a table"),
        ("[groups.etl]\nwindows = [{ cron = '0 22 * *', duration = 'PT1H' }]", "windows: it takes minute"),
        ("[groups.etl]\nwindows = [{ cron = '0 22 * * *' }]", "duration: write an ISO-8601 duration"),
        ("[groups.etl]\nwindows = [{ cron = '0 22 * * *', duration = 'PT1H', time_zone = 'X' }]", "names are as"),
        ("[groups.etl]\nwindows = [{ cron = '0 22 * * *', length = 'PT1H' }]", "windows: unknown key length"),
        ("[groups.etl]\ntenants = 3", "tenants: expected a table"),
        ("[groups.etl.tenants.sales]\nslots = 3", "tenants.sales: unknown key slots"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"icewright\.toml") as raised:
        read(tmp_path, text)
    assert said in raised.value.message
    assert isinstance(raised.value, InvalidResourceGroup) or "expected a table" in said


POLICY = """
version: 1
groups:
  etl:
    tasks: 8
    memory: 128g
    large_share: 0.25
    large_max: 4
    windows:
      - {cron: "0 22 * * *", duration: PT8H}
    tenants:
      sales: {cores: 8}
"""


def test_policy_files_say_groups_in_the_same_words(tmp_path: Path) -> None:
    file = tmp_path / "groups.yaml"
    file.write_text(POLICY, encoding="utf-8")
    (group,) = read_policies([file]).groups
    windows = (Window("0 22 * * *", "UTC", 8 * 3_600_000),)
    tenants = (TenantCaps("sales", 8),)
    assert group == ResourceGroup(
        "etl", memory_bytes=128 << 30, windows=windows, large_share=0.25, tenants=tenants, tasks_max=8, large_max=4
    )


@each_case(
    ("written", "said"),
    [
        ("groups: 3", "expected a map of resource groups"),
        ("groups: {server: {}}", "no name of a resource group"),
        ("groups: {etl: {cors: 3}}", "unknown key cors"),
        ("groups: {etl: {windows: [{cron: 1, duration: PT1H}]}}", "windows: it takes minute"),
    ],
)
def test_what_is_wrong_with_a_group_is_told_where_it_stands(tmp_path: Path, written: str, said: str) -> None:
    file = tmp_path / "groups.yaml"
    file.write_text(f"version: 1\n{written}\n", encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match=r"groups\.yaml:2:") as raised:
        read_policies([file])
    assert said in raised.value.message


def test_two_files_may_not_say_two_things_of_a_group(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("version: 1\ngroups: {etl: {}}\n", encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match="two resource groups etl"):
        read_policies([tmp_path])


def test_a_window_that_nobody_can_read_is_not_applied() -> None:
    """It came by the API, and every claim would fail by it."""
    group = ResourceGroup("etl", windows=(Window("never", "UTC", 1),))
    with pytest.raises(InvalidConfiguration, match="windows"):
        check_policies(Policies((), (group,)))


def test_what_applying_changes_of_groups_is_shown() -> None:
    old = (ResourceGroup("a"), ResourceGroup("b", cores=1))
    new = (ResourceGroup("b", cores=2), ResourceGroup("c"))
    difference = Comparison(Policies((), old), Policies((), new), ()).difference(1)
    assert [(one.name, one.what, one.fields) for one in difference.groups] == [
        ("a", "removed", ()),
        ("b", "changed", ("cores",)),
        ("c", "added", ()),
    ]
    assert not difference.is_empty
    assert Comparison(Policies((), new), Policies((), new), ()).difference(1).is_empty
