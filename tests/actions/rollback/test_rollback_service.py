"""Setting ``main`` back on demand, and forward again, over memory: planned, applied, carried out, verified."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from icewright.actions.rollback.service import Rollbacker
from icewright.core.errors import Conflict, InvalidMessage, NotAllowed, OutcomeUnknown
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.rollback import Rollback, RollbackPrediction, RollbackRequest
from icewright.model.actions.undo import UNDO_WINDOW_MS
from icewright.model.iceberg.tables import RefKind
from icewright.model.plans.plans import Plan
from icewright.model.work.jobs import Result
from icewright.model.work.tasks import TaskState
from tests.actions.expire_snapshots.test_expiry_service import ended, ids
from tests.actions.undo.test_undo_service import Stumbling, code, once, raising, table, undone
from tests.builders.lakehouse import ALL_AUTO, HOUR_MS, NAME, Lakehouse
from tests.cases import each_case


@pytest.fixture
def house() -> Lakehouse:
    """A table with five snapshots, an hour apart."""
    return Lakehouse(rules=(ALL_AUTO,)).with_five_snapshots()


def planned(house: Lakehouse, to_snapshot: int | None = None, to_time: str | None = None) -> Plan:
    return house.control.maintainer.plan_asked(NAME, RollbackRequest(to_snapshot, to_time))


def test_from_the_question_to_the_verified_task_and_forward_again(house: Lakehouse) -> None:
    before = ids(house)
    plan = planned(house, before[1])
    assert plan.asked
    assert isinstance(plan.prediction, RollbackPrediction)
    assert (plan.prediction.snapshots, plan.prediction.commits[0].added_records) == (3, 30)
    assert plan.reason.text.startswith(f"main set back from snapshot {before[4]} to {before[1]}, of ")
    assert table(house).current_snapshot_id == before[4]
    task = undone(house, plan)
    assert (task.state, code(task), task.kind) == (TaskState.SUCCEEDED, "verified", ActionKind.ROLLBACK_TO_SNAPSHOT)
    assert table(house).current_snapshot_id == before[1]
    assert ids(house) == before
    forward = house.control.undoer.plan(task.task_id)
    assert forward.reason.text.startswith("main set forward again")
    assert isinstance(forward.prediction, RollbackPrediction)
    assert (forward.prediction.is_forward, forward.prediction.snapshots) == (True, 3)
    again = undone(house, forward)
    assert (again.state, table(house).current_snapshot_id) == (TaskState.SUCCEEDED, before[4])
    with pytest.raises(NotAllowed, match="it was an undo"):
        house.control.undoer.plan(again.task_id)
    assert house.control.undoer.plan(task.task_id).reason.code == "main-moved"


def test_nobody_but_a_person_applies_it(house: Lakehouse) -> None:
    before = table(house)
    planned(house, ids(house)[1])
    house.rounds(10, HOUR_MS)
    assert table(house).current_snapshot_id == before.current_snapshot_id


def test_i4_a_commit_after_the_preview_is_not_lost(house: Lakehouse) -> None:
    plan = planned(house, ids(house)[1])
    newest = house.append(1)
    with pytest.raises(Conflict, match="main is at snapshot"):
        house.control.dispatcher.apply(plan.plan_id)
    plan = planned(house, ids(house)[1])
    task = house.control.dispatcher.apply(plan.plan_id)
    newest = house.append(1)
    assert ended(house, task).state is TaskState.SUPERSEDED
    assert table(house).current_snapshot_id == newest.snapshot_id


def test_it_does_not_go_forward_over_what_came_since(house: Lakehouse) -> None:
    task = undone(house, planned(house, ids(house)[1]))
    newest = house.append(1)
    plan = house.control.undoer.plan(task.task_id)
    assert (plan.actions, plan.reason.code) == ((), "main-moved")
    assert table(house).current_snapshot_id == newest.snapshot_id


def test_it_does_not_go_forward_to_what_has_expired(house: Lakehouse) -> None:
    task = undone(house, planned(house, ids(house)[1]))
    gone = ids(house)[-1]
    house.catalog.expire(NAME, [gone])
    plan = house.control.undoer.plan(task.task_id)
    assert (plan.actions, plan.reason.code) == ((), "snapshot-gone")


def test_the_window_ends(house: Lakehouse) -> None:
    task = undone(house, planned(house, ids(house)[1]))
    house.pass_time(UNDO_WINDOW_MS + 1)
    with pytest.raises(NotAllowed, match="until"):
        house.control.undoer.plan(task.task_id)


def test_e5_what_main_left_stays_for_its_age_from_then_on(house: Lakehouse) -> None:
    """Also where its own age is over: whoever set the table back may want it forward again."""
    house.pass_time(30 * HOUR_MS)
    lost = ids(house)[2:]
    task = undone(house, planned(house, ids(house)[1]))
    plan = house.control.maintainer.plan_asked(NAME, ExpireSnapshotsRequest("PT20H", 1))
    if plan.actions:
        undone(house, plan)
    assert lost[-1] in ids(house)
    forward = house.control.undoer.plan(task.task_id)
    assert undone(house, forward).state is TaskState.SUCCEEDED
    assert table(house).current_snapshot_id == lost[-1]


def zoned(at: Instant, zone_h: int) -> str:
    return datetime.fromtimestamp(at / 1000, timezone(timedelta(hours=zone_h))).isoformat(timespec="milliseconds")


@pytest.mark.parametrize("zone_h", [0, 2, -8])
def test_e11_to_the_latest_before_an_instant_with_its_zone(house: Lakehouse, zone_h: int) -> None:
    third = table(house).snapshots[2]
    before = planned(house, to_time=zoned(third.committed_at, zone_h)).actions[0]
    after = planned(house, to_time=zoned(third.committed_at + 1, zone_h)).actions[0]
    assert isinstance(before, Rollback)
    assert isinstance(after, Rollback)
    assert (before.snapshot_id, after.snapshot_id) == (ids(house)[1], ids(house)[2])
    first = table(house).snapshots[0]
    assert planned(house, to_time=zoned(first.committed_at, zone_h)).reason.code == "nothing-before"


@each_case("wrong", ["2026-11-22T10:00:00", "2026-11-22", "now", "1795341600000", "2026-13-22T10:00:00Z", "P1D", ""])
def test_e11_what_is_no_instant_with_a_zone_is_refused(house: Lakehouse, wrong: str) -> None:
    with pytest.raises(InvalidMessage):
        planned(house, to_time=wrong)


def test_it_is_to_one_place(house: Lakehouse) -> None:
    for both in (RollbackRequest(), RollbackRequest(1, "2026-11-22T10:00:00Z")):
        with pytest.raises(InvalidMessage):
            house.control.maintainer.plan_asked(NAME, both)


def test_a_mode_of_observe_forbids_it(house: Lakehouse) -> None:
    plan = planned(house, ids(house)[1])
    house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
    with pytest.raises(NotAllowed, match="observe"):
        house.control.dispatcher.apply(plan.plan_id)


@pytest.mark.parametrize("error", [RuntimeError("killed"), OutcomeUnknown("the answer was lost")])
def test_c1_w11_a_server_that_dies_behind_the_commit_has_done_it_once(house: Lakehouse, error: Exception) -> None:
    stumbling = Stumbling(Rollbacker(house.rollbacks))
    house.carriers[ActionKind.ROLLBACK_TO_SNAPSHOT] = stumbling
    house.restart()
    before = ids(house)
    stumbling.after = raising(error)
    task = undone(house, planned(house, before[1]))
    assert (task.state, stumbling.carried) == (TaskState.SUCCEEDED, 1)
    assert table(house).current_snapshot_id == before[1]


def test_w11_a_server_that_dies_before_the_commit_does_not_lose_what_came_meanwhile(house: Lakehouse) -> None:
    stumbling = Stumbling(Rollbacker(house.rollbacks))
    house.carriers[ActionKind.ROLLBACK_TO_SNAPSHOT] = stumbling
    house.restart()

    def die() -> Result:
        house.append(1)
        raise RuntimeError("killed")

    stumbling.before = once(die)
    task = undone(house, planned(house, ids(house)[1]))
    assert (task.state, stumbling.carried) == (TaskState.SUPERSEDED, 0)
    assert table(house).current_snapshot_id == ids(house)[-1]


def test_what_depends_on_what_is_lost_is_said(house: Lakehouse) -> None:
    newest = ids(house)[-1]
    house.catalog.set_ref(NAME, "v1", newest, kind=RefKind.TAG)
    house.catalog.set_properties(NAME, {"icewright.consumer.nightly": str(newest)})
    plan = planned(house, ids(house)[1])
    assert [note.code for note in plan.rules] == ["ref-ahead", "consumer-ahead"]
