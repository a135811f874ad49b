"""The staged rewrite on real Spark: what the merge cannot do, with the same rows afterwards and a proof that tells."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import FixedType, LongType, NestedField, UUIDType
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit, when

from icewright.core.errors import Unsupported
from icewright.model.actions.actions import Executor, FileGroup
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import Committed, Conflicted, Failed, TaskSpec
from icewright_spark.executors.staged import rewrite as staged_rewrite
from icewright_spark.executors.staged.staging import StagedTasks
from icewright_spark.iceberg.java_api import SparkTable, iterate
from icewright_spark.iceberg.scan_tasks import planned_tasks
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.parquet.thrift import BINARY, I64
from icewright_spark.session.session import cancel_job_group
from tests.lakes.deletes import delete_where_equal
from tests.lakes.sqlite import writer
from tests.spark.loop import SparkLoop
from tests.spark.staged import plan_of, rewrite, rewritten
from tests.spark.tables import contents, data_files, sql_name
from tests.wrong_footers import Damage, damaged_at, of_index, put, stated, without_a_bit

pytestmark = pytest.mark.spark

DEFAULTS = {"format-version": "2", "icewright.rewrite-data-files.min-input-files": "2"}
IDS_AND_CITIES = "SELECT int(id + {number} * 10), concat('c', id % 3) FROM range(0, 10, 1, 1)"


@pytest.fixture
def loop(spark: SparkSession, lake: CatalogEntry) -> SparkLoop:
    made = SparkLoop(spark, lake)
    made.clock.ahead_ms = 2 * 24 * 3_600_000  # so that nothing has been written to any partition for a while
    return made


@pytest.fixture
def name(spark: SparkSession, lake: CatalogEntry) -> TableName:
    spark.sql(f"CREATE NAMESPACE {lake.name}.db")
    return TableName(lake.name, ("db",), "events")


def create(spark: SparkSession, name: TableName, columns: str, by: str = "", /, **properties: str) -> str:
    """A new table of format version 2 unless told otherwise; its name for SQL."""
    said = ", ".join(f"'{key}' = '{value}'" for key, value in (DEFAULTS | properties).items())
    partitions = f"PARTITIONED BY ({by})" if by else ""
    spark.sql(f"CREATE TABLE {sql_name(name)} ({columns}) USING iceberg {partitions} TBLPROPERTIES ({said})")
    return sql_name(name)


def insert(spark: SparkSession, table: str, select: str, times: int = 2) -> None:
    """So many commits of one file each; ``{number}`` in ``select`` is which."""
    for number in range(times):
        spark.sql(f"INSERT INTO {table} {select.format(number=number)}")


def java(spark: SparkSession, name: TableName) -> Any:
    return SparkTable(spark, name).java


def test_w4_equality_deletes(loop: SparkLoop, spark: SparkSession, name: TableName) -> None:
    table = create(spark, name, "id int, city string")
    insert(spark, table, IDS_AND_CITIES)
    delete_where_equal(spark, java(spark, name), [{"id": 3}, {"id": 13}])
    insert(spark, table, "SELECT 3, 'again'", times=1)

    done = rewritten(loop, name)

    (receipt,), (figures,) = done.receipts, done.groups
    assert (receipt.records, receipt.deleted_records) == (19, 2)
    assert receipt.input_digest == receipt.output_digest
    assert len(data_files(spark, name)) == 1
    assert figures.output_paths[0].endswith(data_files(spark, name)[0])
    assert 0 < figures.proof_cpu_ms <= figures.cpu_ms


def test_w2_w4_equality_deletes_that_come_meanwhile_are_a_conflict_and_stand(
    spark: SparkSession, name: TableName
) -> None:
    """Two, since Iceberg used to drop the first of them when new files kept the base snapshot's sequence number."""
    table = create(spark, name, "id int, city string")
    insert(spark, table, IDS_AND_CITIES)
    delete_where_equal(spark, java(spark, name), [{"id": 3}])
    spec = plan_of(spark, name)

    def delete() -> None:
        delete_where_equal(spark, java(spark, name), [{"id": 13}])
        delete_where_equal(spark, java(spark, name), [{"id": 4}])

    refused = rewrite(spark, spec, delete)
    before = contents(spark, name)

    assert isinstance(refused.result, Conflicted)
    assert "ValidationException" in refused.result.detail  # Iceberg's own, after all our looks
    assert [left.code for left in refused.left] == ["conflict"]
    done = rewrite(spark, plan_of(spark, name, "task-2"))
    assert isinstance(done.result, Committed), done.result
    assert contents(spark, name) == before
    assert sum(before.values()) == 17
    assert len(data_files(spark, name)) == 1


