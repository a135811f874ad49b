"""Undoing an expiry on demand: planned, applied, carried out by the server and verified, over memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from icewright.actions.remove_files.service import Remover
from icewright.actions.undo.missing_files import first_missing
from icewright.core.errors import (
    Conflict,
    NotAllowed,
    NotFound,
    OutcomeUnknown,
    StorageUnavailable,
    TableReplaced,
    Unsupported,
)
from icewright.core.fault_points import Fault, arm
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.rewrite_manifests import RewriteManifestsRequest
from icewright.model.actions.undo import SIGNATURE_KEY, UNDO_KEPT_MS, UNDO_WINDOW_MS, Kept, UndoExpiryPrediction
from icewright.model.iceberg.tables import RefKind, TableMetadata
from icewright.model.plans.plans import Plan
from icewright.model.work.jobs import Result
from icewright.model.work.tasks import Progress, Task, TaskState
from icewright.ports.carriers import COMMITS, Carrier, MayGoOn
from icewright.retention.pruning import BATCHES_MAX, TASKS_AT_ONCE
from tests.actions.expire_snapshots.test_expiry_service import ended, ids
from tests.builders.lakehouse import ALL_AUTO, HOUR_MS, MINUTE_MS, NAME, Lakehouse
from tests.doubles.lake import MemoryTable
from tests.doubles.table_files import MemoryTableFiles
from tests.maintenance.test_upkeep import DAY_MS, expiries, lakehouse, live_on
from tests.narrowing import not_none

ALL_OLD = ExpireSnapshotsRequest("PT0S", 1)


@pytest.fixture
def house() -> Lakehouse:
    """A table with five snapshots, an hour apart."""
    return Lakehouse(rules=(ALL_AUTO,)).with_five_snapshots()


def table(house: Lakehouse) -> TableMetadata:
    return house.catalog.load(NAME)


def expired(house: Lakehouse, asked: ExpireSnapshotsRequest = ALL_OLD) -> Task:
    plan = house.control.maintainer.plan_asked(NAME, asked)
    task = ended(house, house.control.dispatcher.apply(plan.plan_id))
    assert task.state is TaskState.SUCCEEDED
    return task


def undone(house: Lakehouse, plan: Plan) -> Task:
    return ended(house, house.control.dispatcher.apply(plan.plan_id))


def same(one: TableMetadata, other: TableMetadata) -> bool:
    return (one.snapshots, one.refs, one.snapshot_log) == (other.snapshots, other.refs, other.snapshot_log)


def code(task: Task) -> str:
    return not_none(task.outcome).reason.code


def test_s_14_what_expired_comes_back_as_it_was(house: Lakehouse) -> None:
    house.catalog.set_ref(NAME, "v1", ids(house)[1], kind=RefKind.TAG, max_ref_age_ms=1)
    before, expiry = table(house), expired(house)
    assert len(ids(house)) == 1
    plan = house.control.undoer.plan(expiry.task_id)
    assert plan.asked
    assert plan.reason.text == f"4 snapshots of task {expiry.task_id} put back; refs: v1"
    assert isinstance(plan.prediction, UndoExpiryPrediction)
    assert (plan.prediction.snapshots_before, plan.prediction.snapshots_after) == (1, 5)
    assert plan.prediction.until == expiry.updated_at + UNDO_WINDOW_MS
    assert len(ids(house)) == 1
    task = undone(house, plan)
    assert (task.state, code(task)) == (TaskState.SUCCEEDED, "verified")
    assert not_none(task.outcome).reason.text == f"4 snapshots of task {expiry.task_id} put back, 1 ref too"
    assert same(before, table(house))
    assert table(house).properties[SIGNATURE_KEY] == task.task_id
    assert house.control.planner.policy(table(house)).problems == ()


def test_undoing_twice_is_nothing_to_do(house: Lakehouse) -> None:
    expiry = expired(house)
    first, second = house.control.undoer.plan(expiry.task_id), house.control.undoer.plan(expiry.task_id)
    undone(house, first)
    after = table(house)
    assert house.control.undoer.plan(expiry.task_id).reason.code == "nothing-to-undo"
    task = undone(house, second)
    assert (task.state, code(task)) == (TaskState.SUPERSEDED, "there-already")
    assert table(house) == after


def test_commits_between_preview_and_undo_stay(house: Lakehouse) -> None:
    expiry = expired(house)
    plan = house.control.undoer.plan(expiry.task_id)
    added = house.append(1)
    house.catalog.set_ref(NAME, "mine", added.snapshot_id, kind=RefKind.TAG)
    assert undone(house, plan).state is TaskState.SUCCEEDED
    assert table(house).current_snapshot_id == added.snapshot_id
    assert {ref.name for ref in table(house).refs} == {"main", "mine"}
    assert len(ids(house)) == 6


def test_i4_a_ref_of_the_name_that_came_since_stays_and_is_said(house: Lakehouse) -> None:
    house.catalog.set_ref(NAME, "v1", ids(house)[1], kind=RefKind.TAG, max_ref_age_ms=1)
    expiry = expired(house)
    stale = house.control.undoer.plan(expiry.task_id)
    house.catalog.set_ref(NAME, "v1", ids(house)[0], kind=RefKind.TAG)
    before = table(house)
    assert undone(house, stale).state is TaskState.SUPERSEDED
    assert table(house) == before
    plan = house.control.undoer.plan(expiry.task_id)
    assert [note.code for note in plan.rules] == ["ref-taken"]
    assert undone(house, plan).state is TaskState.SUCCEEDED
    assert table(house).refs == before.refs
    assert len(ids(house)) == 5


def test_after_another_expiry_a_ref_whose_snapshot_is_gone_waits_for_it(house: Lakehouse) -> None:
    house.catalog.set_ref(NAME, "v1", ids(house)[3], kind=RefKind.TAG, max_ref_age_ms=1)
    first = expired(house, ExpireSnapshotsRequest("PT0S", 2))
    second = expired(house)
    plan = house.control.undoer.plan(first.task_id)
    assert [note.code for note in plan.rules] == ["ref-homeless"]
    assert undone(house, plan).state is TaskState.SUCCEEDED
    assert undone(house, house.control.undoer.plan(second.task_id)).state is TaskState.SUCCEEDED
    assert undone(house, house.control.undoer.plan(first.task_id)).state is TaskState.SUCCEEDED
    assert len(ids(house)) == 5
    assert {ref.name for ref in table(house).refs} == {"main", "v1"}


def test_the_window_ends(house: Lakehouse) -> None:
    expiry = expired(house)
    plan = house.control.undoer.plan(expiry.task_id)
    house.pass_time(UNDO_WINDOW_MS - HOUR_MS)
    assert house.control.undoer.plan(expiry.task_id).actions
    house.pass_time(2 * HOUR_MS)
    with pytest.raises(NotAllowed, match="could be undone until"):
        house.control.undoer.plan(expiry.task_id)
    before = table(house)
    assert undone(house, plan).state is TaskState.SUPERSEDED
    assert table(house) == before


def test_what_is_kept_is_kept_for_the_window_and_not_for_ever(house: Lakehouse) -> None:
    expiry = expired(house)
    house.pass_time(UNDO_WINDOW_MS)
    house.rounds(2, HOUR_MS)
    assert house.kept.kept(expiry.task_id) is not None
    house.pass_time(UNDO_KEPT_MS - UNDO_WINDOW_MS)
    house.rounds(2, HOUR_MS)
    assert house.kept.kept(expiry.task_id) is None


def test_of_very_many_that_are_over_each_round_forgets_some(house: Lakehouse) -> None:
    most = TASKS_AT_ONCE * BATCHES_MAX
    for number in range(most + 1):
        house.kept.keep(Kept(f"task-{number:05d}", table(house).table_id, 0, b""))
    house.pass_time(UNDO_KEPT_MS)
    house.control.loop.round()
    assert house.kept.kept(f"task-{most - 1:05d}") is None
    assert house.kept.kept(f"task-{most:05d}") is not None
    house.control.loop.round()
    assert house.kept.kept(f"task-{most:05d}") is None


def test_what_nobody_keeps_does_not_expire(house: Lakehouse) -> None:
    plan = house.control.maintainer.plan_asked(NAME, ALL_OLD)

    def full(kept: Kept) -> None:
        raise Unsupported(f"nobody would keep what task {kept.task_id} takes, so that it could not be undone")

    house.kept.keep = full  # type: ignore[method-assign] # a full shelf
    task = ended(house, house.control.dispatcher.apply(plan.plan_id))
    assert (task.state, len(ids(house))) == (TaskState.FAILED, 5)


def test_without_what_was_kept_it_is_refused(house: Lakehouse) -> None:
    expiry = expired(house)
    plan = house.control.undoer.plan(expiry.task_id)
    house.kept.forget(1 << 62, 9)
    with pytest.raises(NotAllowed, match="not kept"):
        house.control.undoer.plan(expiry.task_id)
    assert undone(house, plan).state is TaskState.FAILED
    assert len(ids(house)) == 1


def test_nothing_else_can_be_undone_and_it_is_said_what_can_be_done(house: Lakehouse) -> None:
    with pytest.raises(NotFound):
        house.control.undoer.plan("task-none")
    plan = house.control.maintainer.plan_asked(NAME, ALL_OLD)
    waiting = house.control.dispatcher.apply(plan.plan_id)
    with pytest.raises(NotAllowed, match="once it is verified"):
        house.control.undoer.plan(waiting.task_id)
    house.control.dispatcher.cancel(waiting.task_id)
    with pytest.raises(NotAllowed, match="did nothing"):
        house.control.undoer.plan(waiting.task_id)
    expiry = expired(house)
    undo = undone(house, house.control.undoer.plan(expiry.task_id))
    with pytest.raises(NotAllowed, match="it was an undo"):
        house.control.undoer.plan(undo.task_id)
    assert not house.control.maintainer.plan_asked(NAME, RewriteManifestsRequest()).actions


def test_l4_another_table_of_the_name_gets_nothing(house: Lakehouse) -> None:
    expiry = expired(house)
    plan = house.control.undoer.plan(expiry.task_id)
    house.catalog.drop(NAME)
    with pytest.raises(NotFound):
        house.control.undoer.plan(expiry.task_id)
    house.create()
    house.append(1)
    with pytest.raises(TableReplaced):
        house.control.undoer.plan(expiry.task_id)
    with pytest.raises(Conflict):
        house.control.dispatcher.apply(plan.plan_id)
    assert len(ids(house)) == 1


def test_the_mode_observe_forbids_it(house: Lakehouse) -> None:
    expiry = expired(house)
    house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
    plan = house.control.undoer.plan(expiry.task_id)
    with pytest.raises(NotAllowed, match="observe"):
        house.control.dispatcher.apply(plan.plan_id)


def test_l6_a_table_that_is_known_by_two_names_gets_nothing(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    expiry = expired(house)
    plan = house.control.undoer.plan(expiry.task_id)
    others = [replace(NAME, name="other")]
    monkeypatch.setattr(house.control.undoer, "_namesakes", lambda *_: others)
    before = table(house)
    assert undone(house, plan).state is TaskState.SUPERSEDED
    assert table(house) == before


class Sizes(MemoryTableFiles):
    """Notes down who asks for the length of what, and says of one path that it is another one."""

    def __init__(self, house: Lakehouse, wrong: str = "") -> None:
        super().__init__(house.catalog)
        self.wrong, self.asked = wrong, list[str]()

    def size_bytes(self, table: TableMetadata, path: str) -> int:
        self.asked.append(path)
        return super().size_bytes(table, path) + (path == self.wrong)


def start_anew(house: Lakehouse) -> None:
    """A commit that leaves nothing of the table's files."""
    live = [file.path for file in house.catalog.live_files(NAME)]
    house.catalog.overwrite(NAME, add=house.files(1), remove=live)


