"""What the store of deletions must do, on SQLite and PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from icewright.core.errors import Conflict, NotAllowed, NotFound, StoreTaken
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.deletion import (
    INTENT_TRANSITIONS,
    Cause,
    Checked,
    DeletionRun,
    Held,
    Intent,
    IntentState,
    Step,
)
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.objects import ListedObject
from icewright.model.plans.approvals import Approval, ApprovalPlace, ApprovedPlan
from icewright.model.plans.plans import Reason
from icewright.ports.deletions import OPEN_STATES, DeletionStore, IntentCount
from tests.cases import for_each
from tests.contracts.samples import HOSTILE_PARTS, REASON, new_task, plan, table_id
from tests.contracts.stores import AND_IN_MEMORY, DATABASES, Stores, stores_on
from tests.doubles.clock import ManualClock

ALL = frozenset(IntentState)


@pytest.fixture(params=AND_IN_MEMORY)
def stores(request: pytest.FixtureRequest, clock: ManualClock) -> Stores:
    return stores_on(request.param, request, clock)


@pytest.fixture
def store(stores: Stores) -> DeletionStore:
    return stores.deletions()


def a_run(store: DeletionStore, run_id: str = "run-1", *, table: int = 1, plan_hash: str = "abc") -> DeletionRun:
    return DeletionRun(
        run_id=run_id,
        plan_id="plan-1",
        plan_hash=plan_hash,
        table_id=table_id(table),
        table_name=TableName("lake", ("ns",), HOSTILE_PARTS[1]),
        metadata_location="s3://b/v1.json",
        cause=Cause.ORPHAN,
        table_bytes=10**15,
        epoch=store.epoch(),
        fencing_token=7,
        approved_by=None,
        begun_at=1,
        next_at=2,
    )


def some_intents(count: int = 3, run_id: str = "run-1") -> list[Intent]:
    return [
        Intent(
            run_id,
            number,
            ListedObject(CanonicalPath(f"s3://b/{number}{HOSTILE_PARTS[number % 6]}"), 10 + number, 5, "etag", "v"),
            4,
            IntentState.PLANNED,
            0,
            3,
        )
        for number in range(count)
    ]


def remove(store: DeletionStore, run_id: str, *, table: int = 1, files: int = 3, last: str = "purged") -> None:
    """A run that is closed, with one file in the state ``last`` and the others purged."""
    store.begin(a_run(store, run_id, table=table), some_intents(files, run_id))
    intents = store.intents(run_id, ALL, limit=files)
    begun = store.change(store.epoch(), [replace(one, state=IntentState.UNKNOWN) for one in intents])
    ends = [*[IntentState.PURGED] * (files - 1), IntentState(last)]
    store.change(store.epoch(), [replace(one, state=end) for one, end in zip(begun, ends, strict=True)])
    if not {IntentState(last)} & OPEN_STATES:
        store.close(run_id, store.epoch())


def begun(store: DeletionStore, count: int = 3) -> list[Intent]:
    store.begin(a_run(store), some_intents(count))
    return list(store.intents("run-1", ALL, limit=count))


def test_a_run_and_its_intents_come_back_as_they_were(store: DeletionStore, stores: Stores) -> None:
    run, intents = a_run(store), some_intents()
    assert store.begin(run, intents) == run
    again = stores.deletions()
    assert again.run("run-1") == run
    assert list(again.intents("run-1", ALL, limit=9)) == intents
    assert again.begin(replace(run, begun_at=9), []) == run
    with pytest.raises(NotFound):
        again.run("run-2")


def test_q8_an_intent_is_there_for_everybody_before_begin_returns(store: DeletionStore, stores: Stores) -> None:
    store.begin(a_run(store), some_intents(500))
    assert stores.deletions().count_intents("run-1")[IntentState.PLANNED] == IntentCount(500, sum(range(10, 510)))


def test_the_id_of_a_run_is_for_one_plan(store: DeletionStore) -> None:
    store.begin(a_run(store), some_intents())
    with pytest.raises(Conflict):
        store.begin(a_run(store, plan_hash="other"), some_intents())


def test_a_table_has_one_open_run(store: DeletionStore) -> None:
    begun(store)
    with pytest.raises(Conflict):
        store.begin(a_run(store, "run-2"), some_intents(run_id="run-2"))
    store.begin(a_run(store, "run-3", table=2), [])
    changes = [replace(one, state=IntentState.SKIPPED) for one in store.intents("run-1", ALL, limit=9)]
    with pytest.raises(Conflict):
        store.close("run-1", store.epoch())
    store.change(store.epoch(), changes)
    store.close("run-1", store.epoch())
    assert not store.run("run-1").is_open
    store.begin(a_run(store, "run-2"), some_intents(run_id="run-2"))
    assert [run.run_id for run in store.runs(limit=9)] == ["run-3", "run-2", "run-1"]
    assert [run.run_id for run in store.runs(limit=9, open_only=True)] == ["run-3", "run-2"]
    assert [run.run_id for run in store.runs(limit=9, table_id=table_id(1))] == ["run-2", "run-1"]
    assert [run.run_id for run in store.runs(limit=1, before="run-3")] == ["run-2"]


def test_an_intent_changes_with_all_that_is_known_of_it(store: DeletionStore, clock: ManualClock) -> None:
    first, *_ = begun(store)
    checked = Checked("s3://b/v2.json", 1, 99)
    now = clock.advance(1000)
    (begun_one,) = store.change(
        store.epoch(), [replace(first, state=IntentState.UNKNOWN, step=Step.QUARANTINE, checked=checked)]
    )
    assert (begun_one.version, begun_one.changed_at) == (1, now)
    held = Held(CanonicalPath("s3://b/held/x"), "e", "v", "m")
    why = Reason("x", "nul\x00 and \udc80", {"n": 1})
    (moved,) = store.change(
        store.epoch(), [replace(begun_one, state=IntentState.QUARANTINED, held=held, held_at=5, why=why)]
    )
    assert store.intents("run-1", frozenset({IntentState.QUARANTINED}), limit=9) == [moved]
    assert (moved.held, moved.checked, moved.why, moved.version) == (held, checked, why, 2)
    assert store.count_intents("run-1")[IntentState.QUARANTINED] == IntentCount(1, 10)
    assert store.with_held(limit=9) == ["run-1"]
    assert store.with_held(limit=9, before="run-1") == []
    assert store.with_held(table_id=table_id(1), limit=9) == ["run-1"]
    assert store.with_held(table_id=table_id(2), limit=9) == []


def test_a_change_is_of_what_was_read_and_of_all_or_nothing(store: DeletionStore) -> None:
    first, second, third = begun(store)
    store.change(store.epoch(), [replace(second, state=IntentState.UNKNOWN, step=Step.QUARANTINE)])
    with pytest.raises(Conflict):
        store.change(store.epoch(), [replace(one, state=IntentState.UNKNOWN) for one in (first, second, third)])
    assert store.count_intents("run-1")[IntentState.PLANNED] == IntentCount(2, 22)
    with pytest.raises(NotFound):
        store.change(store.epoch(), [replace(first, number=99, state=IntentState.UNKNOWN)])
    with pytest.raises(NotAllowed):
        store.change(store.epoch(), [replace(first, state=IntentState.UNKNOWN, first_seen_at=0)])


def test_only_the_transitions_of_the_domain(store: DeletionStore) -> None:
    states = list(product(IntentState, IntentState))
    intents = [replace(intent, state=states[intent.number][0]) for intent in some_intents(len(states))]
    store.begin(a_run(store), intents)

    def check(case: tuple[Intent, IntentState]) -> None:
        intent, after = case
        if after in INTENT_TRANSITIONS[intent.state]:
            store.change(store.epoch(), [replace(intent, state=after)])
        else:
            with pytest.raises(NotAllowed):
                store.change(store.epoch(), [replace(intent, state=after)])

    for_each(zip(intents, (after for _before, after in states), strict=True), check)


def test_q1_a_server_that_was_replaced_writes_nothing_more(store: DeletionStore, stores: Stores) -> None:
    first, *_ = begun(store)
    old = store.epoch()
    stores.next_server()
    assert store.epoch() == old + 1
    for write in (
        lambda: store.begin(replace(a_run(store, "run-2", table=2), epoch=old), []),
        lambda: store.change(old, [replace(first, state=IntentState.SKIPPED)]),
        lambda: store.rest("run-1", old, 9),
        lambda: store.close("run-1", old),
    ):
        with pytest.raises(StoreTaken):
            write()
    assert store.count_intents("run-1")[IntentState.PLANNED].files == 3


def test_a_run_rests(store: DeletionStore) -> None:
    begun(store)
    store.rest("run-1", store.epoch(), 777)
    assert store.run("run-1").next_at == 777


def approval(number: int, table: int = 1, at: int = 1) -> Approval:
    """An approval of a plan for a table."""
    name = TableName("lake", ("ns",), HOSTILE_PARTS[1])
    because = Reason("beyond-budget", HOSTILE_PARTS[2], {"files": number})
    plan = ApprovedPlan(f"plan-{number}", table_id(table), name, ActionKind.EXPIRE_SNAPSHOTS, because)
    return Approval(f"hash-{number}", "Ada", at, plan)


def test_approvals_are_listed_the_latest_first_page_by_page(store: DeletionStore, stores: Stores) -> None:
    assert store.approvals(limit=9) == []
    of_before = Approval("hash-0", "Bob", 5)
    given = [approval(2, at=5), of_before, approval(3, table=2, at=4), approval(1, at=3)]
    for one in reversed(given):
        store.approve(one)
    assert stores.deletions().approvals(limit=9) == given
    for limit in (1, 2, 3):
        found: list[Approval] = []
        before = None
        while page := store.approvals(limit=limit, before=before):
            found += page
            before = ApprovalPlace(page[-1].approved_at, page[-1].plan_hash)
        assert found == given
    assert store.approvals(table_id=table_id(2), limit=9) == [given[2]]
    assert store.approvals(table_id=table_id(1), limit=1) == [given[0]]


def test_the_first_approval_stays(store: DeletionStore, stores: Stores) -> None:
    assert store.approval("abc") is None
    first = Approval("abc", HOSTILE_PARTS[3], 1)
    assert store.approve(first) == first
    assert store.approve(Approval("abc", "other", 2)) == first
    assert stores.deletions().approval("abc") == first


def test_intents_come_in_pages(store: DeletionStore) -> None:
    intents = begun(store, 7)
    found = store.intents("run-1", ALL, limit=3)
    assert [one.number for one in found] == [0, 1, 2]
    assert list(store.intents("run-1", ALL, limit=9, after=2)) == intents[3:]
    assert store.intents("run-1", frozenset({IntentState.PURGED}), limit=9) == []
    assert store.intents("other", ALL, limit=9) == []


class TestPruning:
    """In databases alone: the double prunes nothing."""

    @pytest.fixture(params=DATABASES)
    def stores(self, request: pytest.FixtureRequest, clock: ManualClock) -> Stores:
        return stores_on(request.param, request, clock)

    def test_runs_go_when_nothing_was_done_with_them_for_long(self, store: DeletionStore, clock: ManualClock) -> None:
        remove(store, "run-1")
        first = clock.now()
        clock.advance(10)
        remove(store, "run-2")
        assert store.prune(first, 9) == 0
        assert store.prune(first + 1, 9) == 3
        assert [run.run_id for run in store.runs(limit=9)] == ["run-2"]
        with pytest.raises(NotFound):
            store.run("run-1")
        assert store.count_intents("run-1")[IntentState.PURGED] == IntentCount(0, 0)
        assert store.prune(first + 10, 9) == 0
        assert store.prune(first + 11, 9) == 3

    def test_a_run_is_as_old_as_the_last_of_its_files(self, store: DeletionStore, clock: ManualClock) -> None:
        remove(store, "run-1", last="quarantined")
        first = clock.advance(10)
        (held,) = store.intents("run-1", frozenset({IntentState.QUARANTINED}), limit=9)
        (held,) = store.change(store.epoch(), [replace(held, state=IntentState.UNKNOWN)])
        clock.advance(10)
        store.change(store.epoch(), [replace(held, state=IntentState.PURGED)])
        assert store.prune(first + 10, 9) == 0
        assert store.prune(first + 11, 9) == 3

    @pytest.mark.parametrize("last", ["quarantined", "unknown"])
    def test_what_is_in_quarantine_or_unknown_keeps_its_run_with_all_its_files(
        self, store: DeletionStore, clock: ManualClock, last: str
    ) -> None:
        remove(store, "run-1", last=last)
        assert store.prune(clock.advance(10**12), 9) == 0
        assert len(store.intents("run-1", ALL, limit=9)) == 3

    def test_a_run_that_is_open_stays(self, store: DeletionStore, clock: ManualClock) -> None:
        intents = begun(store)
        store.change(store.epoch(), [replace(one, state=IntentState.SKIPPED) for one in intents])
        store.begin(a_run(store, "run-2", table=2), some_intents(run_id="run-2"))
        assert store.prune(clock.advance(10**12), 9) == 0
        store.close("run-1", store.epoch())
        assert store.prune(clock.advance(1), 9) == 3

    def test_the_task_of_a_run_and_work_on_its_table_keep_it(self, stores: Stores, clock: ManualClock) -> None:
        store, tasks = stores.deletions(), stores.tasks()
        remove(store, "run-1")
        tasks.enqueue(new_task("run-1", table=2))
        tasks.enqueue(new_task("task-restore"))
        for task_id in ("run-1", "task-restore"):
            assert store.prune(clock.advance(10**12), 9) == 0
            tasks.request_cancel(task_id, REASON)
        assert store.prune(clock.now(), 9) == 0  # its task has ended, and is there
        assert tasks.prune(clock.advance(1), 9) == 2
        assert store.prune(clock.now(), 9) == 3

    def test_so_many_files_go_at_once_and_a_run_with_its_last(self, store: DeletionStore, clock: ManualClock) -> None:
        remove(store, "run-1")
        clock.advance(1)
        remove(store, "run-2")
        now = clock.advance(1)
        assert store.prune(now, 2) == 2
        assert store.run("run-1") == replace(a_run(store), is_open=False)
        assert store.prune(now, 2) == 2
        assert [run.run_id for run in store.runs(limit=9)] == ["run-2"]
        assert [store.prune(now, 2), store.prune(now, 2)] == [2, 0]
        assert store.runs(limit=9) == []

    def test_approvals_go_behind_their_plans(self, stores: Stores) -> None:
        store, tables = stores.deletions(), stores.tables()
        for number in range(3):
            tables.save_plan(plan(f"plan-{number}", planned_at=number))
            store.approve(approval(number, at=10 + number))
        older = store.approve(Approval("hash-older", "Ada", 1))
        assert store.prune_approvals(99, 9) == 0
        tables.prune_plans(0, 99)
        assert store.prune_approvals(10, 9) == 0
        assert store.prune_approvals(12, 1) == 1
        assert [store.approval(f"hash-{number}") is None for number in range(3)] == [True, False, False]
        assert [store.prune_approvals(12, 9), store.prune_approvals(99, 9)] == [1, 1]
        assert store.approval("hash-older") == older  # nobody knows of which plan it is
