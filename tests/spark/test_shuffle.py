"""The shuffle on real Spark: several files in the order of a layout, the same rows, and proofs that tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit, when

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import Unsupported
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import SortField
from icewright.model.work.jobs import Committed, Conflicted, TaskSpec
from icewright.plans.evidence.service import changes_between, problem_of
from icewright_spark.actions.done import Done
from icewright_spark.executors.sort import rewrite as shuffle_rewrite
from icewright_spark.executors.staged.staging import StagedTasks
from icewright_spark.iceberg.java_api import SparkTable, iterate
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.parquet.thrift import I64
from tests.conftest import CAMPAIGN
from tests.lakes.deletes import delete_where_equal
from tests.spark.shuffled import ascending, column_of, is_rising, layout_of, shuffle_of
from tests.spark.staged import rewrite
from tests.spark.tables import contents, data_files, missing_files, sql_name
from tests.wrong_footers import damaged_at, stated

pytestmark = pytest.mark.spark

MERGE_ON_READ = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}
COLUMNS = "id bigint, city string, at timestamp, price double, part int, d decimal(20, 2), s struct<n: int>"
VALUES = (
    "SELECT id * 4 + {number}, IF(id % 9 = 0, NULL, concat('a common prefix of forty characters, or so ', id % 17)), "
    "timestamp_seconds(id * 7919 % 5000), "
    "IF(id % 50 = 1, double('NaN'), IF(id % 60 = 2, NULL, (id * 31 % 101) - 50.0D)), "
    "int(id % 2), decimal(id * 17 % 29), named_struct('n', int(id * 13 % 37)) FROM range(0, {rows}, 1, 1)"
)


@pytest.fixture
def name(spark: SparkSession, lake: CatalogEntry) -> TableName:
    spark.sql(f"CREATE NAMESPACE {lake.name}.db")
    return TableName(lake.name, ("db",), "events")


def create(spark: SparkSession, name: TableName, version: int, by: str = "", times: int = 3, rows: int = 300) -> str:
    said = ", ".join(
        f"'{key}' = '{value}'" for key, value in ({"format-version": str(version)} | MERGE_ON_READ).items()
    )
    partitions = f"PARTITIONED BY ({by})" if by else ""
    spark.sql(f"CREATE TABLE {sql_name(name)} ({COLUMNS}) USING iceberg {partitions} TBLPROPERTIES ({said})")
    for number in range(times):
        spark.sql(f"INSERT INTO {sql_name(name)} {VALUES.format(number=number, rows=rows)}")
    return sql_name(name)


def shuffled(spark: SparkSession, lake: CatalogEntry, spec: TaskSpec) -> Done:
    """Carried out and committed: the same rows, nothing missing, and what the server would check of it."""
    name = spec.table_name
    before = contents(spark, name)
    done = rewrite(spark, spec)
    assert isinstance(done.result, Committed), done.result
    assert contents(spark, name) == before
    assert missing_files(spark, name) == []
    catalog = PyIcebergCatalog(lake)
    metadata = catalog.load(name)
    snapshot = metadata.snapshot(done.result.snapshot_id)
    assert snapshot is not None
    parent = metadata.snapshot(snapshot.parent_id)
    assert parent is not None
    assert (
        problem_of(spec.rewrite, snapshot, changes_between(catalog, metadata, parent, snapshot, spec.rewrite)) is None
    )
    return done


def test_a_partitioned_table_with_deletes_is_sorted_partition_by_partition_in_one_job(
    spark: SparkSession, name: TableName, lake: CatalogEntry
) -> None:
    table = create(spark, name, 2, "part")
    spark.sql(f"DELETE FROM {table} WHERE id % 20 = 1")  # noqa: S608 - a test
    fields = (SortField(4, "identity", "desc", "nulls-last"), SortField(2, "identity", "asc", "nulls-first"))
    spec = shuffle_of(spark, name, Layout(Curve.SORT, fields), 4)

    done = shuffled(spark, lake, spec)

    assert [len(figures.output_paths) for figures in done.figures] == [4, 4]
    assert all(receipt.deleted_records for receipt in done.receipts)
    for figures in done.figures:
        prices = [price for path in figures.output_paths for price in column_of(path, "price")]
        assert is_rising(prices[::-1])
        counts = [len(column_of(path, "id")) for path in figures.output_paths]
        assert max(counts) <= min(counts) * 1.2, counts
        assert 0 < figures.proof_cpu_ms <= figures.cpu_ms


@pytest.mark.parametrize(
    ("layout", "column", "value"),
    [
        *([(layout_of(Curve.ZORDER, 2, 4), "price", 10.0)] if CAMPAIGN else []),
        (layout_of(Curve.HILBERT, 1, 3), "at", "1970-01-01T00:33:20+00:00"),
    ],
    ids=lambda its: str(its.curve) if isinstance(its, Layout) else "",
)
def test_rows_keep_their_lineage_on_a_curve_and_a_lookup_opens_few_files(
    spark: SparkSession, name: TableName, lake: CatalogEntry, layout: Layout, column: str, value: Any
) -> None:
    table = create(spark, name, 3)
    spark.sql(f"UPDATE {table} SET price = price + 1 WHERE id % 10 = 1")  # noqa: S608 - a test

    done = shuffled(spark, lake, shuffle_of(spark, name, layout, 16))

    (figures,), (receipt,) = done.figures, done.receipts
    assert len(figures.output_paths) == len(data_files(spark, name)) == 16
    assert receipt.input_digest == receipt.output_digest
    assert receipt.deleted_records > 0
    opened = SparkTable(spark, name).java.newScan().filter(expression(spark, name, column, value))
    assert len(list(iterate(opened.planFiles()))) <= 8


def test_files_are_in_the_tables_sort_order_where_they_are_said_to_be(
    spark: SparkSession, name: TableName, lake: CatalogEntry
) -> None:
    """By a transform and by a nested column; another layout than the table's order claims nothing."""
    table = create(spark, name, 2, times=2)
    spark.sql(f"ALTER TABLE {table} WRITE ORDERED BY truncate(9, city) DESC NULLS FIRST, s.n")
    order = SparkTable(spark, name).sort_order
    layout = Layout(Curve.SORT, order.fields, order.order_id)

    (figures,) = shuffled(spark, lake, shuffle_of(spark, name, layout, 3)).figures

    assert sort_orders(spark, table) == {order.order_id}
    for path in figures.output_paths:
        rows = zip(column_of(path, "city"), column_of(path, "s"), strict=True)
        keys = [(city is not None, [-ord(letter) for letter in (city or "")[:9]], s["n"]) for city, s in rows]
        assert keys == sorted(keys)
    other = replace(layout, fields=ascending(2))
    shuffled(spark, lake, shuffle_of(spark, name, other, 2, "task-2"))
    assert sort_orders(spark, table) == {0}


