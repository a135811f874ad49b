"""Lists of tables, on SQLite and PostgreSQL: sorted, filtered, summed up and cut into pages alike."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from sqlalchemy import text

from icewright.model.access.permissions import Scope
from icewright.model.iceberg.names import PART_LENGTH_MAX, TableName
from icewright.model.policy.policy import Mode
from icewright.model.work.figures import FiguresView, Grade, Listed, PlanSummary, SeriesPoint, TableHealth
from icewright.ports.store import TableRecord, TableStore
from icewright.ports.table_lists import PlaceKind, PlaceRank, PlaceSort, TablePlace, TableQuery, TableSort
from icewright.store.engine import open_store
from icewright.store.transactions import reading
from icewright.work.store.table_lists import page_query, records_query
from tests.contracts.samples import HOSTILE_PARTS, REASON, record, table_id
from tests.contracts.stores import Stores
from tests.doubles.table_lists import MemoryTableLists
from tests.narrowing import not_none

ALL = TableQuery()
QUERIES = (
    ALL,
    TableQuery(under=Scope("lake")),
    TableQuery(under=Scope("lake", ("db",))),
    TableQuery(under=Scope("lake", ("db", "sub"))),
    TableQuery(under=Scope("lake", (HOSTILE_PARTS[0],))),
    TableQuery(within=()),
    TableQuery(within=(Scope("lake", ("db", "sub")), Scope("other"))),
    TableQuery(within=(Scope("lake", ("db",)),), under=Scope("other")),
    TableQuery(health_min=50),
    TableQuery(health_max=50),
    TableQuery(health_min=20, health_max=80),
    TableQuery(mode=Mode.AUTO),
    TableQuery(failing=True),
    TableQuery(failing=False, health_min=0),
    TableQuery(search="EVENTS"),
    TableQuery(search="%"),
    TableQuery(search="_1"),
    TableQuery(search="db.sub"),
    TableQuery(search="nothing like it"),
    TableQuery(only=table_id(900)),
    TableQuery(only=replace(table_id(1), catalog="lake")),
)


def listed(score: int | None, size: int = 0, *, mode: Mode = Mode.AUTO, failures: int = 0, ended: int = 0) -> Listed:
    """What a look found: ``size`` bytes in as many files, every third small."""
    files = size % 1_000
    figures = FiguresView(1, files, size, 10, files // 3, 5, size % 7, 0, 0, 0, 0, {}, 1.0)
    health = None if score is None else TableHealth(score, Grade.of(score), ())
    plan = PlanSummary("p", 1, REASON, can_apply=False, data_files_after=None)
    return Listed(mode, figures, None, plan, health=health, failures=failures, last_task_at=ended or None)


@pytest.fixture
def store(stores: Stores) -> TableStore:
    return stores.tables()


def fill(store: TableStore, count: int = 60) -> list[TableRecord]:
    """Tables of all kinds, always the same ones, many with equal figures."""
    chance = random.Random(7)  # noqa: S311 - a test's choice
    namespaces = [("db",), ("db", "sub"), ("db2",), ("DB",), *((part,) for part in HOSTILE_PARTS)]
    records = []
    for number in range(count):
        catalog = chance.choice(["lake", "lake", "lake2", "other"])
        namespace = chance.choice(namespaces)
        found = record(
            number,
            table_id=replace(table_id(number), catalog=catalog),
            name=TableName(catalog, namespace, f"{chance.choice(['events', 'Events%', 'raw'])}_{number}"),
            observed_at=chance.choice([5, 6, 7]),
            problem=chance.choice([None, None, REASON]),
            listed=chance.choice(
                [
                    None,
                    listed(chance.choice([0, 49, 50, 90, 100]), chance.choice([0, 999, 2**40, 2**50])),
                    listed(None, 12, mode=Mode.OBSERVE, failures=2, ended=9),
                ]
            ),
        )
        store.save_record(found)
        records.append(found)
    return records


def told(records: Sequence[TableRecord]) -> MemoryTableLists:
    """The plainest statement of the port over the same records."""
    lists = MemoryTableLists(lambda: records)
    for one in records:
        lists.note(one)
    return lists


def test_pages_are_in_their_order_and_have_every_table_once(store: TableStore) -> None:
    expected = told(fill(store))
    for sort, descending, query in product(TableSort, (False, True), (ALL, TableQuery(search="EVENTS"))):
        wanted = expected.page(query, sort, descending=descending, limit=1_000)
        found: list[TableRecord] = []
        after: TablePlace | None = None
        while page := store.lists.page(query, sort, descending=descending, limit=7, after=after):
            assert len(page) <= 7
            found += [one for _, one in page]
            after = page[-1][0]
        assert [one.table_id for one in found] == [one.table_id for _, one in wanted], (sort, descending, query)


def test_every_page_is_read_from_an_index_and_sorts_nothing(tmp_path: Path) -> None:
    """Or the last page of 100,000 tables would cost as much as all of them: by the plan of SQLite."""
    engine = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    for sort, descending in product(TableSort, (False, True)):
        for after in (None, TablePlace("lake.db" if sort is TableSort.NAME else 5, table_id(3))):
            wanted = page_query(ALL, sort, descending=descending, limit=100, after=after)
            said = str(wanted.compile(engine, compile_kwargs={"literal_binds": True}))
            with reading(engine) as connection:
                (step,) = connection.execute(text(f"EXPLAIN QUERY PLAN {said}")).all()
            verb = "SCAN" if after is None else "SEARCH"
            assert step.detail.startswith(f"{verb} listed_tables USING COVERING INDEX ix_listed_tables_"), (sort, step)
    engine.dispose()


def test_neither_a_search_nor_the_records_of_a_page_fetch_every_row_by_an_index(tmp_path: Path) -> None:
    """A search reads the index by name alone, or the rows as they lie; records are looked up: by the plan of SQLite."""
    engine = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    searches = [
        page_query(TableQuery(search="events"), sort, descending=descending, limit=100, after=after)
        for sort in TableSort
        for descending in (False, True)
        for after in (None, TablePlace("lake.db" if sort is TableSort.NAME else 5, table_id(3)))
    ]
    records = records_query([table_id(1), table_id(2), replace(table_id(3), catalog="other")])
    with reading(engine) as connection:
        for wanted in (*searches, records):
            said = str(wanted.compile(engine, compile_kwargs={"literal_binds": True}))
            steps = [row.detail for row in connection.execute(text(f"EXPLAIN QUERY PLAN {said}")).all()]
            if wanted is records:
                assert [one for one in steps if "tables" in one] == [
                    "SEARCH tables USING INDEX sqlite_autoindex_tables_1 (catalog=? AND table_uuid=?)"
                ] * 2
            elif "ix_listed_tables_sort_name" not in steps[0]:
                assert steps == ["SCAN listed_tables", "USE TEMP B-TREE FOR ORDER BY"]
    engine.dispose()


def test_filters_and_totals_are_those_of_the_tables(store: TableStore) -> None:
    expected = told(fill(store))
    for query in QUERIES:
        found = store.lists.page(query, TableSort.BYTES, descending=True, limit=1_000)
        wanted = expected.page(query, TableSort.BYTES, descending=True, limit=1_000)
        assert [one for one, _ in found] == [one for one, _ in wanted], query
        assert store.lists.totals(query) == expected.totals(query), query
        for kind in PlaceKind:
            assert store.lists.places(query, kind, PlaceSort.NAME, descending=False, limit=1_000) == expected.places(
                query, kind, PlaceSort.NAME, descending=False, limit=1_000
            ), query


def test_places_are_sorted_and_cut_into_pages(store: TableStore) -> None:
    expected = told(fill(store))
    for sort in PlaceSort:
        for descending in (False, True):
            wanted = expected.places(ALL, PlaceKind.NAMESPACE, sort, descending=descending, limit=1_000)
            found = []
            after: PlaceRank | None = None
            while page := store.lists.places(
                ALL, PlaceKind.NAMESPACE, sort, descending=descending, limit=3, after=after
            ):
                found += [place for _, place in page]
                after = page[-1][0]
            assert [one.name for one in found] == [place.name for _, place in wanted], (sort, descending)


def test_without_tables_all_sums_are_nothing(store: TableStore) -> None:
    totals = store.lists.totals(ALL)
    assert (totals.tables, totals.bytes, totals.health, totals.health_min, totals.unknown) == (0, 0, None, None, 0)
    assert store.lists.places(ALL, PlaceKind.CATALOG, PlaceSort.TABLES, descending=True, limit=5) == []
    assert store.lists.last_change() == 0


def test_a_hundred_times_the_bytes_of_a_large_fleet_does_not_overflow(store: TableStore) -> None:
    for number in range(4):
        store.save_record(record(number, listed=listed(100, 2**60)))
    assert (store.lists.totals(ALL).health, store.lists.totals(ALL).bytes) == (100, 4 * 2**60)


def test_a_name_longer_than_an_index_takes_is_listed(store: TableStore) -> None:
    part = "\N{PILE OF POO}" * PART_LENGTH_MAX
    store.save_record(record(1, name=TableName("lake", (part,), part)))
    store.save_record(record(2, name=TableName("lake", (part,), "t")))
    found = store.lists.page(ALL, TableSort.NAME, descending=False, limit=10)
    assert [one.table_id for _, one in found] == sorted([table_id(1), table_id(2)])
    store.save_record(record(3, name=TableName("lake", ("b" * 120,), "c" * 120 + "Last")))
    for search, count in ((part, 2), ("b.c", 1), ("LAST", 1), ("c_", 0)):
        for sort in (TableSort.NAME, TableSort.BYTES):
            assert len(store.lists.page(TableQuery(search=search), sort, descending=False, limit=10)) == count


def test_what_was_dropped_or_replaced_is_on_no_list(store: TableStore) -> None:
    store.save_record(record(1))
    store.save_record(record(2))
    first = not_none(store.record(table_id(1)))
    store.save_record(replace(first, dropped_at=5))
    assert [one.table_id for one in ids(store)] == [table_id(2)]
    store.save_record(record(3, name=record(2).name))  # another table under the same name
    assert [one.table_id for one in ids(store)] == [table_id(3)]
    back = not_none(store.record(table_id(1)))
    store.save_record(replace(back, dropped_at=None))
    assert [one.table_id for one in ids(store)] == [table_id(1), table_id(3)]


def ids(store: TableStore) -> list[TableRecord]:
    return [one for _, one in store.lists.page(ALL, TableSort.LAST_LOOK, descending=False, limit=10)]


def test_a_look_that_found_nothing_new_is_no_change(store: TableStore) -> None:
    store.save_record(record(1, listed=listed(90, 10)))
    store.save_record(record(2))
    seen = store.lists.last_change()
    first = not_none(store.record(table_id(1)))
    store.save_record(replace(first, observed_at=77, next_look_at=99))
    assert store.lists.last_change() == seen
    assert store.lists.changed(seen, ALL, 10).tables == []
    assert [one.observed_at for one in ids(store)] == [77, 1_000]


def test_changes_tell_each_table_once_by_its_last_one(store: TableStore) -> None:
    for number in range(5):
        store.save_record(record(number, listed=listed(50)))
    seen = store.lists.last_change()
    for score in (40, 30):
        for number in (3, 1):
            known = not_none(store.record(table_id(number)))
            store.save_record(replace(known, listed=listed(score)))
    changes = store.lists.changed(seen, ALL, 10)
    assert [one.table_id for _, one in changes.tables] == [table_id(1), table_id(3)], "in the order of their numbers"
    assert [number for number, _ in changes.tables] == [seen + 1, seen + 2]
    assert changes.through == store.lists.last_change()
    first = store.lists.changed(seen, ALL, 1)
    assert [one.table_id for _, one in first.tables] == [table_id(1)]
    rest = store.lists.changed(first.through, ALL, 10)
    assert [one.table_id for _, one in rest.tables] == [table_id(3)]
    nothing = store.lists.changed(seen, TableQuery(within=()), 10)
    assert (nothing.tables, nothing.through) == ([], store.lists.last_change())


def test_a_series_is_what_was_saved_and_goes_with_the_table(store: TableStore) -> None:
    points = (SeriesPoint(1, 2, 2**50, 4, 5, 6, 7, None), SeriesPoint(2, 2, 3, 4, 5, 6, 7, 100))
    store.save_record(record(1))
    assert store.lists.series(table_id(1)) == ()
    for saved in (points[:1], points):
        store.save_record(not_none(store.record(table_id(1))), series=saved)
    assert tuple(store.lists.series(table_id(1))) == points
    known = not_none(store.record(table_id(1)))
    store.save_record(replace(known, dropped_at=5))
    assert store.prune_dropped(6, 10) == 1
    assert store.lists.series(table_id(1)) == ()
