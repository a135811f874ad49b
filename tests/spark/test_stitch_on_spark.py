"""Files with large row groups on real Spark: stitched, and read alike by everybody; or merged where they cannot be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from icewright.core.errors import NotStitchable
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import PROOF_KEY
from icewright.model.work.jobs import Failed
from icewright.model.work.tasks import TaskState
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.manifests import PartitionFiles
from icewright_spark.parquet.footer import key_values
from tests.builders.stitch_files import footer_of
from tests.lakes.sqlite import writer
from tests.readers.duck import duckdb_with_iceberg
from tests.spark.beginnings import Beginnings
from tests.spark.loop import SparkLoop

pytestmark = pytest.mark.spark

ROWS = 10_000
FILES = 5
PROPERTIES = {
    "write.target-file-size-bytes": str(32 << 20),
    "write.parquet.bloom-filter-enabled.column.id": "true",
    "write.parquet.page-row-limit": "1000",
    "write.metadata.metrics.column.t": "full",
}


@pytest.fixture
def loop(spark: SparkSession, lake: CatalogEntry) -> SparkLoop:
    return SparkLoop(spark, lake)


def write(spark: SparkSession, name: TableName) -> None:
    """A table of a few files of one row group of some 5 MB each, hardly any of it to be compressed."""
    properties = ", ".join(f"'{key}'='{value}'" for key, value in PROPERTIES.items())
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, x DOUBLE, t STRING, b BINARY) USING iceberg TBLPROPERTIES ({properties})"
    )
    values = spark.range(0, FILES * ROWS, 1, FILES).select(
        "id",
        F.when(F.col("id") % 1000 == 0, F.lit(float("nan"))).otherwise(F.col("id") / 3).alias("x"),
        F.concat(F.lit("text "), (F.col("id") % 97).cast("string")).alias("t"),
        F.concat(*(F.unhex(F.sha2(F.concat_ws("-", "id", F.lit(salt)), 512)) for salt in range(8))).alias("b"),
    )
    values.writeTo(str(name)).append()


@pytest.fixture
def name(lake: CatalogEntry, beginnings: Beginnings) -> TableName:
    return beginnings.table(lake, write, "events")


def contents(spark: SparkSession, name: TableName) -> Counter[str]:
    """Rows as a few sums of their bytes, and of nothing that metadata have."""
    columns = [F.sum(F.xxhash64("id", "x", "t", "b").cast("decimal(38,0)")), F.count("x"), F.min("t"), F.max("id")]
    return Counter(str(row) for row in spark.table(str(name)).groupBy(F.expr("id % 50")).agg(*columns).collect())


def live(lake: CatalogEntry) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = writer(lake).load_table(("db", "events")).inspect.data_files().to_pylist()
    return found


def local(location: object) -> str:
    return str(location).removeprefix("file://").removeprefix("file:")


def test_large_row_groups_are_stitched(
    loop: SparkLoop, lake: CatalogEntry, spark: SparkSession, name: TableName
) -> None:
    before, files = contents(spark, name), live(lake)
    task = loop.rewrite(name)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert {group.executor for group in task.rewrite.groups} == {Executor.STITCH}
    assert "stitched" in task.reason.text

    (file,) = live(lake)
    assert contents(spark, name) == before
    assert file["record_count"] == FILES * ROWS
    assert len(file["split_offsets"] or ()) == FILES
    summary = writer(lake).load_table(("db", "events")).current_snapshot()
    assert summary is not None
    assert summary.summary is not None
    assert "row groups copied" in str(summary.summary[PROOF_KEY])
    check_metrics(files, file)
    path = local(file["file_path"])
    check_parquet_java(spark, path)
    check_other_readers(lake, path)
    assert b"iceberg.schema" in key_values(footer_of(path))


def check_metrics(before: list[dict[str, Any]], after: dict[str, Any]) -> None:
    """As PyIceberg shows them: sums and extremes of those of the inputs."""
    parts = [part["readable_metrics"] for part in before]
    whole = after["readable_metrics"]
    for column in ("id", "x", "t"):
        said = whole[column]
        of_parts = [part[column] for part in parts]
        assert said["lower_bound"] == min(part["lower_bound"] for part in of_parts)
        assert said["upper_bound"] == max(part["upper_bound"] for part in of_parts)
        for count in ("column_size", "value_count", "null_value_count"):
            assert said[count] == sum(part[count] for part in of_parts)
    assert whole["x"]["nan_value_count"] == FILES * ROWS // 1000


def check_parquet_java(spark: SparkSession, path: str) -> None:
    """Spark reads the bare file by its page indexes and bloom filters, which pass over what they say is not there."""
    rows = spark.read.parquet(path)
    for identity in (0, ROWS, FILES * ROWS - 1):
        assert [row.t for row in rows.where(f"id = {identity}").collect()] == [f"text {identity % 97}"]
    assert rows.where(f"id BETWEEN {ROWS - 5} AND {ROWS + 4}").count() == 10
    assert rows.where(f"id = {FILES * ROWS}").count() == 0
    chunks = [group.chunks[0] for group in footer_of(path).row_groups]
    assert all(chunk.bloom_filter_at and chunk.column_index and chunk.offset_index for chunk in chunks)


def check_other_readers(lake: CatalogEntry, path: str) -> None:
    table = writer(lake).load_table(("db", "events"))
    found = table.scan(row_filter=f"id >= {2 * ROWS - 2} and id < {2 * ROWS + 2}").to_arrow()
    expected = [(n, f"text {n % 97}") for n in range(2 * ROWS - 2, 2 * ROWS + 2)]
    assert sorted((row["id"], row["t"]) for row in found.to_pylist()) == expected
    connection = duckdb_with_iceberg()
    location = local(table.metadata_location)
    query = f"SELECT count(DISTINCT id), sum(id), sum(isnan(x)::int) FROM iceberg_scan('{location}')"  # noqa: S608 - a test
    rows = FILES * ROWS
    assert connection.sql(query).fetchall() == [(rows, rows * (rows - 1) // 2, rows // 1000)]
    assert Path(path).exists()


def test_files_under_a_spec_of_void_alone_are_not_stitched(loop: SparkLoop, spark: SparkSession) -> None:
    """Iceberg has no JSON of them, and no metrics come without; the next plan merges them."""
    name = loop.name("db", "old")
    spark.sql(f"CREATE NAMESPACE {name.catalog}.db")
    made = f"CREATE TABLE {name} (id BIGINT, city STRING) USING iceberg PARTITIONED BY (city)"
    spark.sql(f"{made} TBLPROPERTIES ('format-version' = '1')")
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD city")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'Bonn')")  # noqa: S608 - a test
    table = SparkTable(spark, name)
    files = PartitionFiles(table, table.java.currentSnapshot().snapshotId(), {Partition(1, "[]")})
    path = spark.table(str(name)).select("_file").collect()[0][0]
    with pytest.raises(NotStitchable, match="no JSON"):
        files.described({path})


def test_files_of_two_writers_are_merged_after_all(
    loop: SparkLoop, lake: CatalogEntry, spark: SparkSession, name: TableName
) -> None:
    """The plan cannot know; the attempt fails before it writes anything, and the next plan knows."""
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('write.parquet.bloom-filter-enabled.column.id')")
    table = writer(lake).load_table(("db", "events"))
    table.append(table.scan(row_filter="id < 1000").to_arrow())  # by PyIceberg
    before, folder = contents(spark, name), Path(local(live(lake)[0]["file_path"])).parent
    spec, files = loop.claim(name), set(folder.glob("*.parquet"))
    assert {group.executor for group in spec.rewrite.groups} == {Executor.STITCH}
    report = loop.attempt(spec)
    assert isinstance(report.result, Failed), report.result
    assert report.result.code == "not-stitchable"
    assert "of other versions of the format" in report.result.detail
    assert {*folder.glob("*.parquet")} == files
    assert loop.control.dispatcher.report(report).state is TaskState.SUPERSEDED

    task = loop.rewrite(name)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert {group.executor for group in task.rewrite.groups} == {Executor.MERGE}
    assert contents(spark, name) == before
