"""Files that Spark sorted, merged by their key in its Python workers."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from icewright.core.errors import NotSorted
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import Committed, Failed, TaskSpec
from icewright_spark.iceberg.java_api import SparkTable
from tests.spark.hand_planned import hand_planned
from tests.spark.staged import rewrite
from tests.spark.tables import contents, missing_files, sql_name

pytestmark = pytest.mark.spark

VALUES = "SELECT id * 2 + {number}, IF(id % 9 = 0, NULL, double(id * 7919 % 500) / 7) FROM range(0, 300, 1, 1)"


def by_key(spark: SparkSession, name: TableName, layout: Layout, output_files: int) -> TaskSpec:
    spec = hand_planned(spark, name)
    groups = tuple(replace(group, executor=Executor.MERGE, output_files=output_files) for group in spec.rewrite.groups)
    return replace(spec, action=replace(spec.rewrite, groups=groups, layout=layout))


def test_sorted_files_become_sorted_files_in_the_tables_order(spark: SparkSession, lake: CatalogEntry) -> None:
    spark.sql(f"CREATE NAMESPACE {lake.name}.db")
    name = TableName(lake.name, ("db",), "events")
    table = sql_name(name)
    spark.sql(
        f"CREATE TABLE {table} (id bigint, price double) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.sql(f"ALTER TABLE {table} WRITE LOCALLY ORDERED BY price DESC NULLS LAST, id")
    for number in range(2):
        spark.sql(f"INSERT INTO {table} {VALUES.format(number=number)}")
    spark.sql(f"DELETE FROM {table} WHERE id % 20 = 1")  # noqa: S608 - a test
    order = SparkTable(spark, name).sort_order
    layout = Layout(Curve.SORT, order.fields, order.order_id)
    before = contents(spark, name)

    done = rewrite(spark, by_key(spark, name, layout, 3))

    assert isinstance(done.result, Committed)
    assert contents(spark, name) == before
    assert missing_files(spark, name) == []
    ((figures,), (receipt,)) = done.figures, done.receipts
    rows = [row for path in figures.output_paths for row in pq.read_table(path.removeprefix("file:")).to_pylist()]
    assert len(rows) == receipt.records == 600 - receipt.deleted_records
    keys = [(row["price"] is None, -(row["price"] or 0), row["id"]) for row in rows]
    assert keys == sorted(keys)
    said = spark.sql(f"SELECT sort_order_id, record_count FROM {table}.data_files").collect()  # noqa: S608 - a test
    assert {row[0] for row in said} == {order.order_id}
    assert max(row[1] for row in said) - min(row[1] for row in said) <= 1

    by_another_order = by_key(spark, name, Layout(Curve.SORT, order.fields[1:]), 1)
    refused = rewrite(spark, by_another_order).result
    assert isinstance(refused, Failed)
    assert refused.code == NotSorted.code
    assert contents(spark, name) == before
    # Few rows are sorted by one worker, whatever their order.
    groups = tuple(replace(group, executor=Executor.SORT, output_files=2) for group in by_another_order.rewrite.groups)
    few = replace(by_another_order, action=replace(by_another_order.rewrite, groups=groups), task_id="sorted")
    done = rewrite(spark, few)
    assert isinstance(done.result, Committed)
    assert contents(spark, name) == before
    paths = done.figures[0].output_paths
    ids = [row["id"] for path in paths for row in pq.read_table(path.removeprefix("file:")).to_pylist()]
    assert (len(paths), ids) == (2, sorted(ids))
    assert {row[0] for row in spark.sql(f"SELECT sort_order_id FROM {table}.data_files").collect()} == {None}  # noqa: S608 - a test
    by_another_order = by_key(spark, name, Layout(Curve.SORT, order.fields[1:]), 1)
    # What the next plan does instead where they are many.
    groups = tuple(replace(group, executor=Executor.SHUFFLE) for group in by_another_order.rewrite.groups)
    shuffled = replace(by_another_order, action=replace(by_another_order.rewrite, groups=groups), task_id="shuffled")
    assert isinstance(rewrite(spark, shuffled).result, Committed)
    assert contents(spark, name) == before
