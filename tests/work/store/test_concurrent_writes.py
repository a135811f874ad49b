"""The stores on PostgreSQL with many writers at once: who is beside whom, and that each promise holds all the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, func, select, update

from icewright.core.errors import Conflict, InboxFull, InboxShareFull, LookLost
from icewright.core.reasons import Reason
from icewright.events import inbox_store
from icewright.model.actions.actions import EVERY_KIND, ActionKind
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableName
from icewright.model.policy.resource_groups import ResourceGroup
from icewright.model.work.admission import Holding, Terms
from icewright.model.work.tasks import AttemptState, Task, TaskState
from icewright.model.work.totals import Total, TotalKey
from icewright.ownership.claims_sql import SqlClaims
from icewright.ports.store import Change, InventoryUpdate, TableRecord, TaskFilter
from icewright.ports.table_lists import TableQuery
from icewright.ports.table_records import LaterLook
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.store.schema import CLAIMS_CHANGED, attempts, counters, listed_tables, tables
from icewright.store.transactions import reading, writing
from icewright.web.idempotent_answers import Answer, First, KeyedRequest, UnderWay
from icewright.web.idempotent_answers_sql import SqlAnswers
from icewright.work.store import task_rows
from icewright.work.store.actions import KeptActions
from icewright.work.store.census import add_to_totals
from icewright.work.store.claiming import ClaimSelector
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.contracts.samples import (
    OUTCOME,
    PROGRESS,
    action,
    manifest,
    new_task,
    of_kind,
    plan,
    record,
    statistics,
    table_id,
)
from tests.contracts.test_claim_store_contract import seen
from tests.doubles.clock import ManualClock
from tests.narrowing import not_none
from tests.store.together import meanwhile, most_at_once
from tests.waiting import at_once

LAKE = frozenset({"lake"})
LEASE_MS = 60_000
MONTH = Partition(0, "[516]")
WRITERS = 8


@pytest.fixture
def known(engine: Engine) -> SqlTableStore:
    return SqlTableStore(engine)


@pytest.fixture
def queue(engine: Engine) -> SqlTaskStore:
    return SqlTaskStore(engine)


def events(number: int, *snapshot_ids: int) -> list[CommitEvent]:
    return [CommitEvent(TableName("lake", ("ns",), f"t{number}"), snapshot_id) for snapshot_id in snapshot_ids]


def claim(queue: SqlTaskStore, by: str, group: str = "default", terms: Terms | None = None) -> Task | None:
    return queue.claim(
        by, resource_group=group, catalogs=LAKE, lease_ms=LEASE_MS, terms=terms or Terms(ResourceGroup(group))
    )


def put_back(queue: SqlTaskStore, task_id: str) -> Task:
    """A cancelled task, in the queue again."""
    return queue.change(Change(task_id, queue.get(task_id).version, TaskState.QUEUED, OUTCOME))


def withdrawn(queue: SqlTaskStore, task_id: str) -> Task:
    """Cancelled by the server that looks at its table, which does not wait for others."""
    return queue.change(Change(task_id, queue.get(task_id).version, TaskState.CANCELLED, OUTCOME))


def outcome(call: Callable[[], object]) -> Callable[[], str]:
    """What becomes of a call, by the name of what it raises."""

    def called() -> str:
        try:
            call()
        except (LookLost, Conflict, InboxFull, InboxShareFull) as error:
            return type(error).__name__
        return "done"

    return called


def stored(known: SqlTableStore, number: int) -> TableRecord:
    return not_none(known.record(table_id(number)))


class TestBesideEachOther:
    """With one lock for all writers each of these would wait for the next one forever."""

    def test_looks_at_different_tables(self, engine: Engine, known: SqlTableStore) -> None:
        numbers = range(WRITERS)
        assert (
            most_at_once(engine, [partial(known.save_record, record(number), series=()) for number in numbers])
            == WRITERS
        )

        def look(number: int) -> Callable[[], None]:
            found = replace(stored(known, number), observed_at=2_000)
            update = InventoryUpdate(found, [manifest(number, MONTH)], [], [statistics(MONTH)], [])
            return partial(known.apply_inventory, update)

        assert most_at_once(engine, [look(number) for number in numbers]) == WRITERS
        assert most_at_once(engine, [partial(known.save_plan, plan(f"p{n}", table=n)) for n in numbers]) == WRITERS
        later = [[LaterLook(table_id(number), stored(known, number).revision, 5_000)] for number in numbers]
        assert most_at_once(engine, [partial(known.look_later, one) for one in later]) == WRITERS
        assert {stored(known, number).next_look_at for number in numbers} == {5_000}

    def test_events_of_different_buckets_and_what_is_said_of_them(self, engine: Engine, known: SqlTableStore) -> None:
        calls = [partial(known.receive, *events(number, 1, 2), reporter="r") for number in range(4)]
        assert most_at_once(engine, calls) == 4
        ids = [one.event_id for one in known.inbox(99)]
        assert len(ids) == 8
        assert most_at_once(engine, [partial(known.done, [one]) for one in ids[:6]]) == 6
        assert [one.event_id for one in known.inbox(99)] == ids[6:]

    def test_tasks_of_different_tables(self, engine: Engine, queue: SqlTaskStore) -> None:
        new = [new_task(f"task-{number}", table=number) for number in range(6)]
        assert most_at_once(engine, [partial(queue.enqueue, one) for one in new], "begin") == 6
        taken = [claim(queue, f"o-{number}") for number in range(6)]
        tokens = {task.task_id: task.lease.fencing_token for task in taken if task is not None and task.lease}
        beats = [
            partial(queue.heartbeat, task_id, token, progress=PROGRESS, lease_ms=LEASE_MS)
            for task_id, token in tokens.items()
        ]
        assert most_at_once(engine, beats) == 6
        ends = [partial(queue.change, Change(one, 2, TaskState.FAILED, OUTCOME, AttemptState.FAILED)) for one in tokens]
        assert most_at_once(engine, ends, "begin") == 6
        assert queue.counts()[TaskState.FAILED] == 6

    def test_claims_of_different_groups_and_beats_of_servers(self, engine: Engine, queue: SqlTaskStore) -> None:
        for number in range(4):
            queue.enqueue(new_task(f"task-{number}", table=number, resource_group=f"g{number}"))
        claims = [partial(claim, queue, f"o-{number}", f"g{number}") for number in range(4)]
        assert most_at_once(engine, claims, "begin") == 4
        assert queue.counts()[TaskState.RUNNING] == 4
        coordinator = SqlCoordinator(engine)
        sessions = [coordinator.join(f"server-{number}", 1) for number in range(4)]
        assert most_at_once(engine, [partial(coordinator.beat, session, 1) for session in sessions]) == 4


class TestTables:
    def test_of_several_looks_at_one_table_one_is_written(self, known: SqlTableStore) -> None:
        for _ in range(3):
            before = known.record(table_id(1)) or record(1)
            looks = [partial(known.save_record, replace(before, observed_at=2_000 + n)) for n in range(WRITERS)]
            said = Counter(at_once([outcome(look) for look in looks]))
            assert said == {"done": 1, "LookLost": WRITERS - 1}

    def test_of_several_first_looks_at_one_table_under_other_names_one_is_written(self, known: SqlTableStore) -> None:
        names = [TableName("lake", ("ns",), f"t{number}") for number in range(WRITERS)]
        said = Counter(at_once([outcome(partial(known.save_record, record(1, name=name))) for name in names]))
        assert said == {"done": 1, "LookLost": WRITERS - 1}

    def test_of_several_tables_with_one_name_one_is_there(self, engine: Engine, known: SqlTableStore) -> None:
        name = TableName("lake", ("ns",), "t")
        at_once([partial(known.save_record, record(number, name=name)) for number in range(WRITERS)])
        with reading(engine) as connection:
            present = select(func.count()).select_from(tables).where(tables.c.dropped_at.is_(None))
            assert connection.scalar(present) == 1
            assert connection.scalar(select(func.count()).select_from(listed_tables)) == 1

    def test_tables_that_swap_their_names_again_and_again_end_with_two_names(self, known: SqlTableStore) -> None:
        names = [TableName("lake", ("ns",), name) for name in "ab"]
        for number, name in enumerate(names):
            known.save_record(record(number, name=name))
        for _ in range(10):
            swapped = [replace(found, name=names[1 - n]) for n, found in enumerate(map(partial(stored, known), (0, 1)))]
            at_once([outcome(partial(known.save_record, replace(one, dropped_at=None))) for one in swapped])
        there = [one for one in map(partial(stored, known), (0, 1)) if one.dropped_at is None]
        assert len({one.name for one in there}) == len(there) > 0

    def test_several_tables_are_put_off_in_one_order_whatever_order_they_come_in(self, known: SqlTableStore) -> None:
        for number in range(30):
            known.save_record(record(number))
        looks = [LaterLook(table_id(number), 1, 9_000) for number in range(30)]
        at_once([partial(known.look_later, looks), partial(known.look_later, looks[::-1])] * 3)
        assert {stored(known, number).next_look_at for number in range(30)} == {9_000}

    def test_a_change_that_is_not_over_is_told_when_it_is(self, engine: Engine, known: SqlTableStore) -> None:
        everything = TableQuery()
        known.save_record(record(1))
        seen_to = known.lists.last_change()
        known.save_record(replace(stored(known, 1), problem=Reason("q", "x")))

        def held(_: Connection) -> None:
            known.save_record(record(2))
            told = known.lists.changed(seen_to, everything, 9)
            assert [one.table_id for _, one in told.tables] == [table_id(2)], (
                "of the first one nothing is known for sure"
            )
            assert told.through == seen_to + 1

        before = stored(known, 1)
        event.listen(engine, "commit", held, once=True)
        known.save_record(replace(before, problem=None))
        later = known.lists.changed(seen_to + 1, everything, 9)
        assert [(number, one.table_id) for number, one in later.tables] == [(seen_to + 2, table_id(1))]

    def test_claims_of_places_are_found_by_whoever_reads_from_the_last_number_on(self, engine: Engine) -> None:
        claims = SqlClaims(engine)
        with writing(engine, ()) as connection:
            keep = partial(claims.keep, [seen(2, "two")])
            connection.execute(update(counters).where(counters.c.name == CLAIMS_CHANGED).values(value=1))
            with meanwhile(engine, keep) as other:
                assert other.waits(), "it took a number that is given twice"
                assert claims.changed_since(0) == ([], 0)
                connection.commit()
                other.answer()
        assert claims.changed_since(0)[1] == 2


def test_whoever_changes_several_rows_does_so_in_the_order_of_their_ids(engine: Engine, known: SqlTableStore) -> None:
    for number in range(9):
        known.save_record(record(number))
    known.receive(*events(1, *range(9)))
    ids = [one.event_id for one in known.inbox(99)]
    said: list[list[object]] = []

    def many(*told: Any) -> None:
        if told[-1]:
            said.extend(
                [row[key] for row in told[3]] for key in ("done_id", "of_uuid", "claimed_id") if key in told[3][0]
            )

    event.listen(engine, "before_cursor_execute", many)
    known.done(ids[::-1], {ids[3]: 5})
    known.look_later([LaterLook(table_id(number), 1, 9_000) for number in reversed(range(9))])
    assert said == [ids, [table_id(number).uuid for number in range(9)]]
    queue = SqlTaskStore(engine)
    for number in range(5):
        queue.enqueue(new_task(f"task-{number}", table=5 - number))
    asked = ClaimSelector("o-1", "default", LAKE, LEASE_MS, None, Terms(ResourceGroup("default")), EVERY_KIND)
    queue._claim("default", lambda: [asked] * 5)
    assert said[2:] == [[f"task-{number}" for number in reversed(range(5))]]


def test_totals_are_added_to_in_the_order_of_their_names(engine: Engine) -> None:
    said: list[dict[str, object]] = []
    event.listen(engine, "before_cursor_execute", lambda *told: said.append(told[3]))
    keys = [TotalKey(total, kind) for total in (Total.WAIT_MS, Total.CHANGES) for kind in "ba"]
    with writing(engine, ()) as connection:
        add_to_totals(connection, *({key: 1} for key in keys))
    assert [(said[1][f"total{n}"], said[1][f"kind{n}"]) for n in range(4)] == sorted(
        (one.total, one.kind) for one in keys
    )


class TestInbox:
    def test_the_same_events_at_once_are_there_once(self, known: SqlTableStore) -> None:
        told = [one for number in range(5) for one in events(number, 1, 2)]
        calls = [partial(known.receive, *(told if number % 2 else told[::-1])) for number in range(WRITERS)]
        assert sum(at_once(calls)) == len(told)
        found = [(one.event.table_name, one.event.snapshot_id) for one in known.inbox(99)]
        assert sorted(found) == sorted((one.table_name, one.snapshot_id) for one in told)

    @pytest.mark.parametrize(("waiting_max", "share_max", "refusal"), [(9, 99, "InboxFull"), (99, 9, "InboxShareFull")])
    def test_caps_hold_to_the_event(self, known: SqlTableStore, waiting_max: int, share_max: int, refusal: str) -> None:
        caps = {"waiting_max": waiting_max, "share_max": share_max}
        said = at_once(
            [
                outcome(partial(known.receive, *events(number, 1), reporter="r", **caps))  # type: ignore[arg-type]  # each has the type of its name
                for number in range(14)
            ]
        )
        assert Counter(said) == {"done": 9, refusal: 5}
        assert len(known.inbox(99)) == 9

    def test_caps_that_have_room_for_all_who_come_at_once_hold_as_well(
        self, known: SqlTableStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inbox_store, "AT_ONCE_MAX", 9)
        receive = partial(known.receive, waiting_max=99, share_max=18, reporter="r")
        said = Counter[str]()
        for begun in range(0, 27, 9):
            said += Counter(at_once([outcome(partial(receive, *events(begun + number, 1))) for number in range(9)]))
        assert said == {"done": 18, "InboxShareFull": 9}
        assert receive(*events(1, 1)) == 0, "what is there already is no more of it"

    def test_two_that_are_at_the_same_events_do_not_wait_for_each_other(self, known: SqlTableStore) -> None:
        known.receive(*events(1, *range(40)))
        ids = [one.event_id for one in known.inbox(99)]
        trouble = partial(known.tried, ids[::-1], Reason("r", "x"))
        at_once([partial(known.done, ids, {ids[3]: 5}), partial(known.done, ids[::-1], {ids[30]: 5}), trouble, trouble])
        assert known.inbox(99) == []


def test_a_key_that_somebody_else_just_forgets_gives_no_answer_of_a_request_of_before(engine: Engine) -> None:
    clock = ManualClock(1_000)
    log, other = SqlAnswers(engine, clock), SqlAnswers(engine, clock)
    asked = KeyedRequest("token:ci", "k", "f1")
    log.begin(asked, 10)
    log.keep(asked, Answer(202, {}, "of before"))
    clock.advance(10)
    said: list[object] = []

    def held(_: Connection) -> None:
        said.append(other.begin(asked, 10))

    event.listen(engine, "commit", held, once=True)
    assert log.begin(replace(asked, key="another one"), 10) == First()
    assert said == [UnderWay()]
    assert log.begin(asked, 10) == First()


class TestTasks:
    def test_each_task_is_claimed_once_and_never_more_than_the_group_may_hold(self, engine: Engine) -> None:
        queues = [SqlTaskStore(engine), SqlTaskStore(engine)]
        for number in range(20):
            queues[0].enqueue(new_task(f"task-{number}", table=number))
        terms = Terms(ResourceGroup("default", cores=12), Holding(1, 1))
        calls = [partial(claim, queues[number % 2], f"o-{number}", terms=terms) for number in range(WRITERS)]
        taken = [task.task_id for _ in range(3) for task in at_once(calls) if task is not None]
        assert (len(taken), len(set(taken))) == (12, 12)
        with reading(engine) as connection:
            tokens = sorted(connection.scalars(select(attempts.c.fencing_token)))
        assert tokens == list(range(1, 13))

    def test_two_who_choose_among_other_tasks_of_a_group_do_not_both_take_its_last_core(
        self, engine: Engine, queue: SqlTaskStore
    ) -> None:
        queue.enqueue(new_task("task-1", table=1))
        queue.enqueue(of_kind("task-2", ActionKind.COMPUTE_STATISTICS, table=2))
        terms = Terms(ResourceGroup("default", cores=1), Holding(1, 1))

        def take(kind: ActionKind) -> Task | None:
            kinds = frozenset({kind})
            wanted = {"resource_group": "default", "catalogs": LAKE, "lease_ms": LEASE_MS, "kinds": kinds}
            return SqlTaskStore(engine).claim(f"o-{kind}", terms=terms, **wanted)  # type: ignore[arg-type]  # each has the type of its name

        second: list[object] = []

        def held(connection: Connection) -> None:
            with meanwhile(engine, partial(take, ActionKind.COMPUTE_STATISTICS)) as other:
                assert other.waits()
                connection.connection.dbapi_connection.commit()  # type: ignore[union-attr]  # it is connected
                second.append(other.answer())

        event.listen(engine, "commit", held, once=True)
        assert take(ActionKind.REWRITE_DATA_FILES) is not None
        assert second == [None]

    def test_tasks_of_one_table_and_slot_do_not_run_in_two_groups_at_once(
        self, engine: Engine, queue: SqlTaskStore
    ) -> None:
        other = SqlTaskStore(engine)
        kinds = (ActionKind.REWRITE_MANIFESTS, ActionKind.REWRITE_DATA_FILES, ActionKind.EXPIRE_SNAPSHOTS)
        for table in range(6):
            for kind in kinds:
                new = of_kind(f"{kind.value}-{table}", kind, table=table) if kind is not kinds[1] else None
                new = new or new_task(f"data-{table}", table=table)
                queue.enqueue(replace(new, resource_group=f"g{kinds.index(kind) % 2}", task_id=f"{table}-{kind.value}"))
        calls = [partial(claim, store, f"o-{n}", f"g{n % 2}") for n, store in enumerate([queue, other] * 4)]
        taken = [task for task in at_once(calls * 2) if task is not None]
        assert len(taken) == len({task.table_id for task in taken}) == 6

    def test_a_task_that_two_queue_at_once_is_one(self, queue: SqlTaskStore) -> None:
        said = at_once([partial(queue.enqueue, new_task(f"task-{number}")) for number in range(WRITERS)])
        assert sum(one.created for one in said) == 1
        assert len({one.task.task_id for one in said}) == 1
        assert queue.counts()[TaskState.QUEUED] == 1

    def test_of_several_that_change_a_task_one_does_and_the_others_are_told(self, queue: SqlTaskStore) -> None:
        task = queue.enqueue(new_task("task-1")).task
        change = Change("task-1", task.version, TaskState.CANCELLED, OUTCOME)
        said = Counter(at_once([outcome(partial(queue.change, change)) for _ in range(WRITERS)]))
        assert said == {"done": 1, "Conflict": WRITERS - 1}

    def test_whoever_changes_a_task_does_not_take_back_what_its_last_heartbeat_said(
        self, engine: Engine, queue: SqlTaskStore
    ) -> None:
        queue.enqueue(new_task("task-1"))
        task = not_none(claim(queue, "o-1"))
        assert task.lease is not None
        give_up = partial(queue.change, Change("task-1", task.version, TaskState.IN_DOUBT, OUTCOME))
        waited: list[bool] = []

        def held(connection: Connection) -> None:
            with meanwhile(engine, outcome(give_up)) as other:
                waited.append(other.waits())
                connection.connection.dbapi_connection.commit()  # type: ignore[union-attr]  # it is connected
                other.answer()

        event.listen(engine, "commit", held, once=True)
        told = queue.heartbeat("task-1", task.lease.fencing_token, progress=PROGRESS, lease_ms=9 * LEASE_MS)
        assert waited == [True]
        doubtful = queue.get("task-1")
        assert doubtful.state is TaskState.IN_DOUBT
        assert (doubtful.lease, doubtful.progress) == (told.lease, PROGRESS)

    def test_totals_are_added_to_by_all_and_end_in_no_deadlock(self, queue: SqlTaskStore) -> None:
        def life(number: int) -> None:
            queue.enqueue(new_task(f"task-{number}", table=number))
            while True:
                task = claim(queue, f"o-{number}")
                if task is None:
                    return
                queue.change(Change(task.task_id, task.version, TaskState.FAILED, OUTCOME, AttemptState.FAILED))

        at_once([partial(life, number) for number in range(WRITERS)])
        changes = {key.by: count for key, count in queue.census(9).totals.items() if key.total.value == "changes"}
        assert changes == {"queued": WRITERS, "running": WRITERS, "failed": WRITERS}

    def test_an_action_that_changes_between_two_statements_is_kept_under_its_own_digest(
        self, engine: Engine, queue: SqlTaskStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        queue.enqueue(new_task("task-1"))
        other = SqlTaskStore(engine)
        monkeypatch.setattr(task_rows, "_actions", KeptActions())

        done: list[bool] = []

        def coalesced(_c: object, _d: object, statement: str, *_: object) -> None:
            if "task_actions.action" in statement and not done:
                done.append(True)
                other.enqueue(new_task("task-2", base_snapshot_id=2))
                monkeypatch.setattr(task_rows, "_actions", KeptActions())

        event.listen(engine, "before_cursor_execute", coalesced)
        assert not_none(claim(queue, "o-1")).action == action(2)
        assert queue.enqueue(new_task("task-3", table=2)).created
        assert [task.action for task in queue.tasks(TaskFilter(frozenset({TaskState.QUEUED})), limit=9)] == [action(1)]

    @pytest.mark.parametrize("what", ["group", "size"])
    def test_a_task_that_changes_behind_the_choice_is_not_given_out_by_what_it_was(
        self, engine: Engine, queue: SqlTaskStore, what: str
    ) -> None:
        first, other = new_task("task-1"), SqlTaskStore(engine)
        (group,) = action(2).groups
        larger = replace(action(2), groups=(replace(group, files=group.files * 9),))
        newer = new_task("task-2", resource_group="other" if what == "group" else "default")
        newer = replace(newer, action=larger if what == "size" else action(2))
        queue.enqueue(first)
        done: list[bool] = []

        def coalesced(_c: object, _d: object, statement: str, *_: object) -> None:
            if "RECURSIVE" in statement and not done:
                done.append(True)
                assert other.enqueue(newer).coalesced

        event.listen(engine, "after_cursor_execute", coalesced)
        wanted = {"catalogs": LAKE, "lease_ms": LEASE_MS, "shareable_bytes_max": 20}
        assert queue.claim("o-1", resource_group="default", **wanted) is None  # type: ignore[arg-type]  # each has the type of its name
        assert done == [True]
        taken = not_none(claim(queue, "o-2", newer.resource_group))
        assert (taken.task_id, taken.action) == ("task-1", newer.action)

    def test_a_claim_that_meets_a_task_which_is_over_a_moment_later_chooses_again(
        self, engine: Engine, queue: SqlTaskStore
    ) -> None:
        other = SqlTaskStore(engine)
        queue.enqueue(new_task("task-1"))
        queue.enqueue(replace(of_kind("task-2", ActionKind.EXPIRE_SNAPSHOTS, table=1), resource_group="other"))
        taken: list[Task] = []

        def faster(_c: object, _d: object, statement: str, *_: object) -> None:
            if "RECURSIVE" in statement and not taken:
                taken.append(other.get("task-2"))
                found = not_none(claim(other, "o-2", "other"))
                taken.append(found)

        def over(*_: object) -> None:
            ended = Change("task-2", taken[-1].version, TaskState.FAILED, OUTCOME, AttemptState.FAILED)
            taken.append(other.change(ended))

        event.listen(engine, "after_cursor_execute", faster)
        event.listen(engine, "rollback_savepoint", over, once=True)
        found = claim(queue, "o-1")
        assert [task.state for task in taken] == [TaskState.QUEUED, TaskState.RUNNING, TaskState.FAILED]
        assert not_none(found).task_id == "task-1"

    def test_what_is_queued_where_a_task_was_put_back_and_withdrawn_meanwhile_is_tried_again(
        self, engine: Engine, queue: SqlTaskStore
    ) -> None:
        other = SqlTaskStore(engine)
        queue.enqueue(new_task("task-1"))
        withdrawn(queue, "task-1")
        states = [TaskState.CANCELLED]
        event.listen(engine, "savepoint", lambda *_: states.append(put_back(other, "task-1").state), once=True)
        event.listen(
            engine, "rollback_savepoint", lambda *_: states.append(withdrawn(other, "task-1").state), once=True
        )
        found = queue.enqueue(new_task("task-2"))
        assert states == [TaskState.CANCELLED, TaskState.QUEUED, TaskState.CANCELLED]
        assert (found.created, found.task.task_id) == (True, "task-2")

    def test_what_is_put_back_beside_a_task_that_is_withdrawn_meanwhile_is_tried_again(
        self, engine: Engine, queue: SqlTaskStore
    ) -> None:
        other = SqlTaskStore(engine)
        queue.enqueue(new_task("task-1"))
        withdrawn(queue, "task-1")
        queue.enqueue(new_task("task-2"))
        over: list[Task] = []
        event.listen(engine, "rollback_savepoint", lambda *_: over.append(withdrawn(other, "task-2")), once=True)
        assert put_back(queue, "task-1").state is TaskState.QUEUED
        assert [task.state for task in over] == [TaskState.CANCELLED]
