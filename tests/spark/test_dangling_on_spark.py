"""Dangling deletes removed on real Spark: no row comes back, whoever commits in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icewright.core.errors import Conflict
from icewright.maintenance.registry.services import verify
from icewright.model.actions.rewrite_delete_files import RemoveDanglingDeletes, RemoveDanglingDeletesRequest
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import Committed, Conflicted, Result, TaskSpec
from icewright.model.work.tasks import TaskState
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.remove_dangling_deletes import remove_dangling_deletes
from icewright_spark.iceberg.dangling import Reach
from icewright_spark.iceberg.java_api import SparkTable, iterate
from tests.lakes.deletes import delete_where_equal
from tests.narrowing import of_type
from tests.spark.beginnings import Beginnings
from tests.spark.loop import SparkLoop
from tests.spark.tables import contents, missing_files, sql_name

pytestmark = pytest.mark.spark

PROPERTIES = (
    "'format-version' = '2', 'write.delete.mode' = 'merge-on-read', 'icewright.ignore-other-optimizers' = 'true'"
)


@dataclass(frozen=True)
class Deleted:
    """A table with delete files that dangle, and others."""

    spark: SparkSession
    loop: SparkLoop
    name: TableName
    before_removal: int
    """The snapshot before the rewrite, in which none dangles."""

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(t=sql_name(self.name)))

    def claim(self) -> TaskSpec:
        return self.loop.claim_asked(self.name, RemoveDanglingDeletesRequest())

    def carry_out(self, spec: TaskSpec, meanwhile: Callable[[], None] = lambda: None) -> Result:
        """As an attempt does; ``meanwhile`` comes right before the first commit."""
        todo = [meanwhile]
        table = SparkTable(self.spark, self.name)
        may_commit = lambda: todo.pop()() if todo else None  # noqa: E731 - as in test_position_deletes_on_spark
        action = of_type(RemoveDanglingDeletes, spec.action)
        return remove_dangling_deletes(table, spec, action, Phase(1), may_commit).result

    def delete_files(self) -> set[str]:
        rows = self.spark.sql(f"SELECT file_path FROM {sql_name(self.name)}.delete_files")  # noqa: S608 - a test
        return {row[0] for row in rows.collect()}

    def rows(self) -> Any:
        """Rows without their lineage, which a table that is not of version 3 yet has not."""
        return sorted(map(str, self.spark.table(sql_name(self.name)).collect()))


def in_city(spark: SparkSession, name: TableName, city: str) -> Any:
    table = SparkTable(spark, name)
    return table.jvm.org.apache.iceberg.DataFiles.data(table.java.spec(), f"city={city}")


def write(spark: SparkSession, name: TableName) -> None:
    """Two specs, deletes in both; Iceberg's own rewrite folded in those of Oslo, which dangle since."""
    table = sql_name(name)
    spark.sql(
        f"CREATE TABLE {table} (id INT, city STRING) USING iceberg PARTITIONED BY (city) TBLPROPERTIES ({PROPERTIES})"
    )
    spark.sql(f"INSERT INTO {table} SELECT int(id), IF(id % 2 = 0, 'Lima', 'Oslo') FROM range(20)")  # noqa: S608 - a test
    spark.sql(f"DELETE FROM {table} WHERE id IN (2, 3)")  # noqa: S608 - a test
    delete_where_equal(spark, SparkTable(spark, name).java, [{"id": 4}], partition=in_city(spark, name, "Lima"))
    delete_where_equal(spark, SparkTable(spark, name).java, [{"id": 5}], partition=in_city(spark, name, "Oslo"))
    spark.sql(
        f"CALL {name.catalog}.system.rewrite_data_files(table => '{'.'.join(name.path)}', where => \"city = 'Oslo'\", "
        "options => map('rewrite-all', 'true'))"
    )
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD city")
    spark.sql(f"INSERT INTO {table} SELECT int(id), 'Rome' FROM range(100, 110)")  # noqa: S608 - a test
    delete_where_equal(spark, SparkTable(spark, name).java, [{"id": 6}, {"id": 101}])


@pytest.fixture
def deleted(spark: SparkSession, lake: CatalogEntry, beginnings: Beginnings) -> Deleted:
    name = beginnings.table(lake, write)
    (removal,) = (one for one in iterate(SparkTable(spark, name).java.snapshots()) if one.operation() == "replace")
    return Deleted(spark, SparkLoop(spark, lake), name, int(removal.parentId()))


