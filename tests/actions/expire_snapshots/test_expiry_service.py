"""Expiring snapshots on demand, from the question to the verified task, over memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.actions.expire_snapshots import service as expiry_planner
from icewright.actions.expire_snapshots.expirer import holds_of_tasks
from icewright.actions.expire_snapshots.plan import decide_expiry
from icewright.core.errors import Conflict, InvalidMessage, NotAllowed, TableReplaced
from icewright.model.actions.expire_snapshots import ExpireSnapshots, ExpireSnapshotsRequest
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import RefKind
from icewright.model.plans.plans import Plan
from icewright.model.work.tasks import Task, TaskState
from icewright.plans.repository import PlanRejected
from tests.builders.lakehouse import ALL_AUTO, HOUR_MS, MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import succeeded
from tests.cases import each_case

ASKED = ExpireSnapshotsRequest("PT2H", 1)


@pytest.fixture
def house() -> Lakehouse:
    """A table with five snapshots, an hour apart."""
    return Lakehouse(rules=(ALL_AUTO,)).with_five_snapshots()


def planned(house: Lakehouse, asked: ExpireSnapshotsRequest = ASKED) -> Plan:
    return house.control.maintainer.plan_asked(NAME, asked)


def ids(house: Lakehouse) -> list[int]:
    return [one.snapshot_id for one in house.catalog.load(NAME).snapshots]


def ended(house: Lakehouse, task: Task) -> Task:
    for _ in range(20):
        house.control.loop.round()
        found = house.tasks.get(task.task_id)
        if found.state not in (TaskState.QUEUED, TaskState.RUNNING, TaskState.COMMITTED, TaskState.IN_DOUBT):
            return found
        house.pass_time(MINUTE_MS)
    pytest.fail(f"{task.task_id} does not end")


def test_from_the_question_to_the_verified_task(house: Lakehouse) -> None:
    before = ids(house)
    house.catalog.set_ref(NAME, "v1", before[0], kind=RefKind.TAG)
    plan = planned(house)
    assert plan.asked
    assert plan.reason.text == "1 snapshot older than 2 h; kept: 4 by age and number; tag v1"
    assert plan.prediction is not None
    assert ids(house) == before
    task = ended(house, house.control.dispatcher.apply(plan.plan_id))
    assert succeeded(task).reason.code == "verified"
    assert ids(house) == [before[0], *before[2:]]


def test_nothing_expires_by_itself(house: Lakehouse) -> None:
    before = ids(house)
    for _ in range(5):
        house.pass_time(30 * 24 * HOUR_MS)
        house.control.loop.round()
    assert ids(house) == before


@each_case(
    "asked",
    [
        ExpireSnapshotsRequest("now"),
        ExpireSnapshotsRequest("2026-11-22T10:00:00Z"),
        ExpireSnapshotsRequest("432000000"),
        ExpireSnapshotsRequest("P1M"),
        ExpireSnapshotsRequest("-P1D"),
        ExpireSnapshotsRequest(""),
        ExpireSnapshotsRequest("P5D", 0),
        ExpireSnapshotsRequest(None, -1),
    ],
)
def test_e11_instants_and_no_snapshots_at_all_cannot_be_asked_for(
    house: Lakehouse, asked: ExpireSnapshotsRequest
) -> None:
    with pytest.raises(InvalidMessage):
        planned(house, asked)


def test_what_came_since_the_plan_is_kept_and_what_is_needed_by_now_refuses_it(house: Lakehouse) -> None:
    plan = planned(house)
    house.append(1)
    before = ids(house)
    house.catalog.set_ref(NAME, "late", before[0], kind=RefKind.TAG)
    task = ended(house, house.control.dispatcher.apply(plan.plan_id))
    assert task.state is TaskState.SUPERSEDED
    assert ids(house) == before


def test_who_may_only_look_expires_nothing(house: Lakehouse) -> None:
    plan = planned(house)
    house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
    with pytest.raises(NotAllowed):
        house.control.dispatcher.apply(plan.plan_id)


@pytest.mark.parametrize("other", [TableName("other", ("db",), "events"), replace(NAME, name="again")])
def test_l6_a_table_with_another_name_is_refused(house: Lakehouse, other: TableName) -> None:
    """In another catalog, or in its own."""
    assert planned(house).actions
    house.control.registry.saw(replace(house.catalog.load(NAME), name=other))
    plan = planned(house)
    assert (plan.actions, plan.reason.code) == ((), "shared-uuid")
    house.control.registry.gone(other)
    assert planned(house).actions


def test_l6_a_name_that_turns_up_before_the_commit_refuses_it(house: Lakehouse) -> None:
    before = ids(house)
    task = house.control.dispatcher.apply(planned(house).plan_id)
    house.control.registry.saw(replace(house.catalog.load(NAME), name=replace(NAME, name="again")))
    assert ended(house, task).state is TaskState.SUPERSEDED
    assert ids(house) == before


def test_l4_nothing_is_planned_or_kept_of_another_table_of_the_name(house: Lakehouse) -> None:
    table_id = house.catalog.load(NAME).table_id
    house.catalog.drop(NAME)
    house.create()
    with pytest.raises(TableReplaced):
        house.control.maintainer.plan_asked(NAME, ASKED, table_id)
    assert house.tables.plans(house.catalog.load(NAME).table_id, limit=9) == []


def test_e13_what_a_waiting_rewrite_was_planned_from_stays(house: Lakehouse) -> None:
    for _ in range(6):
        house.append(1)
    house.pass_time(24 * HOUR_MS)
    house.control.loop.round()
    table_id = house.catalog.load(NAME).table_id
    (hold,) = holds_of_tasks(house.tasks, table_id)
    assert hold.snapshot_id == ids(house)[-1]
    for _ in range(3):
        house.pass_time(3 * HOUR_MS)
        house.catalog.append(NAME, house.files(1))
    (action,) = planned(house).actions
    assert isinstance(action, ExpireSnapshots)
    assert set(action.snapshot_ids) == set(ids(house)[: ids(house).index(hold.snapshot_id)])


def test_a_wrong_plan_is_refused_and_kept_nowhere(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    right = decide_expiry

    def wrong(*arguments: object, **more: object) -> object:
        decision = right(*arguments, **more)  # type: ignore[arg-type]  # as they came
        assert decision.action is not None
        return replace(decision, action=replace(decision.action, snapshot_ids=decision.action.snapshot_ids[1:]))

    monkeypatch.setattr(expiry_planner, "decide_expiry", wrong)
    plans = len(house.tables.plans(house.catalog.load(NAME).table_id, limit=100))
    with pytest.raises(PlanRejected, match="miscounted"):
        planned(house)
    assert len(house.tables.plans(house.catalog.load(NAME).table_id, limit=100)) == plans


def test_exactly_that_plan_once(house: Lakehouse) -> None:
    plan = planned(house)
    task = house.control.dispatcher.apply(plan.plan_id)
    ended(house, task)
    again = planned(house)
    assert again.actions == ()
    with pytest.raises((Conflict, NotAllowed)):
        house.control.dispatcher.apply(again.plan_id)
