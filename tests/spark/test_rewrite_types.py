"""Tables of every type as Spark writes them, merged by us and by Iceberg's procedure: the same rows and metrics."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import FixedType, LongType, NestedField, UUIDType
from pyspark.sql import DataFrame, Row, SparkSession

from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName, quote_part
from icewright.model.work.tasks import TaskState
from tests.conftest import CAMPAIGN
from tests.lakes.sqlite import writer
from tests.spark.loop import SparkLoop
from tests.spark.tables import contents, found_by, sql_name

pytestmark = pytest.mark.spark

PREFIX = "p" * 40
COLUMNS = {
    "id": "bigint",
    "ok": "boolean",
    "n": "int",
    "f": "float",
    "d": "double",
    "dec9": "decimal(9,2)",
    "dec18": "decimal(18,4)",
    "dec38": "decimal(38,10)",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "text": "string",
    "raw": "binary",
    "nothing": "string",
    "nested": "struct<a:int,b:struct<c:string,d:double>>",
    "many": "array<double>",
    "deep": "array<struct<x:int,y:array<string>>>",
}
MAPS = {"pairs": "map<string,int>", "deeper": "map<string,struct<z:double>>"}
FILTERS = (
    "id > 17",
    "ok",
    "n < 0",
    "f = 1.75",
    "d > 1.5",
    "isnan(d)",
    "dec9 > 10.5",
    "dec18 <= -1.0001",
    "dec38 >= 12345678901234567890.5",
    "day >= date'2024-02-01'",
    "at < timestamp'2024-02-10 00:00:00'",
    "local = timestamp_ntz'2024-01-05 12:30:00.000001'",
    f"text > '{PREFIX}m'",
    "text = ''",
    "text IS NULL",
    "raw > X'80'",
    "nothing IS NOT NULL",
    "nested.b.c = 'c3'",
    "size(many) > 1",
)


WIDER_ZEROS = {
    (metric, struct.pack(layout, ours), struct.pack(layout, -ours))
    for layout in ("<f", "<d")
    for metric, ours in (("lower_bounds", -0.0), ("upper_bounds", 0.0))
}


def value_rows(count: int = 48) -> list[tuple[Any, ...]]:
    doubles = [math.nan, -0.0, 0.0, math.inf, -math.inf, 1.75, -2.5, None]
    texts = ["", None, PREFIX, PREFIX + "a", PREFIX + "z", "é" * 20, "\U0001f9ca" * 9, "plain"]
    raws = [b"", None, b"\xff" * 20, b"\x00", bytes(range(40)), b"\x80", b"\x7f" * 17, b"plain"]
    rows: list[tuple[Any, ...]] = []
    for i in range(count):
        d, text, raw = doubles[i % 8], texts[(i // 2) % 8], raws[(i // 3) % 8]
        rows.append(
            (
                i,
                None if i % 5 == 0 else i % 2 == 0,
                None if i % 7 == 0 else (i - 20) * 100_000_000 // 2,
                d,
                doubles[(i // 2) % 8],
                None if i % 6 == 0 else Decimal(i * 97 - 1000) / 100,
                None if i % 6 == 1 else Decimal((i - 5) * 10**9 - 7) / 10**4,
                None if i % 6 == 2 else Decimal(f"{i}000000000000000000.0000000001"),
                None if i % 9 == 0 else date(2024, 1 + i % 3, 1 + i % 28),
                None if i % 9 == 1 else datetime(2024, 1 + i % 3, 1 + i % 28, 23, 59, 59, 999_999, tzinfo=UTC),
                None if i % 9 == 2 else datetime(2024, 1, 1 + i % 9, 12, 30, 0, 1),  # noqa: DTZ001 - timestamp_ntz
                text,
                raw,
                None,
                None if i % 4 == 0 else (None if i % 4 == 1 else i, None if i % 8 == 2 else (f"c{i % 5}", d)),
                None if i % 4 == 1 else [doubles[k % 8] for k in range(i % 3)],
                None if i % 4 == 2 else [(k, [None, PREFIX][: k + 1]) for k in range(i % 3)],
                None if i % 4 == 3 else {f"k{k}": None if k else i for k in range(i % 3)},
                None if i % 4 == 0 else {f"k{k}": (d,) for k in range(i % 2)},
            )
        )
    return rows


@pytest.fixture
def loop(spark: SparkSession, lake: CatalogEntry) -> SparkLoop:
    spark.sql(f"CREATE NAMESPACE {lake.name}.db")
    return SparkLoop(spark, lake)


@pytest.fixture(scope="module")
def values(spark: SparkSession) -> DataFrame:
    schema = ", ".join(f"`{name}` {kind}" for name, kind in {**COLUMNS, **MAPS}.items())
    return spark.createDataFrame(value_rows(), schema).repartition(4).cache()


def create(
    loop: SparkLoop, table: str, columns: Mapping[str, str], partitioned_by: str = "", /, **properties: str
) -> TableName:
    name = loop.name("db", table)
    defaults = {"write.distribution-mode": "none", "icewright.rewrite-data-files.min-input-files": "2"}
    chosen = defaults | properties
    said = ", ".join(f"'{key}' = '{value}'" for key, value in chosen.items())
    columns_said = ", ".join(f"`{column}` {kind}" for column, kind in columns.items())
    partitions = f"PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
    loop.spark.sql(f"CREATE TABLE {sql_name(name)} ({columns_said}) USING iceberg {partitions} TBLPROPERTIES ({said})")
    return name


def append(frame: DataFrame, name: TableName) -> None:
    frame.writeTo(sql_name(name)).option("fanout-enabled", "true").append()


def another(lake: CatalogEntry, name: TableName) -> TableName:
    """A table that begins with the very files of one, for Iceberg's procedure."""
    catalog = writer(lake)
    catalog.register_table(("db", "theirs"), catalog.load_table(name.path).metadata_location)
    return TableName(lake.name, ("db",), "theirs")


