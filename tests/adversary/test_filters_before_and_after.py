"""No filter finds fewer rows after a rewrite than before, whatever the files hold and whoever asks."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal as D  # noqa: N817 - short in tables of values
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from icewright.model.actions.actions import Executor
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.layouts import Curve, Layout, Level
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import Committed
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.parquet.schema import arrow_schema
from tests.lakes.sqlite import writer
from tests.readers.duck import duckdb_with_iceberg
from tests.spark.shuffled import ascending
from tests.spark.staged import plan_of, rewrite
from tests.spark.tables import found_by, sql_name

pytestmark = pytest.mark.spark

AT = datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC)
_NUMBERS = itertools.count()
CAMPAIGN = bool(os.environ.get("ICEWRIGHT_CAMPAIGN"))
EXECUTORS = (Executor.MERGE, Executor.STITCH, Executor.SORT, Executor.SHUFFLE, Executor.STAGED)
"""Each has partitions of its own in the table of a test, so that readers are asked once before and once after all."""


def add_foreign_files(
    spark: SparkSession, name: TableName, files: Sequence[tuple[str, pa.Table]], **options: Any
) -> None:
    """Register files that icewright and Spark did not write, each in a partition, as importers do: without metrics."""
    table = SparkTable(spark, name)
    append = table.java.newAppend()
    for partition, rows in files:
        path = Path(str(table.java.location()).removeprefix("file:")) / f"imported-{next(_NUMBERS)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path, **options)
        of, size_bytes = Partition(table.spec_id, partition), path.stat().st_size
        append.appendFile(table.data_file(of, path=str(path), size_bytes=size_bytes, record_count=rows.num_rows))
    append.commit()


def field(identity: int, name: str, kind: Any) -> Any:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(identity)})


def rewrite_each(
    spark: SparkSession,
    name: TableName,
    by: Mapping[str, Executor],
    layout: Layout | None = None,
    output_files: int | None = None,
) -> None:
    """Rewrite the partitions whose values begin so in one task, each by its executor, whatever the planner chose."""
    spec = plan_of(spark, name, f"task-{next(_NUMBERS)}")
    groups = tuple(
        replace(group, executor=executor, output_files=output_files or group.output_files)
        for group in spec.rewrite.groups
        for values, executor in by.items()
        if group.partition.values.startswith(values)
    )
    assert {group.executor for group in groups} == set(by.values())
    action = replace(spec.rewrite, groups=groups)
    if layout is not None:
        action = replace(action, level=Level.LEVEL_1, layout=layout)
    done = rewrite(spark, replace(spec, action=action))
    assert isinstance(done.result, Committed), done.result
    assert done.left == ()


def rewrite_by_all(spark: SparkSession, name: TableName, of: Mapping[Executor, str], order_by: int, files: int) -> None:
    """Rewrite the partition of each executor; two of them order its rows into ``files`` files."""
    by = {values: executor for executor, values in of.items()}
    sorts = {values: executor for values, executor in by.items() if executor in (Executor.SORT, Executor.SHUFFLE)}
    rewrite_each(spark, name, sorts, Layout(Curve.SORT, ascending(order_by)), files)
    staged = {values: executor for values, executor in by.items() if executor is Executor.STAGED}
    rewrite_each(spark, name, staged)
    rewrite_each(spark, name, {values: one for values, one in by.items() if values not in {*sorts, *staged}})


def spark_truth(spark: SparkSession, name: TableName, filters: Sequence[str]) -> dict[str, list[int]]:
    """What Spark says of each row by each filter when all of them are computed, and none is given to the one scan."""
    computed = [F.expr(where).alias(f"f{number}") for number, where in enumerate(filters)]
    rows = spark.table(sql_name(name)).select("id", *computed).toArrow()
    return {where: sorted(rows.filter(rows[f"f{number}"])["id"].to_pylist()) for number, where in enumerate(filters)}


def answers(
    spark: SparkSession,
    lake: CatalogEntry,
    name: TableName,
    filters: Mapping[str, Sequence[str]],
    of_spark: Callable[[SparkSession, TableName, Sequence[str]], dict[str, list[int]]] = found_by,
) -> dict[str, list[int]]:
    """What each reader finds by each of its filters."""
    found = {f"spark: {where}": ids for where, ids in of_spark(spark, name, filters["spark"]).items()}
    table = writer(lake).load_table(name.path)
    for where in filters["pyiceberg"]:
        rows = table.scan(row_filter=where, selected_fields=("id",)).to_arrow()
        found[f"pyiceberg: {where}"] = sorted(rows["id"].to_pylist())
    with duckdb_with_iceberg() as connection:
        for where in filters["duckdb"]:
            query = f"SELECT id FROM iceberg_scan('{table.metadata_location}') WHERE {where}"  # noqa: S608 - a test
            found[f"duckdb: {where}"] = sorted(row[0] for row in connection.execute(query).fetchall())
    return found


P_INSIDE = ("p <> 7", "p < 6", "p IS NOT NULL", "s.q = 5", "s.q >= 5", "s.q IS NOT NULL")
"""True of all rows by their partitions, though not by what the files hold."""
P_OUTSIDE = ("p = 7", "p IS NULL", "s.q = 9", "s.q IS NULL", "id >= 0", "p IN (1, 3)")


def test_r3_filters_by_a_partition_column_that_the_files_hold_otherwise(
    spark: SparkSession, lake: CatalogEntry
) -> None:
    name = TableName(lake.name, ("db",), "imported")
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {lake.name}.db")
    spark.sql(
        f"CREATE TABLE {sql_name(name)} (id BIGINT, p INT, s STRUCT<q: INT, t: STRING>) USING iceberg "
        "PARTITIONED BY (p, s.q)"
    )
    inner = pa.struct([field(4, "q", pa.int32()), field(5, "t", pa.string())])
    schema = pa.schema([field(1, "id", pa.int64()), field(2, "p", pa.int32()), field(3, "s", inner)])
    partitions = dict(enumerate(EXECUTORS, 1))
    ids: dict[int, list[int]] = {partition: [] for partition in partitions}
    files = []
    for partition, its in ids.items():
        for p, q in ((7, 9), (None, None), (partition, 5)):
            numbers = range(partition * 30 + len(its), partition * 30 + len(its) + 10)
            rows = [{"id": number, "p": p, "s": {"q": q, "t": "text"}} for number in numbers]
            files.append((f"[{partition},5]", pa.Table.from_pylist(rows, schema=schema)))
            its.extend(numbers)
    add_foreign_files(spark, name, files)
    of_one = [f"p = {partition}" for partition in partitions]
    filters = {"spark": (*of_one, *P_INSIDE, *P_OUTSIDE), "pyiceberg": (*of_one, "p = 7", "p IS NULL")}
    filters["duckdb"] = tuple(of_one)
    before = answers(spark, lake, name, filters, spark_truth)
    assert [before[f"spark: {where}"] for where in of_one] == list(ids.values())
    assert all(before[f"spark: {where}"] == sorted(itertools.chain(*ids.values())) for where in P_INSIDE)

    of = {executor: f"[{partition}," for partition, executor in partitions.items()}
    rewrite_by_all(spark, name, of, order_by=1, files=2)

    after = answers(spark, lake, name, filters)
    lost = {asked: found for asked, found in before.items() if not set(found) <= set(after[asked])}
    assert lost == {}
    assert {asked: found for asked, found in after.items() if asked.startswith("spark")} == {
        asked: found for asked, found in before.items() if asked.startswith("spark")
    }


LONG = "p" * 70
TOP = "\U0010ffff"
MICROS = "2024-02-29 23:59:59.999999"
DEC38 = "1234567890123456789012345678.0000000001"
FLOATS = (math.nan, -0.0, 0.0, math.inf, -math.inf, 1.5, -2.5, None)
NTZ = AT.replace(tzinfo=None)
COLUMNS: dict[str, tuple[str, Any, tuple[Any, ...], tuple[str, ...]]] = {
    "b": ("BOOLEAN", pa.bool_(), (True, False, None), ("true", "false")),
    "i": ("INT", pa.int32(), (-(2**31), -1, 0, 2**31 - 1, None), ("-1", "0", "2147483647")),
    "l": ("BIGINT", pa.int64(), (-(2**63) + 1, 0, 2**63 - 1, None), ("0", "9223372036854775807")),
    "f": ("FLOAT", pa.float32(), FLOATS, ()),
    "d": ("DOUBLE", pa.float64(), FLOATS, ()),
    "dec9": ("DECIMAL(9,2)", pa.decimal128(9, 2), (D("-9999999.99"), D("0.01"), None), ("-9999999.99", "0.00")),
    "dec18": ("DECIMAL(18,4)", pa.decimal128(18, 4), (D("-1.28"), D("1.28"), D("9E13"), None), ("-1.2800", "1.2800")),
    "dec38": ("DECIMAL(38,10)", pa.decimal128(38, 10), (D("-1E20"), D("0.1"), D(DEC38), None), ("0", DEC38)),
    "day": ("DATE", pa.date32(), (date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)), ("DATE '1969-12-31'",)),
    "at": (
        "TIMESTAMP",
        pa.timestamp("us", "UTC"),
        (AT, AT.replace(1904), AT.replace(9996)),
        (f"TIMESTAMP '{MICROS}Z'",),
    ),
    "local": ("TIMESTAMP_NTZ", pa.timestamp("us"), (NTZ, NTZ.replace(1904), None), (f"TIMESTAMP_NTZ '{MICROS}'",)),
    "t": (
        "STRING",
        pa.string(),
        ("", LONG + "a", LONG + "z", "\u00e9" * 20, TOP * 17, "\ud7ff" * 17, None),
        ("''", f"'{LONG}a'", f"'{LONG}m'", f"'{TOP * 17}'"),
    ),
    "y": ("BINARY", pa.binary(), (b"", b"\xff" * 20, b"\x80", b"\0", None), ("X''", f"X'{'ff' * 20}'", "X'80'")),
}
"""Spark's type, Arrow's, values, and literals of Spark's to compare with."""

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
FLOAT_LITERALS = tuple(f"CAST('{text}' AS {{0}})" for text in ("NaN", "-0.0", "0.0", "Infinity", "1.5"))
PY_FILTERS = tuple(
    "d = 0.0; d <> 0.0; d > 2.0; d <= -2.5; d IS NAN; d IS NOT NAN; d IS NULL; d IN (0.0, 1.5); f IS NAN; t = ''; "
    f"t >= '{LONG}a'; t > '{LONG}m'; t IS NULL; i >= 2147483647; b = true; n.x IS NOT NULL; n.x < 0.0; "
    "day >= '1969-12-31'; dec18 <= -1.2800".split("; ")
)
DUCK_FILTERS = tuple(
    "d = 0; d <> 0; d > 2; isnan(d); NOT isnan(d); d <> 'inf'::DOUBLE; d IN (0, 1.5); d IS NULL; f > 2; isnan(f); "
    f"t = ''; t > '{LONG}m'; t IS NOT NULL; i <= -2147483648; dec38 > 1; day < DATE '1970-01-01'; "
    "y > '\\x80'::BLOB".split("; ")
)


