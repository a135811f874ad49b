"""Position delete files written as fewer on real Spark: the same rows are deleted, and readers open less."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icewright.core.errors import Conflict
from icewright.model.actions.rewrite_delete_files import RewritePositionDeletes, RewritePositionDeletesRequest
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import Committed, TaskSpec
from icewright.model.work.tasks import TaskState
from icewright_spark.actions.done import Done
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.rewrite_position_deletes import rewrite_position_deletes
from icewright_spark.iceberg.java_api import SparkTable, iterate
from icewright_spark.parquet.errors import ProofFailed
from tests.lakes.deletes import delete_where_equal
from tests.spark.beginnings import Beginnings
from tests.spark.loop import SparkLoop
from tests.spark.tables import contents, missing_files, sql_name

pytestmark = pytest.mark.spark

ASKED = RewritePositionDeletesRequest()


@dataclass(frozen=True)
class Deleted:
    """A table of format version 2 with many position delete files."""

    spark: SparkSession
    loop: SparkLoop
    name: TableName

    @property
    def java(self) -> Any:
        return SparkTable(self.spark, self.name).java

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(t=sql_name(self.name)))

    def claim(self) -> TaskSpec:
        return self.loop.claim_asked(self.name, ASKED)

    def carry_out(self, spec: TaskSpec, meanwhile: Callable[[], None] = lambda: None) -> Done:
        """As an attempt does; ``meanwhile`` comes right before the first commit."""
        todo, table = [meanwhile], SparkTable(self.spark, self.name)
        may_commit = lambda: todo.pop()() if todo else None  # noqa: E731 - one line is enough for it
        return rewrite_position_deletes(self.spark, table, spec, action_of(spec), Phase(1), may_commit)

    def files(self, of: str) -> list[tuple[Any, ...]]:
        """Path, kind and number of rows of each live file."""
        rows = self.spark.sql(f"SELECT file_path, content, record_count FROM {sql_name(self.name)}.{of}")  # noqa: S608 - a test
        return sorted(tuple(row) for row in rows.collect())


def action_of(spec: TaskSpec) -> RewritePositionDeletes:
    assert isinstance(spec.action, RewritePositionDeletes)
    return spec.action


def write_position_deletes(spark: SparkSession, table: Any, city: str, rows: Iterable[tuple[str, int]]) -> None:
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg
    partition = iceberg.DataFiles.data(table.spec(), f"city={city}")
    factory = getattr(jvm, "org.apache.iceberg.data.GenericFileWriterFactory$Builder")(table).build()
    output = table.io().newOutputFile(table.locationProvider().newDataLocation(f"{uuid.uuid4()}-deletes.parquet"))
    encrypted = iceberg.encryption.EncryptionUtil.plainAsEncryptedOutput(output)
    writer = factory.newPositionDeleteWriter(encrypted, table.spec(), partition)
    delete = iceberg.deletes.PositionDelete.create()
    for path, position in rows:
        writer.write(delete.set(path, position))
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


def write(spark: SparkSession, name: TableName) -> None:
    """Three data files in Lima with four delete files of the partition, one in Oslo with two of its own."""
    table = sql_name(name)
    spark.sql(
        f"CREATE TABLE {table} (id INT, city STRING) USING iceberg PARTITIONED BY (city) "
        "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    )
    for first in (0, 10, 20):
        spark.sql(f"INSERT INTO {table} SELECT int(id), 'Lima' FROM range({first}, {first + 10}, 1, 1)")  # noqa: S608 - a test
    spark.sql(f"INSERT INTO {table} SELECT int(id), 'Oslo' FROM range(100, 110, 1, 1)")  # noqa: S608 - a test
    java = SparkTable(spark, name).java
    data = [file.location() for file in files_of(java)]
    lima, oslo = [path for path in data if "Lima" in path], [path for path in data if "Oslo" in path]
    for number in range(4):
        write_position_deletes(spark, java, "Lima", sorted([*((path, number) for path in lima), (lima[0], 9)]))
    for number in range(2):
        write_position_deletes(spark, java, "Oslo", [(oslo[0], number)])
    delete_where_equal(spark, java, [{"id": 25}], partition=in_lima(spark, java))


@pytest.fixture
def deleted(spark: SparkSession, lake: CatalogEntry, beginnings: Beginnings) -> Deleted:
    return Deleted(spark, SparkLoop(spark, lake), beginnings.table(lake, write))


def in_lima(spark: SparkSession, java: Any) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.iceberg.DataFiles.data(java.spec(), "city=Lima")


def files_of(java: Any) -> list[Any]:
    return [task.file() for task in iterate(java.newScan().planFiles())]


def test_w5_w4_the_same_rows_are_deleted_and_readers_open_less(deleted: Deleted) -> None:
    rows, data = contents(deleted.spark, deleted.name), deleted.files("data_files")
    equality = [file for file in deleted.files("delete_files") if file[1] == 2]
    plan = deleted.loop.control.maintainer.plan_asked(deleted.name, ASKED)
    assert plan.reason.text.startswith("6 position delete files would become 2, so that a scan of the table opens")
    spec = deleted.claim()
    report = deleted.loop.attempt(spec)
    assert isinstance(report.result, Committed), report.result
    assert [receipt.records for receipt in report.receipts] == [13, 2]
    assert all(receipt.input_digest == receipt.output_digest for receipt in report.receipts)
    task = deleted.loop.verified(report)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert task.outcome is not None
    # Equality deletes are opened with each of the three files in Lima, before and after.
    assert task.outcome.reason.text == (
        "6 position delete files became 2, and delete the same rows; a scan of their partitions opens 7 delete files "
        "instead of 17"
    )
    assert contents(deleted.spark, deleted.name) == rows
    assert deleted.files("data_files") == data
    left = deleted.files("delete_files")
    assert [file for file in left if file[1] == 2] == equality
    assert sorted(file[2] for file in left if file[1] == 1) == [2, 13]
    assert missing_files(deleted.spark, deleted.name) == []
    assert deleted.loop.control.maintainer.plan_asked(deleted.name, ASKED).reason.code == "position-deletes-in-order"
    # A writer goes on from there, and so does a rewrite of data files.
    deleted.sql("DELETE FROM {t} WHERE id = 17")
    deleted.sql(
        f"CALL {deleted.name.catalog}.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))"
    )
    gone = contents_of(rows, "id=17,")
    assert gone
    assert contents(deleted.spark, deleted.name) == rows - gone


def test_deletes_and_appends_in_between_are_no_conflict(deleted: Deleted) -> None:
    rows = contents(deleted.spark, deleted.name)

    def write() -> None:
        deleted.sql("INSERT INTO {t} VALUES (500, 'Lima')")
        deleted.sql("DELETE FROM {t} WHERE id = 500 OR id = 29")

    made = deleted.carry_out(deleted.claim(), write)
    assert isinstance(made.result, Committed), made.result
    assert contents(deleted.spark, deleted.name) == rows - contents_of(rows, "id=29,")


def contents_of(rows: Any, text: str) -> Any:
    return type(rows)({row: count for row, count in rows.items() if text in row})


def test_w2_a_delete_file_that_somebody_replaced_is_a_conflict(deleted: Deleted) -> None:
    rows, spec = contents(deleted.spark, deleted.name), deleted.claim()

    def others() -> None:
        assert isinstance(deleted.carry_out(replace(spec, task_id="task-other")).result, Committed)

    with pytest.raises(Conflict, match="another commit removed"):
        deleted.carry_out(spec, others)
    assert contents(deleted.spark, deleted.name) == rows


def bring_old_file(deleted: Deleted) -> None:
    """A rewrite that keeps an old sequence number, into a partition that has younger deletes."""
    oslo = next(file for file in files_of(deleted.java) if "Oslo" in file.location())
    table = SparkTable(deleted.spark, deleted.name)
    lima = table.jvm.org.apache.iceberg.DataFiles.builder(deleted.java.spec()).copy(oslo)
    lima = lima.withPartitionPath("city=Lima").withPath(f"{oslo.location()}-copy.parquet").build()
    current = deleted.java.currentSnapshot().snapshotId()
    operation = deleted.java.newRewrite().validateFromSnapshot(current).dataSequenceNumber(1)
    operation.deleteFile(oslo)
    operation.addFile(lima)
    operation.commit()


def test_w5_an_old_file_that_comes_in_between_is_a_conflict(deleted: Deleted) -> None:
    spec = deleted.claim()
    with pytest.raises(Conflict, match="would delete rows from it"):
        deleted.carry_out(spec, lambda: bring_old_file(deleted))


def test_an_upgrade_in_between_is_a_conflict(deleted: Deleted) -> None:
    spec = deleted.claim()
    deleted.sql("ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')")
    with pytest.raises(Conflict, match="now has format version 3"):
        deleted.carry_out(spec)
    assert deleted.loop.control.maintainer.plan_asked(deleted.name, ASKED).reason.code == "deletion-vectors"


def test_what_is_not_proved_is_not_committed(deleted: Deleted) -> None:
    """A plan that leaves a data file out would bring its rows back; the job finds it before anything is written."""
    spec, listed = deleted.claim(), deleted.files("delete_files")
    group = action_of(spec).groups[0]
    careless = replace(group, targets=group.targets[1:])
    with pytest.raises(Conflict, match="would delete rows from it"):
        deleted.carry_out(replace(spec, action=replace(action_of(spec), groups=(careless,))))
    short = replace(group, targets=tuple(replace(target, record_count=1) for target in group.targets))
    with pytest.raises(ProofFailed, match="which has 1 rows"):
        deleted.carry_out(replace(spec, action=replace(action_of(spec), groups=(short,))))
    assert deleted.files("delete_files") == listed
