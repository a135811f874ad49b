"""Statistics of a table are computed beside a rewrite of it, and beside nothing that takes anything away."""

from __future__ import annotations

from itertools import permutations

import pytest
from sqlalchemy import update

from icewright.core.clock import Clock
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.compute_statistics import ComputeStatistics, ComputeStatisticsRequest
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.traits import TableSlot
from icewright.model.iceberg.tables import (
    NDV_KEY,
    THETA_SKETCH,
    PartitionStatisticsFile,
    StatisticsBlob,
    StatisticsFile,
)
from icewright.model.work.jobs import Committed, TaskSpec
from icewright.model.work.tasks import Task, TaskState
from icewright.ports.store import TableStore, TaskStore
from icewright.store.schema import tasks as rows_of_tasks
from icewright.store.transactions import writing
from icewright.work.store.task_store import SqlTaskStore
from tests.builders.lakehouse import BONN, NAME, SECOND_MS, Lakehouse
from tests.builders.worker import Worker
from tests.contracts.stores import stores_on
from tests.narrowing import not_none, of_type


@pytest.fixture(params=["memory", "sqlite"])
def house(request: pytest.FixtureRequest) -> Lakehouse:
    """A table with eight small files that are to be merged."""

    def stores(clock: Clock) -> tuple[TableStore, TaskStore]:
        found = stores_on("sqlite", request, clock)
        return found.tables(), found.tasks()

    house = Lakehouse(stores=None if request.param == "memory" else stores).with_ready_table()
    house.rounds(1)
    return house


def ask_for_statistics(house: Lakehouse) -> Task:
    return house.control.dispatcher.apply(house.control.maintainer.plan_asked(NAME, ComputeStatisticsRequest()).plan_id)


def claimed(house: Lakehouse) -> dict[ActionKind, tuple[Worker, TaskSpec]]:
    """What two optimizers get who ask for work, by kind."""
    workers = [Worker(house, f"optimizer-{name}") for name in "ab"]
    found = [(worker, spec) for worker in workers if (spec := worker.claim_if_any()) is not None]
    return {ActionKind(spec.action.kind): (worker, spec) for worker, spec in found}


def commit_statistics(house: Lakehouse, spec: TaskSpec) -> Committed:
    """What a job commits."""
    assert isinstance(spec.action, ComputeStatistics)
    of = not_none(house.metadata().snapshot(spec.action.base_snapshot_id))
    blobs = tuple(
        StatisticsBlob(THETA_SKETCH, of.snapshot_id, of.sequence_number, (column.field_id,), {NDV_KEY: "7"})
        for column in spec.action.columns
    )
    house.catalog.set_statistics(
        NAME, StatisticsFile(of.snapshot_id, "s1", 9, 1, blobs), PartitionStatisticsFile(of.snapshot_id, "p1", 9)
    )
    return Committed(None)


def rows(house: Lakehouse) -> int:
    metadata = house.metadata()
    snapshot = not_none(metadata.current_snapshot)
    keys = house.catalog.manifests(metadata, snapshot)
    return sum(file.record_count for file in house.catalog.data_files(metadata, snapshot, keys, frozenset({BONN})))


def task_of(house: Lakehouse, kind: ActionKind) -> Task:
    (task,) = [task for task in house.all_tasks() if task.kind is kind]
    return task


@pytest.mark.parametrize("order", list(permutations([ActionKind.REWRITE_DATA_FILES, ActionKind.COMPUTE_STATISTICS])))
def test_statistics_and_a_rewrite_run_at_once_and_both_succeed(
    house: Lakehouse, order: tuple[ActionKind, ActionKind]
) -> None:
    """Whichever commits first: the other one had read the table before."""
    before = rows(house)
    ask_for_statistics(house)
    at_work = claimed(house)
    assert set(at_work) == set(order)
    for kind in order:
        worker, spec = at_work[kind]
        rewrites = kind is ActionKind.REWRITE_DATA_FILES
        worker.report(spec, worker.try_commit(spec) if rewrites else commit_statistics(house, spec))
        if kind is order[0]:
            house.rounds(1)  # verified while the other one is still at work
            assert task_of(house, kind).state is TaskState.SUCCEEDED
    house.rounds(2)
    for kind in order:
        task = task_of(house, kind)
        assert (task.state, task.attempt) == (TaskState.SUCCEEDED, 1), task.outcome
    assert rows(house) == before == 80
    assert len(house.metadata().statistics) == 1
    assert not_none(house.tables.record_by_name(NAME)).problem is None


