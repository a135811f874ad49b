"""Writers beside each other on PostgreSQL: what they lock, whom they wait for, and what nobody misses for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial

import pytest
from sqlalchemy import Connection, Engine, event, insert, text, update

from icewright.audit.model import verify
from icewright.audit.sql import SqlAudit, record
from icewright.core.errors import BucketLost
from icewright.core.reasons import Reason
from icewright.feed.sql import SqlFeed, append
from icewright.model.access.permissions import Act
from icewright.model.events.feed import Fact, FactKind, FeedFilter
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.store.locks import LOCKS, TELLS, Lock, LockKind, in_order, lock
from icewright.store.schema import counters
from icewright.store.transactions import Held, holding, reading, require_locked, writing
from tests.lakes.stores import new_store
from tests.store.together import meanwhile, most_at_once
from tests.waiting import at_once

FACT = Fact(FactKind.QUEUED, "lake", Reason("r", "a task waits"))


def note(connection: Connection, name: str) -> None:
    connection.execute(insert(counters).values(name=name, value=1))


def noted(engine: Engine, name: str) -> bool:
    with reading(engine) as connection:
        return connection.scalar(counters.select().where(counters.c.name == name)) is not None


def noting(engine: Engine, name: str, *locks: Lock) -> Callable[[], None]:
    def call() -> None:
        with writing(engine, locks) as connection:
            note(connection, name)

    return call


class TestLocks:
    def test_they_are_taken_in_one_order_each_once_and_alone_where_anybody_wants_that(self) -> None:
        table, task = lock(LockKind.TABLE, "lake", "u"), lock(LockKind.TASK, "task-1")
        shared = Lock(LockKind.INBOX, shared=True)
        assert in_order([task, table, TELLS, shared, task]) == [TELLS, shared, table, task]
        assert in_order([shared, Lock(LockKind.INBOX)]) == [Lock(LockKind.INBOX)]
        buckets = [Lock(LockKind.BUCKET, number) for number in range(9)]
        assert in_order(reversed(buckets)) == buckets

    def test_their_numbers_are_what_postgresql_takes(self) -> None:
        found = {lock(LockKind.TABLE, "lake", f"u{number}").number for number in range(1_000)}
        assert len(found) == 1_000
        assert all(-(2**31) <= number < 2**31 for number in found)
        assert lock(LockKind.TABLE, "a", "bc") != lock(LockKind.TABLE, "ab", "c")

    def test_the_database_is_asked_for_all_at_once_in_that_order(self, engine: Engine) -> None:
        said: list[str] = []
        event.listen(engine, "before_cursor_execute", lambda *args: said.append(args[2]))
        noting(engine, "x", lock(LockKind.TASK, "t"), TELLS, Lock(LockKind.BUCKET, 3))()
        first = said[0].split("pg_advisory_xact_lock")[1:]
        assert [one.split(")")[0] for one in first] == [
            f"_shared({LOCKS}, 1",
            f"_shared({LOCKS + 1}, 0",
            f"({LOCKS + 8}, 3",
            f"({LOCKS + 11}, {lock(LockKind.TASK, 't').number}",
        ]

    def test_what_tells_of_something_without_its_lock_is_refused_on_every_database(self) -> None:
        store = new_store()
        with pytest.raises(RuntimeError, match="shares the store has no"), writing(store, ()) as connection:
            append(connection, (FACT, 1))
        for locks in (None, (TELLS,)):
            with writing(store, locks) as connection:
                append(connection, (FACT, 1))
                require_locked(connection, TELLS)
        assert len(SqlFeed(store).after(0, 9, FeedFilter()).told) == 2


class TestTurns:
    def test_those_without_a_lock_in_common_are_there_at_once(self, engine: Engine) -> None:
        calls = [noting(engine, f"n{number}", Lock(LockKind.BUCKET, number), TELLS) for number in range(8)]
        assert most_at_once(engine, calls) == 8

    def test_those_with_one_in_common_wait(self, engine: Engine) -> None:
        for own, other in (
            ((Lock(LockKind.BUCKET, 1),), (Lock(LockKind.BUCKET, 1), Lock(LockKind.TASK, 1))),
            ((TELLS,), (Lock(LockKind.FEED),)),
        ):
            with writing(engine, own) as connection:
                note(connection, f"first {own}")
                with meanwhile(engine, noting(engine, f"second {own}", *other)) as second:
                    assert second.waits()
                    connection.commit()
                    second.answer()

    def test_one_that_is_alone_waits_for_all_and_all_wait_for_it(self, engine: Engine) -> None:
        def alone(name: str) -> None:
            with writing(engine) as connection:
                note(connection, name)

        with writing(engine, ()) as connection:
            note(connection, "beside")
            with meanwhile(engine, partial(alone, "alone")) as second:
                assert second.waits()
                connection.commit()
                second.answer()
        with writing(engine) as connection:
            note(connection, "alone again")
            with meanwhile(engine, noting(engine, "beside again")) as second:
                assert second.waits()
                connection.commit()
                second.answer()
        assert all(noted(engine, name) for name in ("beside", "alone", "alone again", "beside again"))

    def test_the_same_locks_in_any_order_are_no_deadlock(self, engine: Engine) -> None:
        locks = [Lock(LockKind.BUCKET, 1), Lock(LockKind.BUCKET, 2), TELLS]

        def many(name: str, *taken: Lock) -> None:
            for number in range(20):
                noting(engine, f"{name} {number}", *taken)()

        at_once([partial(many, "a", *locks), partial(many, "b", *reversed(locks)), partial(many, "c", *locks[1:])])
        assert all(noted(engine, f"{name} 19") for name in "abc")


class TestFence:
    """A write that has begun ends before its bucket moves; one that has not is refused."""

    @pytest.fixture
    def coordinator(self, engine: Engine) -> SqlCoordinator:
        return SqlCoordinator(engine)

    @pytest.fixture
    def sessions(self, coordinator: SqlCoordinator, engine: Engine) -> Iterator[tuple[int, int]]:
        with engine.connect() as one, engine.connect() as other:
            backends = [connection.scalar(text("SELECT pg_backend_pid()")) or 0 for connection in (one, other)]
            first, second = (coordinator.join(f"server-{pid}", pid) for pid in backends)
            coordinator.assign(engine, first)
            yield first, second

    @pytest.mark.parametrize("leaves", [False, True])
    def test_a_move_waits_for_what_is_written_for_its_bucket(
        self, engine: Engine, coordinator: SqlCoordinator, sessions: tuple[int, int], *, leaves: bool
    ) -> None:
        own = coordinator.held(sessions[0])[0]
        with writing(engine) as connection:
            to = {"to": sessions[1], "bucket": own.bucket}
            connection.execute(text("UPDATE buckets SET target = :to WHERE bucket = :bucket"), to)
        first = sessions[0]
        move = partial(coordinator.leave, first) if leaves else partial(coordinator.hand_over, first, [own])
        lease = Held(first, own.bucket, own.epoch)
        with holding(lease), writing(engine, ()) as connection:
            note(connection, "in time")
            with meanwhile(engine, move) as moving:
                assert moving.waits(), "the bucket moved while its owner wrote"
                connection.commit()
                moving.answer()
        assert noted(engine, "in time")
        with holding(lease), pytest.raises(BucketLost):
            noting(engine, "too late")()

    def test_a_write_waits_for_a_move_that_has_begun_and_is_refused(
        self, engine: Engine, coordinator: SqlCoordinator, sessions: tuple[int, int]
    ) -> None:
        own = coordinator.held(sessions[0])[0]

        def write() -> None:
            with holding(Held(own.session or 0, own.bucket, own.epoch)):
                noting(engine, "too late")()

        with writing(engine, ()) as connection:
            moved = {"epoch": own.epoch + 1, "bucket": own.bucket}
            connection.execute(text("UPDATE buckets SET epoch = :epoch WHERE bucket = :bucket"), moved)
            with meanwhile(engine, write) as writer:
                assert writer.waits()
                connection.commit()
                with pytest.raises(BucketLost):
                    writer.answer()
        assert not noted(engine, "too late")

    def test_a_transaction_begins_with_its_locks_and_its_fence_in_one_round_trip(
        self, engine: Engine, coordinator: SqlCoordinator, sessions: tuple[int, int]
    ) -> None:
        own = coordinator.held(sessions[0])[0]
        lease, lost = (Held(sessions[0], own.bucket, own.epoch + more) for more in (0, 1))
        said: list[str] = []

        def note_said(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            said.append(statement)

        event.listen(engine, "before_cursor_execute", note_said)
        for held in (lease, lease, lost, lease):  # a connection has nothing left of the transaction before
            said.clear()
            with holding(held), pytest.raises(BucketLost) if held is lost else nullcontext(), writing(engine, (TELLS,)):
                pass
            assert len(said) == 1

    def test_a_session_ends_behind_what_it_writes_and_beats_meanwhile(
        self, engine: Engine, coordinator: SqlCoordinator, sessions: tuple[int, int]
    ) -> None:
        first, second = sessions
        with holding(Held(first)), writing(engine, ()) as connection:
            note(connection, "in time")
            assert at_once([partial(coordinator.beat, first, 1)]) == [True]
            with meanwhile(engine, partial(coordinator.leave, first)) as leaving:
                assert leaving.waits(), "the session ended while it wrote"
                connection.commit()
                leaving.answer()
        with holding(Held(first)), pytest.raises(BucketLost):
            noting(engine, "too late")()
        assert coordinator.beat(second, 1)


class TestFeed:
    def test_nobody_passes_over_a_number_whose_transaction_ends_behind_that_of_a_greater_one(
        self, engine: Engine
    ) -> None:
        feed = SqlFeed(engine)
        with writing(engine, (TELLS,)) as connection:
            append(connection, (FACT, 1))
            with writing(engine, (TELLS, lock(LockKind.TASK, "other"))) as other:
                append(other, (FACT, 2))
            with meanwhile(engine, lambda: feed.after(0, 9, FeedFilter())) as reader:
                assert reader.waits(), "the second fact was read, and the first one never will be"
                connection.commit()
                found = reader.answer()
        assert [(one.sequence, one.at) for one in found.told] == [(1, 1), (2, 2)]  # type: ignore[attr-defined]  # a page of the feed
        assert feed.after(2, 9, FeedFilter()).through == 2

    def test_who_begins_behind_the_last_fact_has_all_of_what_comes(self, engine: Engine) -> None:
        feed = SqlFeed(engine)
        with writing(engine, (TELLS,)) as connection:
            append(connection, (FACT, 1))
            with writing(engine, (TELLS,)) as other:
                append(other, (FACT, 2))
            with meanwhile(engine, feed.last) as reader:
                assert reader.waits(), "what is under way would be behind the reader"
                connection.commit()
                assert reader.answer() == 2

    def test_one_that_rolls_back_leaves_a_gap_and_nobody_waiting(self, engine: Engine) -> None:
        feed = SqlFeed(engine)
        with pytest.raises(KeyError), writing(engine, (TELLS,)) as connection:  # noqa: PT012 - one transaction
            append(connection, (FACT, 1))
            raise KeyError
        with writing(engine, (TELLS,)) as connection:
            append(connection, (FACT, 2))
        assert [one.sequence for one in feed.after(0, 9, FeedFilter()).told] == [2]


class TestAudit:
    def test_writers_wait_for_nobody_and_each_entry_is_linked_once(self, engine: Engine) -> None:
        def acting(number: int) -> None:
            with writing(engine, ()) as connection:
                record(connection, number, Act(f"a{number}", "x"))

        assert most_at_once(engine, [partial(acting, number) for number in range(6)]) == 6
        found = at_once([partial(SqlAudit(engine).entries, limit=99, after=0) for _ in range(4)])
        entries = SqlAudit(engine).entries(limit=99, after=0)
        assert sorted(entry.action for entry in entries) == [f"a{number}" for number in range(6)]
        assert verify(entries).is_whole
        assert all(list(one) == list(entries) for one in found)

    def test_an_entry_that_is_written_first_and_there_last_is_linked_last(self, engine: Engine) -> None:
        log = SqlAudit(engine)
        with writing(engine, ()) as connection:
            record(connection, 1, Act("slow", "x"))
            log.append(Act("fast", "x"))
            assert [entry.action for entry in log.entries(limit=9, after=0)] == ["fast"]
        assert [entry.action for entry in log.entries(limit=9, after=0)] == ["fast", "slow"]
        assert verify(log.entries(limit=9, after=0)).is_whole

    def test_one_that_comes_between_reading_and_deleting_stays(self, engine: Engine) -> None:
        log = SqlAudit(engine)
        with writing(engine, ()) as connection:
            record(connection, 1, Act("slow", "x"))
            log.append(Act("fast", "x"))

            def comes(_c: object, _d: object, statement: str, *_: object) -> None:
                if statement.startswith("DELETE FROM unlinked_audit"):
                    connection.commit()

            event.listen(engine, "before_cursor_execute", comes)
            log.link()
            event.remove(engine, "before_cursor_execute", comes)
        assert [entry.action for entry in log.entries(limit=9, after=0)] == ["fast", "slow"]

    def test_what_was_rolled_back_was_not_done(self, engine: Engine) -> None:
        with pytest.raises(KeyError), writing(engine, ()) as connection:  # noqa: PT012 - one transaction
            record(connection, 1, Act("a", "x"))
            raise KeyError
        assert SqlAudit(engine).entries(limit=9, after=0) == []


def test_a_counter_that_all_count_up_has_them_wait_and_counts_each(engine: Engine) -> None:
    """As the number of the last fencing token is: in the order in which their transactions end."""
    query = (
        update(counters).where(counters.c.name == "n").values(value=counters.c.value + 1).returning(counters.c.value)
    )

    def count() -> int:
        with writing(engine, ()) as connection:
            return int(connection.execute(query).scalar_one())

    noting(engine, "n")()
    assert sorted(at_once([count] * 8)) == list(range(2, 10))