def metrics(spark: SparkSession, name: TableName) -> dict[str, Row]:
    """What the files of a table say of their columns, by partition."""
    columns = "partition, " if [f for f in spark.table(f"{sql_name(name)}.files").columns if f == "partition"] else ""
    rows = spark.sql(
        f"SELECT {columns} record_count, value_counts, null_value_counts, nan_value_counts, lower_bounds, upper_bounds "  # noqa: S608 - a test
        f"FROM {sql_name(name)}.files"
    ).collect()
    found = {str(row["partition"]) if columns else "": row for row in rows}
    assert len(found) == len(rows), f"{name}: more than one file in a partition"
    return found


def differences(ours: Row, theirs: Row, names: Mapping[int, str]) -> dict[str, tuple[Any, Any]]:
    """Where our metrics differ from those of Spark's writer, as ``metric:column``, with both values.

    One difference is meant: a bound of zero is -0.0 below and 0.0 above, since SQL holds the two equal, while Iceberg
    orders them and Spark's bounds are exact (so that ``f = 0.0`` may miss rows of -0.0, depending on the file). Another
    is meant too: where there is NaN, which Spark holds to be greater than all numbers, we state no upper bound, and no
    count of NaN where there is nothing else.
    """
    found = {}
    if ours["record_count"] != theirs["record_count"]:
        found["record_count"] = (ours["record_count"], theirs["record_count"])
    for metric in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):
        mine, his = ours[metric] or {}, theirs[metric] or {}
        with_nan = {key for key, count in (theirs["nan_value_counts"] or {}).items() if count}
        keys = mine.keys() | his.keys()
        only_nan = {key for key in with_nan if theirs["nan_value_counts"][key] == theirs["record_count"]}
        keys -= {"upper_bounds": with_nan, "nan_value_counts": only_nan - mine.keys()}.get(metric, set())
        for key in sorted(keys):
            if mine.get(key) != his.get(key) and (metric, mine.get(key), his.get(key)) not in WIDER_ZEROS:
                found[f"{metric}:{names[key]}"] = (mine.get(key), his.get(key))
    return found


def column_names(entry: CatalogEntry, name: TableName) -> dict[int, str]:
    schema = writer(entry).load_table(name.path).schema()
    return {field_id: schema.find_column_name(field_id) or "" for field_id in schema._lazy_id_to_name}


