"""What every task store must do, sentence by sentence of the port."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from icewright.core.errors import Conflict, LeaseLost, NotAllowed, NotFound
from icewright.model.actions.actions import ActionKind, Executor, rewrite_of
from icewright.model.actions.traits import BESIDE, TableSlot
from icewright.model.actions.undo import RestoreFiles, RestoreFilesPrediction
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Reason
from icewright.model.policy.resource_groups import SERVER
from icewright.model.work.halts import HaltState, NewHalt, Part, PartKind
from icewright.model.work.history import Ending
from icewright.model.work.tasks import (
    ACTIVE_STATES,
    LINES_MAX,
    TERMINAL_STATES,
    TRANSITIONS,
    AttemptState,
    NewTask,
    Outcome,
    Progress,
    Task,
    TaskState,
)
from icewright.ports.store import AttemptOfTask, Change, TaskFilter, TaskStore
from icewright.work.groups.rank import AGEING_MS
from tests.builders.specs import log_lines
from tests.cases import for_each
from tests.contracts.samples import (
    HOSTILE_PARTS,
    OF_SLOTS,
    OUTCOME,
    PROGRESS,
    REASON,
    keep_log,
    new_task,
    of_kind,
    table_id,
)
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock
from tests.narrowing import not_none

LEASE_MS = 60_000
LAKE = frozenset({"lake"})
ENDS = {
    TaskState.COMMITTED: AttemptState.COMMITTED,
    TaskState.IN_DOUBT: AttemptState.UNKNOWN,
    TaskState.QUEUED: AttemptState.FAILED,
    TaskState.FAILED: AttemptState.FAILED,
    TaskState.CANCELLED: AttemptState.CANCELLED,
    TaskState.SUPERSEDED: AttemptState.CONFLICT,
}


def claim(
    store: TaskStore,
    optimizer_id: str = "optimizer-1",
    *,
    resource_group: str = "default",
    shareable_bytes_max: int | None = None,
) -> Task | None:
    return store.claim(
        optimizer_id,
        resource_group=resource_group,
        catalogs=LAKE,
        lease_ms=LEASE_MS,
        shareable_bytes_max=shareable_bytes_max,
    )


def taken_at_once(stores: Stores) -> list[Task]:
    """What eight optimizers get that claim at once from two servers, until nothing is left."""
    barrier = threading.Barrier(8)
    several = [stores.tasks() for _ in range(2)]

    def pull(worker: int) -> list[Task]:
        barrier.wait()
        taken = []
        while (task := claim(several[worker % 2], f"optimizer-{worker}")) is not None:
            taken.append(task)
        return taken

    with ThreadPoolExecutor(8) as pool:
        return [task for tasks in pool.map(pull, range(8)) for task in tasks]


def sized(task_id: str, size_bytes: int, *executors: Executor, table: int = 1) -> NewTask:
    """A task of one file of that size for each executor; a merge if there is none."""
    new = new_task(task_id, table=table)
    action = rewrite_of(new.action)
    (group,) = action.groups
    file = replace(group.files[0], size_bytes=size_bytes)
    groups = tuple(
        replace(group, group_id=number, files=(file,), executor=executor)
        for number, executor in enumerate(executors or (Executor.MERGE,))
    )
    return replace(new, action=replace(action, groups=groups))


def started(store: TaskStore, task_id: str = "task-1", *, table: int = 1) -> Task:
    store.enqueue(new_task(task_id, table=table))
    task = not_none(claim(store))
    assert task.task_id == task_id
    return task


def move(store: TaskStore, task: Task, state: TaskState, *, delay_ms: int = 0) -> Task:
    """The task in another state, its attempt ended if it runs."""
    end = ENDS[state] if task.state is TaskState.RUNNING else None
    return store.change(Change(task.task_id, task.version, state, OUTCOME, end, delay_ms=delay_ms))


def token(task: Task) -> int:
    return not_none(task.lease).fencing_token


def in_state(store: TaskStore, state: TaskState, task_id: str = "task-1") -> Task:
    """A fresh task, brought into a state."""
    store.enqueue(new_task(task_id))
    if state is TaskState.QUEUED:
        return store.get(task_id)
    task = not_none(claim(store))
    if state is TaskState.SUCCEEDED:
        return move(store, move(store, task, TaskState.COMMITTED), state)
    return task if state is TaskState.RUNNING else move(store, task, state)


def followers(state: TaskState) -> set[TaskState]:
    """What a change may make of a task; only a claim starts one."""
    return set(TRANSITIONS[state]) - {TaskState.RUNNING}


class TestEnqueue:
    def test_a_new_candidate_becomes_a_waiting_task(self, store: TaskStore, clock: ManualClock) -> None:
        new = new_task("task-1", priority=2)
        enqueued = store.enqueue(new)
        assert (enqueued.created, enqueued.coalesced) == (True, False)
        task = store.get("task-1")
        assert task == enqueued.task
        assert (task.state, task.version, task.attempt) == (TaskState.QUEUED, 1, 0)
        assert (task.created_at, task.updated_at, task.not_before_at) == (clock.now(),) * 3
        assert (task.lease, task.progress, task.outcome, task.cancel_requested) == (None, None, None, False)
        for name in NEW_TASK_FIELDS:
            assert getattr(task, name) == getattr(new, name)

    def test_a_new_task_may_be_put_off_and_what_takes_its_place_changes_nothing_of_that(
        self, store: TaskStore, clock: ManualClock
    ) -> None:
        store.enqueue(replace(new_task("task-1"), delay_ms=1_000))
        store.enqueue(replace(new_task("task-2"), delay_ms=9_000))
        assert store.get("task-1").not_before_at == clock.now() + 1_000
        assert claim(store) is None
        clock.advance(1_000)
        assert claim(store) is not None

    def test_a_waiting_untried_task_takes_the_newer_action_and_keeps_its_age(
        self, store: TaskStore, clock: ManualClock
    ) -> None:
        first = store.enqueue(new_task("task-1", priority=5)).task
        clock.advance(1_000)
        newer = replace(
            new_task("task-2", priority=3, base_snapshot_id=9, plan_id="plan-2", reason=Reason("newer", "newer")),
            table_name=TableName("lake", ("ns",), "renamed"),
            attempts_max=7,
            resource_group="other",
        )
        enqueued = store.enqueue(newer)
        assert (enqueued.created, enqueued.coalesced) == (False, True)
        task = store.get("task-1")
        assert task == enqueued.task
        assert (task.task_id, task.created_at, task.priority) == ("task-1", first.created_at, 5)
        for name in NEW_TASK_FIELDS - {"task_id", "priority"}:
            assert getattr(task, name) == getattr(newer, name)
        assert [entry.reason.code for entry in store.history("task-1")] == ["small-files", "newer"]
        with pytest.raises(NotFound):
            store.get("task-2")

    def test_coalescing_takes_the_higher_priority(self, store: TaskStore) -> None:
        store.enqueue(new_task("task-1", priority=3))
        assert store.enqueue(new_task("task-2", priority=5)).task.priority == 5

    @pytest.mark.parametrize("state", sorted(ACTIVE_STATES))
    def test_a_task_under_way_is_returned_unchanged(self, store: TaskStore, state: TaskState) -> None:
        task = in_state(store, state)
        enqueued = store.enqueue(new_task("task-2", base_snapshot_id=9))
        assert (enqueued.task, enqueued.created, enqueued.coalesced) == (task, False, False)
        assert store.get("task-1") == task

    def test_a_tried_task_that_waits_again_is_returned_unchanged(self, store: TaskStore) -> None:
        task = move(store, started(store), TaskState.QUEUED)
        enqueued = store.enqueue(new_task("task-2", base_snapshot_id=9))
        assert (enqueued.task, enqueued.created, enqueued.coalesced) == (task, False, False)

    @pytest.mark.parametrize("state", sorted(set(TaskState) - ACTIVE_STATES - {TaskState.QUEUED}))
    def test_an_ended_task_is_no_obstacle(self, store: TaskStore, state: TaskState) -> None:
        in_state(store, state)
        assert store.enqueue(new_task("task-2")).created

    def test_other_tables_do_not_coalesce(self, store: TaskStore) -> None:
        assert store.enqueue(new_task("task-1", table=1)).created
        assert store.enqueue(new_task("task-2", table=2)).created
        assert store.enqueue(new_task("task-3", table=1, catalog="other")).created

    def test_an_id_is_not_used_twice(self, store: TaskStore) -> None:
        store.enqueue(new_task("task-1", table=1))
        with pytest.raises(Conflict):
            store.enqueue(new_task("task-1", table=2))
        assert store.get("task-1").table_id == table_id(1)
        assert store.counts()[TaskState.QUEUED] == 1

    def test_the_same_request_again_is_harmless(self, store: TaskStore) -> None:
        store.enqueue(new_task("task-1"))
        assert store.enqueue(new_task("task-1")).coalesced

    @pytest.mark.parametrize("part", HOSTILE_PARTS)
    def test_names_of_strangers_survive(self, stores: Stores, part: str) -> None:
        name = TableName("lake", (part, "ns"), part)
        reason = Reason(part, part, {part: part})
        stores.tasks().enqueue(new_task("task-1", name=name, reason=reason))
        task = stores.tasks().get("task-1")
        assert (task.table_name, task.reason) == (name, reason)


NEW_TASK_FIELDS = frozenset(new_task("task-1").__dataclass_fields__) - {"delay_ms"}


class TestClaim:
    def test_makes_the_task_running_under_a_lease(self, store: TaskStore, clock: ManualClock) -> None:
        store.enqueue(new_task("task-1"))
        clock.advance(5)
        task = not_none(claim(store, "optimizer-7"))
        assert task == store.get("task-1")
        assert (task.state, task.version, task.attempt) == (TaskState.RUNNING, 2, 1)
        assert task.lease is not None
        assert (task.lease.optimizer_id, task.lease.expires_at) == ("optimizer-7", clock.now() + LEASE_MS)
        (attempt,) = store.attempts("task-1")
        assert (attempt.attempt, attempt.optimizer_id, attempt.fencing_token) == (1, "optimizer-7", token(task))
        assert (attempt.state, attempt.started_at, attempt.ended_at) == (AttemptState.RUNNING, clock.now(), None)

    def test_none_when_nothing_waits(self, store: TaskStore) -> None:
        assert claim(store) is None

    def test_only_of_the_resource_group_and_the_catalogs(self, store: TaskStore) -> None:
        store.enqueue(new_task("task-1"))
        assert claim(store, resource_group="other") is None
        assert store.claim("o", catalogs=frozenset({"elsewhere"}), resource_group="default", lease_ms=1) is None
        assert store.claim("o", catalogs=frozenset(), resource_group="default", lease_ms=1) is None
        assert store.claim("o", catalogs=frozenset({"x", "lake"}), resource_group="default", lease_ms=1) is not None

    def test_only_of_the_kinds_that_are_asked_for(self, store: TaskStore) -> None:
        """Also where all others are before them."""
        kinds = list(OF_SLOTS)
        for number, kind in enumerate(kinds):
            store.enqueue(of_kind(f"task-{number}", kind, table=number))
        last = frozenset(kinds[-1:])
        assert store.claimable("default", LAKE, kinds=frozenset(kinds[1:])) == len(kinds) - 1
        assert store.claimable("default", LAKE, kinds=frozenset()) == 0

        def claimed(kinds: frozenset[ActionKind]) -> Task | None:
            return store.claim("o", resource_group="default", catalogs=LAKE, lease_ms=LEASE_MS, kinds=kinds)

        assert claimed(frozenset()) is None
        assert not_none(claimed(last)).kind is kinds[-1]
        assert claimed(last) is None
        assert store.claimable("default", LAKE) == len(kinds) - 1

    def test_who_asks_at_once_gets_what_each_understands(self, stores: Stores) -> None:
        first, kinds = stores.tasks(), list(OF_SLOTS)
        for number in range(40):
            kind = kinds[number % len(kinds)]
            first.enqueue(of_kind(f"task-{number:02d}", kind, table=number))
        barrier = threading.Barrier(len(kinds))
        several = [stores.tasks() for _ in range(2)]

        def pull(worker: int) -> list[Task]:
            mine, own = several[worker % 2], frozenset({kinds[worker]})
            barrier.wait()
            taken = []
            while (
                task := mine.claim(f"o-{worker}", resource_group="default", catalogs=LAKE, lease_ms=LEASE_MS, kinds=own)
            ) is not None:
                taken.append(task)
            return taken

        with ThreadPoolExecutor(len(kinds)) as pool:
            found = list(pool.map(pull, range(len(kinds))))
        assert [{task.kind for task in taken} for taken in found] == [{kind} for kind in kinds]
        assert sum(len(taken) for taken in found) == 40

    def test_what_could_be_claimed_is_counted_and_nothing_changes(self, store: TaskStore, clock: ManualClock) -> None:
        here = frozenset({"lake"})
        assert store.claimable("default", here) == 0
        store.enqueue(new_task("task-1", table=1))
        store.enqueue(new_task("task-2", table=2))
        assert [store.claimable("default", here), store.claimable("default", here)] == [2, 2]
        assert store.claimable("other", here) == store.claimable("default", frozenset({"elsewhere"})) == 0
        first = not_none(claim(store))
        assert store.claimable("default", here) == 1
        move(store, first, TaskState.QUEUED, delay_ms=1_000)
        assert store.claimable("default", here) == 1
        clock.advance(1_000)
        assert store.claimable("default", here) == 2

    def test_not_before_its_time(self, store: TaskStore, clock: ManualClock) -> None:
        move(store, started(store), TaskState.QUEUED, delay_ms=1_000)
        clock.advance(999)
        assert claim(store) is None
        clock.advance(1)
        assert claim(store) is not None

    @pytest.mark.parametrize("state", sorted(ACTIVE_STATES))
    def test_no_second_task_of_an_active_table(self, store: TaskStore, state: TaskState) -> None:
        in_state(store, state)
        store.enqueue(new_task("task-2", table=1, catalog="lake"))
        store.enqueue(new_task("task-3", table=2))
        assert not_none(claim(store)).task_id == "task-3"
        assert claim(store) is None

    @pytest.mark.parametrize("state", sorted(ACTIVE_STATES))
    def test_q1_none_that_has_ended_is_taken_up_beside_an_active_one_of_another_kind(
        self, store: TaskStore, state: TaskState
    ) -> None:
        """As a commit that comes late would have it."""
        ended = move(store, started(store), TaskState.FAILED)
        restore = replace(
            new_task("task-2"), action=RestoreFiles("task-0", 1, 1), prediction=RestoreFilesPrediction(1, 1, 0)
        )
        store.enqueue(restore)
        other = not_none(claim(store))
        other = other if state is TaskState.RUNNING else move(store, other, state)
        with pytest.raises(NotAllowed):
            store.change(Change(ended.task_id, ended.version, TaskState.COMMITTED, OUTCOME))
        assert store.get(ended.task_id) == ended
        move(store, other, TaskState.FAILED)
        assert store.change(Change(ended.task_id, ended.version, TaskState.COMMITTED, OUTCOME)).state == "committed"

    @pytest.mark.parametrize("state", sorted(ACTIVE_STATES))
    def test_kinds_of_other_slots_are_at_work_at_once_and_of_one_slot_never(
        self, store: TaskStore, state: TaskState
    ) -> None:
        """Of a table; whoever wants both slots is alone with it."""
        met = []
        for number, (first, second) in enumerate(product(OF_SLOTS, repeat=2)):
            group = f"group-{number}"
            for name, kind in (("first", first), ("second", second)):
                if (name, kind) != ("second", first):
                    store.enqueue(replace(of_kind(f"{name}-{number}", kind, table=number), resource_group=group))
                if name == "first":
                    task = not_none(claim(store, resource_group=group))
                    if state is not TaskState.RUNNING:
                        move(store, task, state)
            if claim(store, resource_group=group) is not None:
                met.append((first.traits.slot, second.traits.slot))
        beside = [(TableSlot.DATA, TableSlot.METADATA), (TableSlot.METADATA, TableSlot.DATA)]
        assert Counter(met) == dict.fromkeys(beside, 2)

    def test_what_needs_its_table_alone_goes_before_metadata_tasks_that_are_younger(
        self, store: TaskStore, clock: ManualClock
    ) -> None:
        """However many kinds there are: an expiry waits for those at work and the older ones, and for no other."""

        def put(task_id: str, kind: ActionKind, group: str = "default", delay_ms: int = 0) -> None:
            clock.advance(1)
            new = replace(of_kind(task_id, kind, table=1), resource_group=group, delay_ms=delay_ms)
            store.enqueue(new)

        put("statistics-1", ActionKind.COMPUTE_STATISTICS)
        put("expiry", ActionKind.EXPIRE_SNAPSHOTS, SERVER)
        first = not_none(claim(store))
        assert first.task_id == "statistics-1", "it is older"
        move(store, first, TaskState.FAILED)
        put("statistics-2", ActionKind.COMPUTE_STATISTICS)
        put("rewrite", ActionKind.REWRITE_DATA_FILES)
        assert [blocker.task_id for blocker in store.blockers("statistics-2")] == ["expiry"]
        assert store.blockers("rewrite") == store.blockers("expiry") == []
        assert store.claimable("default", LAKE) == 1
        rewrite = not_none(claim(store))
        assert rewrite.task_id == "rewrite", "it holds another slot, and may start"
        assert claim(store) is None
        assert [blocker.is_active for blocker in store.blockers("statistics-2")] == [False]
        assert [blocker.is_active for blocker in store.blockers("expiry")] == [True]
        store.halts.halt(NewHalt(Part(PartKind.GROUP, SERVER), HaltState.PAUSED))
        assert store.blockers("statistics-2") == [], "what is halted goes nowhere first"
        store.halts.resume(Part(PartKind.GROUP, SERVER), "")
        move(store, rewrite, TaskState.FAILED)
        expiry = not_none(claim(store, resource_group=SERVER))
        assert claim(store) is None
        move(store, expiry, TaskState.QUEUED, delay_ms=1_000)
        clock.advance(999)
        assert store.blockers("statistics-2") == [], "nor what pauses after a try"
        clock.advance(1)
        assert [blocker.task_id for blocker in store.blockers("statistics-2")] == ["expiry"]
        clock.advance(-1)
        assert not_none(claim(store)).task_id == "statistics-2"

    def test_no_task_of_an_optimizer_keeps_metadata_tasks_waiting(self, store: TaskStore, clock: ManualClock) -> None:
        """It may wait for a cap, a window or an optimizer that never comes."""
        store.enqueue(of_kind("expiry", ActionKind.EXPIRE_SNAPSHOTS, table=1))
        clock.advance(1)
        store.enqueue(replace(of_kind("statistics", ActionKind.COMPUTE_STATISTICS, table=1), resource_group="other"))
        assert store.blockers("statistics") == []
        assert claim(store, resource_group="other") is not None

    def test_what_has_ended_is_taken_up_beside_a_task_of_the_other_slot(self, store: TaskStore) -> None:
        """As a commit that comes late would have it."""
        ended = move(store, started(store), TaskState.FAILED)
        store.enqueue(of_kind("task-2", ActionKind.COMPUTE_STATISTICS, table=1))
        assert claim(store) is not None
        assert store.change(Change(ended.task_id, ended.version, TaskState.COMMITTED, OUTCOME)).state == "committed"

    def test_claims_at_once_give_out_both_slots_of_a_table_and_no_slot_twice(self, stores: Stores) -> None:
        first, kinds = stores.tasks(), tuple(OF_SLOTS)
        for number in range(12):
            for kind in kinds:
                first.enqueue(of_kind(f"task-{number:02d}-{kind}", kind, table=number))
        taken = taken_at_once(stores)
        held = {table_id(number): set[TableSlot]() for number in range(12)}
        for task in taken:
            others, slot = held[task.table_id], task.kind.traits.slot
            assert others <= BESIDE[slot]
            others.add(slot)
        assert all(slots in ({TableSlot.TABLE}, {TableSlot.DATA, TableSlot.METADATA}) for slots in held.values())

    def test_higher_priority_first_and_the_older_of_equals(self, store: TaskStore) -> None:
        for number, priority in enumerate((0, 2, 1, 2), start=1):
            store.enqueue(new_task(f"task-{number}", table=number, priority=priority))
        order = [task.task_id for _ in range(4) if (task := claim(store)) is not None]
        assert order == ["task-2", "task-4", "task-3", "task-1"]

    def test_a_bound_takes_the_best_of_what_fits_and_leaves_the_rest(self, store: TaskStore) -> None:
        for number, size in enumerate((500, 100, 101, 7), start=1):
            store.enqueue(sized(f"task-{number}", size, table=number))
        store.enqueue(sized("task-5", 5, Executor.STAGED, table=5))
        store.enqueue(sized("task-6", 5, Executor.STITCH, Executor.SHUFFLE, table=6))
        order = [task.task_id for _ in range(4) if (task := claim(store, shareable_bytes_max=100)) is not None]
        assert order == ["task-2", "task-4"]
        assert claim(store, resource_group="other", shareable_bytes_max=100) is None
        rest = [task.task_id for _ in range(9) if (task := claim(store)) is not None]
        assert rest == ["task-1", "task-3", "task-5", "task-6"]

    def test_a_bound_takes_merges_and_stitches_and_counts_all_their_bytes(self, store: TaskStore) -> None:
        store.enqueue(sized("task-1", 60, Executor.MERGE, Executor.STITCH))
        assert claim(store, shareable_bytes_max=119) is None
        assert not_none(claim(store, shareable_bytes_max=120)).rewrite.shareable_bytes == 120

    def test_a_bound_passes_over_what_was_tried_before(self, store: TaskStore) -> None:
        move(store, started(store), TaskState.QUEUED)
        assert claim(store, shareable_bytes_max=1 << 40) is None
        assert claim(store) is not None

    def test_a_bound_is_that_of_the_action_that_took_the_place(self, store: TaskStore) -> None:
        store.enqueue(sized("task-1", 10))
        store.enqueue(sized("task-2", 1_000))
        assert claim(store, shareable_bytes_max=999) is None
        store.enqueue(sized("task-3", 20))
        task = not_none(claim(store, shareable_bytes_max=999))
        assert (task.task_id, task.rewrite.shareable_bytes) == ("task-1", 20)

    def test_what_does_not_fit_ahead_does_not_hide_what_fits(self, store: TaskStore) -> None:
        for number in range(60):  # more than any window
            store.enqueue(sized(f"task-{number:03d}", 1_000, table=number))
        store.enqueue(sized("task-last", 1, table=999))
        assert not_none(claim(store, shareable_bytes_max=10)).task_id == "task-last"

    def test_nothing_starves_behind_a_queue_of_better_ones(self, store: TaskStore, clock: ManualClock) -> None:
        store.enqueue(new_task("task-old", table=999, priority=0))
        clock.advance(2 * AGEING_MS + 1)
        for number in range(60):  # more than any window
            store.enqueue(new_task(f"task-{number:03d}", table=number, priority=2))
        assert not_none(claim(store)).task_id == "task-old"

    def test_busy_tables_ahead_do_not_hide_the_others(self, store: TaskStore) -> None:
        for number in range(60):
            store.enqueue(new_task(f"task-{number:03d}", table=number, priority=9))
            assert claim(store) is not None
        store.enqueue(new_task("task-last", table=999))
        assert not_none(claim(store)).task_id == "task-last"

    def test_fencing_tokens_grow_with_each_claim(self, store: TaskStore) -> None:
        tokens = []
        store.enqueue(new_task("task-x", table=2))
        for _ in range(3):
            task = not_none(claim(store))
            tokens.append(token(task))
            move(store, task, TaskState.QUEUED)
        assert tokens == sorted(set(tokens))

    def test_keeps_the_last_outcome_and_forgets_the_progress(self, store: TaskStore) -> None:
        task = started(store)
        store.heartbeat("task-1", token(task), progress=PROGRESS, lease_ms=LEASE_MS)
        move(store, task, TaskState.QUEUED)
        again = not_none(claim(store))
        assert (again.attempt, again.outcome, again.progress) == (2, OUTCOME, None)

    def test_callers_at_once_never_get_the_same_task_nor_two_of_a_table(self, stores: Stores) -> None:
        first = stores.tasks()
        for number in range(30):
            first.enqueue(new_task(f"task-{number:02d}", table=number % 10))
            if number % 3 == 0:  # some tables have an ended task beside the waiting one
                task = not_none(claim(first))
                move(first, task, TaskState.FAILED)
        waiting = first.counts()[TaskState.QUEUED]
        taken = taken_at_once(stores)
        assert waiting > 0
        assert len(taken) == waiting
        assert max(Counter(task.task_id for task in taken).values()) == 1
        assert max(Counter(task.table_id for task in taken).values()) == 1
        assert len({token(task) for task in taken}) == len(taken)


class TestLease:
    def test_a_heartbeat_extends_the_lease_and_keeps_progress(self, store: TaskStore, clock: ManualClock) -> None:
        task = started(store)
        clock.advance(LEASE_MS - 1)
        beaten = store.heartbeat("task-1", token(task), progress=PROGRESS, lease_ms=LEASE_MS)
        assert beaten == store.get("task-1")
        assert (not_none(beaten.lease).expires_at, beaten.progress) == (clock.now() + LEASE_MS, PROGRESS)
        assert store.attempts("task-1")[0].progress == PROGRESS
        assert (beaten.version, beaten.updated_at) == (task.version, task.updated_at)
        assert len(store.history("task-1")) == 2

    def test_lines_of_the_log_come_with_heartbeats_and_with_the_end_once_each(self, store: TaskStore) -> None:
        task = started(store)
        assert store.log("task-1", 1) is None
        for log in (log_lines("a", "b"), log_lines("a", "b"), None):
            store.heartbeat("task-1", token(task), progress=PROGRESS, lease_ms=LEASE_MS, log=log)
        assert store.log("task-1", 1) == log_lines("a", "b")
        change = Change("task-1", task.version, TaskState.QUEUED, OUTCOME, AttemptState.FAILED, "{}")
        store.change(replace(change, log=log_lines("b", "c", first=2)))
        assert store.log("task-1", 1) == log_lines("a", "b", "c")
        assert claim(store) is not None
        assert (store.log("task-1", 1), store.log("task-1", 2)) == (log_lines("a", "b", "c"), None)

    def test_a_heartbeat_or_a_change_that_does_not_count_leaves_no_line(self, store: TaskStore) -> None:
        task = started(store)
        with pytest.raises(LeaseLost):
            store.heartbeat("task-1", token(task) - 1, progress=PROGRESS, lease_ms=1, log=log_lines("late"))
        late = Change("task-1", task.version - 1, TaskState.FAILED, OUTCOME, AttemptState.FAILED, log=log_lines("late"))
        with pytest.raises(Conflict):
            store.change(late)
        assert store.log("task-1", 1) is None

    def test_of_a_long_log_the_newest_lines_are_kept(self, store: TaskStore) -> None:
        task = started(store)
        lines = [f"{number} \N{ICE CUBE}" for number in range(3 * LINES_MAX)]
        for first in range(0, len(lines), 150):
            log = log_lines(*lines[first : first + 150], first=first + 1)
            store.heartbeat("task-1", token(task), progress=PROGRESS, lease_ms=LEASE_MS, log=log)
        kept = not_none(store.log("task-1", 1))
        assert [line.text for line in kept.lines] == lines[-LINES_MAX:]
        assert kept.left_out == 2 * LINES_MAX

    def test_a_heartbeat_never_shortens_the_lease(self, store: TaskStore) -> None:
        task = started(store)
        assert store.heartbeat("task-1", token(task), progress=PROGRESS, lease_ms=1).lease == task.lease

    def test_an_old_token_is_lost(self, store: TaskStore) -> None:
        old = started(store)
        move(store, old, TaskState.QUEUED)
        again = not_none(claim(store))
        self.assert_lost(store, token(old))
        assert store.check_lease("task-1", token(again)) == again

    @pytest.mark.parametrize("state", sorted(TRANSITIONS[TaskState.RUNNING]))
    def test_an_ended_attempt_is_lost(self, store: TaskStore, state: TaskState) -> None:
        task = started(store)
        move(store, task, state)
        self.assert_lost(store, token(task))

    def test_a_lease_that_ran_out_is_lost_also_when_nobody_noticed(self, store: TaskStore, clock: ManualClock) -> None:
        task = started(store)
        clock.advance(LEASE_MS - 1)
        store.check_lease("task-1", token(task))
        clock.advance(1)
        self.assert_lost(store, token(task))
        assert store.get("task-1") == task

    def test_an_unknown_task_is_not_found(self, store: TaskStore) -> None:
        with pytest.raises(NotFound):
            store.check_lease("task-9", 1)
        with pytest.raises(NotFound):
            store.heartbeat("task-9", 1, progress=PROGRESS, lease_ms=1)

    def test_expired_lists_running_tasks_longest_first(self, store: TaskStore, clock: ManualClock) -> None:
        tasks = {}
        for number in (2, 1, 3):
            tasks[number] = started(store, f"task-{number}", table=number)
            clock.advance(10)
        move(store, tasks[3], TaskState.IN_DOUBT)
        clock.advance(LEASE_MS - 21)
        assert [task.task_id for task in store.expired(9)] == ["task-2"]
        clock.advance(11)
        assert [task.task_id for task in store.expired(9)] == ["task-2", "task-1"]
        assert [task.task_id for task in store.expired(1)] == ["task-2"]

    @staticmethod
    def assert_lost(store: TaskStore, lost_token: int) -> None:
        before = store.get("task-1")
        with pytest.raises(LeaseLost):
            store.check_lease("task-1", lost_token)
        with pytest.raises(LeaseLost):
            store.heartbeat("task-1", lost_token, progress=Progress("done", 2, 2), lease_ms=LEASE_MS)
        assert store.get("task-1") == before


class TestChange:
    @pytest.mark.parametrize(
        ("old", "new"), [(old, new) for old in sorted(TaskState) for new in sorted(followers(old))]
    )
    def test_the_transitions_of_the_domain(self, store: TaskStore, old: TaskState, new: TaskState) -> None:
        task = in_state(store, old)
        end = ENDS.get(new) if old is TaskState.RUNNING else None
        changed = store.change(Change("task-1", task.version, new, OUTCOME, end))
        assert (changed.state, changed.version, changed.outcome) == (new, task.version + 1, OUTCOME)
        assert store.get("task-1") == changed

    @pytest.mark.parametrize("old", sorted(TaskState))
    def test_only_the_transitions_of_the_domain(self, store: TaskStore, old: TaskState) -> None:
        task = in_state(store, old)

        def check(new: TaskState) -> None:
            end = ENDS.get(new) if old is TaskState.RUNNING else None
            with pytest.raises(NotAllowed):
                store.change(Change("task-1", task.version, new, OUTCOME, end))
            assert store.get("task-1") == task
            assert store.history("task-1")[-1].version == task.version

        for_each(sorted(set(TaskState) - followers(old)), check)

    def test_another_version_is_a_conflict(self, store: TaskStore) -> None:
        task = started(store)
        for version in (task.version - 1, task.version + 1):
            with pytest.raises(Conflict):
                store.change(Change("task-1", version, TaskState.FAILED, OUTCOME, AttemptState.FAILED))
        assert store.get("task-1") == task

    def test_an_unknown_task_is_not_found(self, store: TaskStore) -> None:
        with pytest.raises(NotFound):
            store.change(Change("task-9", 1, TaskState.FAILED, OUTCOME))

    def test_ends_the_attempt_with_its_report(self, store: TaskStore, clock: ManualClock) -> None:
        task = started(store)
        clock.advance(7)
        store.change(
            Change("task-1", task.version, TaskState.COMMITTED, OUTCOME, AttemptState.COMMITTED, '{"a": "\\u0000"}')
        )
        (attempt,) = store.attempts("task-1")
        assert (attempt.state, attempt.ended_at, attempt.report_json) == (
            AttemptState.COMMITTED,
            clock.now(),
            '{"a": "\\u0000"}',
        )

    def test_attempts_of_several_tasks_are_those_of_each(self, store: TaskStore, clock: ManualClock) -> None:
        task = started(store)
        store.change(Change("task-1", task.version, TaskState.COMMITTED, OUTCOME, AttemptState.COMMITTED, '{"r": 1}'))
        clock.advance(7)
        started(store, "task-2", table=2)
        found = store.attempts_of(["task-1", "task-2", "task-9"])
        assert found == {one: store.attempts(one) for one in ("task-1", "task-2")}
        assert [len(found[one]) for one in sorted(found)] == [1, 1]
        assert store.attempts_of([]) == {}

    def test_what_was_unknown_may_turn_out_committed(self, store: TaskStore, clock: ManualClock) -> None:
        task = started(store)
        doubt = store.change(
            Change("task-1", task.version, TaskState.IN_DOUBT, OUTCOME, AttemptState.UNKNOWN, '{"r": 1}')
        )
        ended_at = clock.now()
        clock.advance(7)
        store.change(Change("task-1", doubt.version, TaskState.COMMITTED, OUTCOME, AttemptState.COMMITTED))
        (attempt,) = store.attempts("task-1")
        assert (attempt.state, attempt.ended_at, attempt.report_json) == (AttemptState.COMMITTED, ended_at, '{"r": 1}')

    def test_the_lease_is_kept_in_doubt_and_released_by_all_else(self, store: TaskStore) -> None:
        task = started(store)
        doubt = move(store, task, TaskState.IN_DOUBT)
        assert doubt.lease == task.lease
        assert move(store, doubt, TaskState.COMMITTED).lease is None

    @pytest.mark.parametrize("state", sorted(set(ENDS) - {TaskState.IN_DOUBT}))
    def test_a_lease_is_not_released_while_the_attempt_is_open(self, store: TaskStore, state: TaskState) -> None:
        task = started(store)
        with pytest.raises(NotAllowed):
            store.change(Change("task-1", task.version, state, OUTCOME))
        assert store.get("task-1") == task

    def test_an_attempt_cannot_end_as_running_nor_before_it_began(self, store: TaskStore) -> None:
        waiting = in_state(store, TaskState.QUEUED)
        with pytest.raises(NotAllowed):
            store.change(Change("task-1", waiting.version, TaskState.CANCELLED, OUTCOME, AttemptState.CANCELLED))
        task = not_none(claim(store))
        with pytest.raises(NotAllowed):
            store.change(Change("task-1", task.version, TaskState.IN_DOUBT, OUTCOME, AttemptState.RUNNING))

    def test_a_report_is_never_dropped_silently(self, store: TaskStore) -> None:
        task = started(store)
        with pytest.raises(NotAllowed):
            store.change(Change("task-1", task.version, TaskState.IN_DOUBT, OUTCOME, None, "{}"))

    def test_queued_again_counts_the_delay_by_the_stores_clock(self, store: TaskStore, clock: ManualClock) -> None:
        task = started(store)
        clock.advance(100)
        again = move(store, task, TaskState.QUEUED, delay_ms=50)
        assert (again.not_before_at, again.created_at) == (clock.now() + 50, task.created_at)

    def test_a_task_asked_to_stop_is_not_queued_again(self, store: TaskStore) -> None:
        started(store)
        asked = store.request_cancel("task-1", REASON)
        with pytest.raises(NotAllowed):
            move(store, asked, TaskState.QUEUED)
        assert move(store, asked, TaskState.CANCELLED).state is TaskState.CANCELLED

    @pytest.mark.parametrize("state", [TaskState.FAILED, TaskState.CANCELLED])
    def test_a_persons_retry_forgets_the_wish_to_stop(self, store: TaskStore, state: TaskState) -> None:
        started(store)
        ended = move(store, store.request_cancel("task-1", REASON), state)
        assert ended.cancel_requested
        again = move(store, ended, TaskState.QUEUED)
        assert (again.state, again.cancel_requested, again.attempt) == (TaskState.QUEUED, False, 1)

    @pytest.mark.parametrize("state", [TaskState.QUEUED, *sorted(ACTIVE_STATES)])
    @pytest.mark.parametrize("again", [TaskState.QUEUED, TaskState.COMMITTED])
    def test_none_is_taken_up_again_beside_a_newer_task_of_the_candidate(
        self, store: TaskStore, state: TaskState, again: TaskState
    ) -> None:
        failed = in_state(store, TaskState.FAILED)
        newer = in_state(store, state, "task-2")
        with pytest.raises(NotAllowed):
            move(store, failed, again)
        assert (store.get("task-1"), store.get("task-2")) == (failed, newer)

    def test_two_changes_at_once_let_one_through(self, stores: Stores) -> None:
        task = started(stores.tasks())
        several = [stores.tasks() for _ in range(2)]
        barrier = threading.Barrier(4)

        def fail(worker: int) -> bool:
            barrier.wait()
            try:
                move(several[worker % 2], task, TaskState.FAILED)
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(fail, range(4))) == 1
        assert len(stores.tasks().history("task-1")) == 3


class TestCancel:
    def test_a_waiting_task_is_cancelled_at_once(self, store: TaskStore) -> None:
        store.enqueue(new_task("task-1"))
        task = store.request_cancel("task-1", REASON)
        assert task == store.get("task-1")
        assert (task.state, task.outcome) == (TaskState.CANCELLED, Outcome(REASON))
        assert claim(store) is None

    @pytest.mark.parametrize("state", [TaskState.RUNNING, TaskState.IN_DOUBT])
    def test_a_running_one_is_asked(self, store: TaskStore, state: TaskState) -> None:
        task = in_state(store, state)
        asked = store.request_cancel("task-1", REASON)
        assert asked == store.get("task-1")
        assert (asked.state, asked.cancel_requested, asked.version) == (state, True, task.version + 1)
        assert store.request_cancel("task-1", REASON) == asked  # again is harmless

    def test_the_optimizer_hears_of_it_at_its_next_heartbeat(self, store: TaskStore) -> None:
        task = started(store)
        store.request_cancel("task-1", REASON)
        assert store.heartbeat("task-1", token(task), progress=PROGRESS, lease_ms=1).cancel_requested

    def test_a_change_that_does_not_know_of_the_wish_is_a_conflict(self, store: TaskStore) -> None:
        task = started(store)
        store.request_cancel("task-1", REASON)
        with pytest.raises(Conflict):
            move(store, task, TaskState.QUEUED)

    @pytest.mark.parametrize(
        "state", sorted(set(TaskState) - {TaskState.QUEUED, TaskState.RUNNING, TaskState.IN_DOUBT})
    )
    def test_not_when_it_is_committed_or_has_ended(self, store: TaskStore, state: TaskState) -> None:
        task = in_state(store, state)
        with pytest.raises(NotAllowed):
            store.request_cancel("task-1", REASON)
        assert store.get("task-1") == task

    def test_an_unknown_task_is_not_found(self, store: TaskStore) -> None:
        with pytest.raises(NotFound):
            store.request_cancel("task-9", REASON)


class TestReading:
    def test_what_is_not_there_is_not_found(self, store: TaskStore) -> None:
        for read in (store.get, store.head, store.history, store.attempts):
            with pytest.raises(NotFound):
                read("task-9")

    def test_pages_newest_first(self, store: TaskStore) -> None:
        for number in range(5):
            store.enqueue(new_task(f"task-{number}", table=number))
        everything = TaskFilter()
        first = store.tasks(everything, limit=2)
        assert [task.task_id for task in first] == ["task-4", "task-3"]
        second = store.tasks(everything, limit=9, before=first[-1].task_id)
        assert [task.task_id for task in second] == ["task-2", "task-1", "task-0"]

    @pytest.mark.parametrize("state", sorted(TaskState))
    def test_lists_show_everything_but_files(self, store: TaskStore, state: TaskState) -> None:
        task = in_state(store, state)
        store.enqueue(new_task("task-2", table=2))
        other = store.enqueue(new_task("task-3", table=2, base_snapshot_id=9)).task
        assert store.listed(TaskFilter(), limit=9) == [other.listed(), task.listed()]
        assert [store.head(one.task_id) for one in (other, task)] == [other.listed(), task.listed()]
        assert other.listed().figures.base_snapshot_id == 9
        assert store.listed(TaskFilter(states=frozenset({state}), table_id=table_id(1)), limit=9) == [task.listed()]
        assert store.listed(TaskFilter(), limit=1) == [other.listed()]
        assert store.listed(TaskFilter(), limit=9, before="task-2") == [task.listed()]

    def test_filters_restrict(self, store: TaskStore) -> None:
        started(store, "task-1", table=1)
        store.enqueue(new_task("task-2", table=2))
        running = TaskFilter(states=frozenset({TaskState.RUNNING}))
        second = TaskFilter(table_id=table_id(2))
        assert [task.task_id for task in store.tasks(running, limit=9)] == ["task-1"]
        assert [task.task_id for task in store.tasks(second, limit=9)] == ["task-2"]
        assert store.tasks(replace(running, table_id=table_id(2)), limit=9) == []
        assert store.tasks(TaskFilter(states=frozenset()), limit=9) == []

    def test_kinds_of_actions_are_told_apart(self, store: TaskStore) -> None:
        store.enqueue(new_task("task-1"))
        store.enqueue(of_kind("task-2", ActionKind.EXPIRE_SNAPSHOTS, table=1))
        for kind, task_id in ((ActionKind.REWRITE_DATA_FILES, "task-1"), (ActionKind.EXPIRE_SNAPSHOTS, "task-2")):
            only = TaskFilter(table_id=table_id(1), kind=kind)
            assert [task.task_id for task in store.tasks(only, limit=9)] == [task_id]
            assert [(task.task_id, task.kind) for task in store.listed(only, limit=9)] == [(task_id, kind)]
        assert store.listed(TaskFilter(kind=ActionKind.REWRITE_MANIFESTS), limit=9) == []

    def test_counts_every_state(self, store: TaskStore) -> None:
        assert store.counts() == dict.fromkeys(TaskState, 0)
        started(store, "task-1", table=1)
        store.enqueue(new_task("task-2", table=2))
        store.enqueue(new_task("task-3", table=3))
        assert store.counts() == dict.fromkeys(TaskState, 0) | {TaskState.RUNNING: 1, TaskState.QUEUED: 2}

    def test_counts_the_tries_of_a_table(self, store: TaskStore) -> None:
        none = dict.fromkeys(AttemptState, 0)
        assert store.attempt_counts(table_id(1)) == none
        first = started(store, "task-1", table=1)
        started(store, "task-2", table=2)
        outcome = Outcome(Reason("conflict", "somebody else's commit came first"))
        store.change(Change(first.task_id, first.version, TaskState.SUPERSEDED, outcome, AttemptState.CONFLICT))
        started(store, "task-3", table=1)
        assert store.attempt_counts(table_id(1)) == none | {AttemptState.CONFLICT: 1, AttemptState.RUNNING: 1}
        assert store.attempt_counts(table_id(2)) == none | {AttemptState.RUNNING: 1}

    def test_the_latest_tries_come_first_with_their_tables(self, store: TaskStore) -> None:
        first = started(store, "task-1", table=1)
        outcome = Outcome(Reason("conflict", "somebody else's commit came first"))
        store.change(Change(first.task_id, first.version, TaskState.SUPERSEDED, outcome, AttemptState.CONFLICT, "{}"))
        other = started(store, "task-2", table=2)
        third = started(store, "task-3", table=1)
        found = store.latest_attempts(TaskFilter(), limit=10)
        assert [one.attempt.task_id for one in found] == ["task-3", "task-2", "task-1"]
        assert [one.table_id for one in found] == [third.table_id, other.table_id, first.table_id]
        (whole,) = store.attempts("task-1")
        assert whole.report_json == "{}"
        assert found[-1] == AttemptOfTask(
            replace(whole, report_json=None),
            first.table_name,
            first.table_id,
            first.kind,
            first.resource_group,
            first.created_at,
        )

        def ids(only: TaskFilter, **more: Any) -> list[str]:
            return [one.attempt.task_id for one in store.latest_attempts(only, **{"limit": 10, **more})]

        assert ids(TaskFilter(), limit=2) == ["task-3", "task-2"]
        assert ids(TaskFilter(), before=found[1].attempt.fencing_token) == ["task-1"]
        assert ids(TaskFilter(table_id=table_id(1))) == ["task-3", "task-1"]
        assert ids(TaskFilter(), states=frozenset({AttemptState.CONFLICT})) == ["task-1"]
        assert ids(TaskFilter(table_id=table_id(1)), among=2) == ["task-3"]

    def test_folding_the_history_gives_the_present_state(self, store: TaskStore, clock: ManualClock) -> None:
        store.enqueue(new_task("task-1"))
        clock.advance(1)
        store.enqueue(new_task("task-2"))
        for state in (TaskState.QUEUED, TaskState.IN_DOUBT):
            clock.advance(1)
            task = not_none(claim(store))
            store.heartbeat("task-1", token(task), progress=PROGRESS, lease_ms=LEASE_MS)
            clock.advance(1)
            task = move(store, task, state)
        clock.advance(1)
        task = move(store, store.request_cancel("task-1", REASON), TaskState.CANCELLED)
        history = store.history("task-1")
        assert [entry.version for entry in history] == list(range(1, task.version + 1))
        last = history[-1]
        assert (last.state, last.version, last.attempt, last.at) == (
            task.state,
            task.version,
            task.attempt,
            task.updated_at,
        )
        assert [attempt.attempt for attempt in store.attempts("task-1")] == [1, 2]

    def test_tries_come_page_by_page(self, store: TaskStore, clock: ManualClock) -> None:
        store.enqueue(new_task("task-1"))
        for _ in range(3):
            clock.advance(1)
            task = not_none(claim(store))
            move(store, task, TaskState.QUEUED)
        whole = list(store.attempts("task-1"))
        assert [one.attempt for one in whole] == [1, 2, 3]
        for after in range(5):
            for limit in (1, 2, 9):
                assert list(store.attempts("task-1", limit=limit, after=after)) == whole[after:][:limit]
        with pytest.raises(NotFound):
            store.attempts("task-2", limit=1, after=1)


class TestEnded:
    def test_those_that_ended_are_told_in_the_order_in_which_they_did(
        self, store: TaskStore, clock: ManualClock
    ) -> None:
        for number in (3, 1, 2):
            move(store, started(store, f"task-{number}", table=number), TaskState.FAILED)
            clock.advance(10 if number == 1 else 0)
        started(store, "task-4", table=4)
        told = store.ended(None, clock.now() + 1, 9)
        assert [task.task_id for task in told] == ["task-1", "task-3", "task-2"]  # two at one instant: by their ids
        assert list(told) == [store.head(task.task_id) for task in told]
        places = [Ending(task.updated_at, task.task_id) for task in told]
        for number, place in enumerate(places):
            assert list(store.ended(place, clock.now() + 1, 9)) == list(told[number + 1 :])
        assert list(store.ended(places[0], clock.now() + 1, 1)) == [told[1]]
        assert [task.task_id for task in store.ended(None, clock.now(), 9)] == ["task-1", "task-3"]

    @pytest.mark.parametrize("state", TaskState)
    def test_what_has_not_ended_is_not_told(self, store: TaskStore, clock: ManualClock, state: TaskState) -> None:
        in_state(store, state)
        found = store.ended(None, clock.now() + 1, 9)
        assert [task.task_id for task in found] == (["task-1"] if state in TERMINAL_STATES else [])


class TestPruning:
    @pytest.mark.parametrize("state", sorted(TERMINAL_STATES))
    def test_forgets_what_ended_before_with_its_history_and_attempts(
        self, store: TaskStore, clock: ManualClock, state: TaskState
    ) -> None:
        ended_at = in_state(store, state).updated_at
        clock.advance(1_000)
        assert store.prune(ended_at, 9) == 0
        assert store.get("task-1").state is state
        assert store.prune(ended_at + 1, 9) == 1
        for read in (store.get, store.head, store.history, store.attempts):
            with pytest.raises(NotFound):
                read("task-1")
        assert store.tasks(TaskFilter(), limit=9) == []

    @pytest.mark.parametrize("state", sorted(set(TaskState) - TERMINAL_STATES))
    def test_never_forgets_what_has_not_ended(self, store: TaskStore, clock: ManualClock, state: TaskState) -> None:
        task = in_state(store, state)
        clock.advance(1_000)
        assert store.prune(clock.now(), 9) == 0
        assert store.get("task-1") == task
        assert store.history("task-1")[-1].version == task.version

    def test_what_ended_first_goes_first_and_the_rest_is_kept(self, store: TaskStore, clock: ManualClock) -> None:
        for number in (3, 1, 2):
            move(store, started(store, f"task-{number}", table=number), TaskState.FAILED)
            clock.advance(10)
        history, attempts = store.history("task-2"), store.attempts("task-2")
        assert store.prune(clock.now(), 2) == 2
        assert [task.task_id for task in store.tasks(TaskFilter(), limit=9)] == ["task-2"]
        assert (store.history("task-2"), store.attempts("task-2")) == (history, attempts)
        assert store.prune(clock.now(), 2) == 1
        assert store.prune(clock.now(), 2) == 0

    def test_logs_go_with_their_task_and_before_it_the_oldest_first(self, store: TaskStore, clock: ManualClock) -> None:
        for number in (3, 1, 2):
            keep_log(store, f"task-{number}", number, f"of {number}")
            clock.advance(10)
        assert store.prune_logs(clock.now() - 10, 1) == 1
        assert [store.log(f"task-{number}", 1) is None for number in (1, 2, 3)] == [False, False, True]
        assert store.prune_logs(clock.now() - 10, 9) == 1
        assert store.prune_logs(clock.now() - 10, 9) == 0
        assert store.log("task-2", 1) == log_lines("of 2")
        move(store, store.get("task-2"), TaskState.FAILED)
        assert store.prune(clock.now() + 1, 9) == 1
        assert store.log("task-2", 1) is None

    def test_fencing_tokens_go_on_growing(self, store: TaskStore, clock: ManualClock) -> None:
        first = started(store)
        move(store, first, TaskState.FAILED)
        clock.advance(10)
        store.prune(clock.now(), 9)
        assert token(started(store)) > token(first)
