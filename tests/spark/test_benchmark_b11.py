"""The benchmark of a query over six days works from end to end on real Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks import b11
from benchmarks.atlas import Shape
from benchmarks.results import dumps, loads

pytestmark = pytest.mark.spark


@pytest.mark.campaign
def test_a_small_form_runs_and_judges_every_target(spark: SparkSession, tmp_path: Path) -> None:
    said: list[str] = []
    options = replace(
        b11.short(seed=3), shape=Shape(days=7, hours=1, files=84, rows_per_file=1_500), rounds=1, warmups=0
    )
    result = b11.run(spark, tmp_path, options, said.append)
    assert loads(dumps(result)) == result
    found = {case.metric: case for case in result.cases}
    judged = {metric for metric, case in found.items() if case.met is not None}
    assert judged == {
        "splits by Iceberg's own sizes, as written over ours",
        "task time, as written over ours",
        "planning, ours over as written",
    }
    assert found["files opened: as written"].value == 72
    assert 24 <= found["files opened: icewright"].value <= 28
    assert found["splits by sizes divided by the scale, as written over ours"].value > 1
    assert found["optimization, tasks"].value == 1
    assert found["data files, ours over as written"].value > 1
    assert any("the same 126,000 rows" in line for line in said)