def rewrite_by_iceberg(spark: SparkSession, name: TableName) -> None:
    catalog = quote_part(name.catalog)
    spark.sql(
        f"CALL {catalog}.system.rewrite_data_files(table => '{'.'.join(name.path)}', "
        "options => map('min-input-files', '2', 'rewrite-all', 'true'))"
    ).collect()


@pytest.mark.parametrize("columns", [COLUMNS, {**COLUMNS, **MAPS}], ids=["arrow-rs", "pyarrow"])
def test_rows_filters_and_metrics_are_those_of_spark(
    loop: SparkLoop,
    lake: CatalogEntry,
    spark: SparkSession,
    values: DataFrame,
    columns: dict[str, str],
) -> None:
    ours = create(loop, "ours", columns)
    append(values.select(*columns), ours)
    theirs = another(lake, ours)
    before, filtered = contents(spark, ours), found_by(spark, ours, FILTERS)
    assert [where for where in FILTERS if not filtered[where]] == ["nothing IS NOT NULL"]

    task = loop.rewrite(ours)
    rewrite_by_iceberg(spark, theirs)

    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert contents(spark, ours) == before
    assert found_by(spark, ours, FILTERS) == filtered
    (mine,), (his,) = metrics(spark, ours).values(), metrics(spark, theirs).values()
    assert differences(mine, his, column_names(lake, ours)) == {}


@pytest.mark.parametrize("by", ["months(day)", "truncate(41, text)", *(["bucket(3, id)", "ok"] if CAMPAIGN else [])])
def test_partitions_with_null_values_keep_rows_metrics_and_partition(
    loop: SparkLoop, lake: CatalogEntry, spark: SparkSession, values: DataFrame, by: str
) -> None:
    columns = {key: COLUMNS[key] for key in ("id", "ok", "n", "d", "day", "at", "text", "dec18")}
    ours = create(loop, "ours", columns, by)
    append(values.select(*columns), ours)
    theirs = another(lake, ours)
    before = contents(spark, ours)

    task = loop.rewrite(ours)
    rewrite_by_iceberg(spark, theirs)

    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert contents(spark, ours) == before
    mine, his = metrics(spark, ours), metrics(spark, theirs)
    assert mine.keys() == his.keys()
    assert any("None" in partition for partition in mine) or by.startswith("bucket")
    names = column_names(lake, ours)
    found = {partition: differences(mine[partition], his[partition], names) for partition in mine}
    assert not any(found.values()), found


def test_uuid_and_fixed_written_by_spark_keep_rows_and_metrics(
    loop: SparkLoop, lake: CatalogEntry, spark: SparkSession
) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "u", UUIDType(), required=False),
        NestedField(3, "x", FixedType(5), required=False),
    )
    writer(lake).create_table(("db", "ours"), schema, properties={"icewright.rewrite-data-files.min-input-files": "2"})
    ours = loop.name("db", "ours")
    frame = (
        spark.range(20)
        .selectExpr("id", "md5(string(id)) AS h")
        .selectExpr(
            "id",
            "IF(id % 4 = 0, NULL, concat(substr(h, 1, 8), '-0000-4000-8000-', substr(h, 1, 12))) AS u",
            "IF(id % 3 = 0, NULL, substr(unhex(h), 1, 5)) AS x",
        )
    )
    append(frame.repartition(3), ours)
    theirs = another(lake, ours)
    before = contents(spark, ours)

    task = loop.rewrite(ours)
    rewrite_by_iceberg(spark, theirs)

    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert contents(spark, ours) == before
    (mine,), (his,) = metrics(spark, ours).values(), metrics(spark, theirs).values()
    assert differences(mine, his, column_names(lake, ours)) == {}


