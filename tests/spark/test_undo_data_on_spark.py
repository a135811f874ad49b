"""Rows that expired come back on real Spark: exactly those, once, whatever was committed since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from icewright.actions.undo.data_undo_plan import data_undo_conflict
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import Conflict, NotAllowed
from icewright.core.fault_points import Fault
from icewright.model.actions.actions import UndoExpireData
from icewright.model.actions.expire_data import tag_of
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import UNDONE_KEY, Operation, Snapshot
from icewright.model.work.jobs import Committed, TaskSpec
from icewright.model.work.tasks import Task, TaskState
from icewright_spark.actions.done import Done
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.undo_expire_data import undo_expire_data
from icewright_spark.iceberg.java_api import SparkTable
from tests.builders.deletions import Died
from tests.narrowing import of_type
from tests.spark.loop import OPTIMIZER, SparkLoop
from tests.spark.tables import missing_files, sql_name
from tests.spark.test_expire_data_on_spark import Make, claim, insert, loop, make, once, run

__all__ = ["loop", "make"]
pytestmark = pytest.mark.spark


def expire(loop: SparkLoop, name: TableName) -> Task:
    """Let what is old expire, from the plan to the verified commit."""
    spec = claim(loop, name)
    return finished(loop, spec)


def finished(loop: SparkLoop, spec: TaskSpec) -> Task:
    report = loop.attempt(spec)
    assert isinstance(report.result, Committed), report.result
    return loop.verified(report)


def claim_undo(loop: SparkLoop, task: Task) -> TaskSpec:
    plan = loop.control.undoer.plan(task.task_id)
    assert plan.reason.code == "insert-again"
    loop.control.dispatcher.apply(plan.plan_id)
    spec = loop.control.dispatcher.claim(OPTIMIZER)
    assert spec is not None
    return spec


def carry_out(loop: SparkLoop, spec: TaskSpec, may_commit: Callable[[], None] = lambda: None) -> Done:
    table = SparkTable(loop.spark, spec.table_name)
    return undo_expire_data(loop.spark, table, spec, of_type(UndoExpireData, spec.action), Phase(1), may_commit)


def rows(loop: SparkLoop, name: TableName, where: str = "true") -> list[str]:
    """All rows as they are read from bytes, without what the table's own lineage says of them."""
    return sorted(str(row) for row in loop.spark.table(sql_name(name)).where(where).collect())


def add_again(loop: SparkLoop, action: UndoExpireData, name: TableName) -> None:
    table, group = SparkTable(loop.spark, name), action.groups[0]
    listed = table.listed([(group.partition, group.files[0])])
    table.java.newFastAppend().appendFile(listed.get(0)).commit()


OLD_ROWS = "at < TIMESTAMP '2022-01-01 00:00:00 UTC'"


@pytest.mark.parametrize("version", [1, 3])
def test_i2_i5_i12_what_expired_comes_back_as_new_rows_and_nothing_else_changes(
    loop: SparkLoop, make: Make, version: int
) -> None:
    """Deletes before the expiry stay deletes, an append after it stays, and so does one right before the commit.

    Of one day a row is left, of another one none, though its file was there.
    """
    name = make(version)
    run(loop, name, "DELETE FROM {} WHERE id IN (0, 1, 4, 100)")
    old = rows(loop, name, OLD_ROWS)
    assert len(old) == 3
    task = expire(loop, name)
    assert rows(loop, name, OLD_ROWS) == []
    insert(loop, name, "SELECT id + 900, current_timestamp() FROM range(3)")
    spec = claim_undo(loop, task)
    loop.before_commit = lambda: insert(loop, name, "VALUES (77, TIMESTAMP '2020-02-29 12:00:00 UTC')")
    stays = rows(loop, name)

    done = finished(loop, spec)

    assert done.state is TaskState.SUCCEEDED, done.outcome
    assert done.outcome is not None
    assert done.outcome.reason.code == "verified", done.outcome
    assert done.outcome.reason.figures["records"] == len(old)
    metadata = PyIcebergCatalog(loop.entry).load(name)
    assert rows(loop, name, f"{OLD_ROWS} AND id <> 77") == old
    assert set(rows(loop, name)) - set(old) - set(rows(loop, name, "id = 77")) == set(stays)
    assert missing_files(loop.spark, name) == []
    made = metadata.current_snapshot
    assert made is not None
    assert (made.operation, made.summary[UNDONE_KEY]) == (Operation.APPEND, task.task_id)
    assert made.summary.get("deleted-data-files") is None
    if version == 3:
        ids = loop.spark.sql(f"SELECT _row_id, _last_updated_sequence_number AS n FROM {sql_name(name)}").collect()  # noqa: S608 - a test
        assert len({row["_row_id"] for row in ids}) == len(ids)
        assert sum(row["n"] == made.sequence_number for row in ids) == len(old)
    # Neither the same again, nor by an earlier preview.
    with pytest.raises(NotAllowed, match="inserted its rows again already"):
        loop.control.undoer.plan(task.task_id)
    with pytest.raises(Conflict, match="has committed"):
        carry_out(loop, spec)
    with pytest.raises(Conflict, match="inserted its rows again already"):
        carry_out(loop, replace(spec, task_id="task-other"))
    assert data_undo_conflict(of_type(UndoExpireData, spec.action), metadata) is not None
    if version == 1:
        _not_behind_a_cherry_pick_either(loop, task, spec, made)


