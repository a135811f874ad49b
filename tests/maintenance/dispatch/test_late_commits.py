"""A commit that arrives when its task has ended is found, verified and told: nothing takes effect unseen."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TASK_ID_KEY
from icewright.model.work.tasks import AttemptState, Task, TaskState
from tests.builders.lakehouse import HOUR_MS, LEASE_MS, NAME, Lakehouse
from tests.builders.worker import FINAL, STOPPED, Worker, at_work, succeeded
from tests.maintenance.dispatch.test_verifier import two_groups
from tests.narrowing import not_none

OTHER = TableName("lake", ("db",), "other")


@pytest.fixture
def house() -> Lakehouse:
    house = Lakehouse().with_ready_table()
    house.control.maintainer.look(NAME)
    return house


def history(house: Lakehouse, task: Task) -> list[tuple[str, str]]:
    return [(entry.state.value, entry.reason.code) for entry in house.tasks.history(task.task_id)]


@pytest.mark.parametrize("end", ["superseded", "failed", "cancelled"])
def test_a_commit_after_the_end_is_verified_and_told(house: Lakehouse, end: str) -> None:
    zombie, spec = at_work(house)
    if end == "superseded":
        task = zombie.commit_unknown(spec)
        house.pass_time(LEASE_MS)
        task = house.control.verifier.settle(task)
    else:
        if end == "cancelled":
            house.control.dispatcher.cancel(spec.task_id)
        task = zombie.report(spec, FINAL if end == "failed" else STOPPED)
    assert task.state.value == end

    snapshot = zombie.commit(spec)
    with capture_logs() as logs:
        house.pass_time(HOUR_MS)
        house.rounds(2)

    task = house.tasks.get(spec.task_id)
    assert succeeded(task).snapshot_id == snapshot.snapshot_id
    assert history(house, task)[-3:-1] == [(end, history(house, task)[-3][1]), ("committed", "found-late")]
    assert house.tasks.attempts(spec.task_id)[-1].state is AttemptState.COMMITTED
    assert [log for log in logs if log["event"] == "commit of a task that had ended"] != []


def test_one_that_lost_rows_is_an_alarm_as_any_other(house: Lakehouse) -> None:
    zombie = Worker(house, lost_rows=3)
    spec = zombie.claimed()
    zombie.report(spec, FINAL)
    zombie.commit(spec)
    house.pass_time(HOUR_MS)
    house.rounds(3)
    assert not_none(house.tasks.get(spec.task_id).outcome).reason.code == "verification-failed"
    record = house.record()
    assert not_none(record.problem).code == "parked"


def test_it_waits_while_the_table_has_another_task_under_way(house: Lakehouse) -> None:
    zombie, worker = Worker(house), Worker(house, "optimizer-b")
    late = zombie.claimed()
    task = zombie.commit_unknown(late)
    house.pass_time(LEASE_MS)
    house.control.verifier.settle(task)
    house.control.maintainer.look(NAME, plan_anew=True)
    spec = worker.claimed()
    zombie.commit(late)
    assert house.control.maintainer.look(NAME).late == ()

    worker.report(spec, worker.try_commit(spec))
    assert [found.task_id for found in house.control.maintainer.look(NAME).late] == [late.task_id]


def test_a_task_that_knows_of_its_commit_is_not_taken_up_again(house: Lakehouse) -> None:
    Worker(house).carry_out()
    house.rounds(1)
    assert house.only_task().state is TaskState.SUCCEEDED
    assert house.control.maintainer.look(NAME).late == ()


def test_an_alarm_is_raised_once(house: Lakehouse) -> None:
    Worker(house, lost_rows=1).carry_out()
    house.rounds(1)
    assert house.only_task().state is TaskState.FAILED
    house.control = house.restart()
    assert house.control.maintainer.look(NAME).late == ()


def test_task_ids_that_an_owner_made_up_or_copied_concern_nobody(house: Lakehouse) -> None:
    worker, spec = at_work(house)
    worker.report(spec, FINAL)
    house.create(OTHER)
    for task_id in (spec.task_id, "task-of-nobody"):
        files = house.files(1)
        house.catalog.append(OTHER, files)
        base = house.metadata(OTHER).current_snapshot_id or 0
        house.catalog.commit_rewrite(
            OTHER,
            base_snapshot_id=base,
            remove=[files[0].path],
            add=house.files(1),
            summary={TASK_ID_KEY: task_id},
        )
    assert house.control.maintainer.look(OTHER).late == ()
    assert house.tasks.get(spec.task_id).state is TaskState.FAILED


@pytest.mark.parametrize("lost_rows", [0, 1])
def test_another_part_that_comes_when_one_was_verified_is_verified_too(lost_rows: int) -> None:
    house, worker, spec = two_groups()
    worker.report(spec, worker.try_commit(spec))
    house.rounds(2)
    first = house.tasks.get(spec.task_id)
    assert first.state is TaskState.SUCCEEDED

    other, part = Worker(house, lost_rows=lost_rows), spec.rewrite.only([1])
    house.catalog.delete(NAME, ["d"])  # what kept the first attempt from committing it
    late = house.catalog.commit_rewrite(
        NAME,
        base_snapshot_id=spec.rewrite.base_snapshot_id,
        remove=[file.path for group in part.groups for file in group.files],
        add=other._outputs(spec, part.groups[0]),
        summary=other._summary(spec, part),
    )
    house.pass_time(HOUR_MS)
    house.rounds(3)

    task = house.tasks.get(spec.task_id)
    assert not_none(task.outcome).snapshot_id == late.snapshot_id
    assert task.state is (TaskState.FAILED if lost_rows else TaskState.SUCCEEDED)
    assert (house.record().problem is not None) is bool(lost_rows)
    changes = len(house.tasks.history(spec.task_id))
    house.pass_time(HOUR_MS)
    house.rounds(3)
    assert len(house.tasks.history(spec.task_id)) == changes, "verified once"