@pytest.mark.parametrize(
    "properties",
    [
        {"write.metadata.metrics.default": "counts", "write.metadata.metrics.column.text": "truncate(3)"},
        {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.d": "full"},
        *([{"write.metadata.metrics.default": "full"}] if CAMPAIGN else []),
    ],
    ids=lambda properties: properties["write.metadata.metrics.default"],
)
def test_metrics_modes_are_those_of_the_table(
    loop: SparkLoop, lake: CatalogEntry, spark: SparkSession, values: DataFrame, properties: dict[str, str]
) -> None:
    columns = {key: COLUMNS[key] for key in ("id", "d", "text", "raw", "nested")}
    ours = create(loop, "ours", columns, "", **properties)
    append(values.select(*columns), ours)
    theirs = another(lake, ours)

    task = loop.rewrite(ours)
    rewrite_by_iceberg(spark, theirs)

    assert task.state is TaskState.SUCCEEDED, task.outcome
    (mine,), (his,) = metrics(spark, ours).values(), metrics(spark, theirs).values()
    assert differences(mine, his, column_names(lake, ours)) == {}


def test_files_of_older_schemas_and_specs_are_merged_where_they_belong(
    loop: SparkLoop, spark: SparkSession, values: DataFrame
) -> None:
    name = create(loop, "events", {"id": "bigint", "n": "int", "text": "string"}, "bucket(2, id)")
    table = sql_name(name)
    append(values.select("id", "n", "text"), name)
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN text TO words")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN n TYPE bigint")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN more double")
    append(values.selectExpr("id", "n * 100000L AS n", "text AS words", "d AS more"), name)
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD truncate(1, words)")
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD bucket(2, id)")
    append(values.selectExpr("id", "n * 100000L AS n", "text AS words", "d AS more"), name)
    spark.sql(f"ALTER TABLE {table} DROP COLUMN n")
    before = contents(spark, name)
    files = spark.sql(f"SELECT count(*) FROM {table}.files").collect()[0][0]  # noqa: S608 - a test
    rows_by_spec = f"SELECT spec_id, sum(record_count) FROM {table}.files GROUP BY spec_id ORDER BY spec_id"  # noqa: S608 - a test
    by_spec = spark.sql(rows_by_spec).collect()

    task = loop.rewrite(name)

    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert contents(spark, name) == before
    assert spark.sql(rows_by_spec).collect() == by_spec
    assert spark.sql(f"SELECT count(*) FROM {table}.files").collect()[0][0] < files  # noqa: S608 - a test


def test_rows_keep_the_order_of_the_files_and_within_them(
    loop: SparkLoop, lake: CatalogEntry, spark: SparkSession
) -> None:
    name = create(loop, "sorted", {"id": "bigint", "text": "string"})
    spark.sql(f"ALTER TABLE {sql_name(name)} WRITE ORDERED BY id")
    for start in (200, 0, 100):
        append(spark.range(start, start + 100).selectExpr("id", "'x' AS text").coalesce(1).sort("id"), name)

    task = loop.rewrite(name)

    assert task.state is TaskState.SUCCEEDED, task.outcome
    (path,) = writer(lake).load_table(name.path).inspect.data_files()["file_path"].to_pylist()
    assert pq.read_table(path.removeprefix("file:"))["id"].to_pylist() == list(range(300))


@pytest.mark.parametrize(
    "properties", [{"write.object-storage.enabled": "true"}, {"write.data.path": "elsewhere"}], ids=["hashed", "path"]
)
def test_files_go_where_the_tables_location_provider_says(
    loop: SparkLoop, lake: CatalogEntry, spark: SparkSession, values: DataFrame, properties: dict[str, str]
) -> None:
    chosen = {key: value.replace("elsewhere", f"{lake.warehouse_uri}/elsewhere") for key, value in properties.items()}
    name = create(loop, "events", {"id": "bigint", "text": "string"}, "bucket(2, id)", **chosen)
    append(values.select("id", "text"), name)
    before = contents(spark, name)

    task = loop.rewrite(name)

    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert contents(spark, name) == before
    paths = writer(lake).load_table(name.path).inspect.data_files()["file_path"].to_pylist()
    assert len(paths) == 2
    location = writer(lake).load_table(name.path).location()
    for path in paths:
        if "write.data.path" in chosen:
            assert path.startswith(f"{lake.warehouse_uri}/elsewhere/id_bucket="), path
        else:
            first = path.removeprefix(f"{location}/data/").split("/")[0]
            assert set(first) <= {"0", "1"}, path
