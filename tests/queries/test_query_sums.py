"""Sums of queries in the store, on every database: each query once, bounded, in scopes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, insert, select, update

from icewright.events.schema import event_cursors
from icewright.model.access.permissions import Scope
from icewright.model.iceberg.names import TableId
from icewright.model.queries.templates import (
    OTHER_TEMPLATES,
    WEEK_MS,
    Sums,
    TemplateWeek,
    sums_of,
    template_of,
    week_of,
)
from icewright.queries import sql as module
from icewright.queries.sql import SqlQuerySums
from icewright.store.engine import open_store
from icewright.store.transactions import reading, writing
from icewright.work.store.table_store import SqlTableStore
from tests.builders.queries import AT, EVENTS, equal, query, read_of
from tests.contracts.samples import record
from tests.waiting import at_once

THIS = TableId("lake", "uuid-1")
WEEK = week_of(AT)


@pytest.fixture
def engine(migrated_url: str) -> Iterator[Engine]:
    opened = open_store(migrated_url)
    yield opened
    opened.dispose()


@pytest.fixture
def sums(engine: Engine) -> SqlQuerySums:
    return SqlQuerySums(engine)


def week(number: int = 1, column: str = "user_id", table_id: TableId = THIS, at: int = AT) -> TemplateWeek:
    one = query(number, read_of(EVENTS, equal(column, "x")), at=at)
    return TemplateWeek(table_id, week_of(at), template_of(one.tables[0]), sums_of(one, one.tables[0]))


def test_queries_of_one_template_are_summed(sums: SqlQuerySums) -> None:
    assert sums.add("a", 0, 2, [week(1), week(2)])
    assert sums.add("a", 2, 3, [week(3)])
    (found,) = sums.of_table(THIS, WEEK)
    assert (found.sums.queries, found.sums.files_read, found.sums.files_skipped) == (3, 9, 21)
    assert (found.sums.users, found.sums.engines) == ({"ann": 3}, {"trino 476": 3})


def test_what_is_added_twice_counts_once(sums: SqlQuerySums) -> None:
    assert sums.add("a", 0, 2, [week()])
    assert not sums.add("a", 0, 2, [week()])
    assert not sums.add("a", 0, 5, [week()])
    assert sums.position("a") == 2
    assert sums.add("b", 0, 2, [week()])  # another spool has places of its own
    assert sums.of_table(THIS, WEEK)[0].sums.queries == 2


def test_of_two_who_count_the_same_at_once_one_does(sums: SqlQuerySums) -> None:
    did = at_once([lambda: sums.add("a", 0, 1, [week()])] * 4)
    assert sorted(did) == [False, False, False, True]
    assert sums.of_table(THIS, WEEK)[0].sums.queries == 1


def test_templates_beyond_the_limit_are_summed_together(sums: SqlQuerySums, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEMPLATES_MAX", 3)
    sums.add("a", 0, 9, [week(number, f"column_{number}") for number in range(9)])
    found = {one.template: one.sums.queries for one in sums.of_table(THIS, WEEK)}
    assert (len(found), found[OTHER_TEMPLATES], sum(found.values())) == (4, 6, 9)


def test_weeks_are_apart_and_the_oldest_go(sums: SqlQuerySums) -> None:
    weeks = [week(number, at=AT + number * WEEK_MS) for number in range(5)]
    sums.add("a", 0, 5, weeks)
    assert len(sums.of_table(THIS, WEEK + 2 * WEEK_MS)) == 3
    assert (sums.prune(WEEK + 3 * WEEK_MS, 2), sums.prune(WEEK + 3 * WEEK_MS, 2)) == (2, 1)
    assert [one.week_at for one in sums.of_table(THIS, 0)] == [WEEK + 3 * WEEK_MS, WEEK + 4 * WEEK_MS]


def test_tables_are_shown_to_those_who_may_see_them(sums: SqlQuerySums, engine: Engine) -> None:
    other = TableId("lake", "uuid-2")
    store = SqlTableStore(engine)
    store.save_record(record(1, table_id=THIS, name=EVENTS))
    sums.add("a", 0, 3, [week(1), week(2), week(3, table_id=other)])
    (found,) = sums.tables(WEEK, 10)  # of the other one nothing is known
    assert (found.name, found.queries, found.bytes_read) == (EVENTS, 2, 200)
    assert sums.tables(WEEK, 10, (Scope("lake", ("shop",)),)) == [found]
    assert sums.tables(WEEK, 10, (Scope("lake", ("other",)),)) == []


def test_sums_do_not_depend_on_their_order() -> None:
    parts = [sums_of(query(n, user=f"user-{n % 3}"), query(n).tables[0]) for n in range(7)]
    forward, back = Sums(), Sums()
    for one in parts:
        forward = forward + one
    for one in reversed(parts):
        back = one + back
    assert forward == back


def test_users_beyond_the_limit_are_counted_together() -> None:
    total = Sums()
    for number in range(300):
        one = query(number, user=f"user-{number % 40}")
        total = total + sums_of(one, one.tables[0])
    assert sum(total.users.values()) == 300
    assert len(total.users) <= 22


def test_up_to_where_a_spool_was_counted_goes_when_it_is_idle_for_as_long_as_sums_are_kept(
    sums: SqlQuerySums, engine: Engine
) -> None:
    assert sums.add("gone", 0, 5, [week()])
    assert sums.add("here", 0, 7, [week()])
    with writing(engine) as connection:
        idle = update(event_cursors).where(event_cursors.c.name == "queries:gone").values(updated_at=AT - 1)
        connection.execute(idle)
        connection.execute(insert(event_cursors).values(name="feed-of-hive", position=3, updated_at=AT - 1))
    assert sums.prune(AT, 100) == 1
    assert (sums.position("gone"), sums.position("here")) == (0, 7)
    with reading(engine) as connection:
        left = connection.scalar(select(event_cursors.c.position).where(event_cursors.c.name == "feed-of-hive"))
    assert left == 3
