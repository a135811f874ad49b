"""The benchmark of orphans and expiry works from end to end on real Spark, and counts only right answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks import b9
from benchmarks.garbage import Garbage
from benchmarks.lake import Mismatch
from benchmarks.results import dumps, loads
from benchmarks.rewriters import ICEWRIGHT, PEER
from icewright.model.iceberg.names import TableName

pytestmark = pytest.mark.spark


@pytest.mark.campaign
def test_the_short_form_runs_and_judges_every_target(spark: SparkSession, tmp_path: Path) -> None:
    said: list[str] = []
    result = b9.run(spark, tmp_path, b9.short(seed=3), said.append)
    assert loads(dumps(result)) == result
    orphans, expiry = dict.fromkeys(case.case for case in result.cases)
    assert {(case.case, case.metric) for case in result.cases if case.met is not None} == {
        (orphans, "cpu_ratio"),
        (orphans, "cpu_ratio to peer, file_list_view"),
        (orphans, "memory of ours, GiB"),
        (expiry, "cpu_ratio to the peer's metadata alone"),
        (expiry, "memory of ours, GiB"),
    }
    found = {(case.case, case.metric): case.value for case in result.cases}
    assert found[expiry, "snapshots that stay"] == 96
    assert found[orphans, "files whose times tell nothing, given by the peer"] == 9
    assert found[orphans, "CPU, s: icewright"] > 0
    assert any(", 20 of them orphans" in line for line in said)


def test_wrong_answers_do_not_count() -> None:
    name = TableName("b9", ("bench",), "garbage")
    orphans, left, undated = (frozenset(paths) for paths in ({"/r/a", "/r/b"}, {"/r/_temporary/t"}, {"/r/old"}))
    table = Garbage(name, "u", "/r", 0, 9, 4, orphans, left, undated, {"young": 2})
    found = ["/r/a", "/r/b", "/r/_temporary/t"]
    right: dict[str, Any] = {"paths": found, "orphans": 3, "listed": 9, "kept": {"young": 2}}
    b9.check_orphans(ICEWRIGHT, table, right)
    b9.check_orphans(PEER, table, {"paths": ["/r/b", "/r/a", "/r/old"]})
    for paths in (found[:1], found[:2], [*found, "/r/old"], [*found, "/r/b"]):
        with pytest.raises(Mismatch, match="too many and"):
            b9.check_orphans(ICEWRIGHT, table, {**right, "paths": paths})
    for key, value in {"listed": 8, "kept": {}, "orphans": 2}.items():
        with pytest.raises(Mismatch, match="counted"):
            b9.check_orphans(ICEWRIGHT, table, {**right, key: value})
    with pytest.raises(Mismatch, match="1 missing"):
        b9.check_orphans(
            PEER, replace(table, undated=frozenset({"/r/old", "/r/older"})), {"paths": ["/r/a", "/r/b", "/r/old"]}
        )