def sort_orders(spark: SparkSession, table: str) -> set[int]:
    return {row[0] for row in spark.sql(f"SELECT sort_order_id FROM {table}.files").collect()}  # noqa: S608 - a test


def test_no_file_is_without_rows_but_the_last_one(spark: SparkSession, name: TableName, lake: CatalogEntry) -> None:
    """Three rows cannot become five files; of a partition whose rows are all deleted one empty file is left."""
    create(spark, name, 2, "part", times=1, rows=6)
    java = SparkTable(spark, name).java
    partitions = {str(task.file().partition()): task.file().partition() for task in iterate(java.newScan().planFiles())}
    delete_where_equal(spark, java, [{"part": 1}], partition=partitions["PartitionData{part=1}"])

    done = shuffled(spark, lake, shuffle_of(spark, name, layout_of(Curve.SORT, 1), 5))

    assert sorted((receipt.records, receipt.deleted_records) for receipt in done.receipts) == [(0, 3), (3, 0)]
    assert sorted(len(figures.output_paths) for figures in done.figures) == [1, 3]


def test_groups_of_every_spec_stay_in_it_and_other_formats_become_the_tables_own(
    spark: SparkSession, name: TableName, lake: CatalogEntry
) -> None:
    table = create(spark, name, 2, times=1, rows=40)
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD part")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.format.default' = 'orc')")
    spark.sql(f"INSERT INTO {table} {VALUES.format(number=1, rows=40)}")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.format.default' = 'parquet')")

    done = shuffled(spark, lake, shuffle_of(spark, name, layout_of(Curve.ZORDER, 2, 6), 2))

    files = spark.sql(f"SELECT spec_id, file_format FROM {table}.files ORDER BY spec_id").collect()  # noqa: S608 - a test
    assert [tuple(file) for file in files] == [(0, "PARQUET")] * 2 + [(1, "PARQUET")] * 4
    assert [receipt.records for receipt in done.receipts] == [40, 20, 20]


def test_a_layout_that_spark_cannot_order_rows_by_is_refused(spark: SparkSession, name: TableName) -> None:
    create(spark, name, 2, times=1, rows=4)
    spec = shuffle_of(spark, name, layout_of(Curve.SORT, 1), 2)
    wrong = (
        None,
        layout_of(Curve.SORT, 99),
        layout_of(Curve.SORT, 7),  # a struct
        layout_of(Curve.HILBERT, 1),
        Layout(Curve.SORT, (SortField(4, "bucket[4]", "asc", "nulls-first"),)),  # a double
        Layout(Curve.SORT, (SortField(1, "mystery", "asc", "nulls-first"),)),
        Layout(Curve.ZORDER, (SortField(1, "bucket[4]", "asc", "nulls-first"), *ascending(2))),
    )
    for layout in wrong:
        with pytest.raises(Unsupported):
            rewrite(spark, replace(spec, action=replace(spec.rewrite, layout=layout)))


