"""What every task store must do where resource groups have caps: what runs keeps to them, whoever claims at once."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection

from icewright.core.errors import NotAllowed, NotFound
from icewright.model.actions.actions import ActionKind
from icewright.model.plans.plans import Reason
from icewright.model.policy.resource_groups import Queue, ResourceGroup, TenantCaps
from icewright.model.work.admission import FREE, Holding, InLane, Lane, Line, Refusal, RefusalKind, Terms, Took, Urgency
from icewright.model.work.tasks import AttemptState, NewTask, Outcome, Task, TaskState
from icewright.ports.store import Change, TaskStore
from icewright.store.schema import state_is
from icewright.work.groups.admission import HELD_MS
from icewright.work.groups.rank import AGED_MS
from icewright.work.store import claiming
from icewright.work.store import task_queries as queries
from tests.contracts.samples import OUTCOME, REASON, new_task, of_kind
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock
from tests.narrowing import not_none

LAKE = frozenset({"lake"})
LEASE_MS = 60_000
ETL = ResourceGroup("default", cores=4)
TWO_CORES = Terms(ETL, Holding(2, 8))
LARGE = Lane(Queue.LARGE)


def put(store: TaskStore, task_id: str, table: int, lane: Lane | None = None, *, priority: int = 0) -> None:
    store.enqueue(waiting(task_id, table, lane, priority=priority))


def waiting(task_id: str, table: int, lane: Lane | None = None, *, priority: int = 0) -> NewTask:
    return replace(new_task(task_id, table=table, priority=priority), lane=lane or Lane())


def claim(
    store: TaskStore, by: str = "o-1", terms: Terms = FREE, *, at_most: int | None = None, group: str = "default"
) -> Task | None:
    return store.claim(
        by, resource_group=group, catalogs=LAKE, lease_ms=LEASE_MS, shareable_bytes_max=at_most, terms=terms
    )


def ids(store: TaskStore, *claims: tuple[str, Terms]) -> list[str | None]:
    found = [claim(store, by, terms) for by, terms in claims]
    return [None if task is None else task.task_id for task in found]


class TestCaps:
    def test_what_runs_is_summed_and_the_next_waits(self, store: TaskStore) -> None:
        for number in range(1, 5):
            put(store, f"task-{number}", number)
        assert ids(store, *[("o-1", TWO_CORES)] * 3) == ["task-1", "task-2", None]
        assert ids(store, ("o-2", TWO_CORES), ("o-2", Terms(ETL, Holding(1, 0)))) == [None, None]
        uses = store.facts("default").uses
        assert {(use.optimizer_id, use.tenant, use.queue, use.is_resident) for use in uses} == {
            ("o-1", "", Queue.NORMAL, True)
        }
        assert [sum(getattr(use, of) for use in uses) for of in ("tasks", "cores", "memory_bytes")] == [2, 4, 16]
        assert store.facts("default").waiting == {Lane()}

    def test_what_ends_makes_room(self, store: TaskStore) -> None:
        for number in range(1, 4):
            put(store, f"task-{number}", number)
        first, _ = claim(store, "o-1", TWO_CORES), claim(store, "o-1", TWO_CORES)
        assert first is not None
        assert claim(store, "o-1", TWO_CORES) is None
        store.change(Change(first.task_id, first.version, TaskState.FAILED, OUTCOME, AttemptState.FAILED))
        again = not_none(claim(store, "o-1", TWO_CORES))
        assert again.lease is not None
        assert again.lease.holding == Holding(2, 8)
        assert store.get(again.task_id).lease == again.lease
        assert store.get("task-1").lease is None

    def test_what_was_lost_is_held_until_its_watchdog_has_surely_ended_it(
        self, store: TaskStore, clock: ManualClock
    ) -> None:
        put(store, "task-1", 1)
        put(store, "task-2", 2)
        all_of_it = Terms(ETL, Holding(4, 0))
        lost = not_none(claim(store, "o-1", all_of_it))
        clock.advance(LEASE_MS + 1)
        assert claim(store, "o-2", all_of_it) is None  # nobody has noticed
        store.change(Change(lost.task_id, lost.version, TaskState.IN_DOUBT, OUTCOME, AttemptState.LOST))
        assert claim(store, "o-2", all_of_it) is None
        clock.advance(HELD_MS - 1)
        assert claim(store, "o-2", all_of_it) is not None

    def test_groups_do_not_count_against_each_other(self, store: TaskStore) -> None:
        put(store, "task-1", 1)
        store.enqueue(replace(new_task("task-2", table=2), resource_group="other"))
        assert claim(store, "o-1", Terms(ETL, Holding(4, 0))) is not None
        assert claim(store, "o-1", Terms(ResourceGroup("other", cores=4), Holding(4, 0)), group="other") is not None

    def test_tenants_have_caps_of_their_own(self, store: TaskStore) -> None:
        for number in range(1, 4):
            put(store, f"task-{number}", number, Lane(tenant="sales"))
        put(store, "task-4", 4, Lane(tenant="ops"))
        terms = Terms(ResourceGroup("default", tenants=(TenantCaps("sales", tasks_max=1),)), Holding(1, 1))
        assert ids(store, *[("o-1", terms)] * 3) == ["task-1", "task-4", None]

    def test_applications_are_counted_once_each(self, store: TaskStore) -> None:
        for number in range(1, 5):
            put(store, f"task-{number}", number)
        terms = Terms(ResourceGroup("default", applications_max=2, optimizers_max=1))
        alone = replace(terms, holding=Holding(is_resident=False))
        assert ids(store, ("o-1", terms), ("o-2", terms), ("o-1", terms)) == ["task-1", None, "task-2"]
        assert ids(store, ("o-3", alone), ("o-4", alone)) == ["task-3", None]

    def test_the_large_queue_has_its_share(self, store: TaskStore) -> None:
        for number in range(1, 12):
            put(store, f"task-{number:02d}", number)
        for number in range(12, 16):
            put(store, f"task-{number:02d}", number, LARGE)
        terms = Terms(ResourceGroup("default", tasks_max=10))
        found = [claim(store, "o-1", terms) for _ in range(11)]
        queues = [task.lane.queue for task in found if task is not None]
        assert (queues.count(Queue.NORMAL), queues.count(Queue.LARGE)) == (8, 2)
        assert found[-1] is None

    def test_the_share_of_the_large_queue_is_kept_for_what_an_optimizer_understands(self, store: TaskStore) -> None:
        manifests = ActionKind.REWRITE_MANIFESTS
        for number in range(1, 12):
            put(store, f"task-{number:02d}", number)
        store.enqueue(replace(of_kind("task-12", manifests, table=12), lane=LARGE))
        rewrites = frozenset({ActionKind.REWRITE_DATA_FILES})
        terms = Terms(ResourceGroup("default", tasks_max=10))

        def taken(terms: Terms, at_most: int) -> int:
            claims = (
                store.claim("o-1", resource_group="default", catalogs=LAKE, lease_ms=9, terms=terms, kinds=rewrites)
                for _ in range(at_most)
            )
            return sum(task is not None for task in claims)

        assert store.facts("default").waiting == {Lane(), LARGE}
        assert store.facts("default", rewrites).waiting == {Lane()}
        alone = replace(terms, holding=Holding(is_resident=False))
        assert store.claimable("default", LAKE, alone, rewrites) == 8
        assert store.claimable("default", LAKE, replace(alone, understood=rewrites), rewrites) == 10
        assert taken(replace(terms, understood=rewrites | {manifests}), 9) == 8
        assert taken(replace(terms, understood=rewrites), 9) == 2

    def test_a_task_that_joins_others_takes_nothing_beside_them(self, store: TaskStore) -> None:
        put(store, "task-1", 1)
        put(store, "task-2", 2)
        terms = replace(TWO_CORES, group=ResourceGroup("default", cores=2), joins=True)
        assert claim(store, "o-1", terms, at_most=100) is not None
        assert claim(store, "o-2", terms, at_most=100) is None
        joined = not_none(claim(store, "o-1", terms, at_most=100))
        assert not_none(joined.lease).holding == Holding(0, 0)

    def test_a_group_that_gives_out_nothing_gives_out_nothing(self, store: TaskStore) -> None:
        put(store, "task-1", 1)
        shut = Terms(ETL, refused=Refusal(RefusalKind.WINDOW, Reason("window", "closed")))
        assert claim(store, "o-1", shut) is None
        assert store.claimable("default", LAKE, shut) == 0
        assert store.get("task-1").version == 1

    def test_the_backlog_counts_what_claims_would_give_out(self, store: TaskStore) -> None:
        for number in range(1, 5):
            put(store, f"task-{number}", number)
        alone = Holding(2, 8, is_resident=False)
        assert store.claimable("default", LAKE, Terms(ETL, alone)) == 2
        assert store.claimable("default", LAKE, Terms(ResourceGroup("default", applications_max=3), alone)) == 3
        assert store.claimable("default", LAKE) == 4
        claim(store, "o-1", TWO_CORES)
        assert store.claimable("default", LAKE, Terms(ETL, alone)) == 1
        assert store.claimable("other", LAKE) == 0


class TestTurns:
    def test_owners_take_turns_however_much_one_of_them_wants(self, store: TaskStore) -> None:
        for number in range(1, 7):
            put(store, f"greedy-{number}", number, Lane(tenant="greedy"))
        for number in range(1, 4):
            put(store, f"modest-{number}", 10 + number, Lane(tenant="modest"))
        found = ids(store, *[("o-1", FREE)] * 7)
        assert [(name or "").split("-")[0] for name in found] == ["greedy", "modest"] * 3 + ["greedy"]

    def test_also_where_nothing_runs_for_long(self, store: TaskStore) -> None:
        for number in range(1, 4):
            put(store, f"a-{number}", number, Lane(tenant="a"))
            put(store, f"b-{number}", 10 + number, Lane(tenant="b"))
        found = []
        for _ in range(6):
            task = not_none(claim(store))
            found.append(task.lane.tenant)
            store.change(Change(task.task_id, task.version, TaskState.FAILED, OUTCOME, AttemptState.FAILED))
        assert found == ["a", "b"] * 3

    def test_real_time_before_the_rest_until_that_has_aged(self, store: TaskStore, clock: ManualClock) -> None:
        put(store, "task-1", 1)
        clock.advance(AGED_MS - 1)
        put(store, "task-2", 2, Lane(urgency=Urgency.REAL_TIME))
        assert ids(store, ("o", FREE)) == ["task-2"]
        put(store, "task-3", 3, Lane(urgency=Urgency.REAL_TIME))
        clock.advance(1)
        assert ids(store, ("o", FREE), ("o", FREE)) == ["task-1", "task-3"]

    def test_priority_decides_among_the_tasks_of_a_lane(self, store: TaskStore) -> None:
        put(store, "task-1", 1)
        put(store, "task-2", 2, priority=1)
        assert ids(store, ("o", FREE), ("o", FREE)) == ["task-2", "task-1"]

    def test_what_cannot_start_holds_nobody_up(self, store: TaskStore) -> None:
        put(store, "task-1", 1, Lane(urgency=Urgency.REAL_TIME, tenant="sales"))
        put(store, "task-2", 2, LARGE)
        put(store, "task-3", 3)
        group = ResourceGroup("default", tenants=(TenantCaps("sales", cores=1),))
        terms = Terms(group, Holding(2, 0), frozenset({Queue.NORMAL}))
        assert ids(store, ("o", terms), ("o", terms)) == ["task-3", None]


class TestExpedite:
    def test_a_person_has_a_task_started_first(self, store: TaskStore, stores: Stores) -> None:
        put(store, "task-1", 1, Lane(urgency=Urgency.REAL_TIME))
        put(store, "task-2", 2, Lane(LARGE.queue, tenant="ops"))
        sooner = store.expedite("task-2", REASON)
        assert sooner.lane == Lane(Queue.LARGE, Urgency.EXPEDITED, "ops")
        assert (sooner.version, store.history("task-2")[-1].reason) == (2, REASON)
        assert store.expedite("task-2", REASON) == sooner
        assert [entry.action for entry in stores.audit().latest(limit=9)].count("task.expedited") == 1
        assert ids(store, ("o", FREE), ("o", FREE)) == ["task-2", "task-1"]

    def test_only_what_waits(self, store: TaskStore) -> None:
        with pytest.raises(NotFound):
            store.expedite("task-1", REASON)
        put(store, "task-1", 1)
        claim(store)
        with pytest.raises(NotAllowed, match="only what waits"):
            store.expedite("task-1", REASON)

    def test_a_newer_candidate_does_not_take_the_wish_away(self, store: TaskStore) -> None:
        put(store, "task-1", 1)
        store.expedite("task-1", REASON)
        put(store, "task-2", 1, Lane(tenant="ops"))
        assert store.get("task-1").lane == Lane(urgency=Urgency.EXPEDITED, tenant="ops")


class TestLarge:
    def test_what_ran_out_of_memory_is_tried_again_in_the_large_queue(self, store: TaskStore) -> None:
        put(store, "task-1", 1, Lane(urgency=Urgency.REAL_TIME, tenant="ops"))
        task = not_none(claim(store))
        ran_out = Outcome(Reason("out-of-memory", "a worker was killed"))
        again = store.change(Change(task.task_id, task.version, TaskState.QUEUED, ran_out, AttemptState.FAILED))
        assert again.lane == Lane(Queue.LARGE, Urgency.REAL_TIME, "ops")
        assert store.get("task-1").lane == again.lane
        assert claim(store, "o", Terms(queues=frozenset({Queue.NORMAL}))) is None
        large = not_none(claim(store, "o", Terms(queues=frozenset({Queue.LARGE}))))
        other = store.change(Change(large.task_id, large.version, TaskState.QUEUED, OUTCOME, AttemptState.FAILED))
        assert other.lane.queue is Queue.LARGE

    def test_what_fails_otherwise_stays_where_it_is(self, store: TaskStore) -> None:
        put(store, "task-1", 1)
        task = not_none(claim(store))
        again = store.change(Change(task.task_id, task.version, TaskState.QUEUED, OUTCOME, AttemptState.FAILED))
        assert again.lane == Lane()


class TestLine:
    def test_what_ranks_before_it_and_what_waits_beside_it(self, store: TaskStore, clock: ManualClock) -> None:
        put(store, "task-1", 1)
        put(store, "task-2", 2, Lane(tenant="ops"))
        clock.advance(AGED_MS)
        put(store, "task-3", 3, priority=1)
        put(store, "task-4", 4)
        put(store, "task-5", 5, Lane(tenant="ops"))
        put(store, "task-6", 6, Lane(urgency=Urgency.REAL_TIME))
        put(store, "task-7", 7, LARGE)
        store.enqueue(replace(new_task("task-8", table=8), resource_group="other"))
        running = waiting("task-9", 9, Lane(urgency=Urgency.EXPEDITED))
        store.enqueue(running)
        assert claim(store) is not None
        ops, real_time = Lane(tenant="ops"), Lane(urgency=Urgency.REAL_TIME)
        assert store.line("task-4") == Line(2, (InLane(ops, 2, 1), InLane(real_time, 1, 0)))
        assert store.line("task-1") == Line(0, (InLane(ops, 2, 1), InLane(real_time, 1, 0)))
        assert store.line("task-5") == Line(1, (InLane(Lane(), 3, 1), InLane(real_time, 1, 0)))
        assert store.line("task-7") == Line(0)
        assert store.line("task-8") == Line(0)
        with pytest.raises(NotFound):
            store.line("none")

    def test_what_waits_in_each_lane_of_a_group(self, store: TaskStore, clock: ManualClock) -> None:
        ops, real_time = Lane(tenant="ops"), Lane(urgency=Urgency.REAL_TIME)
        put(store, "task-1", 1)
        put(store, "task-2", 2, ops)
        clock.advance(AGED_MS)
        put(store, "task-3", 3, ops)
        put(store, "task-4", 4, real_time)
        put(store, "task-5", 5, LARGE)
        store.enqueue(replace(new_task("task-6", table=6), resource_group="other"))
        wanted = [InLane(ops, 2, 1), InLane(LARGE, 1, 0), InLane(Lane(), 1, 1), InLane(real_time, 1, 0)]
        assert list(store.lanes("default")) == wanted
        assert claim(store) is not None  # the real-time one
        assert list(store.lanes("default")) != wanted
        assert sum(lane.waiting for lane in store.lanes("default")) == 4
        assert list(store.lanes("other")) == [InLane(Lane(), 1, 0)]
        assert list(store.lanes("none")) == []

    @pytest.mark.parametrize(
        ("most", "lanes", "expected"),
        [
            (2, 9, Line(2, (), whole=False)),
            (4, 9, Line(2, (InLane(Lane(tenant="a"), 2, 0),), whole=False)),
            (5, 9, Line(2, (InLane(Lane(tenant="a"), 2, 0), InLane(Lane(tenant="b"), 1, 0)), whole=False)),
            (6, 9, Line(2, (InLane(Lane(tenant="a"), 2, 0), InLane(Lane(tenant="b"), 1, 0)))),
            (9, 1, Line(2, (InLane(Lane(tenant="a"), 2, 0),), whole=False)),
        ],
    )
    def test_no_more_is_counted_than_anybody_needs(
        self, store: TaskStore, most: int, lanes: int, expected: Line, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in ("tests.doubles.task_store", "icewright.work.store.admission_queries"):
            monkeypatch.setattr(f"{module}.AHEAD_MAX", most)
            monkeypatch.setattr(f"{module}.LANES_MAX", lanes)
        for number in range(1, 4):
            put(store, f"task-{number}", number)
        for number, tenant in enumerate(("a", "a", "b"), 4):
            put(store, f"task-{number}", number, Lane(tenant=tenant))
        assert store.line("task-3") == expected

    def test_how_long_the_last_ones_took(
        self, store: TaskStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in ("tests.doubles.task_store", "icewright.work.store.admission_queries"):
            monkeypatch.setattr(f"{module}.TOOK_MAX", 3)
        assert store.took("default") == []
        for number in range(1, 6):
            put(store, f"task-{number}", number)
        put(store, "task-6", 6)
        store.enqueue(replace(new_task("task-7", table=7), resource_group="other"))
        for number in range(1, 4):
            end(store, clock, TaskState.QUEUED if number == 3 else TaskState.FAILED, took_ms=number)
        began = clock.now()
        again = end(store, clock, TaskState.FAILED, took_ms=10)
        assert again == "task-3"  # of its two tries, the last
        store.request_cancel("task-6", REASON)  # at which nobody worked: it ended, and took no time
        assert store.took("default") == [Took(began + 10, 10), Took(began - 3, 2)]
        assert store.took("other") == []


def end(store: TaskStore, clock: ManualClock, state: TaskState, *, took_ms: int) -> str:
    """Claim a task and end its attempt after so long."""
    task = not_none(claim(store))
    clock.advance(took_ms)
    store.change(Change(task.task_id, task.version, state, OUTCOME, AttemptState.FAILED))
    return task.task_id


CALLERS = 8
GROUP = ResourceGroup(
    "default", 6, 60, applications_max=4, large_share=0.4, tenants=(TenantCaps("sales", tasks_max=2),), tasks_max=5
)


def is_within(running: Sequence[Task]) -> bool:
    """The caps of the group, summed once more from nothing but tasks."""
    leases = [task.lease for task in running if task.lease is not None]
    return (
        sum(lease.holding.cores or 0 for lease in leases) <= 6
        and sum(lease.holding.memory_bytes or 0 for lease in leases) <= 60
        and len(leases) <= 5
        and len({lease.optimizer_id for lease in leases}) <= 4
        and sum(task.lane.tenant == "sales" for task in running) <= 2
        and len({task.table_id for task in running}) == len(running)
    )


@contextmanager
def sampled(seen: list[int], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look at all that runs each time that a claim was written, before it is committed and anybody else goes on."""

    def look(tasks: Sequence[Task]) -> None:
        assert is_within(tasks)
        seen.append(len(tasks))

    write_all = claiming._written

    def all_written(connection: Connection, *args: Any) -> dict[str, Task]:
        tasks = write_all(connection, *args)
        look(queries.whole(connection, queries.WHOLE.where(state_is(TaskState.RUNNING))))
        return tasks

    monkeypatch.setattr(claiming, "_written", all_written)
    yield


