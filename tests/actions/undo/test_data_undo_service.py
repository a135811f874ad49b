"""Expired rows that are inserted again, from what a person asks for to the verified commit, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from icewright.actions.undo.data_undo_evidence import Inserted, Share, problem_of_insert
from icewright.core.errors import Conflict, NotAllowed
from icewright.model.actions.actions import ActionKind, FileGroup, UndoExpireData
from icewright.model.actions.expire_data import ExpireData, ExpireDataRequest, tag_of
from icewright.model.actions.undo import SOURCE_KEY
from icewright.model.iceberg.files import FileContent, FileFormat, Partition
from icewright.model.iceberg.tables import (
    ATTEMPT_KEY,
    PROOF_KEY,
    TASK_ID_KEY,
    UNDONE_KEY,
    Operation,
    PartitionField,
    Snapshot,
)
from icewright.model.work.jobs import TaskSpec
from icewright.model.work.tasks import Task, TaskState
from tests.actions.expire_data.test_data_service import DAY_MS, claim, day, delete, house, tag
from tests.actions.expire_data.test_data_upkeep import ENABLED, said
from tests.actions.undo.test_data_undo_plan import MADE, action, now, undone
from tests.builders.aging import day as old_day
from tests.builders.aging import days
from tests.builders.lakehouse import HOUR_MS, NAME, Lakehouse
from tests.builders.observations import MIB, deletion_vector, snapshot
from tests.builders.worker import Worker, succeeded, verified
from tests.cases import each_case
from tests.doubles.lake import MemoryFile

__all__ = ["house"]


def expired(house: Lakehouse) -> Task:
    """What is old has expired, and somebody committed since."""
    spec = claim(house)
    tag(house, spec, age_ms=20 * DAY_MS)
    task = verified(house, spec, delete(house, spec))
    assert task.state is TaskState.SUCCEEDED, task.outcome
    house.append(1, day(house, 0))
    return task


def claim_undo(house: Lakehouse, task: Task) -> TaskSpec:
    house.control.dispatcher.apply(house.control.undoer.plan(task.task_id).plan_id)
    spec = Worker(house).claimed()
    assert isinstance(spec.action, UndoExpireData)
    return spec


def insert(house: Lakehouse, spec: TaskSpec, **other: Any) -> Snapshot:
    """The commit of an attempt: a file for each group, of as many rows, but for what is ``other``."""
    assert isinstance(spec.action, UndoExpireData)
    groups, rows = spec.action.groups, spec.action.record_count
    files = [MemoryFile(f"new-{group.group_id}.parquet", group.partition, 1000, group.record_count) for group in groups]
    signed = {
        TASK_ID_KEY: spec.task_id,
        ATTEMPT_KEY: str(spec.attempt),
        UNDONE_KEY: spec.action.undone_task_id,
        PROOF_KEY: f"memory;groups={len(groups)};records={rows};deleted=0;digest=1",
    }
    return house.catalog.append(NAME, other.get("files", files), summary={**signed, **other.get("summary", {})})


def undo(house: Lakehouse, task: Task) -> Task:
    spec = claim_undo(house, task)
    done = verified(house, spec, insert(house, spec))
    assert done.state is TaskState.SUCCEEDED, done.outcome
    return done


def test_i12_it_is_planned_applied_and_verified(house: Lakehouse) -> None:
    rows = sum(file.record_count for file in house.catalog.live_files(NAME))
    task = expired(house)
    done = undo(house, task)
    assert done.kind is ActionKind.UNDO_EXPIRE_DATA
    assert done.outcome is not None
    assert done.outcome.reason.text == f"20 rows of task {task.task_id} inserted again, in 2 new files"
    assert sum(file.record_count for file in house.catalog.live_files(NAME)) == rows + 10
    with pytest.raises(NotAllowed, match="it was an undo"):
        house.control.undoer.plan(done.task_id)


def test_w11_i5_never_twice(house: Lakehouse) -> None:
    task = expired(house)
    other = house.control.undoer.plan(task.task_id)
    done = undo(house, task)
    with pytest.raises(NotAllowed, match="inserted its rows again already"):
        house.control.undoer.plan(task.task_id)
    with pytest.raises(Conflict, match="inserted its rows again already"):
        house.control.dispatcher.apply(other.plan_id)
    # Nor once the snapshot that says so has expired.
    assert done.outcome is not None
    house.append(1, day(house, 0))
    house.catalog.expire(NAME, [done.outcome.snapshot_id or 0])
    with pytest.raises(Conflict, match="they may be there again"):
        house.control.dispatcher.apply(other.plan_id)


def test_w11_c1_a_commit_that_nobody_reported_is_found(house: Lakehouse) -> None:
    task = expired(house)
    spec = claim_undo(house, task)
    made = insert(house, spec)
    house.pass_time(2 * HOUR_MS)
    house.rounds(4, every_ms=HOUR_MS)
    found = house.control.tasks.get(spec.task_id)
    assert succeeded(found).snapshot_id == made.snapshot_id


def test_i5_deletes_right_before_the_expiry_are_deletes(house: Lakehouse) -> None:
    """Of the snapshot right before the expiry, and not of the tag, which may be older."""
    spec = claim(house)
    tag(house, spec, age_ms=20 * DAY_MS)
    old = next(file for file in house.catalog.live_files(NAME) if file.partition == day(house, 50))
    gone = MemoryFile(
        "d.parquet",
        old.partition,
        100,
        1,
        FileFormat.PARQUET,
        FileContent.POSITION_DELETES,
        referenced_data_file=old.path,
    )
    between = house.catalog.overwrite(NAME, add=[gone], remove=[])
    task = verified(house, spec, delete(house, spec))
    house.append(1, day(house, 0))
    plan = house.control.undoer.plan(task.task_id)
    (action,) = plan.actions
    assert isinstance(action, UndoExpireData)
    assert action.base_snapshot_id == between.snapshot_id != action.tagged_snapshot_id
    assert [delete.path for group in action.groups for delete in group.delete_files] == ["d.parquet"]
    assert plan.reason.text.startswith("what 1 delete file left of 20 rows in 2 files of 2 partitions")


def test_i5_w2_files_that_somebody_added_again_as_they_are(house: Lakehouse) -> None:
    files = house.catalog.live_files(NAME)
    task = expired(house)
    house.catalog.append(NAME, [file for file in files if file.partition == day(house, 50)])
    with pytest.raises(NotAllowed, match="1 file of it is in the table"):
        house.control.undoer.plan(task.task_id)


def test_i12_without_its_tag_nothing_keeps_the_rows(house: Lakehouse) -> None:
    task = expired(house)
    other = house.control.undoer.plan(task.task_id)
    house.catalog.drop_ref(NAME, tag_of(task.task_id))
    with pytest.raises(NotAllowed, match="is not there any more"):
        house.control.undoer.plan(task.task_id)
    with pytest.raises(Conflict, match="is not there any more"):
        house.control.dispatcher.apply(other.plan_id)


@pytest.mark.parametrize("cut", [True, False])
def test_w11_a_history_that_was_cut_right_behind_the_commit_is_no_alarm(house: Lakehouse, *, cut: bool) -> None:
    """Somebody had the snapshot of the expiry expire, and left the one before the insertion."""
    task = expired(house)
    spec = claim_undo(house, task)
    made = insert(house, spec)
    if cut:
        assert task.outcome is not None
        house.catalog.expire(NAME, [task.outcome.snapshot_id or 0])
    done = verified(house, spec, made)
    assert done.outcome is not None
    assert done.outcome.reason.code == ("unverified" if cut else "verified"), done.outcome
    assert "nothing to compare with" in done.outcome.reason.text or not cut


class TestByItself:
    """What was inserted again is as old as it was, and stays until a person asks for it."""

    @pytest.fixture
    def back(self, house: Lakehouse) -> None:
        house.catalog.set_properties(NAME, ENABLED)
        task = expired(house)
        spec = claim_undo(house, task)
        assert said(house) == "taken-back"  # while it is under way as well
        verified(house, spec, insert(house, spec))
        house.pass_time(2 * DAY_MS)

    @pytest.mark.usefixtures("back")
    def test_i12_it_does_not_expire_again_until_a_person_asks(self, house: Lakehouse) -> None:
        assert said(house) == "taken-back"
        house.rounds(3, every_ms=HOUR_MS)
        assert [task.kind for task in house.all_tasks()].count(ActionKind.EXPIRE_DATA) == 1
        found = house.control.maintainer.plan_asked(NAME, ExpireDataRequest())
        house.control.dispatcher.apply(found.plan_id)
        spec = Worker(house).claimed()
        assert isinstance(spec.action, ExpireData)
        tag(house, spec, age_ms=20 * DAY_MS)
        assert verified(house, spec, delete(house, spec)).state is TaskState.SUCCEEDED
        house.append(1, day(house, 42))
        house.pass_time(2 * DAY_MS)
        assert said(house) == "expire-data"

    @pytest.mark.usefixtures("back")
    def test_i12_nor_when_its_files_were_rewritten(self, house: Lakehouse) -> None:
        new = [file for file in house.catalog.live_files(NAME) if file.path.startswith("new-")]
        house.catalog.overwrite(
            NAME,
            add=[replace(file, path=f"rewritten-{file.path}") for file in new],
            remove=[file.path for file in new],
        )
        assert said(house) == "taken-back"

    def test_i12_nor_by_another_spec_after_a_person_let_something_else_go(self, house: Lakehouse) -> None:
        """Neither partition nor sequence number tells of the rows by then."""
        house.catalog.set_properties(NAME, ENABLED)
        task = expired(house)
        spec_id = house.catalog.set_spec(NAME, [PartitionField(1, 1001, "at_day_again", "day")])
        spec = claim_undo(house, task)
        new = [
            MemoryFile(f"new-{back}.parquet", replace(day(house, back), spec_id=spec_id), 1000, 10) for back in (40, 50)
        ]
        done = verified(house, spec, insert(house, spec, files=new))
        assert done.state is TaskState.SUCCEEDED, done.outcome
        house.catalog.overwrite(
            NAME,
            add=[replace(file, path=f"rewritten-{file.path}") for file in new],
            remove=[file.path for file in new],
        )
        house.append(1, day(house, 100))
        asked = ExpireDataRequest("P60D")
        house.control.dispatcher.apply(house.control.maintainer.plan_asked(NAME, asked).plan_id)
        spec = Worker(house).claimed()
        tag(house, spec, age_ms=120 * DAY_MS)
        other = verified(house, spec, delete(house, spec))
        assert other.state is TaskState.SUCCEEDED, other.outcome
        house.pass_time(2 * DAY_MS)
        assert said(house) == "taken-back"
        house.rounds(3, every_ms=HOUR_MS)
        assert [task.kind for task in house.all_tasks()].count(ActionKind.EXPIRE_DATA) == 2

    def test_i12_nor_in_another_partition_that_its_commit_wrote_to(self, house: Lakehouse) -> None:
        house.catalog.set_properties(NAME, ENABLED)
        task = expired(house)
        spec = claim_undo(house, task)
        elsewhere = MemoryFile("new.parquet", day(house, 45), 1000, 20)
        done = verified(house, spec, insert(house, spec, files=[elsewhere]))
        assert done.state is TaskState.FAILED  # of this spec it would be in the wrong place
        house.pass_time(2 * DAY_MS)
        assert said(house) == "taken-back"


ACTION = action(undone())
ROWS = 2 * (MIB // 100)
TELLS = {UNDONE_KEY: "task-1", PROOF_KEY: f"m;groups=2;records={2 * ROWS};deleted=0;digest=1"}
COMMIT = snapshot(4, summary=TELLS)
CHANGED = Inserted({old_day(40): Share(1, ROWS), old_day(50): Share(1, ROWS)})


def problem(changed: Inserted = CHANGED, groups: Sequence[FileGroup] = ACTION.groups, **made: Any) -> str:
    before: Mapping[str, str] = made.pop("before", {})
    aside = replace(snapshot(5, summary={UNDONE_KEY: "task-1"}), parent_id=2)
    first = replace(snapshot(1), parent_id=7 if made.pop("cut", False) else None)
    commit = replace(COMMIT, **made)
    line = (first, MADE, aside, snapshot(3, summary=before), commit)
    return problem_of_insert(replace(ACTION, groups=tuple(groups)), now(line), commit, changed) or ""


class TestEvidence:
    def test_a_commit_that_is_as_it_should_be(self) -> None:
        assert problem() == ""

    @each_case(
        ("changed", "said"),
        [
            (replace(CHANGED, manifests_gone=1), "1 manifest of before were removed"),
            (replace(CHANGED, other_entries=1), "more than new data files"),
            (Inserted({**CHANGED.shares, old_day(3): Share(1, 1)}), "and 0 were planned at most"),
            (Inserted({**CHANGED.shares, old_day(40): Share(2, ROWS)}), "and 1 were planned at most"),
            (Inserted({**CHANGED.shares, old_day(40): Share(1, ROWS - 1)}), "rows came into partition"),
            (Inserted({old_day(40): Share(1, ROWS)}), "0 rows came into partition"),
            (Inserted({**CHANGED.shares, Partition(2, "[651]"): Share(1, 1)}), "and 0 were planned at most"),
        ],
    )
    def test_i2_i5_what_came_beyond_the_plan(self, changed: Inserted, said: str) -> None:
        assert said in problem(changed)

    @each_case(
        ("made", "said"),
        [
            ({"operation": Operation.OVERWRITE}, "operation overwrite"),
            ({"summary": {PROOF_KEY: TELLS[PROOF_KEY]}}, "does not say that it takes task task-1 back"),
            ({"summary": {UNDONE_KEY: "task-1"}}, "its proof says groups=nothing"),
            ({"summary": {**TELLS, PROOF_KEY: "m;groups=2;records=1;deleted=0"}}, "its proof says records=1"),
            ({"before": {SOURCE_KEY: "5"}}, "had inserted the same rows before"),
            ({"before": {UNDONE_KEY: "task-1"}}, "had inserted the same rows before"),
            ({"parent_id": 1}, "is not in its history"),
            ({"parent_id": 1, "cut": True}, "is not in its history"),
        ],
    )
    def test_w11_what_the_commit_says_of_itself(self, made: dict[str, Any], said: str) -> None:
        assert said in problem(**made)

    def test_i5_deleted_rows_are_fewer(self) -> None:
        """Exactly by those of deletion vectors."""
        one = days([40, 50], each=2)[0]
        groups = action(undone(deletes=[deletion_vector(one, 3)])).groups
        fewer = Inserted({**CHANGED.shares, one.partition: Share(1, ROWS - 3)})
        tells = {**TELLS, PROOF_KEY: f"m;groups=2;records={2 * ROWS - 3};deleted=3;digest=1"}
        assert problem(fewer, groups, summary=tells) == ""
        assert "rows came into partition" in problem(groups=groups)