def test_variants_and_maps_with_their_lineage(loop: SparkLoop, spark: SparkSession, name: TableName) -> None:
    table = create(spark, name, "id bigint, v variant, m map<string, struct<a: int>>", **{"format-version": "3"})
    values = (
        "SELECT id + {number} * 10, IF(id = 4, NULL, parse_json(concat("
        """'{{"a": ', id, ', "b": [1.5, "x", null], "c": {{"', id, '": true}}}}'))), """
        "map('k', named_struct('a', int(id)), 'j', NULL) FROM range(0, 10, 1, 1)"
    )
    insert(spark, table, values, times=3)
    spark.sql(f"UPDATE {table} SET m = NULL WHERE id = 13")  # noqa: S608 - a test

    (receipt,) = rewritten(loop, name).receipts

    assert receipt.records == 30


def test_variants_that_were_shredded_are_read_and_those_to_be_shredded_left_alone(
    spark: SparkSession, name: TableName
) -> None:
    table = create(spark, name, "v variant", **{"format-version": "3", "write.parquet.shred-variants": "true"})
    insert(spark, table, """SELECT parse_json(concat('{{"a": ', id, ', "b": "x"}}')) FROM range(0, 10, 1, 1)""")
    before = by_row_readers(spark, table)
    assert all("typed_value" in str(pq.read_schema(path)) for path in data_files(spark, name))

    with pytest.raises(Unsupported, match="shredded"):
        rewrite(spark, plan_of(spark, name))
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('write.parquet.shred-variants')")
    done = rewrite(spark, plan_of(spark, name))

    assert isinstance(done.result, Committed), done.result
    assert by_row_readers(spark, table) == before
    assert len(data_files(spark, name)) == 1


def by_row_readers(spark: SparkSession, table: str) -> list[str]:
    """The vectorised reader cannot read shredded variants."""
    return sorted(map(str, spark.read.option("vectorization-enabled", "false").table(table).collect()))


def test_uuids_and_fixed_bytes(loop: SparkLoop, spark: SparkSession, name: TableName) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "u", UUIDType()), NestedField(3, "x", FixedType(5))
    )
    properties = {"icewright.rewrite-data-files.min-input-files": "2"}
    writer(loop.entry).create_table(name.path, schema, properties=properties)
    insert(
        spark,
        sql_name(name),
        "SELECT id, IF(id = 1, NULL, concat('00000000-0000-4000-8000-00000000000', id)), "
        "IF(id = 2, NULL, substr(unhex(md5(string(id))), 1, 5)) FROM range(0, 5, 1, 1)",
    )

    rewritten(loop, name, Executor.MERGE)

    assert len(data_files(spark, name)) == 1


def test_files_of_other_formats_become_one_of_the_tables_own(
    loop: SparkLoop, spark: SparkSession, name: TableName
) -> None:
    columns = (
        "id int, at timestamp, n timestamp_ntz, day date, price decimal(20, 2), list array<double>, m map<int, string>"
    )
    table = create(spark, name, columns)
    for file_format in ("avro", "orc", "parquet"):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.format.default' = '{file_format}')")
        insert(
            spark,
            table,
            "SELECT int(id), timestamp_seconds(id + {number}), timestamp_ntz'2026-11-22 01:02:03.456789', "
            "date_from_unix_date(int(id)), decimal(id), array(double('NaN'), -0.0D, id, NULL), "
            "map(int(id), string(id)) FROM range(0, 8, 1, 1)",
            times=1,
        )

    rewritten(loop, name)

    (path,) = data_files(spark, name)
    assert path.endswith(".parquet")
    # One file gains nothing by its size; its owner wants it to be of another format all the same.
    asked = "'icewright.rewrite-data-files.migrate-formats' = 'true', 'write.format.default' = 'orc'"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({asked})")

    rewritten(loop, name)

    (path,) = data_files(spark, name)
    assert path.endswith(".orc")


