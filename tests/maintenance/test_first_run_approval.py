"""The first time, and after somebody took it back, snapshots that would expire by themselves wait for a person."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from icewright.approvals.service import APPROVED_BY
from icewright.core.errors import Conflict
from icewright.maintenance.first_run_approval import RENEWED_MS
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.actions.undo import UNDO_WINDOW_MS
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.iceberg.tables import RefKind
from icewright.model.plans.approvals import REFUSED
from icewright.model.plans.plans import Reason
from icewright.model.work.tasks import Task, TaskState
from icewright.ports.store import TaskFilter, WaitingPlan
from tests.builders.lakehouse import HOUR_MS, NAME, Lakehouse
from tests.maintenance.dispatch.test_maintenance_windows import said
from tests.maintenance.test_upkeep import DAY_MS, KEPT_UP, expiries, lakehouse, live_on


@pytest.fixture
def house() -> Lakehouse:
    """A table whose snapshots may expire by themselves, and never did, some days later."""
    made = lakehouse(KEPT_UP)
    live_on(made, 4 * 24)
    return made


def waiting(house: Lakehouse) -> WaitingPlan:
    (one,) = house.tables.waiting(limit=9)
    assert one.kind is ActionKind.EXPIRE_SNAPSHOTS
    return one


def planned(house: Lakehouse, plan_id: str) -> ExpireSnapshots:
    (action,) = house.tables.plan(plan_id).actions
    assert isinstance(action, ExpireSnapshots)
    return action


def ids(house: Lakehouse) -> set[int]:
    return {one.snapshot_id for one in house.metadata().snapshots}


def test_e11_x3_the_first_expiry_waits_and_is_renewed_once_a_day(house: Lakehouse) -> None:
    every = ids(house)
    before, seen = planned(house, waiting(house).plan_id), {waiting(house).plan_id: 0}
    for _ in range(3 * 24):
        live_on(house, 1, commits_every_h=6)
        one = waiting(house)
        seen[one.plan_id] = seen.get(one.plan_id, 0) + 1
        assert house.clock.now() - one.since <= RENEWED_MS + 2 * HOUR_MS
        assert said(house).code == "first-expiry"
        renewed = waiting(house)
        assert (said(house).figures["plan_id"], waiting(house)) == (renewed.plan_id, renewed)  # asking changes nothing
    assert 3 <= len(seen) <= 5
    assert (expiries(house), every <= ids(house)) == ([], True)
    assert f"plan {waiting(house).plan_id} waits for a person" in said(house).text
    assert set(before.snapshot_ids) < set(planned(house, waiting(house).plan_id).snapshot_ids)


def test_i11_what_a_person_approves_is_that_plan_however_the_table_moved_on(house: Lakehouse) -> None:
    plan_id = waiting(house).plan_id
    action, every = planned(house, plan_id), ids(house)
    live_on(house, 2 * 24)
    assert waiting(house).plan_id != plan_id
    told = house.tasks.feed.after(0, 1_000, FeedFilter(frozenset({FactKind.WAITS_FOR_APPROVAL}))).told
    assert [plan_id, waiting(house).plan_id] == [told[-3].fact.plan_id, told[-1].fact.plan_id]  # once a day
    task = house.control.dispatcher.approve(plan_id, "Ada")
    assert (task.action, task.reason.figures[APPROVED_BY]) == (action, "Ada")
    assert list(house.tables.waiting(limit=9)) == []
    house.rounds(2)
    assert house.tasks.get(task.task_id).state is TaskState.SUCCEEDED
    assert every - ids(house) == set(action.snapshot_ids)
    live_on(house, 3 * 24)  # from then on nobody is asked
    assert len(expiries(house)) > 2
    assert {each.state for each in expiries(house)} == {TaskState.SUCCEEDED}
    assert list(house.tables.waiting(limit=9)) == []


def test_e5_what_somebody_needs_by_then_is_not_taken_and_is_planned_without_it(house: Lakehouse) -> None:
    one = waiting(house)
    kept, every = planned(house, one.plan_id).snapshot_ids[0], ids(house)
    house.catalog.set_ref(NAME, "audit", kept, kind=RefKind.TAG)
    task = house.control.dispatcher.approve(one.plan_id, "Ada")
    house.rounds(2)
    assert house.tasks.get(task.task_id).state is TaskState.SUPERSEDED
    assert ids(house) == every
    live_on(house, 3, commits_every_h=100)
    assert kept not in planned(house, waiting(house).plan_id).snapshot_ids
    house.approve_all()
    house.rounds(2)
    assert [each.state for each in expiries(house)] == [TaskState.SUPERSEDED, TaskState.SUCCEEDED]
    assert kept in ids(house)
    assert every - ids(house)


@pytest.mark.parametrize(
    "changed",
    [
        {"icewright.expire-snapshots.enabled": "false"},
        {"history.expire.max-snapshot-age-ms": str(30 * DAY_MS)},
        {"history.expire.min-snapshots-to-keep": "50"},
    ],
)
def test_x3_an_owner_who_wants_more_to_stay_is_heard_whoever_approves(
    house: Lakehouse, changed: dict[str, str]
) -> None:
    one, every = waiting(house), ids(house)
    house.catalog.set_properties(NAME, changed)
    with pytest.raises(Conflict, match="the policy"):
        house.control.dispatcher.approve(one.plan_id, "Ada")
    live_on(house, 2, commits_every_h=100)
    assert (expiries(house), ids(house) >= every) == ([], True)
    assert list(house.tables.waiting(limit=9)) == []  # what nobody wants any more waits no more


@pytest.mark.parametrize(
    "changed",
    [{"icewright.expire-snapshots.enabled": "false"}, {"icewright.mode": "approve"}, {"icewright.mode": "observe"}],
)
def test_x3_what_goes_by_itself_no_more_waits_no_more(house: Lakehouse, changed: dict[str, str]) -> None:
    orphans = replace(waiting(house), kind=ActionKind.REMOVE_ORPHAN_FILES)
    house.tables.wait(orphans)
    house.restart()
    live_on(house, 1)
    assert [one.kind for one in house.tables.waiting(limit=9)] == [ActionKind.EXPIRE_SNAPSHOTS]  # orphans: never wanted
    house.catalog.set_properties(NAME, changed)
    live_on(house, 1)
    assert list(house.tables.waiting(limit=9)) == []
    house.catalog.set_properties(NAME, KEPT_UP)
    live_on(house, 2)
    assert waiting(house).reason.code == "first-expiry"


def test_a_plan_to_do_nothing_waits_for_nobody(house: Lakehouse) -> None:
    one = waiting(house)
    found = house.tables.before_look(NAME)
    nothing = replace(house.tables.plan(one.plan_id), plan_id="plan-nothing", actions=(), prediction=None)
    assert house.control.maintainer._first_runs.let_wait(nothing, one.reason, [], found) is None
    assert waiting(house) == one


def test_x3_what_the_owner_does_not_want_any_more_is_refused_once(house: Lakehouse) -> None:
    old = waiting(house)
    live_on(house, 2 * 24)
    one = waiting(house)
    house.catalog.set_properties(NAME, {"history.expire.min-snapshots-to-keep": "50"})
    with pytest.raises(Conflict, match="the policy"):
        house.control.dispatcher.approve(old.plan_id, "Ada")
    assert waiting(house) == one  # another plan than the one that was refused
    with pytest.raises(Conflict, match="the policy"):
        house.control.dispatcher.approve(one.plan_id, "Ada")
    assert list(house.tables.waiting(limit=9)) == []


def undo(house: Lakehouse, task: Task) -> None:
    house.control.dispatcher.apply(house.control.undoer.plan(task.task_id).plan_id)
    house.rounds(2)


def test_i12_after_an_undo_it_rests_and_then_waits_for_a_person_again(house: Lakehouse) -> None:
    every = ids(house)
    house.approve_all()
    live_on(house, 2 * 24)
    first, *_, last = expiries(house)
    assert first.task_id != last.task_id
    undo(house, last)
    back = ids(house)
    live_on(house, 7 * 24 - 2)
    assert list(house.tables.waiting(limit=9)) == []
    assert said(house).code == "taken-back"
    live_on(house, 26)
    assert (waiting(house).reason.code, said(house).code) == ("taken-back", "taken-back")
    assert (back <= ids(house), every & back <= ids(house)) == (True, True)
    (task,) = house.approve_all()
    live_on(house, 3 * 24)
    assert house.tasks.get(task.task_id).state is TaskState.SUCCEEDED
    assert len(expiries(house)) >= 4
    assert list(house.tables.waiting(limit=9)) == []
    assert house.clock.now() > UNDO_WINDOW_MS


def test_what_nobody_remembers_is_asked_again_and_what_was_queued_is_withdrawn() -> None:
    house = lakehouse()  # a person had snapshots expire
    house.carry_out_nothing()
    live_on(house, 4 * 24)
    (queued,) = expiries(house)
    assert (queued.state, list(house.tables.waiting(limit=9))) == (TaskState.QUEUED, [])
    house.control.loop.round()
    assert house.tasks.prune(house.clock.now(), 10) == 1
    assert said(house).code == "first-expiry"  # in the very look that withdraws what was queued
    live_on(house, 3)
    ended = house.tasks.get(queued.task_id)
    assert (ended.state, ended.outcome and ended.outcome.reason.code) == (TaskState.SUPERSEDED, "first-expiry")
    assert waiting(house).reason.code == "first-expiry"


def test_what_a_person_approved_and_nobody_carries_out_is_not_planned_anew(house: Lakehouse) -> None:
    house.carry_out_nothing()
    (task,) = house.approve_all()
    live_on(house, 2 * 24)
    assert [each.task_id for each in expiries(house)] == [task.task_id]
    assert expiries(house)[0].action == task.action
    assert list(house.tables.waiting(limit=9)) == []


def come_to_nothing(house: Lakehouse, plan_id: str, times: int) -> None:
    """Tasks of a plan that were still waiting when the window closed."""
    for _ in range(times):
        house.pass_time(HOUR_MS)
        enqueued = house.control.dispatcher.enqueue(house.tables.plan(plan_id))
        assert enqueued is not None
        house.control.dispatcher.withdraw(enqueued.task, Reason("window-closed", "the window closed"))


def test_the_last_expiry_is_remembered_however_many_came_to_nothing_since() -> None:
    house = lakehouse()
    live_on(house, 4 * 24)
    come_to_nothing(house, expiries(house)[-1].plan_id, 25)
    before = len(expiries(house))
    live_on(house, 24)
    assert list(house.tables.waiting(limit=9)) == []
    assert len(expiries(house)) > before
    assert expiries(house)[-1].state is TaskState.SUCCEEDED


def test_a_look_asks_for_the_tasks_of_a_kind_once(monkeypatch: pytest.MonkeyPatch) -> None:
    house = lakehouse()
    live_on(house, 4 * 24)
    come_to_nothing(house, expiries(house)[-1].plan_id, 25)
    for task in house.all_tasks():
        if task.state is TaskState.QUEUED:  # the next one is of another kind: not all of the latest are expiries
            house.control.dispatcher.withdraw(task, Reason("replanned", "the table was planned anew"))
    live_on(house, 7)
    asked: Counter[tuple[TaskFilter, int]] = Counter()
    listed = house.tasks.listed

    def counted(only: TaskFilter, *, limit: int) -> Any:
        asked[only, limit] += 1  # what is queued also asks further back, whether its table was in the large queue
        return listed(only, limit=limit)

    monkeypatch.setattr(house.tasks, "listed", counted)
    house.control.maintainer.look(NAME, plan_anew=True)
    assert {only.kind for only, _ in asked} >= {ActionKind.EXPIRE_SNAPSHOTS, ActionKind.UNDO_EXPIRE_SNAPSHOTS}
    assert set(asked.values()) == {1}


def test_a_refused_expiry_is_not_asked_about_again_for_a_week_however_the_table_moves_on(house: Lakehouse) -> None:
    every, one = ids(house), waiting(house)
    house.control.approvals.refuse(one.plan_id, "Bob", "the audit needs them")
    for _ in range(3):
        live_on(house, 2 * 24)
        assert list(house.tables.waiting(limit=9)) == []
        assert said(house).code == REFUSED
        assert f"Bob refused plan {one.plan_id}: the audit needs them" in said(house).text
    live_on(house, 2 * 24)
    assert waiting(house).plan_id != one.plan_id
    assert (expiries(house), every <= ids(house)) == ([], True)


def test_a_refused_expiry_is_asked_about_again_when_the_owner_wants_something_else(house: Lakehouse) -> None:
    one = waiting(house)
    house.control.approvals.refuse(one.plan_id, "Bob", "keep more of them")
    house.catalog.set_properties(NAME, {"history.expire.min-snapshots-to-keep": "3"})
    live_on(house, 2)
    assert waiting(house).plan_id != one.plan_id