def test_whoever_wants_both_slots_waits_for_both(house: Lakehouse) -> None:
    ask_for_statistics(house)
    at_work = claimed(house)
    house.append(1)
    house.pass_time(SECOND_MS)
    plan = house.control.maintainer.plan_asked(NAME, ExpireSnapshotsRequest("PT0S", 1))
    expiry = house.control.dispatcher.apply(plan.plan_id)
    waits = house.control.queue_waits.of(house.tasks.get(expiry.task_id))
    assert {wait.reason.figures["task_id"] for wait in waits} == {spec.task_id for _, spec in at_work.values()}


def test_why_tells_slots_by_the_rows_of_the_queue_as_claims_do(request: pytest.FixtureRequest) -> None:
    """A server of another release may have queued a task of the same kind under another slot."""
    found: list[SqlTaskStore] = []

    def stores(clock: Clock) -> tuple[TableStore, TaskStore]:
        both = stores_on("sqlite", request, clock)
        tasks = of_type(SqlTaskStore, both.tasks())
        found.append(tasks)
        return both.tables(), tasks

    house = Lakehouse(stores=stores).with_ready_table()
    house.rounds(1)
    statistics = ask_for_statistics(house)
    with writing(found[0]._engine) as connection:
        of_task = rows_of_tasks.c.task_id == statistics.task_id
        connection.execute(update(rows_of_tasks).where(of_task).values(table_slot=TableSlot.TABLE.value))
    assert Worker(house, "optimizer-a").claimed().task_id == statistics.task_id
    assert Worker(house, "optimizer-b").claim_if_any() is None
    (wait,) = house.control.queue_waits.of(task_of(house, ActionKind.REWRITE_DATA_FILES))
    assert (wait.reason.code, wait.reason.figures["task_id"]) == ("table-busy", statistics.task_id)
    assert wait.reason.text.endswith("is at work: compute_statistics runs alone with its table")


def test_no_snapshot_expires_beside_them(house: Lakehouse) -> None:
    rewrite = Worker(house).carry_out()
    house.rounds(2)
    assert house.tasks.get(rewrite.task_id).state is TaskState.SUCCEEDED
    ask_for_statistics(house)
    statistics = Worker(house).claimed()
    house.append(1)
    house.pass_time(SECOND_MS)
    plan = house.control.maintainer.plan_asked(NAME, ExpireSnapshotsRequest("PT0S", 1))
    base = statistics.action.figures.base_snapshot_id
    assert base not in getattr(plan.actions[0], "snapshot_ids")  # noqa: B009 - of an expiry; theirs is held besides
    expiry = house.control.dispatcher.apply(plan.plan_id)
    house.rounds(3)
    expiry = house.tasks.get(expiry.task_id)
    assert expiry.state is TaskState.QUEUED
    (wait,) = house.control.queue_waits.of(expiry)
    assert wait.reason.code == "table-busy"
    assert wait.reason.text == (
        f"task {statistics.task_id} (compute_statistics) of the same table is at work: "
        "expire_snapshots runs alone with its table"
    )
    Worker(house).report(statistics, commit_statistics(house, statistics))
    house.rounds(3)
    assert {task.kind: task.state for task in house.all_tasks()} == {
        ActionKind.REWRITE_DATA_FILES: TaskState.SUCCEEDED,
        ActionKind.COMPUTE_STATISTICS: TaskState.SUCCEEDED,
        ActionKind.EXPIRE_SNAPSHOTS: TaskState.SUCCEEDED,
    }
    assert house.metadata().snapshot(base) is not None
    assert [one.snapshot_id for one in house.metadata().statistics] == [base]
