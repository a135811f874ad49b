"""Files of older partition specs move to the current one on real Spark, and rows in a wrong partition are caught."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IntegerType, StringType, TimestamptzType
from pyspark.sql import DataFrame, SparkSession

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import Conflict
from icewright.inventory.specs import current_spec_obstacle
from icewright.model.actions.actions import FileGroup
from icewright.model.actions.rewrite_data_files import RewriteDataFilesRequest
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Migration
from icewright.model.policy.policy import MigrateSpec
from icewright.model.work.jobs import Committed, Conflicted, TaskSpec
from icewright.model.work.tasks import TaskState
from icewright_spark.executors.staged import rewrite as staged_rewrite
from icewright_spark.executors.staged.staging import StagedTasks
from icewright_spark.iceberg.java_api import SparkTable, iterate
from icewright_spark.parquet.errors import ManyPartitions, ProofFailed
from icewright_spark.session.session import java_gateway
from tests.conftest import CAMPAIGN
from tests.lakes.deletes import delete_where_equal
from tests.spark.loop import OPTIMIZER, SparkLoop
from tests.spark.staged import plan_of, rewrite, rewritten
from tests.spark.tables import contents, data_files, missing_files, sql_name

pytestmark = pytest.mark.spark

VERSIONS = (2, 3) if CAMPAIGN else (3,)
"""Of sequence numbers, which both have alike, and row ids, which version 3 alone has."""
MIGRATE = "icewright.rewrite-data-files.migrate-spec"
TYPES = {"id": IntegerType(), "city": StringType(), "ts": TimestamptzType()}
ROWS = (
    "SELECT int(id + {number} * 100), IF(id % 7 = 3, NULL, concat('c', id % 5)), "
    "timestamp_seconds(1700000000 + (id * 4 + {number}) * 3600) FROM range(0, 20, 1, 1)"
)


@pytest.fixture
def loop(spark: SparkSession, lake: CatalogEntry) -> SparkLoop:
    made = SparkLoop(spark, lake)
    made.clock.ahead_ms = 2 * 24 * 3_600_000  # so that nothing has been written to any partition for a while
    return made


@pytest.fixture
def name(spark: SparkSession, lake: CatalogEntry) -> TableName:
    spark.sql(f"CREATE NAMESPACE {lake.name}.db")
    return TableName(lake.name, ("db",), "events")


def create(spark: SparkSession, name: TableName, by: str, version: int, migrate: MigrateSpec = MigrateSpec.ALL) -> str:
    """A table whose rows are deleted by position deletes or vectors; its name for SQL."""
    partitions = f"PARTITIONED BY ({by})" if by else ""
    said = f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', '{MIGRATE}' = '{migrate}'"
    spark.sql(
        f"CREATE TABLE {sql_name(name)} (id int, city string, ts timestamp) USING iceberg {partitions} "
        f"TBLPROPERTIES ({said}, 'write.distribution-mode' = 'none', 'write.spark.fanout.enabled' = 'true')"
    )
    for number in range(2):
        spark.sql(f"INSERT INTO {sql_name(name)} {ROWS.format(number=number)}")
    return sql_name(name)


def placed(spark: SparkSession, name: TableName) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Of each live data file, its entry in Iceberg's JSON and its spec."""
    table = SparkTable(spark, name).java
    gateway = java_gateway(spark).org.apache.iceberg
    found = {}
    for task in iterate(table.newScan().planFiles()):
        said = json.loads(gateway.ContentFileParser.toJson(task.file(), task.spec()))
        spec = json.loads(gateway.PartitionSpecParser.toJson(task.spec()))
        found[said["file-path"]] = (said, spec)
    return found


def assert_every_row_is_in_its_partition(spark: SparkSession, name: TableName) -> None:
    """By PyIceberg's transforms, of what pyarrow reads in the files themselves."""
    current = SparkTable(spark, name).spec_id
    names = {1: "id", 2: "city", 3: "ts"}
    for path, (entry, spec) in placed(spark, name).items():
        assert entry["spec-id"] == current
        rows = pq.read_table(path.removeprefix("file:"))
        for field, value in zip(spec["fields"], entry["partition"], strict=True):
            column = names[field["source-id"]]
            transform = parse_transform(field["transform"]).transform(TYPES[column])
            assert {shown(transform(raw(each)), field) for each in rows[column].to_pylist()} == {value}


