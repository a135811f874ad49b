"""Facts that are no task's: each is told once, by whichever server, and what is no news is not."""

from __future__ import annotations

from collections.abc import Sequence

from icewright.feed.publisher import OUTAGE_REPORTED_MS, FeedPublisher
from icewright.feed.sql import SqlFeed
from icewright.model.events.feed import Fact, FactKind, FeedFilter
from icewright.model.iceberg.names import TableId
from icewright.model.plans.plans import Reason
from icewright.model.work.retention import RETENTION, RowKind
from icewright.observation.outages import CATALOG_PAUSE_MS
from icewright.ports.feed import Feed
from tests.builders.lakehouse import HOUR_MS, NAME, Lakehouse
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store

TABLE = TableId("lake", "u")
PARKED = Reason("parked", "left alone for a day", {"until": 7})
UNREADABLE = Reason("unreadable", "its metadata is damaged")


def facts(feed: Feed) -> Sequence[Fact]:
    return [told.fact for told in feed.after(0, 1_000, FeedFilter()).told]


def kinds(feed: Feed) -> list[FactKind]:
    return [fact.fact for fact in facts(feed)]


def test_q5_a_table_is_told_to_be_parked_once_for_each_time() -> None:
    clock = ManualClock()
    feed = SqlFeed(new_store(), clock)
    first, second = FeedPublisher(feed, clock), FeedPublisher(feed, clock)
    first.problem(TABLE, NAME, None, PARKED)
    first.problem(TABLE, NAME, PARKED, PARKED)
    second.problem(TABLE, NAME, None, PARKED)  # another server has not seen it before
    assert kinds(feed) == [FactKind.PARKED]
    first.problem(TABLE, NAME, None, Reason("parked", "again", {"until": 8}))
    assert kinds(feed) == [FactKind.PARKED] * 2
    assert facts(feed)[0].reason == PARKED


def test_a_table_that_cannot_be_read_is_data_at_risk_and_other_problems_are_no_news() -> None:
    clock = ManualClock()
    feed = SqlFeed(new_store(), clock)
    tidings = FeedPublisher(feed, clock)
    tidings.problem(TABLE, NAME, None, Reason("plan-refused", "the second opinion differs"))
    tidings.problem(TABLE, NAME, UNREADABLE, None)
    assert facts(feed) == []
    for _ in range(3):
        tidings.problem(TABLE, NAME, None, UNREADABLE)
    assert kinds(feed) == [FactKind.DATA_AT_RISK]
    clock.advance(24 * HOUR_MS)
    tidings.problem(TABLE, NAME, UNREADABLE, UNREADABLE)
    assert len(facts(feed)) == 1
    tidings.problem(TABLE, NAME, None, UNREADABLE)
    assert len(facts(feed)) == 2


def test_a_catalog_that_is_away_for_a_moment_is_no_news() -> None:
    clock = ManualClock()
    feed = SqlFeed(new_store(), clock)
    tidings = FeedPublisher(feed, clock)
    tidings.away("lake", "no answer")
    clock.advance(OUTAGE_REPORTED_MS - 1)
    tidings.away("lake", "no answer")
    tidings.answers("lake")
    clock.advance(1)
    tidings.away("lake", "no answer")
    tidings.answers("lake")
    assert facts(feed) == []


def test_a_catalog_that_is_away_for_long_is_told_once_and_so_is_its_return() -> None:
    clock = ManualClock()
    feed = SqlFeed(new_store(), clock)
    tidings = FeedPublisher(feed, clock)
    for _ in range(10):
        tidings.away("lake", "no answer")
        clock.advance(OUTAGE_REPORTED_MS)
    tidings.answers("lake")
    tidings.answers("lake")
    assert kinds(feed) == [FactKind.CATALOG_AWAY, FactKind.CATALOG_BACK]
    assert facts(feed)[1].reason.figures == {"away_ms": 10 * OUTAGE_REPORTED_MS}


class TestOfTheWholeServer:
    def test_a_catalog_that_does_not_answer_and_comes_back(self) -> None:
        house = Lakehouse()
        house.catalog.available = False
        for _ in range(8):
            house.control.loop.turn()
            house.clock.advance(CATALOG_PAUSE_MS)
        house.catalog.available = True
        house.control.loop.turn()
        assert kinds(house.control.tasks.feed) == [FactKind.CATALOG_AWAY, FactKind.CATALOG_BACK]

    def test_old_facts_are_forgotten(self) -> None:
        house = Lakehouse()
        feed = house.control.tasks.feed
        feed.tell(Fact(FactKind.PARKED, "lake", PARKED, TABLE, NAME), "parked")
        house.clock.advance(RETENTION.spans_ms[RowKind.FEED])
        house.control.loop.turn()
        assert facts(feed) != []
        house.clock.advance(HOUR_MS)
        house.control.loop.turn()
        assert facts(feed) == []