@pytest.mark.parametrize("processes", [1, CALLERS])
def test_caps_are_never_exceeded_by_claims_at_once(
    stores: Stores, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight callers, each of its own optimizer, that claim and end tasks until there are none.

    In one process they may be answered together, in eight they wait for each other.
    """
    first = stores.tasks()
    tenants, queues = ("sales", "ops", ""), (Queue.NORMAL, Queue.LARGE)
    for number in range(48):
        put(first, f"task-{number:02d}", number, Lane(queues[number % 2], Urgency.NORMAL, tenants[number % 3]))
    seen: list[int] = []
    start = threading.Barrier(CALLERS)

    def work(number: int) -> int:
        store, done = first if processes == 1 else stores.tasks(), 0
        terms = Terms(GROUP, Holding(1 + number % 3, 10))
        start.wait()
        mine: list[Task] = []
        for _ in range(4_000):
            task = claim(store, f"o-{number}", terms)
            if task is not None:
                mine.append(task)
            if mine and (task is None or len(mine) > 1):
                ended = mine.pop(0)
                store.change(Change(ended.task_id, ended.version, TaskState.CANCELLED, OUTCOME, AttemptState.CANCELLED))
                done += 1
            elif task is None and not store.counts()[TaskState.QUEUED]:
                return done
        return done

    with sampled(seen, monkeypatch), ThreadPoolExecutor(CALLERS) as pool:
        done = sum(pool.map(work, range(CALLERS)))
    assert done == 48
    assert len(seen) >= (48 if processes > 1 else 1)
    assert max(seen) > 1