class TestFiles:
    def test_i3_nothing_comes_back_when_a_file_is_missing(self, house: Lakehouse) -> None:
        start_anew(house)
        lists, expiry = [one.manifest_list for one in table(house).snapshots], expired(house)
        plan, before = house.control.undoer.plan(expiry.task_id), table(house)
        house.catalog.damage(lists[1])
        task = undone(house, plan)
        assert (task.state, code(task)) == (TaskState.SUPERSEDED, "conflict")
        assert lists[1] in not_none(task.outcome).reason.text
        assert table(house) == before

    def test_i3_each_data_file_is_asked_for_once_and_its_length_counts(self, house: Lakehouse) -> None:
        start_anew(house)
        lost, expiry = set(ids(house)[:-1]), expired(house)
        undone(house, house.control.undoer.plan(expiry.task_id))
        files = Sizes(house)
        roots = files.roots(NAME)
        assert first_missing(files, roots, lost) is None
        assert sorted(files.asked) == [f"f{number:05d}.parquet" for number in range(5)]
        for path in files.asked:
            assert first_missing(Sizes(house, path), roots, lost) == path
        with pytest.raises(Unsupported, match="more than 4 files"):
            first_missing(files, roots, lost, 4)

    def test_what_the_current_snapshot_lists_as_well_is_passed_over(self, house: Lakehouse) -> None:
        files = Sizes(house)
        assert first_missing(files, files.roots(NAME), ids(house)[:-1]) is None
        assert files.asked == []
        assert first_missing(files, files.roots(NAME), ids(house)) is None
        assert len(files.asked) == 5

    def test_storage_that_is_away_puts_it_off(self, house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
        expiry = expired(house)
        plan = house.control.undoer.plan(expiry.task_id)
        left = [StorageUnavailable("no answer")]

        def away(_remover: Remover, task: Task, _may_go_on: MayGoOn) -> None:
            assert task.task_id == expiry.task_id
            if left:
                raise left.pop()

        monkeypatch.setattr(Remover, "bring_back", away)
        house.restart()
        task = undone(house, plan)
        assert (task.state, task.attempt) == (TaskState.SUCCEEDED, 2)

    def test_files_that_cannot_be_brought_back_refuse_it(
        self, house: Lakehouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expiry = expired(house)
        plan, before = house.control.undoer.plan(expiry.task_id), table(house)

        def gone(_remover: Remover, _task: Task, _may_go_on: MayGoOn) -> None:
            raise Conflict("f.parquet was purged")

        monkeypatch.setattr(Remover, "bring_back", gone)
        house.restart()
        assert undone(house, plan).state is TaskState.SUPERSEDED
        assert table(house) == before


class Stumbling:
    """The server's undoing, with something that happens before it or behind it."""

    def __init__(self, carrier: Carrier) -> None:
        self.carrier, self.carried = carrier, 0
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def carry_out(self, task: Task, may_commit: MayGoOn) -> Result:
        def leave(progress: Progress = COMMITS) -> None:
            may_commit(progress)
            self.carried += 1

        self.before()
        result = self.carrier.carry_out(task, leave)
        self.after()
        return result


def once(act: Callable[[], object]) -> Callable[[], None]:
    left = [act]

    def do() -> None:
        if left:
            left.pop()()

    return do


def raising(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return once(act)


@pytest.fixture
def stumbling(house: Lakehouse) -> Stumbling:
    made = Stumbling(house.control.undoer)
    house.carriers[ActionKind.UNDO_EXPIRE_SNAPSHOTS] = made
    house.restart()
    return made


@pytest.mark.parametrize("error", [RuntimeError("killed"), OutcomeUnknown("the answer was lost")])
def test_c1_w11_a_server_that_dies_behind_the_commit_has_done_it_once(
    house: Lakehouse, stumbling: Stumbling, error: Exception
) -> None:
    before, expiry = table(house), expired(house)
    stumbling.after = raising(error)
    task = undone(house, house.control.undoer.plan(expiry.task_id))
    assert (task.state, stumbling.carried) == (TaskState.SUCCEEDED, 1)
    assert same(before, table(house))


@pytest.mark.parametrize("error", [RuntimeError("killed"), StorageUnavailable("no answer")])
def test_c1_what_never_reached_the_table_is_tried_again(
    house: Lakehouse, stumbling: Stumbling, error: Exception
) -> None:
    before, expiry = table(house), expired(house)
    stumbling.before = raising(error)
    task = undone(house, house.control.undoer.plan(expiry.task_id))
    assert (task.state, stumbling.carried, task.attempt) == (TaskState.SUCCEEDED, 1, 2)
    assert same(before, table(house))


def test_w11_what_somebody_expires_anew_while_the_server_is_down_is_not_put_back_again(
    house: Lakehouse, stumbling: Stumbling
) -> None:
    """The signature tells that it was done, though nothing of it is there any more."""
    expiry = expired(house)

    def expire_again() -> None:
        house.catalog.expire(NAME, ids(house)[:-1])
        raise RuntimeError("killed")

    stumbling.after = once(expire_again)
    task = undone(house, house.control.undoer.plan(expiry.task_id))
    assert (task.state, stumbling.carried, len(ids(house))) == (TaskState.SUCCEEDED, 1, 1)
    assert "missing again since" in not_none(task.outcome).reason.text


def test_w11_a_server_that_dies_when_it_has_written_down_what_it_takes_has_taken_nothing(house: Lakehouse) -> None:
    seen: list[int] = []

    def die(found: Fault) -> None:
        if found is Fault.EXPIRY_KEPT and not seen:
            seen.append(len(ids(house)))
            raise RuntimeError("killed")

    arm(die)
    try:
        expiry = expired(house)
    finally:
        arm(None)
    assert seen == [5]
    before = len(ids(house))
    assert undone(house, house.control.undoer.plan(expiry.task_id)).state is TaskState.SUCCEEDED
    assert (before, len(ids(house))) == (1, 5)


def test_what_a_person_took_back_does_not_expire_by_itself_for_a_while() -> None:
    house = lakehouse()
    live_on(house, 4 * 24)
    last = expiries(house)[-1]
    assert last.state is TaskState.SUCCEEDED
    assert undone(house, house.control.undoer.plan(last.task_id)).state is TaskState.SUCCEEDED
    count, back = len(expiries(house)), set(ids(house))
    live_on(house, 6 * 24)
    assert len(expiries(house)) == count
    assert back <= set(ids(house))
    live_on(house, 3 * 24)
    assert (len(expiries(house)), back <= set(ids(house))) == (count, True)
    house.approve_all()
    house.rounds(2)
    assert len(expiries(house)) > count
    assert not back <= set(ids(house))
    assert UNDO_WINDOW_MS == 7 * DAY_MS


def test_a_snapshot_that_did_not_come_back_as_it_was_is_an_alarm(house: Lakehouse, stumbling: Stumbling) -> None:
    expiry = expired(house)

    def change() -> None:
        first = ids(house)[0]

        def changed(found: MemoryTable) -> MemoryTable:
            snapshots = tuple(
                replace(one, committed_at=1) if one.snapshot_id == first else one for one in found.metadata.snapshots
            )
            return replace(found, metadata=replace(found.metadata, snapshots=snapshots))

        assert house.catalog.swap(NAME, table(house).metadata_location, changed) is not None

    stumbling.after = once(change)
    task = undone(house, house.control.undoer.plan(expiry.task_id))
    assert (task.state, code(task)) == (TaskState.FAILED, "verification-failed")
    house.pass_time(MINUTE_MS)
