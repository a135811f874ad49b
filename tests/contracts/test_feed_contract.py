"""What every feed must do, sentence by sentence of the port, and what task stores tell in it."""

from __future__ import annotations

import pytest

from icewright.core.errors import Conflict
from icewright.model.actions.actions import ActionKind
from icewright.model.events.feed import Fact, FactKind, FeedFilter
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Reason
from icewright.model.work.breaker import UNVERIFIED, VERIFICATION_FAILED
from icewright.model.work.tasks import AttemptState, Outcome, Task, TaskState
from icewright.ports.feed import Feed
from icewright.ports.store import Change, TaskStore
from tests.contracts.samples import HOSTILE_PARTS, OUTCOME, REASON, new_task, table_id
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock
from tests.narrowing import not_none

ALL = FeedFilter()
LAKE = frozenset({"lake"})


@pytest.fixture
def feed(store: TaskStore) -> Feed:
    return store.feed


def parked(*path: str, catalog: str = "lake") -> Fact:
    name = TableName(catalog, path[:-1], path[-1])
    return Fact(FactKind.PARKED, catalog, Reason("parked", "left alone for a day"), table_id(1, catalog), name)


def kinds(feed: Feed, after: int = 0) -> list[FactKind]:
    return [told.fact.fact for told in feed.after(after, 1_000, ALL).told]


def claimed(store: TaskStore) -> Task:
    return not_none(store.claim("optimizer-1", resource_group="default", catalogs=LAKE, lease_ms=60_000))


def ended(store: TaskStore, code: str, state: TaskState) -> Task:
    task = claimed(store)
    task = store.change(Change(task.task_id, task.version, TaskState.COMMITTED, OUTCOME, AttemptState.COMMITTED))
    return store.change(Change(task.task_id, task.version, state, Outcome(Reason(code, "so it is", {"files": 3}))))


class TestFeed:
    def test_nothing_is_there_before_the_first_fact(self, feed: Feed) -> None:
        assert (feed.last(), feed.forgotten_through()) == (0, 0)
        page = feed.after(0, 10, ALL)
        assert (page.told, page.through) == ((), 0)

    def test_facts_are_read_in_their_order_page_by_page_by_every_server(
        self, stores: Stores, clock: ManualClock
    ) -> None:
        told_at = []
        for number in range(5):
            clock.advance(10)
            told_at.append(clock.now())
            assert stores.tasks().feed.tell(parked("ns", f"t{number}"), f"key-{number}")
        feed = stores.tasks().feed
        first = feed.after(0, 3, ALL)
        second = feed.after(first.through, 3, ALL)
        assert [told.fact.parts[-1] for told in (*first.told, *second.told)] == [f"t{n}" for n in range(5)]
        assert [told.at for told in (*first.told, *second.told)] == told_at
        assert second.through == feed.last() == second.told[-1].sequence
        assert feed.after(second.through, 3, ALL).through == second.through

    def test_a_key_is_told_once(self, stores: Stores, feed: Feed) -> None:
        assert feed.tell(parked("ns", "t"), "x" * 10_000)
        assert not stores.tasks().feed.tell(parked("ns", "t"), "x" * 10_000)
        assert feed.tell(parked("ns", "t"), "y")
        assert len(kinds(feed)) == 2

    def test_only_what_is_asked_for_and_how_far_was_looked(self, feed: Feed) -> None:
        for name in (("sales", "a"), ("sales", "daily", "b"), ("sales2", "c"), ("other", "d")):
            feed.tell(parked(*name), str(name))
        feed.tell(parked("sales", "a", catalog="other"), "other")
        feed.tell(Fact(FactKind.CATALOG_AWAY, "lake", Reason("away", "it does not answer")), "away")

        def under(only: FeedFilter) -> list[str]:
            page = feed.after(0, 100, only)
            assert page.through == feed.last()
            return [".".join(told.fact.parts) for told in page.told]

        assert under(FeedFilter(under=(("lake", "sales"),))) == ["lake.sales.a", "lake.sales.daily.b"]
        assert under(FeedFilter(under=(("lake", "sales", "a"), ("lake", "other")))) == [
            "lake.sales.a",
            "lake.other.d",
        ]
        assert under(FeedFilter(frozenset({FactKind.CATALOG_AWAY}), (("lake",),))) == ["lake"]
        assert len(under(FeedFilter(under=(("lake",),)))) == 5
        assert under(FeedFilter(under=(("lak",), ("lake", "sale")))) == []

    def test_t2_nothing_outside_of_the_scopes_of_who_asks(self, feed: Feed) -> None:
        for name in (("sales", "a"), ("sales", "a", "b"), ("sales2", "c"), ("other", "d")):
            feed.tell(parked(*name), str(name))
        feed.tell(parked("sales", "a", catalog="other"), "other")
        feed.tell(Fact(FactKind.CATALOG_AWAY, "lake", Reason("away", "it does not answer")), "away")

        def seen(*within: tuple[str, ...], under: tuple[tuple[str, ...], ...] = ()) -> list[str]:
            only = FeedFilter(under=under, within=within)
            return [".".join(told.fact.parts) for told in feed.after(0, 100, only).told]

        assert seen(("lake", "sales")) == ["lake.sales.a", "lake.sales.a.b"]
        assert seen(("lake", "sales", "a")) == ["lake.sales.a.b"]  # the namespace, and not the table of that name
        assert seen(("lake", "sales"), ("lake", "other"), under=(("lake", "other"),)) == ["lake.other.d"]
        assert seen(("lake", "sales"), under=(("other",),)) == []
        assert seen(("lake",))[-1] == "lake"
        assert len(seen(("lake",))) == 5

    def test_t3_names_of_strangers_come_back_as_they_are_and_match_nothing_else(self, feed: Feed) -> None:
        for part in HOSTILE_PARTS:
            feed.tell(parked(part, part), part)
        for part in HOSTILE_PARTS:
            (told,) = feed.after(0, 100, FeedFilter(under=(("lake", part),))).told
            assert told.fact == parked(part, part)
        assert feed.after(0, 100, FeedFilter(under=(("lake", "%"),))).told == ()

    def test_what_is_old_is_forgotten_and_its_numbers_never_come_again(self, feed: Feed, clock: ManualClock) -> None:
        for number in range(4):
            feed.tell(parked("ns", f"t{number}"), f"key-{number}")
            clock.advance(10)
        before = clock.now() - 10
        sequences = [told.sequence for told in feed.after(0, 10, ALL).told]
        assert feed.forget(before, 2) == 2
        assert feed.forgotten_through() == sequences[1]
        assert feed.forget(before, 2) == 1
        assert feed.forget(before, 2) == 0
        assert [told.sequence for told in feed.after(0, 10, ALL).told] == sequences[3:]
        assert feed.forget(clock.now() + 1, 10) == 1
        assert feed.last() == feed.forgotten_through() == sequences[3]
        assert feed.tell(parked("ns", "t0"), "key-0")
        assert feed.last() > sequences[3]

    def test_numbers_grow_whoever_tells(self, stores: Stores) -> None:
        feeds = [stores.tasks().feed for _ in range(3)]
        for number in range(9):
            feeds[number % 3].tell(parked("ns", "t"), str(number))
        sequences = [told.sequence for told in feeds[0].after(0, 100, ALL).told]
        assert sequences == sorted(set(sequences))
        assert len(sequences) == 9