def raw(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return int((value - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)


def shown(value: Any, field: dict[str, Any]) -> Any:
    if field["transform"] != "day":
        return value
    return datetime.fromtimestamp(value * 86_400, UTC).date().isoformat()


def test_unpartitioned_files_move_to_days_without_the_deleted_rows(
    loop: SparkLoop, spark: SparkSession, name: TableName
) -> None:
    """Deletes by equality of an unpartitioned spec reach everywhere, so nobody has to wait for them."""
    table = create(spark, name, "", 2)
    spark.sql(f"DELETE FROM {table} WHERE id = 5")  # noqa: S608 - a test
    delete_where_equal(spark, SparkTable(spark, name).java, [{"id": 7}, {"id": 107}])
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD days(ts)")
    spark.sql(f"INSERT INTO {table} {ROWS.format(number=2)}")

    (receipt,) = rewritten(loop, name).receipts

    assert (receipt.records, receipt.deleted_records) == (37, 3)
    assert_every_row_is_in_its_partition(spark, name)


def test_days_move_to_hours_with_their_vectors_and_keep_their_ids(
    loop: SparkLoop, spark: SparkSession, name: TableName
) -> None:
    table = create(spark, name, "days(ts)", 3)
    spark.sql(f"DELETE FROM {table} WHERE id % 10 = 4")  # noqa: S608 - a test
    spark.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD days(ts) WITH hours(ts)")

    report = rewritten(loop, name)

    assert sum(receipt.deleted_records for receipt in report.receipts) == 4
    assert_every_row_is_in_its_partition(spark, name)


def test_buckets_are_split_and_deletes_of_the_old_buckets_are_folded_in(
    loop: SparkLoop, spark: SparkSession, name: TableName
) -> None:
    table = create(spark, name, "bucket(4, id)", 2)
    opened = SparkTable(spark, name)
    old = data_files(spark, name)[0]
    gone = pq.read_table(old)["id"].to_pylist()[0]
    (file,) = [
        task.file() for task in iterate(opened.java.newScan().planFiles()) if str(task.file().location()).endswith(old)
    ]
    delete_where_equal(spark, opened.java, [{"id": gone}], partition=file.partition())
    spark.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD bucket(4, id) WITH bucket(8, id)")

    report = rewritten(loop, name)

    assert sum(receipt.deleted_records for receipt in report.receipts) == 1
    assert_every_row_is_in_its_partition(spark, name)
    assert gone not in [row.id for row in spark.table(table).collect()]


def moving(spark: SparkSession, name: TableName, task_id: str = "task-1", files: int = 100) -> TaskSpec:
    """All files of older specs, to be moved."""
    spec, current = plan_of(spark, name, task_id), SparkTable(spark, name).spec_id
    groups = tuple(
        replace(group, output_spec_id=current, output_files=files)
        for group in spec.rewrite.groups
        if group.partition.spec_id != current
    )
    return replace(spec, action=replace(spec.rewrite, groups=groups))


def in_each_others_partitions(table: SparkTable, files: list[Any]) -> list[Any]:
    """Two files whose entries say the partition of the other one."""
    builders = table.jvm.org.apache.iceberg.DataFiles
    first, second, *others = files
    swapped = [
        builders.builder(table.java.spec()).copy(file).withPartition(other.partition()).build()
        for file, other in ((first, second), (second, first))
    ]
    return [*swapped, *others]


def test_rows_in_a_wrong_partition_are_caught(
    spark: SparkSession, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the guard nobody would notice: the rows are all there, and scans would skip them."""
    table = create(spark, name, "", 3)
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD days(ts)")
    spec, before, honest = moving(spark, name), contents(spark, name), staged_rewrite.write

    def faulty(tasks: StagedTasks, rows: DataFrame, group: FileGroup) -> list[Any]:
        return in_each_others_partitions(SparkTable(spark, name), honest(tasks, rows, group))

    monkeypatch.setattr(staged_rewrite, "write", faulty)
    with pytest.raises(ProofFailed, match="was written to another"):
        rewrite(spark, spec)
    assert contents(spark, name) == before
    monkeypatch.setattr(staged_rewrite, "check_partitions", lambda *_: None)
    done = rewrite(spark, replace(spec, attempt=2))
    assert isinstance(done.result, Committed), done.result
    with pytest.raises(AssertionError):
        assert_every_row_is_in_its_partition(spark, name)


def test_a_group_of_too_many_partitions_is_left_before_anything_is_written(
    spark: SparkSession, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(spark, name, "", 2)
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD hours(ts)")

    def never(*_: object) -> list[Any]:
        raise AssertionError("written")

    monkeypatch.setattr(staged_rewrite, "write", never)
    done = rewrite(spark, moving(spark, name, files=5))
    assert [left.code for left in done.left] == [ManyPartitions.code]


def test_another_spec_meanwhile_is_a_conflict(
    spark: SparkSession, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(spark, name, "", 2)
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD days(ts)")
    spec, before, honest = moving(spark, name), contents(spark, name), staged_rewrite.write

    def evolving(tasks: StagedTasks, rows: DataFrame, group: FileGroup) -> list[Any]:
        files = honest(tasks, rows, group)
        spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)")
        return files

    monkeypatch.setattr(staged_rewrite, "write", evolving)
    for attempt in (1, 2):  # while it is carried out, and before
        with pytest.raises(Conflict, match="partition spec"):
            rewrite(spark, replace(spec, attempt=attempt))
    assert contents(spark, name) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_w4_a_delete_by_equality_means_the_same_as_if_nothing_had_moved(
    spark: SparkSession, name: TableName, version: int
) -> None:
    """Under the current spec, one from before the move does not reach moved rows, as it did not reach them before."""
    table = create(spark, name, "bucket(2, id)", version)
    spark.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD bucket(2, id) WITH bucket(4, id)")
    opened = SparkTable(spark, name)
    old = next(iterate(opened.java.newScan().planFiles())).file()
    gone = pq.read_table(str(old.location()).removeprefix("file:"))["id"].to_pylist()[0]
    bucket = parse_transform("bucket[4]").transform(IntegerType())(gone)
    new = opened.partition_data(Partition(opened.spec_id, f"[{bucket}]"))

    def delete_under_the_current_spec() -> None:
        delete_where_equal(spark, SparkTable(spark, name).java, [{"id": gone}], partition=new)

    spec, before = moving(spark, name), contents(spark, name)
    done = rewrite(spark, spec, delete_under_the_current_spec)
    assert isinstance(done.result, Committed), done.result
    assert contents(spark, name) == before
    assert missing_files(spark, name) == []
    delete_under_the_current_spec()
    assert sum((before - contents(spark, name)).values()) == 1


def test_a_delete_by_equality_under_the_old_spec_is_a_conflict(spark: SparkSession, name: TableName) -> None:
    table = create(spark, name, "bucket(1, id)", 2)
    old = next(iterate(SparkTable(spark, name).java.newScan().planFiles())).file().partition()
    late = SparkTable(spark, name).java
    spark.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD bucket(1, id) WITH bucket(2, id)")
    spec = moving(spark, name)

    done = rewrite(spark, spec, lambda: delete_where_equal(spark, late, [{"id": 3}], partition=old))

    assert isinstance(done.result, Conflicted), done.result
    assert 3 not in [row.id for row in spark.table(table).collect()]


def test_every_type_that_partitions_can_have_and_nulls_among_them(
    spark: SparkSession, name: TableName, lake: CatalogEntry
) -> None:
    """Values of partitions as Iceberg's JSON has them, of columns of any type, in a struct, and of all transforms."""
    fields = {
        "a": ("int", "IF(id = 1, NULL, int(-id))", "a"),
        "b": ("bigint", "(id - 1) * 1000", "truncate(500, b)"),
        "c": ("boolean", "id = 2", "c"),
        "d": ("decimal(12, 3)", "decimal((id - 1) / 8)", "d"),
        "e": ("date", "date_add(DATE'1969-12-31', int(id))", "e"),
        "f": ("timestamp", "timestamp_micros(id * 3600000001 - 7200000000)", "f"),
        "g": ("timestamp_ntz", "TIMESTAMP_NTZ'1969-12-31 23:59:59.5'", "hours(g)"),
        "h": ("string", "IF(id = 0, NULL, concat('ü\"', id, 'x'))", "truncate(3, h)"),
        "i": ("binary", "unhex(concat('FF0', id))", "i"),
        "j": ("struct<k: date>", "named_struct('k', DATE'2024-02-29')", "months(j.k)"),
        "l": ("string", "concat('l', id)", "bucket(5, l)"),
        "m": ("decimal(20, 2)", "decimal(-id)", "bucket(3, m)"),
        "n": ("timestamp", "timestamp_seconds(-1 - id * 40000000)", "years(n)"),
    }
    columns = ", ".join(f"{column} {kind}" for column, (kind, _, _) in fields.items())
    spark.sql(f"CREATE TABLE {sql_name(name)} ({columns}) USING iceberg TBLPROPERTIES ('format-version' = '2')")
    values = ", ".join(value for _, value, _ in fields.values())
    spark.sql(f"INSERT INTO {sql_name(name)} SELECT {values} FROM range(0, 4, 1, 1)")  # noqa: S608 - a test
    for _, _, term in fields.values():
        spark.sql(f"ALTER TABLE {sql_name(name)} ADD PARTITION FIELD {term}")
    assert current_spec_obstacle(PyIcebergCatalog(lake).load(name)) is None
    before = contents(spark, name)

    done = rewrite(spark, moving(spark, name))

    assert isinstance(done.result, Committed), done.result
    assert contents(spark, name) == before
    assert len(data_files(spark, name)) == 4
    assert {entry["spec-id"] for entry, _ in placed(spark, name).values()} == {SparkTable(spark, name).spec_id}


def test_what_was_partitioned_moves_to_no_partition(spark: SparkSession, name: TableName) -> None:
    table = create(spark, name, "bucket(2, id)", 2)
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD bucket(2, id)")
    before = contents(spark, name)

    done = rewrite(spark, moving(spark, name, files=1))

    assert isinstance(done.result, Committed), done.result
    assert contents(spark, name) == before
    assert_every_row_is_in_its_partition(spark, name)


def test_a_migration_that_is_asked_for_is_carried_out(loop: SparkLoop, spark: SparkSession, name: TableName) -> None:
    """Avro files of an older spec, too few to be merged: by itself nothing is done to them."""
    table = create(spark, name, "", 2, MigrateSpec.TOUCHED)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.format.default' = 'avro')")
    spark.sql(f"INSERT INTO {table} {ROWS.format(number=3)}")
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('write.format.default')")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD days(ts)")
    before, keeper = contents(spark, name), loop.control.maintainer
    assert keeper.look(name).plan.is_empty

    plan = keeper.plan_asked(name, RewriteDataFilesRequest(Migration.ALL))
    assert plan.reason.text.endswith("of 3 files to be migrated 0 remain")
    task = loop.control.dispatcher.apply(plan.plan_id)
    spec = loop.control.dispatcher.claim(OPTIMIZER)
    assert spec is not None
    done = loop.verified(loop.attempt(spec))
    assert (done.task_id, done.state) == (task.task_id, TaskState.SUCCEEDED), done.outcome
    assert contents(spark, name) == before
    assert missing_files(spark, name) == []
    assert_every_row_is_in_its_partition(spark, name)
    assert {entry["file-format"] for entry, _ in placed(spark, name).values()} == {"parquet"}
    assert keeper.plan_asked(name, RewriteDataFilesRequest(Migration.ALL)).reason.code == "nothing-to-migrate"