def _not_behind_a_cherry_pick_either(loop: SparkLoop, task: Task, spec: TaskSpec, made: Snapshot) -> None:
    """Iceberg copies nothing of a summary, but says whose files a cherry-pick has."""
    name = spec.table_name
    loop.spark.sql(f"CALL {name.catalog}.system.set_current_snapshot('db.t', {made.parent_id})")
    insert(loop, name, "SELECT id + 950, current_timestamp() FROM range(3)")
    loop.spark.sql(f"CALL {name.catalog}.system.cherrypick_snapshot('db.t', {made.snapshot_id})")
    current = PyIcebergCatalog(loop.entry).load(name).current_snapshot
    assert current is not None
    assert (current.snapshot_id == made.snapshot_id, UNDONE_KEY in current.summary) == (False, False)
    with pytest.raises(NotAllowed, match="inserted its rows again already"):
        loop.control.undoer.plan(task.task_id)
    with pytest.raises(Conflict, match="inserted its rows again already"):
        carry_out(loop, replace(spec, task_id="task-other"))


def test_i12_by_the_schema_and_the_spec_of_now(loop: SparkLoop, make: Make) -> None:
    """A column that came is null, one that was renamed keeps its values, rows go by the present spec."""
    name = make()
    run(loop, name, "DELETE FROM {} WHERE id = 0")
    old = {(row.id, row.at) for row in loop.spark.table(sql_name(name)).where(OLD_ROWS).collect()}
    task = expire(loop, name)
    run(loop, name, "ALTER TABLE {} RENAME COLUMN at TO moment")
    run(loop, name, "ALTER TABLE {} ADD COLUMN note STRING")
    run(loop, name, "ALTER TABLE {} REPLACE PARTITION FIELD at_day WITH months(moment)")
    insert(loop, name, "VALUES (1000, current_timestamp(), 'new')")
    plan = loop.control.undoer.plan(task.task_id)
    assert {note.code for note in plan.rules} >= {"columns-added", "spec-changed"}
    done = finished(loop, claim_undo(loop, task))
    assert done.state is TaskState.SUCCEEDED, done.outcome
    assert done.outcome is not None
    assert done.outcome.reason.code == "verified", done.outcome
    found = loop.spark.table(sql_name(name)).where("moment < TIMESTAMP '2022-01-01 00:00:00 UTC'").collect()
    assert {(row.id, row.moment) for row in found} == old
    assert len(found) == len(old)
    assert {row.note for row in found} == {None}
    table = SparkTable(loop.spark, name)
    made = int(table.java.currentSnapshot().snapshotId())
    query = f"SELECT DISTINCT data_file.spec_id FROM {sql_name(name)}.entries WHERE snapshot_id = {made}"  # noqa: S608 - a test
    assert [row.spec_id for row in loop.spark.sql(query).collect()] == [table.spec_id]


def test_w11_c1_w2_deaths_and_whoever_comes_in_between(
    loop: SparkLoop, make: Make, dying_at: Callable[[Fault], None]
) -> None:
    name = make()
    old = rows(loop, name, OLD_ROWS)
    task = expire(loop, name)
    insert(loop, name, "SELECT id + 900, current_timestamp() FROM range(3)")
    spec = claim_undo(loop, task)
    metadata = PyIcebergCatalog(loop.entry).load(name)
    # A table that is set back right before the commit has the rows again: nothing is inserted.

    def set_main(snapshot_id: int | None) -> None:
        loop.spark.sql(f"CALL {name.catalog}.system.set_current_snapshot('db.t', {snapshot_id})")

    before = of_type(UndoExpireData, spec.action).base_snapshot_id
    with pytest.raises(Conflict, match="does not reach back to snapshot"):
        carry_out(loop, spec, once(lambda: set_main(before)))
    assert rows(loop, name, OLD_ROWS) == old
    set_main(metadata.current_snapshot_id)
    # So it is where somebody adds a file again as it is.
    with pytest.raises(Conflict, match="its rows would be there twice"):
        carry_out(loop, spec, once(lambda: add_again(loop, of_type(UndoExpireData, spec.action), name)))
    set_main(metadata.current_snapshot_id)
    # So it is without the tag, which keeps the files.
    tag = tag_of(task.task_id)
    run(loop, name, f"ALTER TABLE {{}} DROP TAG `{tag}`")
    with pytest.raises(NotAllowed, match="is not there any more"):
        loop.control.undoer.plan(task.task_id)
    with pytest.raises(Conflict, match="missing or at another snapshot"):
        carry_out(loop, spec)
    run(loop, name, f"ALTER TABLE {{}} CREATE TAG `{tag}` AS OF VERSION {before}")
    for attempt, point in enumerate((Fault.COMMIT_PREPARED, Fault.COMMIT_BEFORE, Fault.COMMIT_AFTER), 1):
        assert rows(loop, name, OLD_ROWS) == []
        dying_at(point)
        with pytest.raises(Died):
            carry_out(loop, replace(spec, attempt=attempt))
    dying_at(Fault.PLAN_BEFORE)
    assert rows(loop, name, OLD_ROWS) == old
    with pytest.raises(Conflict, match="another attempt"):
        carry_out(loop, replace(spec, attempt=4))
    assert rows(loop, name, OLD_ROWS) == old
    assert missing_files(loop.spark, name) == []