def test_an_initial_default_is_kept_by_being_written(loop: SparkLoop, spark: SparkSession, name: TableName) -> None:
    table = create(spark, name, "id int, city string", **{"format-version": "3"})
    insert(spark, table, IDS_AND_CITIES)
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg
    five = iceberg.expressions.Expressions.lit(5)
    java(spark, name).updateSchema().addColumn("n", iceberg.types.Types.IntegerType.get(), five).commit()
    insert(spark, table, "SELECT 100, 'later', NULL", times=1)

    rewritten(loop, name)

    assert {row["n"] for row in spark.table(table).where("id < 100").collect()} == {5}
    (path,) = data_files(spark, name)
    assert pq.read_table(path)["n"].null_count == 1


def test_nested_columns_that_were_changed(loop: SparkLoop, spark: SparkSession, name: TableName) -> None:
    table = create(
        spark, name, "id int, s struct<a: int, gone: string>, l array<struct<x: int>>, m map<string, struct<y: int>>"
    )
    insert(
        spark,
        table,
        "SELECT int(id), IF(id = 3, NULL, named_struct('a', int(id), 'gone', 'g')), "
        "array(named_struct('x', int(id)), NULL), map('k', named_struct('y', 1)) FROM range(0, 6, 1, 1)",
    )
    spark.sql(f"ALTER TABLE {table} ADD COLUMN s.b array<string>")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN s.gone")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN l.element.z double")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN m.value.y TYPE bigint")
    insert(
        spark,
        table,
        "SELECT 9, named_struct('a', 1, 'b', array('x', NULL)), array(named_struct('x', 1, 'z', -0.0D)), "
        "map('k', named_struct('y', 1L << 40))",
        times=1,
    )

    rewritten(loop, name)

    assert len(data_files(spark, name)) == 1


def test_files_without_field_ids_are_read_by_their_names(
    loop: SparkLoop, spark: SparkSession, name: TableName, lake: CatalogEntry
) -> None:
    create(spark, name, "id bigint, city string, n int")
    folder = f"{lake.warehouse_uri}/imported"
    for number in range(2):
        spark.range(number * 10, number * 10 + 5).selectExpr("id", "concat('c', id) AS city").coalesce(1).write.parquet(
            f"{folder}/{number}"
        )
        spark.sql(
            f"CALL {lake.name}.system.add_files(table => 'db.events', source_table => '`parquet`.`{folder}/{number}`')"
        )
    assert "schema.name-mapping.default" in SparkTable(spark, name).properties

    rewritten(loop, name)

    (path,) = data_files(spark, name)
    assert pq.read_schema(path).field("id").metadata[b"PARQUET:field_id"] == b"1"


def test_bloom_filters_are_written(loop: SparkLoop, spark: SparkSession, name: TableName) -> None:
    key = "write.parquet.bloom-filter-enabled.column.city"
    table = create(spark, name, "id int, city string", **{key: "true"})
    insert(spark, table, "SELECT int(id), md5(string(id + {number} * 100)) FROM range(0, 50, 1, 1)")

    rewritten(loop, name)

    (path,) = data_files(spark, name)
    columns = duckdb.execute("SELECT path_in_schema FROM parquet_metadata(?) WHERE bloom_filter_offset > 0", [path])
    assert columns.fetchall() == [("city",)]


def test_every_partition_of_every_spec_gets_a_file_of_its_own(
    loop: SparkLoop, spark: SparkSession, name: TableName
) -> None:
    table = create(spark, name, "id int, city string, at timestamp, f double", "truncate(4, city), hours(at)")
    values = (
        "SELECT int(id), IF(id = 1, NULL, 'it''s'), timestamp_seconds(id * 1000), IF(id = 0, -0.0D, 1.5D) "
        "FROM range(0, 4, 1, 1)"
    )
    insert(spark, table, values)
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD truncate(4, city)")
    spark.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD at_hour WITH f")
    insert(spark, table, values)
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN city TO town")  # no snapshot has this schema
    spark.sql(f"ALTER TABLE {table} ADD COLUMN later int")
    by_spec = f"SELECT spec_id, sum(record_count) FROM {table}.files GROUP BY spec_id ORDER BY spec_id"  # noqa: S608 - a test
    before = spark.sql(by_spec).collect()

    report = rewritten(loop, name, Executor.MERGE)

    assert spark.sql(by_spec).collect() == before
    assert len(data_files(spark, name)) == len(report.receipts) == 4