@pytest.mark.parametrize("version", [2, 3])
def test_w5_what_dangles_goes_and_every_row_stays(deleted: Deleted, version: int) -> None:
    if version == 3:
        deleted.sql("ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')")
        deleted.sql("DELETE FROM {t} WHERE id = 103")
    rows, listed = contents(deleted.spark, deleted.name), deleted.delete_files()
    spec = deleted.claim()
    gone = {delete.path for delete in of_type(RemoveDanglingDeletes, spec.action).deletes}
    assert len(gone) == 2
    report = deleted.loop.attempt(spec)
    assert isinstance(report.result, Committed), report.result
    task = deleted.loop.verified(report)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert task.outcome is not None
    assert (
        task.outcome.reason.text
        == "2 delete files that applied to no data file were removed; each data file has the same deletes"
    )
    assert contents(deleted.spark, deleted.name) == rows
    assert deleted.delete_files() == listed - gone
    assert missing_files(deleted.spark, deleted.name) == []
    again = deleted.loop.control.maintainer.plan_asked(deleted.name, RemoveDanglingDeletesRequest())
    assert again.reason.code == "none-dangling"
    deleted.sql("INSERT INTO {t} SELECT int(id), 'Oslo' FROM range(200, 203)")
    after = contents(deleted.spark, deleted.name)
    assert rows <= after
    assert sorted(row.partition(",")[0] for row in (after - rows).elements()) == [
        f"Row(id={n}" for n in range(200, 203)
    ]


def test_an_append_in_between_is_no_conflict(deleted: Deleted) -> None:
    made = deleted.carry_out(deleted.claim(), lambda: deleted.sql("INSERT INTO {t} VALUES (500, 'Oslo')"))
    assert isinstance(made, Committed), made
    assert "Row(id=500, city='Oslo')" in deleted.rows()
    assert len(deleted.delete_files()) == 4 - 2 + 1


def roll_back(deleted: Deleted) -> None:
    catalog = deleted.name.catalog
    deleted.spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('db.t', {deleted.before_removal})")


def test_w5_a_rollback_in_between_makes_them_needed_again(deleted: Deleted) -> None:
    spec = deleted.claim()
    with pytest.raises(Conflict, match="apply to"):
        deleted.carry_out(spec, lambda: roll_back(deleted))
    assert not [row for row in deleted.rows() if "id=3," in row or "id=5," in row]


def test_w5_a_rewrite_that_keeps_sequence_numbers_makes_them_needed_again(deleted: Deleted) -> None:
    """As no good writer does it: a file comes into the partition with an older number than its equality deletes."""

    def add_old_file() -> None:
        java = SparkTable(deleted.spark, deleted.name).java
        before, current = deleted.before_removal, java.currentSnapshot().snapshotId()
        oslo = next(file for file in files(java, before) if "city=Oslo" in file.location())
        rome = [file for file in files(java, current) if "city=" not in file.location()]
        operation = java.newRewrite().validateFromSnapshot(current).dataSequenceNumber(1)
        for file in rome:
            operation.deleteFile(file)
        operation.addFile(oslo)
        operation.commit()

    with pytest.raises(Conflict, match="apply to"):
        deleted.carry_out(deleted.claim(), add_old_file)


def files(java: Any, snapshot_id: int) -> list[Any]:
    return [task.file() for task in iterate(java.newScan().useSnapshot(snapshot_id).planFiles())]


def test_what_somebody_else_removed_is_a_conflict(deleted: Deleted) -> None:
    spec = deleted.claim()
    assert isinstance(deleted.carry_out(replace(spec, task_id="task-other")), Committed)
    with pytest.raises(Conflict, match="another commit removed"):
        deleted.carry_out(spec)


def test_w5_without_the_look_at_the_present_snapshot_rows_come_back(
    deleted: Deleted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard is noticed: two deleted rows are there again, and the server says that something is wrong."""
    spec, last = deleted.claim(), SparkTable.is_still_current
    monkeypatch.setattr(Reach, "check", lambda *_: 1)
    made = deleted.carry_out(spec, lambda: roll_back(deleted))
    monkeypatch.setattr(SparkTable, "is_still_current", last)
    assert isinstance(made, Committed), made
    assert len([row for row in deleted.rows() if "id=3," in row or "id=5," in row]) == 2
    task, table = deleted.loop.control.tasks.get(spec.task_id), deleted.loop.catalog.load(deleted.name)
    outcome = verify(deleted.loop.control.verifier._verification, task, table)
    assert "that still apply" in outcome.reason.text


def test_w5_iceberg_itself_would_not_notice_a_rollback(deleted: Deleted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without our validator its commit goes through, so that is what keeps the rows away."""
    spec, table = deleted.claim(), SparkTable(deleted.spark, deleted.name)
    anything = table.lists.instance("org.apache.iceberg.SnapshotAncestryValidator", _yes(table))
    monkeypatch.setattr(SparkTable, "is_still_current", lambda _: anything)
    made = deleted.carry_out(spec, lambda: roll_back(deleted))
    assert not isinstance(made, Conflicted)
    assert len([row for row in deleted.rows() if "id=3," in row or "id=5," in row]) == 2


def _yes(table: SparkTable) -> Any:
    handles, kinds = table.jvm.java.lang.invoke.MethodHandles, table.jvm.java.lang.Class
    constant = handles.constant(kinds.forName("java.lang.Boolean"), True)
    array = table.jvm.java.lang.reflect.Array.newInstance(kinds.forName("java.lang.Class"), 1)
    array[0] = kinds.forName("java.lang.Iterable")
    return handles.dropArguments(constant, 0, array)
