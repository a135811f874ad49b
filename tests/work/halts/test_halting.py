"""Pausing, draining, stopping and resuming: what goes on, what is ended, and that all of it goes on afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from icewright.actions.expire_snapshots.expirer import Expirer
from icewright.core.errors import LeaseLost, NotFound
from icewright.model.actions.actions import OPTIMIZER_ACTIONS, ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.iceberg.names import TableName
from icewright.model.policy.resource_groups import SERVER
from icewright.model.work.halts import EVERYTHING, HaltState, NewHalt, Part, PartKind
from icewright.model.work.jobs import Cancelled, Result
from icewright.model.work.optimizers import BacklogRequest
from icewright.model.work.storage import ProbeRequest
from icewright.model.work.tasks import COMMITTING, REMOVING, RESTORING, AttemptState, Task, TaskState
from tests.builders.lakehouse import LEASE_MS, MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import RETRYABLE, STOPPED, Worker, at_work

STATES = tuple(HaltState)


@pytest.fixture
def house() -> Lakehouse:
    house = Lakehouse().with_ready_table()
    house.control.loop.round()
    return house


def halt(house: Lakehouse, state: HaltState, part: Part = EVERYTHING) -> None:
    house.control.halting.halt(part, state, "a fire")


def table(house: Lakehouse) -> Part:
    return house.control.halting.part(PartKind.TABLE, str(NAME))


@pytest.mark.parametrize("state", STATES)
def test_i19_nothing_is_claimed_while_it_is_halted_also_by_the_next_server(house: Lakehouse, state: HaltState) -> None:
    halt(house, state)
    house.restart()
    assert Worker(house).claim_if_any() is None
    house.rounds(3)
    assert house.only_task().state is TaskState.QUEUED
    house.control.halting.resume(EVERYTHING, "")
    Worker(house).carry_out()
    house.rounds(1)
    assert house.only_task().state is TaskState.SUCCEEDED


@pytest.mark.parametrize("state", [HaltState.PAUSED, HaltState.DRAINING])
def test_what_runs_goes_on_to_its_end_while_it_is_paused(house: Lakehouse, state: HaltState) -> None:
    worker, spec = at_work(house)
    halt(house, state)
    assert not worker.beat(spec).cancel
    assert not worker.beat(spec, COMMITTING).cancel
    (view,) = house.control.halting.views()
    assert (view.running, view.verifying) == (1, 0)
    worker.report(spec, worker.try_commit(spec))
    (view,) = house.control.halting.views()
    assert (view.running, view.verifying) == (0, 1)
    house.rounds(1)
    assert house.only_task().state is TaskState.SUCCEEDED


@pytest.mark.parametrize("phase", ["merging", COMMITTING])
def test_what_runs_is_stopped_before_its_commit_and_waits_again(house: Lakehouse, phase: str) -> None:
    worker, spec = at_work(house)
    halt(house, HaltState.STOPPED, table(house))
    assert worker.beat(spec, phase).cancel
    task = worker.report(spec, STOPPED)
    assert (task.state, task.cancel_requested, task.outcome is None) == (TaskState.QUEUED, False, False)
    assert house.tasks.attempts(task.task_id)[-1].state is AttemptState.CANCELLED
    assert house.control.halting.views()[0].running == 0
    house.control.halting.resume(table(house), "")
    assert worker.claimed().task_id == task.task_id


def test_who_was_stopped_may_not_report_a_commit_of_before_for_one_of_after(house: Lakehouse) -> None:
    """An attempt that hears nothing of it loses its lease, and the commit that comes all the same is found."""
    worker, spec = at_work(house)
    halt(house, HaltState.STOPPED)
    house.pass_time(LEASE_MS)
    house.rounds(1)
    assert house.only_task().state is TaskState.IN_DOUBT
    assert house.control.halting.views()[0].running == 1
    with pytest.raises(LeaseLost):
        worker.beat(spec)
    house.rounds(3, every_ms=LEASE_MS)
    assert house.only_task().state is TaskState.QUEUED
    assert worker.claim_if_any() is None


def test_being_stopped_is_no_try(house: Lakehouse) -> None:
    worker = Worker(house)
    for _ in range(5):
        spec = worker.claimed()
        halt(house, HaltState.STOPPED)
        assert worker.beat(spec).cancel
        assert worker.report(spec, STOPPED).state is TaskState.QUEUED
        house.control.halting.resume(EVERYTHING, "")
    spec = worker.claimed()
    assert spec.attempt == 6
    task = worker.report(spec, RETRYABLE)
    assert task.state is TaskState.QUEUED
    for _ in range(2):
        house.pass_time(60 * MINUTE_MS)
        task = worker.report(worker.claimed(), RETRYABLE)
        house.rounds(3, every_ms=LEASE_MS)
    assert house.tasks.get(task.task_id).state is TaskState.FAILED


def test_what_a_person_cancelled_stays_cancelled_when_it_is_stopped_as_well(house: Lakehouse) -> None:
    worker, spec = at_work(house)
    halt(house, HaltState.STOPPED)
    house.control.dispatcher.cancel(spec.task_id)
    assert worker.report(spec, STOPPED).state is TaskState.CANCELLED


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("phase", [REMOVING, RESTORING])
def test_files_are_left_alone_after_the_batch_in_hand_however_it_is_halted(
    house: Lakehouse, state: HaltState, phase: str
) -> None:
    worker, spec = at_work(house)
    assert not worker.beat(spec, phase).cancel
    halt(house, state)
    assert worker.beat(spec, phase).cancel


@pytest.mark.parametrize("state", STATES)
def test_what_the_server_carries_out_itself_waits_as_well(house: Lakehouse, state: HaltState) -> None:
    task = asked_to_expire(house)
    before = house.metadata().snapshots
    halt(house, state, Part(PartKind.CATALOG, "lake"))
    house.rounds(3)
    assert (house.tasks.get(task).state, house.metadata().snapshots) == (TaskState.QUEUED, before)
    house.control.halting.resume(Part(PartKind.CATALOG, "lake"), "")
    house.rounds(3)
    assert house.tasks.get(task).state is TaskState.SUCCEEDED


def test_what_the_server_is_at_ends_before_its_commit_and_is_done_afterwards(house: Lakehouse) -> None:
    class HaltedMeanwhile(Expirer):
        def carry_out(self, task: Task, may_commit: Callable[[], None]) -> Result:
            if task.attempt == 1:
                halt(house, HaltState.STOPPED, Part(PartKind.GROUP, SERVER))
            return super().carry_out(task, may_commit)

    task, before = asked_to_expire(house), house.metadata().snapshots
    carrier = HaltedMeanwhile(house.expiries, house.tasks, house.kept)
    house.carriers[ActionKind.EXPIRE_SNAPSHOTS] = carrier
    house.restart()
    house.rounds(2)
    assert (house.tasks.get(task).state, house.metadata().snapshots) == (TaskState.QUEUED, before)
    house.control.halting.resume(Part(PartKind.GROUP, SERVER), "")
    house.rounds(2)
    assert house.tasks.get(task).state is TaskState.SUCCEEDED
    assert [one.state for one in house.tasks.attempts(task)] == [AttemptState.CANCELLED, AttemptState.COMMITTED]


def asked_to_expire(house: Lakehouse) -> str:
    """A person has snapshots of the table expire; the task."""
    plan = house.control.maintainer.plan_asked(NAME, ExpireSnapshotsRequest("PT0S", 1))
    return house.control.dispatcher.apply(plan.plan_id).task_id


def test_optimizers_are_asked_for_nothing_in_storages_that_are_halted(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(house)
    worker.introduce()
    assert (
        house.control.backlogs.of(BacklogRequest("default", actions=OPTIMIZER_ACTIONS), frozenset({"lake"})).tasks == 1
    )
    asked: list[set[str]] = []

    def requests(_optimizer_id: str, catalogs: Iterable[str]) -> tuple[ProbeRequest, ...]:
        asked.append(set(catalogs))
        return ()

    monkeypatch.setattr(house.control.dispatcher._access, "requests", requests)
    for part in (Part(PartKind.GROUP, "other"), Part(PartKind.GROUP, "default"), Part(PartKind.CATALOG, "lake")):
        halt(house, HaltState.PAUSED, part)
        house.control.dispatcher.probes(worker.optimizer_id)
        house.control.halting.resume(part, "")
    assert asked == [{"lake"}, set(), set()]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(PartKind.GROUP, "defautl"), (PartKind.CATALOG, "laek"), (PartKind.TABLE, "lake.db.evnets")],
)
def test_a_halt_of_what_nobody_knows_is_refused(house: Lakehouse, kind: PartKind, name: str) -> None:
    with pytest.raises(NotFound):
        house.control.halting.part(kind, name)


def test_what_is_gone_by_now_can_be_resumed_by_the_name_that_it_had(house: Lakehouse) -> None:
    part = table(house)
    halt(house, HaltState.PAUSED, part)
    halt(house, HaltState.PAUSED, Part(PartKind.CATALOG, "lake"))
    house.catalog.drop(NAME)
    house.rounds(2)
    house.restart(without=frozenset({"lake"}))
    for kind, name in ((PartKind.TABLE, str(NAME)), (PartKind.CATALOG, "lake")):
        assert house.control.halting.resume(house.control.halting.part(kind, name, halted=True), "") is not None
    assert house.control.halting.views() == ()


def test_a_table_that_was_renamed_is_resumed_by_either_name(house: Lakehouse) -> None:
    other = TableName("lake", ("db",), "renamed")
    for name in (NAME, other):
        house.tasks.halts.halt(NewHalt(Part(PartKind.TABLE, str(NAME), house.record().table_id), HaltState.PAUSED))
        if name == other:
            house.catalog.rename(NAME, other)
            house.append(1, name=other)
            house.control.maintainer.look(other)
        part = house.control.halting.part(PartKind.TABLE, str(name), halted=True)
        assert house.control.halting.resume(part, "") is not None


def test_a_stop_that_was_heard_counts_also_when_it_is_resumed_before_the_report(house: Lakehouse) -> None:
    worker, spec = at_work(house)
    halt(house, HaltState.STOPPED)
    assert worker.beat(spec).cancel
    house.control.halting.resume(EVERYTHING, "")
    assert worker.report(spec, Cancelled("stopped")).state is TaskState.QUEUED


def test_why_it_waits_names_who_halted_it_and_what(house: Lakehouse) -> None:
    halt(house, HaltState.PAUSED)
    halt(house, HaltState.STOPPED, table(house))
    (found,) = [one for one in house.control.explainer.why(house.record()).kinds if one.waits]
    assert found.waits[0].reason.code == "stopped"
    assert "table lake.db.events is stopped, by icewright: a fire" in found.waits[0].reason.text
    house.control.halting.resume(table(house), "")
    house.control.halting.resume(EVERYTHING, "")
    codes = {wait.reason.code for one in house.control.explainer.why(house.record()).kinds for wait in one.waits}
    assert not codes & {"paused", "stopped"}


Wrong = Callable[[Lakehouse], None]


def claims_without_looking(house: Lakehouse) -> None:
    house.tasks._halts.present = list  # type: ignore[attr-defined]  # of the store in memory


@pytest.mark.parametrize("wrong", [claims_without_looking])
def test_a_missing_guard_is_noticed(house: Lakehouse, wrong: Wrong) -> None:
    halt(house, HaltState.STOPPED)
    wrong(house)
    assert Worker(house).claim_if_any() is not None
