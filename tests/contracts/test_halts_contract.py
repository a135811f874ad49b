"""What every store of halts must do, sentence by sentence, and that nothing is given out of what is halted."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.audit.acting import acting_as
from icewright.core.errors import InvalidMessage, NotAllowed
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.iceberg.names import TableName
from icewright.model.work import halts
from icewright.model.work.halts import EVERYTHING, Halt, HaltState, NewHalt, Part, PartKind, halt_over
from icewright.model.work.tasks import Task
from icewright.ports.store import TaskStore
from icewright.work.store.task_store import SqlTaskStore
from tests.cases import each_case
from tests.contracts.samples import new_task, table_id
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store

NAME = TableName("lake", ("ns",), "t1")
TABLE = Part(PartKind.TABLE, str(NAME), table_id(1))
GROUP, CATALOG = Part(PartKind.GROUP, "default"), Part(PartKind.CATALOG, "lake")
PARTS = (EVERYTHING, GROUP, CATALOG, TABLE)
OTHERS = (
    Part(PartKind.GROUP, "lake"),
    Part(PartKind.CATALOG, "default"),
    Part(PartKind.TABLE, "lake.ns.t2", table_id(2)),
    Part(PartKind.TABLE, "other.ns.t1", table_id(1, "other")),
)
PAUSED, DRAINING, STOPPED = HaltState


def claim(store: TaskStore, group: str = "default") -> Task | None:
    return store.claim("optimizer-1", resource_group=group, catalogs=frozenset({"lake", "other"}), lease_ms=60_000)


def test_before_anybody_halts_anything_nothing_is_halted(store: TaskStore) -> None:
    assert store.halts.present() == []
    assert store.halts.resume(EVERYTHING, "") is None


def test_the_next_server_sees_it_with_who_and_when_and_why(stores: Stores, clock: ManualClock) -> None:
    why = "it's a \ud800 disk, 50 % of it"
    with acting_as("token:ci"):
        made = stores.tasks().halts.halt(NewHalt(TABLE, STOPPED, why))
    assert made == Halt(TABLE, STOPPED, why, "token:ci", clock.now())
    assert stores.tasks().halts.present() == [made]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("state", HaltState)
def test_nothing_is_given_out_of_what_is_halted_until_it_is_resumed(
    stores: Stores, part: Part, state: HaltState
) -> None:
    store = stores.tasks()
    store.enqueue(new_task("task-1"))
    stores.tasks().halts.halt(NewHalt(part, state))
    assert store.claimable("default", frozenset({"lake"})) == 0
    assert claim(store) is None
    assert stores.tasks().halts.resume(part, "") is not None
    assert store.claimable("default", frozenset({"lake"})) == 1
    assert claim(store) is not None


@pytest.mark.parametrize("part", OTHERS)
def test_what_is_not_in_it_goes_on(store: TaskStore, part: Part) -> None:
    store.enqueue(new_task("task-1"))
    store.halts.halt(NewHalt(part, STOPPED))
    assert claim(store) is not None


def test_of_a_queue_that_is_halted_in_part_the_others_are_given_out(store: TaskStore) -> None:
    for number in range(1, 4):
        store.enqueue(new_task(f"task-{number}", table=number, priority=9 - number))
    store.enqueue(new_task("task-4", table=1, catalog="other", priority=-1))
    store.halts.halt(NewHalt(TABLE, PAUSED))
    store.halts.halt(NewHalt(OTHERS[2], PAUSED))
    found = [task.task_id for task in iter(lambda: claim(store), None)]
    assert found == ["task-3", "task-4"]


def test_resuming_one_leaves_the_others(store: TaskStore) -> None:
    store.enqueue(new_task("task-1"))
    for part in PARTS:
        store.halts.halt(NewHalt(part, PAUSED))
    for part in PARTS:
        assert claim(store) is None
        assert (halt := store.halts.resume(part, "")) is not None
        assert halt.part == part
    assert claim(store) is not None


def test_the_same_once_more_changes_nothing_and_another_state_takes_its_place(
    store: TaskStore, clock: ManualClock
) -> None:
    first = store.halts.halt(NewHalt(CATALOG, PAUSED, "why"))
    clock.advance(1_000)
    assert store.halts.halt(NewHalt(CATALOG, PAUSED, "why")) == first
    assert len(store.feed.after(0, 9, FeedFilter()).told) == 1
    then = store.halts.halt(NewHalt(CATALOG, STOPPED, "why"))
    assert (then.since, store.halts.present()) == (clock.now(), [then])


def test_a_table_goes_by_its_id_whatever_it_is_called(store: TaskStore) -> None:
    store.halts.halt(NewHalt(TABLE, PAUSED))
    assert store.halts.resume(Part(PartKind.TABLE, "lake.ns.renamed", table_id(1)), "") is not None
    assert store.halts.present() == []


def test_t12_who_did_it_is_in_the_audit_and_what_changed_nothing_is_not(stores: Stores) -> None:
    store = stores.tasks()
    with acting_as("token:ci"):
        store.halts.halt(NewHalt(TABLE, STOPPED, "a fire"))
        store.halts.halt(NewHalt(TABLE, STOPPED, "a fire"))
    with acting_as("owner"):
        store.halts.resume(TABLE, "it is out")
        store.halts.resume(TABLE, "it is out")
    told = [(one.principal, one.action, one.resource, one.detail["why"]) for one in stores.audit().latest(limit=9)]
    assert told == [
        ("owner", "queue.resumed", "table lake.ns.t1", "it is out"),
        ("token:ci", "queue.stopped", "table lake.ns.t1", "a fire"),
    ]


def test_the_feed_tells_of_it_whoever_is_concerned(store: TaskStore) -> None:
    for part in (*PARTS, OTHERS[1]):
        store.halts.halt(NewHalt(part, PAUSED, "a fire"))
    store.halts.resume(TABLE, "")

    def told(only: FeedFilter) -> list[tuple[FactKind, str]]:
        return [(one.fact.fact, str(one.fact.reason.figures["part"])) for one in store.feed.after(0, 99, only).told]

    everybody = [(FactKind.PAUSED, "everything"), (FactKind.PAUSED, "group default")]
    table = [(FactKind.PAUSED, "table lake.ns.t1"), (FactKind.RESUMED, "table lake.ns.t1")]
    lake = [(FactKind.PAUSED, "catalog lake")]
    assert told(FeedFilter(within=(("other",),))) == everybody
    assert told(FeedFilter(under=(("other", "ns"),))) == everybody
    assert told(FeedFilter(within=(("lake", "ns"),))) == [*everybody, *table]
    assert told(FeedFilter(within=(("lake",),))) == [*everybody, *lake, *table]
    assert told(FeedFilter(frozenset({FactKind.RESUMED}), within=(("other",),))) == []


def test_there_are_not_more_of_them_than_a_claim_can_look_at(store: TaskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("icewright.work.halts.sql", "tests.doubles.halts"):
        monkeypatch.setattr(f"{module}.HALTS_MAX", 2)
    store.halts.halt(NewHalt(TABLE, PAUSED))
    store.halts.halt(NewHalt(CATALOG, PAUSED))
    with pytest.raises(NotAllowed, match="2 halts already"):
        store.halts.halt(NewHalt(GROUP, PAUSED))
    assert store.halts.halt(NewHalt(CATALOG, STOPPED)).state is STOPPED


def test_a_reason_has_an_end(store: TaskStore) -> None:
    with pytest.raises(InvalidMessage, match="at most"):
        store.halts.resume(TABLE, "x" * (halts.WHY_LENGTH_MAX + 1))
    with pytest.raises(InvalidMessage, match="at most"):
        NewHalt(TABLE, PAUSED, "x" * (halts.WHY_LENGTH_MAX + 1))


@each_case(
    "wrong",
    [
        lambda: Part(PartKind.TABLE, "lake.ns.t"),
        lambda: Part(PartKind.CATALOG, "lake", table_id(1)),
        lambda: Part(PartKind.GROUP),
        lambda: Part(PartKind.EVERYTHING, "all"),
    ],
)
def test_what_is_no_part_of_the_queue_is_refused(wrong: Callable[[], Part]) -> None:
    with pytest.raises(InvalidMessage):
        wrong()


def test_nothing_is_given_out_after_the_answer_whoever_claims_meanwhile(stores: Stores) -> None:
    """Claims and the halt take turns: each claim is before it, or sees it."""
    number, stop = 30, threading.Event()
    for one in range(number):
        stores.tasks().enqueue(new_task(f"task-{one:02}", table=one))
    doors = [stores.tasks() for _ in range(3)]

    def work(door: TaskStore) -> None:
        while not stop.is_set() and claim(door) is not None:
            pass

    threads = [threading.Thread(target=work, args=(door,)) for door in doors]
    for thread in threads:
        thread.start()
    store = stores.tasks()
    store.halts.halt(NewHalt(EVERYTHING, PAUSED))
    given = store.counts()
    for thread in threads:
        thread.join()
    stop.set()
    assert store.counts() == given


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from((*PARTS, *OTHERS)), st.sampled_from([*HaltState, None])), max_size=12),
    st.integers(1, 3),
    st.sampled_from(["lake", "other"]),
    st.sampled_from(["default", "lake"]),
)
def test_what_may_be_given_out_is_what_no_halt_is_over(
    changes: list[tuple[Part, HaltState | None]], table: int, catalog: str, group: str
) -> None:
    store = SqlTaskStore(new_store(), ManualClock())
    store.enqueue(new_task("task-1", table=table, catalog=catalog, resource_group=group))
    wanted: dict[Part, HaltState] = {}
    for part, state in changes:
        if state is None:
            store.halts.resume(part, "")
            wanted.pop(part, None)
        else:
            store.halts.halt(NewHalt(part, state))
            wanted[part] = state
    assert {halt.part: halt.state for halt in store.halts.present()} == wanted
    over = halt_over(store.halts.present(), group, table_id(table, catalog))
    covering = [state for part, state in wanted.items() if part.covers(group, table_id(table, catalog))]
    assert (over is None) == (not covering)
    assert over is None or list(HaltState).index(over.state) == max(map(list(HaltState).index, covering))
    assert (claim(store, group) is None) == (over is not None)
