"""Computing statistics, from what is asked for or due by itself to the verified commit."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from icewright.actions.compute_statistics import service as statistics_planner
from icewright.core.errors import InvalidMessage
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.compute_statistics import ComputeStatistics, ComputeStatisticsRequest
from icewright.model.iceberg.tables import (
    NDV_KEY,
    THETA_SKETCH,
    PartitionStatisticsFile,
    Snapshot,
    StatisticsBlob,
    StatisticsFile,
)
from icewright.model.policy.policy import PolicyRule
from icewright.model.work.jobs import PROTOCOL_VERSION, Committed, CommitUnknown, TaskSpec
from icewright.model.work.tasks import Task, TaskState
from icewright.plans.repository import PlanRejected
from icewright.ports.store import TaskFilter
from tests.builders.lakehouse import ALL_AUTO, AUTO, BONN, HOUR_MS, MIB, NAME, Lakehouse
from tests.builders.worker import Worker, claim, report, succeeded
from tests.cases import each_case
from tests.narrowing import not_none, of_type

ASKED = ComputeStatisticsRequest()
BY_ITSELF = PolicyRule("lake", (), {**AUTO, "icewright.compute-statistics.enabled": "true"})


def lakehouse(rule: PolicyRule = ALL_AUTO) -> Lakehouse:
    """A table of one large file."""
    house = Lakehouse(rules=(rule,))
    house.create()
    house.catalog.append(NAME, house.files(1, BONN, 600 * MIB, 1000))
    return house


@pytest.fixture
def house() -> Lakehouse:
    return lakehouse()


def action_of(spec: TaskSpec) -> ComputeStatistics:
    assert isinstance(spec.action, ComputeStatistics)
    return spec.action


def compute(house: Lakehouse, spec: TaskSpec, ndv: int = 7, path: str = "s1") -> None:
    """What a job commits."""
    action = action_of(spec)
    of = of_type(Snapshot, house.metadata().snapshot(action.base_snapshot_id))
    blobs = tuple(
        StatisticsBlob(THETA_SKETCH, of.snapshot_id, of.sequence_number, (column.field_id,), {NDV_KEY: str(ndv)})
        for column in action.columns
    )
    house.catalog.set_statistics(
        NAME, StatisticsFile(of.snapshot_id, path, 9, 1, blobs), PartitionStatisticsFile(of.snapshot_id, "p1", 9)
    )


def statistics_tasks(house: Lakehouse) -> list[Task]:
    found = house.tasks.tasks(TaskFilter(), limit=1000)
    return [task for task in reversed(found) if task.kind is ActionKind.COMPUTE_STATISTICS]


def test_they_are_planned_applied_and_verified(house: Lakehouse) -> None:
    spec = claim(house, ASKED)
    assert [column.name for column in action_of(spec).columns] == ["city", "id"]
    compute(house, spec)
    house.append(1)
    task = house.control.verifier.verify(report(house, spec, Committed(None)))
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert task.outcome is not None
    assert "distinct values of 2 columns and figures of its partitions" in task.outcome.reason.text


def test_c1_a_commit_that_nobody_heard_of_is_found_by_what_the_snapshot_has(house: Lakehouse) -> None:
    spec = claim(house, ASKED)
    compute(house, spec)
    report(house, spec, CommitUnknown("the catalog closed the connection"))
    house.pass_time(HOUR_MS)
    house.rounds(2)
    (task,) = statistics_tasks(house)
    assert task.state is TaskState.SUCCEEDED, task.outcome


def test_c1_one_that_was_not_made_leaves_everything_to_be_planned_again(house: Lakehouse) -> None:
    spec = claim(house, ASKED)
    report(house, spec, CommitUnknown("the catalog closed the connection"))
    house.pass_time(HOUR_MS)
    house.rounds(2)
    (task,) = statistics_tasks(house)
    assert task.state is TaskState.SUPERSEDED
    assert not house.control.maintainer.plan_asked(NAME, ASKED).is_empty


def test_w7_a_report_of_statistics_that_are_not_there_is_not_believed(house: Lakehouse) -> None:
    task = house.control.verifier.verify(report(house, claim(house, ASKED), Committed(None)))
    assert task.state is TaskState.FAILED
    assert not_none(task.outcome).reason.code == "commit-not-found"


@pytest.mark.parametrize("fault", ["property", "ndv"])
def test_a_commit_that_changed_more_or_says_what_cannot_be_is_found_out(
    house: Lakehouse, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = claim(house, ASKED)
    if fault == "property":
        change = house.catalog._change

        def with_more(name: Any, changed: Any) -> None:
            def both(table: Any) -> Any:
                table = changed(table)
                return replace(table, metadata=replace(table.metadata, properties={"more": "changed"}))

            change(name, both)

        monkeypatch.setattr(house.catalog, "_change", with_more)
    compute(house, spec, ndv=5000 if fault == "ndv" else 7)
    task = house.control.verifier.verify(report(house, spec, Committed(None)))
    assert task.state is TaskState.FAILED
    assert not_none(task.outcome).reason.code == "verification-failed"


def test_e9_statistics_that_expired_with_their_snapshot_are_no_alarm(house: Lakehouse) -> None:
    spec = claim(house, ASKED)
    compute(house, spec)
    house.append(1)
    house.catalog.expire(NAME, [action_of(spec).base_snapshot_id])
    assert (house.metadata().statistics, house.metadata().partition_statistics) == ((), ())
    task = house.control.verifier.verify(report(house, spec, Committed(None)))
    assert succeeded(task).reason.code == "unverified"


def test_what_somebody_else_computed_first_is_nobodys_work(house: Lakehouse) -> None:
    task = house.control.dispatcher.apply(house.control.maintainer.plan_asked(NAME, ASKED).plan_id)
    compute(house, TaskSpec(PROTOCOL_VERSION, "theirs", 1, 1, task.table_id, NAME, task.action, 1, 1))
    assert Worker(house).claim_if_any() is None
    found = house.control.tasks.get(task.task_id)
    assert found.state is TaskState.SUPERSEDED
    assert not_none(found.outcome).reason.code == "there-already"


def test_those_of_somebody_else_end_a_waiting_task(house: Lakehouse) -> None:
    plan = house.control.maintainer.plan_asked(NAME, ASKED)
    task = house.control.dispatcher.apply(plan.plan_id)
    other = PartitionStatisticsFile(house.metadata().current_snapshot_id or 0, "p9", 9)
    house.catalog.set_statistics(NAME, None, other)
    house.control.maintainer.look(NAME, plan_anew=True)
    found = house.control.tasks.get(task.task_id)
    assert found.state is TaskState.SUPERSEDED
    assert not_none(found.outcome).reason.code == "statistics-changed"


@each_case(
    "asked",
    [
        ComputeStatisticsRequest(columns=("colour",)),
        ComputeStatisticsRequest(columns=("a.b",)),
        ComputeStatisticsRequest(columns=()),
        ComputeStatisticsRequest(columns=("id", "id")),
        ComputeStatisticsRequest(snapshot_id=99_999),
    ],
)
def test_what_cannot_be_asked_for_is_said(house: Lakehouse, asked: ComputeStatisticsRequest) -> None:
    with pytest.raises(InvalidMessage):
        house.control.maintainer.plan_asked(NAME, asked)


def test_a_plan_that_the_second_opinion_refuses_is_kept_nowhere(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics_planner, "statistics_violations", lambda *_: [("wrong", "as a test says")])
    with pytest.raises(PlanRejected, match="as a test says"):
        house.control.maintainer.plan_asked(NAME, ASKED)
    own = lakehouse(BY_ITSELF)
    looked = own.control.maintainer.look(NAME)
    assert looked.upkeep.enqueued == ()
    assert looked.upkeep.problem is not None


class TestByItself:
    def test_nothing_is_computed_without_being_let(self, house: Lakehouse) -> None:
        assert house.control.maintainer.look(NAME).upkeep.enqueued == ()

    def test_they_are_computed_when_enough_changed_and_not_too_often(self) -> None:
        house = lakehouse(BY_ITSELF)
        for hour in range(8 * 24):
            if hour % 3 == 0:
                house.catalog.append(NAME, house.files(1, BONN, 600 * MIB, 20))
            house.control.loop.round()
            spec = Worker(house).claim_if_any()
            if spec is not None and isinstance(spec.action, ComputeStatistics):
                compute(house, spec, path=f"s{hour}")
                report(house, spec, Committed(None))
            house.pass_time(HOUR_MS)
        done = statistics_tasks(house)
        # A day has 160 new rows: a tenth of the table is new each day at first, and later only after more time.
        gaps = [(later.created_at - task.created_at) // HOUR_MS for task, later in pairwise(done)]
        assert {task.state for task in done[:-1]} == {TaskState.SUCCEEDED}
        assert len(done) > 2
        assert min(gaps) >= 20
        assert gaps == sorted(gaps)
        assert gaps[-1] > 24

    def test_an_owner_who_changes_their_mind_is_heard(self) -> None:
        house = lakehouse(BY_ITSELF)
        (queued,) = house.control.maintainer.look(NAME).upkeep.enqueued
        house.catalog.set_properties(NAME, {"icewright.compute-statistics.enabled": "false"})
        house.control.maintainer.look(NAME)
        task = house.control.tasks.get(queued.task.task_id)
        assert task.state is TaskState.SUPERSEDED
        assert not_none(task.outcome).reason.code == "upkeep-off"