def test_rows_keep_their_order_and_no_order_is_claimed(spark: SparkSession, name: TableName) -> None:
    """Spark's writer does not claim one today; should it ever, nobody would have proved it."""
    table = create(spark, name, "id int, city string")
    spark.sql(f"ALTER TABLE {table} WRITE ORDERED BY city, id")
    insert(spark, table, "SELECT int(id + {number} * 10), 'c' FROM range(0, 10, 1, 1)", times=3)
    spec = plan_of(spark, name)
    written = [row for file in spec.rewrite.groups[0].files for row in ids_in(file.path)]

    rewrite(spark, spec)

    (path,) = data_files(spark, name)
    assert ids_in(path) == written
    (order,) = spark.sql(f"SELECT sort_order_id FROM {table}.files").collect()  # noqa: S608 - a test
    assert order[0] == 0
    opened, claiming = SparkTable(spark, name), java(spark, name)
    data_files_of_java = spark._jvm.org.apache.iceberg.DataFiles  # type: ignore[union-attr]  # there is a JVM
    written_file = next(iterate(claiming.newScan().planFiles())).file()
    claimed = data_files_of_java.builder(claiming.spec()).copy(written_file).withSortOrder(claiming.sortOrder()).build()
    assert (claimed.sortOrderId(), opened.unsorted(claimed).sortOrderId()) == (1, 0)


def ids_in(path: str) -> list[int]:
    found: list[int] = pq.read_table(path.removeprefix("file:"))["id"].to_pylist()
    return found


def two_values_swapped(rows: DataFrame) -> DataFrame:
    other = when(col("id") == 3, lit("city 4")).when(col("id") == 4, lit("city 3"))
    return rows.withColumn("city", other.otherwise(col("city")))


def a_zero_flipped(rows: DataFrame) -> DataFrame:
    return rows.withColumn("price", when(col("id") == 3, lit(-0.0)).otherwise(col("price")))


def null_made_empty(rows: DataFrame) -> DataFrame:
    return rows.withColumn("city", when(col("city").isNull(), lit("")).otherwise(col("city")))


def a_wrong_row_deleted(rows: DataFrame) -> DataFrame:
    """Of 4 and 5, the second was deleted; as many rows are left."""
    back = when(col("id") == 4, lit(5)).otherwise(col("id"))
    return rows.withColumn("id", back).withColumn("city", when(back == 5, lit("city 5")).otherwise(col("city")))


def a_row_lost(rows: DataFrame) -> DataFrame:
    return rows.where("id <> 3")


def a_row_doubled(rows: DataFrame) -> DataFrame:
    return rows.union(rows.where("id = 3")).coalesce(1)


def one_row_for_another(rows: DataFrame) -> DataFrame:
    return rows.where("id <> 3").union(rows.where("id = 4")).coalesce(1)


def lineage_lost(rows: DataFrame) -> DataFrame:
    return rows.withColumn("_row_id", when(col("id") == 3, lit(None)).otherwise(col("_row_id")))


def age_lost(rows: DataFrame) -> DataFrame:
    return rows.withColumn("_last_updated_sequence_number", lit(None).cast("long"))


FAULTS = (
    *(two_values_swapped, a_zero_flipped, null_made_empty, a_wrong_row_deleted),
    *(a_row_lost, a_row_doubled, one_row_for_another, lineage_lost, age_lost),
)


