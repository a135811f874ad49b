"""What every store must count for metrics: the same after tasks are forgotten, and whoever asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.core.codec import dumps
from icewright.model.actions.actions import ActionKind
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Reason
from icewright.model.work.jobs import PROTOCOL_VERSION, Committed, GroupFigures, OptimizerHello, TaskReport
from icewright.model.work.tasks import AttemptState, Task, TaskState
from icewright.model.work.totals import BEYOND, Total, TotalKey
from icewright.ports.store import Change, TaskStore
from tests.contracts.samples import OUTCOME, new_task, record
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock
from tests.narrowing import not_none

KIND = ActionKind.REWRITE_DATA_FILES.value
HOUR_MS = 3_600_000


def claim(store: TaskStore) -> Task:
    return not_none(store.claim("o", resource_group="default", catalogs=frozenset({"lake"}), lease_ms=60_000))


def report(task: Task) -> str:
    groups = tuple(GroupFigures(n, 2, 100, ("f",), 40, 7, 1, 1, 1) for n in range(2))
    return dumps(TaskReport(PROTOCOL_VERSION, task.task_id, task.attempt, 1, Committed(1), (), groups, 1, 1))


def change(
    store: TaskStore, task: Task, state: TaskState, end: AttemptState | None = None, said: str | None = None
) -> Task:
    return store.change(Change(task.task_id, task.version, state, OUTCOME, end, said))


def test_a_new_store_has_counted_nothing(stores: Stores, clock: ManualClock) -> None:
    tasks = stores.tasks().census(9)
    assert (tasks.live, list(tasks.oldest), tasks.totals) == ({}, [], {})
    assert tasks.now == clock.now()
    tables = stores.tables().census()
    assert (tables.tables, tables.put_aside, tables.events_waiting, tables.seen_at) == (0, 0, 0, {})
    assert (tables.next_look_at, tables.oldest_event_at) == (None, None)


def test_a_task_is_counted_all_its_life_and_stays_counted_when_it_is_forgotten(
    stores: Stores, clock: ManualClock
) -> None:
    store = stores.tasks()
    store.enqueue(new_task("task-1"))
    clock.advance(4_000)
    running = claim(store)
    clock.advance(50_000)
    committed = change(store, running, TaskState.COMMITTED, AttemptState.COMMITTED, report(running))
    clock.advance(10_000)
    change(store, committed, TaskState.SUCCEEDED)
    told = {
        TotalKey(Total.CHANGES, KIND, "queued"): 1,
        TotalKey(Total.CHANGES, KIND, "running"): 1,
        TotalKey(Total.CHANGES, KIND, "committed"): 1,
        TotalKey(Total.CHANGES, KIND, "succeeded"): 1,
        TotalKey(Total.ATTEMPTS, KIND, "committed"): 1,
        TotalKey(Total.READ_BYTES, KIND): 200,
        TotalKey(Total.WRITTEN_BYTES, KIND): 80,
        TotalKey(Total.WAIT_MS, KIND): 4_000,
        TotalKey(Total.WAITED, KIND, "5000"): 1,
        TotalKey(Total.ATTEMPT_MS, KIND): 50_000,
        TotalKey(Total.TOOK, KIND, "60000"): 1,
        TotalKey(Total.TURNAROUND_MS, KIND): 64_000,
        TotalKey(Total.TURNED, KIND, "300000"): 1,
    }
    assert store.census(9).totals == told
    clock.advance(HOUR_MS)
    assert store.prune(store.now(), 9) == 1
    assert stores.tasks().census(9).totals == told


def test_a_task_that_waits_again_waits_from_when_it_may_run(store: TaskStore, clock: ManualClock) -> None:
    store.enqueue(new_task("task-1"))
    running = claim(store)
    store.change(Change("task-1", running.version, TaskState.QUEUED, OUTCOME, AttemptState.FAILED, None, 30_000))
    clock.advance(33_000)
    claim(store)
    totals = store.census(0).totals
    assert totals[TotalKey(Total.WAIT_MS, KIND)] == 3_000
    assert totals[TotalKey(Total.CHANGES, KIND, "running")] == 2
    assert totals[TotalKey(Total.WAITED, KIND, "1000")] == 1


def test_an_end_that_is_corrected_is_one_end(store: TaskStore) -> None:
    """Unknown is how the attempt ended; that it had committed, the table told later."""
    store.enqueue(new_task("task-1"))
    doubtful = change(store, claim(store), TaskState.IN_DOUBT, AttemptState.UNKNOWN)
    change(store, doubtful, TaskState.COMMITTED, AttemptState.COMMITTED)
    totals = store.census(0).totals
    assert {key.by: amount for key, amount in totals.items() if key.total is Total.ATTEMPTS} == {"unknown": 1}


def test_what_is_no_change_of_state_is_not_counted_as_one(store: TaskStore) -> None:
    store.enqueue(new_task("task-1"))
    store.enqueue(new_task("task-2", base_snapshot_id=5))
    claim(store)
    store.request_cancel("task-1", Reason("cancelled", "a person said so"))
    changes = {key.by: amount for key, amount in store.census(0).totals.items() if key.total is Total.CHANGES}
    assert changes == {"queued": 1, "running": 1}


def test_a_wait_beyond_all_bounds_is_counted_there(store: TaskStore, clock: ManualClock) -> None:
    store.enqueue(new_task("task-1"))
    clock.advance(48 * HOUR_MS)
    claim(store)
    assert store.census(0).totals[TotalKey(Total.WAITED, KIND, BEYOND)] == 1


def test_a_clock_that_was_set_back_takes_nothing_away(store: TaskStore, clock: ManualClock) -> None:
    store.enqueue(new_task("task-1"))
    running = claim(store)
    clock.advance(-HOUR_MS)
    change(store, running, TaskState.FAILED, AttemptState.FAILED)
    totals = store.census(0).totals
    assert TotalKey(Total.ATTEMPT_MS, KIND) not in totals
    assert totals[TotalKey(Total.TOOK, KIND, "1000")] == 1


@pytest.mark.parametrize(
    "said", ["no JSON", "[]", '{"groups": 7}', '{"groups": [{}]}', '{"groups": [{"input_bytes": "x"}]}']
)
def test_a_report_that_makes_no_sense_adds_no_bytes(store: TaskStore, said: str) -> None:
    store.enqueue(new_task("task-1"))
    change(store, claim(store), TaskState.FAILED, AttemptState.FAILED, said)
    assert {key.total for key in store.census(0).totals} & {Total.READ_BYTES, Total.WRITTEN_BYTES} == set()


def test_the_oldest_tasks_that_have_not_ended_are_told_up_to_a_number(store: TaskStore, clock: ManualClock) -> None:
    for number in range(4):
        store.enqueue(new_task(f"task-{9 - number}", table=number))
        clock.advance(1_000)
    store.request_cancel("task-9", Reason("cancelled", "a person said so"))
    census = store.census(2)
    assert [one.table_name for one in census.oldest] == [
        TableName("lake", ("ns",), "t1"),
        TableName("lake", ("ns",), "t2"),
    ]
    assert census.live == {(TaskState.QUEUED, ActionKind.REWRITE_DATA_FILES): 3}


def test_tables_events_and_optimizers_are_counted(stores: Stores, clock: ManualClock) -> None:
    store = stores.tables()
    problem = Reason("parked", "five tasks came to nothing")
    store.save_record(record(1, next_look_at=7_000))
    store.save_record(record(2, next_look_at=5_000, problem=problem))
    store.save_record(record(3, next_look_at=1_000, problem=problem, dropped_at=4_000))
    first_at = clock.now()
    for number in range(3):
        store.receive(CommitEvent(TableName("lake", ("ns",), "t1"), number))
        clock.advance(1_000)
    (first, *_) = store.inbox(1)
    hello = OptimizerHello(PROTOCOL_VERSION, "o-1", "1", "nights", 1, ("lake",), "4", "1")
    store.optimizer_seen(hello)
    clock.advance(1_000)
    store.optimizer_seen(replace(hello, optimizer_id="o-2"))
    census = store.census()
    assert (census.tables, census.put_aside, census.next_look_at) == (2, 1, 5_000)
    assert (census.events_waiting, census.oldest_event_at) == (3, first_at)
    assert census.seen_at == {"nights": [clock.now() - 1_000, clock.now()]}
    store.done([first.event_id])
    assert (store.census().events_waiting, store.census().oldest_event_at) == (2, first_at + 1_000)