class TestTasks:
    def test_what_becomes_of_a_task_is_told_with_its_change(
        self, store: TaskStore, feed: Feed, clock: ManualClock
    ) -> None:
        store.enqueue(new_task("task-1"))
        task = ended(store, "verified", TaskState.SUCCEEDED)
        told = feed.after(0, 10, ALL).told
        assert [one.fact.fact for one in told] == [FactKind.QUEUED, FactKind.STARTED, FactKind.SUCCEEDED]
        assert [one.fact.attempt for one in told] == [0, 1, 1]
        assert told[0].fact.reason == REASON
        assert told[2].fact == Fact(
            FactKind.SUCCEEDED,
            "lake",
            Reason("verified", "so it is", {"files": 3}),
            task.table_id,
            task.table_name,
            "task-1",
            "plan-1",
            ActionKind.REWRITE_DATA_FILES,
            1,
        )
        assert told[2].at == clock.now()

    @pytest.mark.parametrize(
        ("code", "state", "kind"),
        [
            (VERIFICATION_FAILED, TaskState.FAILED, FactKind.DATA_AT_RISK),
            (UNVERIFIED, TaskState.FAILED, FactKind.DATA_AT_RISK),
            (UNVERIFIED, TaskState.SUCCEEDED, FactKind.SUCCEEDED),
            ("commit-not-found", TaskState.FAILED, FactKind.FAILED),
        ],
    )
    def test_a_commit_that_is_not_what_it_should_be_is_an_alarm(
        self, store: TaskStore, feed: Feed, code: str, state: TaskState, kind: FactKind
    ) -> None:
        store.enqueue(new_task("task-1"))
        ended(store, code, state)
        assert kinds(feed)[-1] is kind

    def test_one_fact_for_a_change_of_state_and_none_for_any_other(self, store: TaskStore, feed: Feed) -> None:
        store.enqueue(new_task("task-1"))
        store.enqueue(new_task("task-2"))  # coalesces
        assert kinds(feed) == [FactKind.QUEUED]
        task = claimed(store)
        store.request_cancel("task-1", REASON)  # asks it to stop
        assert kinds(feed) == [FactKind.QUEUED, FactKind.STARTED]
        version = store.get("task-1").version
        store.change(Change(task.task_id, version, TaskState.CANCELLED, OUTCOME, AttemptState.CANCELLED))
        store.enqueue(new_task("task-3", table=2))
        store.request_cancel("task-3", REASON)
        assert kinds(feed)[2:] == [FactKind.CANCELLED, FactKind.QUEUED, FactKind.CANCELLED]

    def test_what_was_not_written_is_not_told(self, store: TaskStore, feed: Feed) -> None:
        store.enqueue(new_task("task-1"))
        with pytest.raises(Conflict):
            store.change(Change("task-1", 7, TaskState.SUPERSEDED, OUTCOME))
        with pytest.raises(Conflict):
            store.enqueue(new_task("task-1", table=2))
        assert kinds(feed) == [FactKind.QUEUED]

    def test_tasks_that_are_forgotten_leave_what_was_told(
        self, store: TaskStore, feed: Feed, clock: ManualClock
    ) -> None:
        store.enqueue(new_task("task-1"))
        store.request_cancel("task-1", REASON)
        clock.advance(10)
        assert store.prune(clock.now(), 10) == 1
        assert len(kinds(feed)) == 2