def test_w1_a_writer_that_does_not_write_what_it_was_given_is_caught(
    spark: SparkSession, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = create(spark, name, "id int, city string, price double", **more)
    insert(spark, table, "SELECT int(id), IF(id = 6, NULL, concat('city ', id)), 0.0D FROM range(0, 10, 1, 1)")
    spark.sql(f"DELETE FROM {table} WHERE id = 5")  # noqa: S608 - a test
    spec, before, files = plan_of(spark, name), contents(spark, name), data_files(spark, name)
    honest = staged_rewrite.write
    for number, fault in enumerate(FAULTS):

        def faulty(tasks: StagedTasks, rows: DataFrame, group: FileGroup, fault: Any = fault) -> list[Any]:
            return honest(tasks, fault(rows), group)

        monkeypatch.setattr(staged_rewrite, "write", faulty)
        with pytest.raises(ProofFailed):
            rewrite(spark, replace(spec, attempt=number))
    assert contents(spark, name) == before
    assert data_files(spark, name) == files


MISSTATED: dict[str, Damage] = {
    "the maximum is stated to be 3": stated("id", 5, BINARY, struct.pack("<i", 3)),
    "0 nulls are stated": stated("city", 3, I64, 0),
    "page 0: the minimum": of_index("id", put(2, 0, struct.pack("<i", 4))),
    "its bloom filter lacks": lambda path: without_a_bit(path, "city", all_of_them=True),
}


def test_a_file_that_states_what_does_not_hold_of_its_rows_is_caught(
    spark: SparkSession, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers would skip rows of it, each of which is there. Names are too many for a dictionary, which would do."""
    key = "write.parquet.bloom-filter-enabled.column.city"
    table = create(spark, name, "id int, city string, price double", **{key: "true"})
    names = "IF(id = 6, NULL, md5(string(id + {number} * 100)))"
    insert(spark, table, f"SELECT int(id), {names}, -0.0D FROM range(0, 50, 1, 1)")  # noqa: S608 - a test
    spec, before, honest = plan_of(spark, name), contents(spark, name), staged_rewrite.write
    for number, (said, damage) in enumerate(MISSTATED.items()):

        def damaging(tasks: StagedTasks, rows: DataFrame, group: FileGroup, damage: Damage = damage) -> list[Any]:
            files = honest(tasks, rows, group)
            damaged_at(files[0].location(), damage)
            return files

        monkeypatch.setattr(staged_rewrite, "write", damaging)
        with pytest.raises(ProofFailed, match=said):
            rewrite(spark, replace(spec, attempt=number))
    assert contents(spark, name) == before


def test_a_cancelled_attempt_ends_and_leaves_nothing_staged(
    loop: SparkLoop, spark: SparkSession, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(spark, name, "id int, city string", **{"write.parquet.bloom-filter-enabled.column.city": "true"})
    insert(spark, table, IDS_AND_CITIES)
    spec, files = loop.claim(name), data_files(spark, name)
    honest, tasks = staged_rewrite.write, spark._jvm.org.apache.iceberg.spark.ScanTaskSetManager.get()  # type: ignore[union-attr]  # there is a JVM

    def cancelled(staged_tasks: StagedTasks, rows: DataFrame, group: FileGroup) -> list[Any]:
        assert tasks.fetchSetIds(java(spark, name)).size() == 1
        cancel_job_group(spark, f"{spec.task_id}/{spec.attempt}")
        return honest(staged_tasks, rows, group)

    monkeypatch.setattr(staged_rewrite, "write", cancelled)
    report = loop.attempt(spec)

    assert isinstance(report.result, Failed), report.result
    assert "cancel" in report.result.detail.lower()
    assert data_files(spark, name) == files
    assert tasks.fetchSetIds(java(spark, name)).isEmpty()


def without_deletes(spec: TaskSpec) -> TaskSpec:
    (group,) = spec.rewrite.groups
    files = tuple(replace(file, deletes=()) for file in group.files)
    return replace(spec, action=replace(spec.rewrite, groups=(replace(group, files=files, delete_files=()),)))


def with_other_rows(spec: TaskSpec) -> TaskSpec:
    (group,) = spec.rewrite.groups
    first, *rest = group.files
    files = (replace(first, record_count=first.record_count + 1), *rest)
    return replace(spec, action=replace(spec.rewrite, groups=(replace(group, files=files),)))


def with_another_file(spec: TaskSpec) -> TaskSpec:
    (group,) = spec.rewrite.groups
    first, *rest = group.files
    files = (replace(first, path=f"{first.path}-other"), *rest)
    return replace(spec, action=replace(spec.rewrite, groups=(replace(group, files=files),)))


def test_what_iceberg_plans_otherwise_is_refused(spark: SparkSession, name: TableName) -> None:
    table = create(spark, name, "id int, city string")
    insert(spark, table, IDS_AND_CITIES)
    delete_where_equal(spark, java(spark, name), [{"id": 3}])
    spec = plan_of(spark, name)
    for change in (without_deletes, with_other_rows, with_another_file):
        action = change(spec).rewrite
        with pytest.raises(Unsupported, match="Iceberg"):
            planned_tasks(SparkTable(spark, name), action.base_snapshot_id, action.groups)


def test_a_group_without_a_row_left_becomes_a_file_without_rows(
    loop: SparkLoop, spark: SparkSession, name: TableName
) -> None:
    table = create(spark, name, "id int, city string", "city")
    insert(spark, table, "SELECT 3, 'c'")
    delete_where_equal(spark, java(spark, name), [{"id": 3}], partition=a_partition(spark, name))

    (receipt,) = rewritten(loop, name).receipts

    assert (receipt.records, receipt.deleted_records) == (0, 2)
    assert pq.read_table(data_files(spark, name)[0]).num_rows == 0


def a_partition(spark: SparkSession, name: TableName) -> Any:
    return next(iterate(java(spark, name).newScan().planFiles())).file().partition()
