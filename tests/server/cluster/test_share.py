"""What a server may begin, by its buckets as it last read them; and what it writes then is fenced."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context

import pytest
from sqlalchemy import Engine, update

from icewright.core.errors import BucketLost
from icewright.core.servers import BUCKETS, CLUSTER_DEAD_MS, CLUSTER_HEARTBEAT_MS, TableShare
from icewright.model.iceberg.names import TableName
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.server.cluster.share import ALL_TABLES, Share
from icewright.store.schema import LISTED_CHANGED, counters
from icewright.store.scope_filters import bucket_of
from icewright.store.transactions import SHARES, writing
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store

NAMES = [TableName("lake", ("db",), f"t{number}") for number in range(60)]


class Town:
    """Servers of one store, whose clocks go alike."""

    def __init__(self) -> None:
        self.clock, self.engine = ManualClock(), new_store()

    def share(self, name: str) -> Share:
        coordinator = SqlCoordinator(self.engine, self.clock)
        return Share(coordinator, name, lambda: 0, monotonic_s=lambda: self.clock.now() / 1000)

    def settle(self, leader: Share, shares: Sequence[Share]) -> None:
        """All know what is theirs."""
        for _ in range(3):
            for share in shares:
                share.keep()
            leader.assign(self.engine)


@pytest.fixture
def town() -> Town:
    return Town()


@pytest.fixture
def pair(town: Town) -> tuple[Share, Share]:
    first, second = town.share("server-1"), town.share("server-2")
    town.settle(first, [first, second])
    assert (len(first.buckets), len(second.buckets)) == (64, 64)
    return first, second


def write(engine: Engine) -> None:
    with writing(engine) as connection:
        connection.execute(update(counters).where(counters.c.name == LISTED_CHANGED).values(value=counters.c.value + 1))


def of(share: Share) -> TableName:
    return next(name for name in NAMES if bucket_of(name) in share.buckets)


def test_a_server_works_on_its_own_tables_and_on_no_others(town: Town, pair: tuple[Share, Share]) -> None:
    first, second = pair
    part = first.part(leads=False)
    assert part.tables == TableShare(first.buckets)
    assert part.owns(of(first))
    assert not part.owns(of(second))
    with part.working(of(second)) as may:
        assert not may
    with part.working(of(first)) as may:
        assert may
        write(town.engine.execution_options(**{SHARES: True}))
    with pytest.raises(RuntimeError, match="for nothing that it holds"):
        write(town.engine.execution_options(**{SHARES: True}))
    with part.as_server():
        write(town.engine.execution_options(**{SHARES: True}))


def test_a_table_is_worked_on_once_at_a_time_also_by_the_next_loop_of_the_server(pair: tuple[Share, Share]) -> None:
    first, _ = pair
    part = first.part(leads=False)
    with part.working(of(first)) as may:
        assert may
        with part.working(of(first)) as again:
            assert not again
        led = first.part(leads=True)
        with led.working(of(first)) as by_the_next:
            assert not by_the_next
    with led.working(of(first)) as may:
        assert may


def test_a_loop_begins_nothing_once_there_is_another_one(pair: tuple[Share, Share]) -> None:
    first, _ = pair
    part = first.part(leads=False)
    assert part.is_present
    led = first.part(leads=True)
    assert (part.is_present, led.is_present) == (False, True)
    with part.working(of(first)) as may:
        assert not may


def test_a_leader_takes_tables_of_others_until_their_first_look_is_over(pair: tuple[Share, Share]) -> None:
    first, second = pair
    new: set[TableName] = set()
    part = first.part(leads=True, is_new=new.__contains__)
    assert part.tables == TableShare(first.buckets)
    with part.working(of(second)) as may:
        assert not may
    new.add(of(second))
    with part.working(of(second)) as may:
        assert may
        with part.working(of(second)) as again:
            assert not again


def test_a_bucket_is_handed_over_when_nothing_in_it_is_worked_on(town: Town, pair: tuple[Share, Share]) -> None:
    first, second = pair
    third = town.share("server-3")
    third.keep()
    first.assign(town.engine)
    part = first.part(leads=True)
    name = next(
        name
        for name in NAMES
        for one in first.coordinator.held(first.session or 0)
        if one.target is not None and one.bucket == bucket_of(name)
    )
    with part.working(name) as may:
        assert may
        first.keep()
        third.keep()
        assert bucket_of(name) not in third.buckets
        assert bucket_of(name) not in first.buckets, "nothing more is begun in it"
        write(town.engine)
    first.keep()
    third.keep()
    assert bucket_of(name) in third.buckets
    with part.working(name) as may:
        assert not may
    second.keep()
    third.keep()
    assert sorted(len(one.buckets) for one in (first, second, third)) == [42, 43, 43]


def test_a_server_that_was_asleep_finds_out_at_its_next_write(town: Town, pair: tuple[Share, Share]) -> None:
    first, second = pair
    part, session = second.part(leads=False), second.session
    leader = copy_context()
    with part.working(of(second)) as may:
        assert may
        for _ in range(1 + CLUSTER_DEAD_MS // CLUSTER_HEARTBEAT_MS):
            town.clock.advance(CLUSTER_HEARTBEAT_MS)
            leader.run(first.keep)
        leader.run(first.assign, town.engine)
        leader.run(first.keep)
        assert len(first.buckets) == BUCKETS
        with pytest.raises(BucketLost):
            write(town.engine)
    with part.as_server(), pytest.raises(BucketLost):
        write(town.engine)
    second.keep()
    assert (second.session, second.buckets, part.is_present) == (None, frozenset(), False)
    second.keep()
    assert second.session not in (None, session)
    town.settle(first, [first, second])
    assert len(second.buckets) == 64


def test_what_is_worked_on_by_a_session_that_has_ended_is_in_nobodys_way(town: Town, pair: tuple[Share, Share]) -> None:
    """A look that hangs in a call of a session that was given up."""
    first, second = pair
    name, hanging, its_thread = of(second), second.part(leads=False).working(of(second)), copy_context()
    assert its_thread.run(hanging.__enter__)
    second.leave()
    town.settle(first, [first, second])
    third = town.share("server-3")
    town.settle(first, [first, second, third])
    whose = next(one for one in (first, second, third) if bucket_of(name) in one.buckets)
    with whose.part(leads=False).working(name) as may:
        assert may
        its_thread.run(hanging.__exit__, None, None, None)
        with whose.part(leads=False).working(name) as again:
            assert not again, "the end of the one that hung is not taken for that of this one"


def test_the_only_server_has_all() -> None:
    assert (ALL_TABLES.leads, ALL_TABLES.tables, ALL_TABLES.is_present) == (True, None, True)
    with ALL_TABLES.working(NAMES[0]) as may, ALL_TABLES.as_server():
        assert may
    assert ALL_TABLES.owns(NAMES[0])
