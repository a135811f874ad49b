"""The benchmark works from end to end on real Spark, and refuses to count a rewrite that it cannot vouch for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks import b1
from benchmarks.lake import TARGET_FILE_SIZE_BYTES, BenchTable, Deletes, Mismatch, make_lake
from benchmarks.measure import Meter, ProcessTree
from benchmarks.results import dumps, loads
from benchmarks.rewriters import ProcedureRewriter
from tests.conftest import CAMPAIGN

pytestmark = pytest.mark.spark


def test_the_short_form_runs_and_judges_every_target(spark: SparkSession, tmp_path: Path) -> None:
    said: list[str] = []
    shape = replace(b1.SHORT_SHAPES[-1], rows_per_file=200)
    assert shape.deletes is Deletes.VECTORS
    alone = 1 if CAMPAIGN else 0  # each in a session of its own
    result = b1.run(spark, tmp_path, replace(b1.short(seed=3), shapes=[shape], alone=alone), said.append)
    assert loads(dumps(result)) == result
    by_metric = {case.metric: case for case in result.cases}
    assert {case.case for case in result.cases} == {"short, 5 % deleted by deletion vectors"}
    judged = {metric for metric, case in by_metric.items() if case.met is not None}
    assert judged == {"cpu_ratio", "reader_cpu_ratio", *(["peak_memory_ratio"] if CAMPAIGN else ())}
    assert {run.contestant for run in by_metric["cpu_ratio"].runs} == {"peer", "icewright"}
    shares = [case.value for metric, case in by_metric.items() if metric.startswith("share of our CPU")]
    assert len(shares) == 5
    assert 0.9 < sum(shares) < 1.1
    assert by_metric["CPU of proof, s"].value > 0
    assert 0.9 < by_metric["output_size_ratio"].value < 1.1
    assert sum("the same 1,520 rows" in line for line in said) == 2


@pytest.mark.parametrize("deletes", [Deletes.POSITIONS, Deletes.VECTORS])
def test_rows_that_come_back_and_lineage_that_is_lost_are_seen(
    deletes: Deletes, spark: SparkSession, tmp_path: Path
) -> None:
    entry = make_lake(spark, tmp_path, f"back{deletes.name}")
    table = BenchTable(spark, entry, "events")
    table.write(2, 100, 1, TARGET_FILE_SIZE_BYTES, deletes)
    assert (table.base.records, table.live_rows) == (200, 190)
    before = table.fingerprint(table.base_snapshot_id)
    assert before[0] == 190
    snapshots = spark.table(f"{table.name}.snapshots").where(f"snapshot_id = {table.base_snapshot_id}")
    (parent_id,) = snapshots.select("parent_id").collect()[0]
    assert table.fingerprint(parent_id)[0] == 200
    rows = spark.createDataFrame(spark.table(str(table.name)).toArrow())
    rows.writeTo(str(table.name)).overwritePartitions()
    assert (table.fingerprint(table.snapshot_id()) == before) is (deletes is Deletes.POSITIONS)  # new row ids in v3


def test_a_table_is_set_back_to_its_very_files(spark: SparkSession, tmp_path: Path) -> None:
    entry = make_lake(spark, tmp_path, "setback")
    table = BenchTable(spark, entry, "events")
    table.write(3, 50, 1, TARGET_FILE_SIZE_BYTES)
    before = table.fingerprint(table.base_snapshot_id)
    assert before[0] == 150
    assert (table.summary("deleted-data-files"), table.summary("total-records")) == (0, 150)
    with Meter(ProcessTree()) as meter:
        ProcedureRewriter(spark, table, TARGET_FILE_SIZE_BYTES).rewrite(meter)
    rewritten = table.snapshot_id()
    assert table.files(rewritten).count == 1
    assert (table.summary("deleted-data-files"), table.summary("total-records")) == (3, 150)
    assert table.fingerprint(rewritten) == before
    table.set_back()
    assert table.snapshot_id() == table.base_snapshot_id
    assert table.files(table.base_snapshot_id) == table.base
    assert table.fingerprint(table.base_snapshot_id) == before
    spark.table(str(table.name)).where("event_id = 7").writeTo(str(table.name)).append()
    assert table.fingerprint(table.snapshot_id()) != before
    (next((tmp_path / "setback" / "bench" / "events").glob("**/*.parquet"))).with_name("stray.parquet").touch()
    with pytest.raises(Mismatch, match="4 data and delete files lie"):
        table.set_back()