def test_a_delete_that_comes_meanwhile_is_a_conflict_and_stands(spark: SparkSession, name: TableName) -> None:
    table = create(spark, name, 3, times=2, rows=50)
    spec = shuffle_of(spark, name, layout_of(Curve.HILBERT, 1, 4), 2)
    spark.sql(f"DELETE FROM {table} WHERE id = 8")  # noqa: S608 - a test
    before = contents(spark, name)

    assert isinstance(rewrite(spark, spec).result, Conflicted)

    assert contents(spark, name) == before


def test_a_damaged_input_of_one_group_leaves_the_others_that_share_its_jobs(
    spark: SparkSession, name: TableName
) -> None:
    create(spark, name, 2, "part", times=2, rows=20)
    before = contents(spark, name)
    spec = shuffle_of(spark, name, layout_of(Curve.SORT, 1), 2)
    assert len(spec.rewrite.groups) == 2
    bad = spec.rewrite.groups[0]
    path = Path(bad.files[1].path.removeprefix("file:"))
    whole = path.read_bytes()
    path.unlink()

    done = rewrite(spark, spec)

    assert isinstance(done.result, Committed), done.result
    assert [(left.group_id, left.code) for left in done.left] == [(bad.group_id, "file-unreadable")]
    path.write_bytes(whole)
    assert contents(spark, name) == before


def a_value_changed(rows: DataFrame) -> DataFrame:
    return rows.withColumn("city", when(col("id") == 8, lit("other")).otherwise(col("city")))


def a_row_lost(rows: DataFrame) -> DataFrame:
    return rows.where("id <> 8")


def a_row_doubled(rows: DataFrame) -> DataFrame:
    return (
        rows.withColumn("n", when(col("id") == 8, lit(2)).otherwise(lit(1)))
        .selectExpr("explode(array_repeat(n, n)) AS n", "*")
        .drop("n")
    )


def lineage_lost(rows: DataFrame) -> DataFrame:
    return rows.withColumn("_row_id", when(col("id") == 8, lit(None)).otherwise(col("_row_id")))


def another_order(rows: DataFrame) -> DataFrame:
    return rows.sortWithinPartitions(col("price").desc())


def other_cells(rows: DataFrame) -> DataFrame:
    return rows.repartition(2, "city").sortWithinPartitions("price")


FAULTS: dict[Callable[[DataFrame], DataFrame], str] = {
    a_value_changed: "are not those of its inputs",
    a_row_lost: "are not those of its inputs",
    a_row_doubled: "are not those of its inputs",
    lineage_lost: "are not those of its inputs",
    another_order: "not in the order sort",
    other_cells: "files overlap",
}


def test_rows_that_are_not_written_as_they_were_read_or_not_in_their_order_are_caught(
    spark: SparkSession, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(spark, name, 3, times=2, rows=50)
    spec, before = shuffle_of(spark, name, layout_of(Curve.SORT, 4), 2), contents(spark, name)
    honest, files = shuffle_rewrite.write, data_files(spark, name)
    for number, (fault, said) in enumerate(FAULTS.items()):

        def faulty(tasks: StagedTasks, rows: DataFrame, spec_id: int, fault: Any = fault) -> list[Any]:
            return honest(tasks, fault(rows), spec_id)

        monkeypatch.setattr(shuffle_rewrite, "write", faulty)
        with pytest.raises(ProofFailed, match=said):
            rewrite(spark, replace(spec, attempt=number))
    assert contents(spark, name) == before
    assert data_files(spark, name) == files


def test_a_file_that_states_what_does_not_hold_of_its_rows_is_caught(
    spark: SparkSession, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(spark, name, 3, times=2, rows=50)
    spec, honest = shuffle_of(spark, name, layout_of(Curve.SORT, 4), 2), shuffle_rewrite.write

    def damaging(tasks: StagedTasks, rows: DataFrame, spec_id: int) -> list[Any]:
        files = honest(tasks, rows, spec_id)
        damaged_at(files[-1].location(), stated("city", 3, I64, 50))
        return files

    monkeypatch.setattr(shuffle_rewrite, "write", damaging)
    with pytest.raises(ProofFailed, match="50 nulls are stated"):
        rewrite(spark, spec)


def test_a_curve_is_proved_by_the_key_of_each_row_read_back(
    spark: SparkSession, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(spark, name, 2, times=2, rows=50)
    spec, honest = shuffle_of(spark, name, layout_of(Curve.ZORDER, 1, 4), 2), shuffle_rewrite.write
    for number, (fault, said) in enumerate({another_order: "not in the order zorder", other_cells: "zorder"}.items()):

        def faulty(tasks: StagedTasks, rows: DataFrame, spec_id: int, fault: Any = fault) -> list[Any]:
            return honest(tasks, fault(rows), spec_id)

        monkeypatch.setattr(shuffle_rewrite, "write", faulty)
        with pytest.raises(ProofFailed, match=said):
            rewrite(spark, replace(spec, attempt=number))


def expression(spark: SparkSession, name: TableName, column: str, value: Any) -> Any:
    return SparkTable(spark, name).expression({"type": "eq", "term": column, "value": value})