def spark_filters() -> Iterator[str]:
    for column, (kind, _, _, literals) in COLUMNS.items():
        compared = literals or [text.format(kind) for text in FLOAT_LITERALS]
        few = not CAMPAIGN and column != "d"
        for literal in compared[:1] if few else compared:
            yield from (f"{column} {comparison} {literal}" for comparison in COMPARISONS[:: 4 if few else 1])
        yield f"{column} IN ({', '.join(compared)})"
        yield from (f"{column} IS NULL", f"{column} IS NOT NULL")
    yield from (f"{test}isnan({column})" for test in ("", "NOT ") for column in ("f", "d", "n.x"))
    yield from (f"n.x {comparison} 0" for comparison in COMPARISONS)
    yield from ("n.t = ''", f"n.t > '{LONG}m'", "n IS NULL", "d <> CAST('Infinity' AS DOUBLE)")


def all_rows(count: int, partition: str, first_id: int) -> list[dict[str, Any]]:
    """Rows in which the values of each column come in another rhythm."""
    rows = []
    for number in range(count):
        row: dict[str, Any] = {"id": first_id + number, "p": partition}
        for step, (column, (_, _, values, _)) in enumerate(COLUMNS.items(), 1):
            row[column] = values[(number // (1 + step % 3) + step) % len(values)]
        row["n"] = None if number % 5 == 4 else {"x": row["d"], "t": row["t"]}
        rows.append(row)
    return rows


def truth(rows: Sequence[dict[str, Any]]) -> dict[str, list[int]]:
    """Of some filters by Python's own comparison: NaN equals itself and is greater than all other numbers for Spark."""
    tests: dict[str, Callable[[float], bool]] = {
        "d = CAST('0.0' AS DOUBLE)": lambda d: d == 0,
        "d <> CAST('Infinity' AS DOUBLE)": lambda d: d != math.inf,
        "d > CAST('1.5' AS DOUBLE)": lambda d: math.isnan(d) or d > 1.5,
        "isnan(d)": math.isnan,
        "d >= CAST('-0.0' AS DOUBLE)": lambda d: math.isnan(d) or d >= 0,
    }
    return {
        where: [row["id"] for row in rows if row["d"] is not None and test(row["d"])] for where, test in tests.items()
    }


def test_r4_filters_of_every_type_find_what_they_found(spark: SparkSession, lake: CatalogEntry) -> None:
    """Each file of before has all edge values, so that no reader passes over anything; new files have few of them."""
    name = TableName(lake.name, ("db",), "all_types")
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {lake.name}.db")
    columns = ", ".join(f"{column} {kind}" for column, (kind, *_) in COLUMNS.items())
    spark.sql(
        f"CREATE TABLE {sql_name(name)} (id BIGINT, p STRING, {columns}, n STRUCT<x: DOUBLE, t: STRING>) "
        "USING iceberg PARTITIONED BY (p)"
    )
    table = SparkTable(spark, name)
    kinds = {column: kind for column, (_, kind, *_) in COLUMNS.items()}
    nested = pa.struct({"x": pa.float64(), "t": pa.string()})
    schema = pa.schema({"id": pa.int64(), "p": pa.string(), **kinds, "n": nested})
    own = arrow_schema(table.schema_fields())
    rows: list[dict[str, Any]] = []
    for executor in EXECUTORS:
        its = all_rows(600, executor.value, len(rows))
        parts = [pa.Table.from_pylist(its[start::3], schema=schema).cast(own) for start in range(3)]
        add_foreign_files(spark, name, [(f'["{executor.value}"]', part) for part in parts], write_statistics=False)
        rows += its
    filters = {"spark": [*dict.fromkeys(spark_filters())], "pyiceberg": PY_FILTERS, "duckdb": DUCK_FILTERS}
    before = answers(spark, lake, name, filters, spark_truth)
    assert {f"spark: {where}": before[f"spark: {where}"] for where in truth(rows)} == {
        f"spark: {where}": found for where, found in truth(rows).items()
    }

    by_double = next(field["id"] for field in table.schema_fields() if field["name"] == "d")
    rewrite_by_all(spark, name, {one: f'["{one.value}"' for one in EXECUTORS}, order_by=by_double, files=6)

    after = answers(spark, lake, name, filters)
    changed = {
        asked: sorted({rows[number]["p"] for number in set(found) ^ set(after[asked])})
        for asked, found in before.items()
        if found != after[asked]
    }
    assert changed == {}


KINDS: dict[str, tuple[float | None, ...]] = {
    "negative zeros": (-0.0, 1.5, None),
    "zeros": (0.0,),
    "NaN": (math.nan, math.inf),
}
"""Values that a partition is of, and no others: what a rewrite of it gathers in a row group."""

ROWS = 24
"""Of a partition: enough for a dictionary to be worth its bytes."""

ROUNDS: tuple[tuple[Curve | None, dict[str, Executor]], ...] = (
    (None, {"merge": Executor.MERGE, "stitch": Executor.STITCH}),
    (Curve.SORT, {"sort": Executor.SORT, "shuffle": Executor.SHUFFLE}),
    (None, {"staged": Executor.STAGED}),
    (Curve.ZORDER, {"z-order": Executor.SHUFFLE}),
    (Curve.HILBERT, {"Hilbert": Executor.SHUFFLE}),
)
"""Executors of one rewrite each, by the names of the partitions that they take."""

BLOOM_FILTERS_FROM = 2
"""Merges do not write any, so that the table asks for them from this round on."""

FLOAT_COLUMNS = {"d": "DOUBLE", "f": "FLOAT", "n.x": "DOUBLE", "n.deep.z": "FLOAT"}
OF_FLOATS = (
    *("{c} = {zero}", "{c} = {minus}", "{c} IN ({zero}, {one})", "{c} <= {minus}", "{c} > {one}"),
    *("{c} <> {inf}", "isnan({c})"),
)
OF_DOUBLES = (
    *OF_FLOATS,
    *("{c} IN ({minus}, {one})", "{c} <> {zero}", "{c} < {zero}", "{c} <= {zero}", "{c} >= {zero}"),
    *("{c} < {inf}", "{c} = {inf}", "NOT isnan({c})", "{c} IS NULL"),
)


def of_floats(literal: str, wheres: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Filters of columns, ``literal`` being how a reader is told a number of a type."""
    texts = {"zero": "0.0", "minus": "-0.0", "one": "1.5", "inf": "Infinity"}
    return tuple(
        where.format(c=column, **{name: literal.format(text, FLOAT_COLUMNS[column]) for name, text in texts.items()})
        for column, its in wheres.items()
        for where in its
    )


def test_r4_zeros_and_nan_that_each_executor_gathers(spark: SparkSession, lake: CatalogEntry) -> None:
    """Each executor rewrites its own partitions; files of before say nothing by which a reader could pass over them."""
    name = TableName(lake.name, ("db",), "gathered")
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {lake.name}.db")
    spark.sql(
        f"CREATE TABLE {sql_name(name)} (id BIGINT, p STRING, d DOUBLE, f FLOAT, "
        "n STRUCT<x: DOUBLE, deep: STRUCT<z: FLOAT>>) USING iceberg PARTITIONED BY (p)"
    )
    own = arrow_schema(SparkTable(spark, name).schema_fields())
    partitions = [f"{label} {kind}" for _, labels in ROUNDS for label in labels for kind in KINDS]
    values: list[float | None] = []
    files = []
    for partition in partitions:
        of = KINDS[partition.split(" ", 1)[1]]
        its = [of[number % len(of)] for number in range(ROWS)]
        rows = [
            {"id": number, "p": partition, "d": v, "f": v, "n": {"x": v, "deep": {"z": v}}}
            for number, v in enumerate(its, len(values))
        ]
        values += its
        files.append((f'["{partition}"]', pa.Table.from_pylist(rows, schema=own)))
    add_foreign_files(spark, name, files, write_statistics=False, use_dictionary=False)
    wheres = dict.fromkeys(FLOAT_COLUMNS, OF_FLOATS) | {"d": OF_DOUBLES}
    zeros = dict.fromkeys(FLOAT_COLUMNS, OF_FLOATS[:1])
    filters = {
        "spark": of_floats("CAST('{0}' AS {1})", wheres),
        "pyiceberg": (*of_floats("{0}", zeros | {"d": OF_FLOATS[:5]}), "d IS NAN", "d IS NOT NAN", "f IS NAN"),
        "duckdb": of_floats("'{0}'::{1}", zeros | {"d": OF_FLOATS}),
    }

    before = answers(spark, lake, name, filters, spark_truth)
    for column, kind in FLOAT_COLUMNS.items():
        assert before[f"spark: {column} = CAST('0.0' AS {kind})"] == [
            number for number, v in enumerate(values) if v == 0
        ]
        assert before[f"spark: isnan({column})"] == [number for number, v in enumerate(values) if str(v) == "nan"]

    for number, (curve, labels) in enumerate(ROUNDS):
        if number == BLOOM_FILTERS_FROM:
            wanted = ", ".join(f"'write.parquet.bloom-filter-enabled.column.{c}' = 'true'" for c in FLOAT_COLUMNS)
            spark.sql(f"ALTER TABLE {sql_name(name)} SET TBLPROPERTIES ({wanted})")
        layout = None if curve is None else Layout(curve, ascending(*((3,) if curve is Curve.SORT else (1, 3))))
        rewrite_each(spark, name, {f'["{label} ': executor for label, executor in labels.items()}, layout)

    after = answers(spark, lake, name, filters)
    changed = {
        where: sorted({partitions[number // ROWS] for number in set(found) ^ set(after[where])})
        for where, found in before.items()
    }
    assert {where: by for where, by in changed.items() if by} == {}
