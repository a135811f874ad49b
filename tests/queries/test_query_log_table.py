"""The query log as an Iceberg table: each query of a spool once, whatever dies or commits in between."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import Conflict, OutcomeUnknown, Unreadable, Unsupported
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policy import Mode
from icewright.model.queries.queries import QueryRecord, TableRead
from icewright.policy.effective import effective_policy
from icewright.queries import log_table as module
from icewright.queries.log_table import QueryLogTable, logged
from icewright.queries.service import QueryCounter, QueryLog
from icewright.queries.spool import QuerySpool
from icewright.queries.sql import SqlQuerySums
from icewright.store.engine import open_store
from icewright.work.store.table_store import SqlTableStore
from tests.builders.queries import AT, EVENTS, equal, query, read_of
from tests.contracts.samples import record
from tests.doubles.clock import ManualClock
from tests.lakes.sqlite import append, make_lake, make_table, writer
from tests.lakes.stores import sqlite_store

NAME = TableName("lake", ("icewright",), "queries")
DAY_MS = 86_400_000
NOW = AT + 3 * DAY_MS


@pytest.fixture
def entry(tmp_path: Path) -> CatalogEntry:
    return make_lake(tmp_path)


@pytest.fixture
def table(entry: CatalogEntry) -> QueryLogTable:
    return QueryLogTable(entry, NAME)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[QueryLog]:
    engine = open_store(sqlite_store(tmp_path / "store.db"))
    tables = SqlTableStore(engine)
    tables.save_record(record(1, name=EVENTS))
    with closing(QuerySpool(tmp_path / "queries.db", 1 << 20, ManualClock(AT))) as spool:
        yield QueryLog({"lake"}, tables, ManualClock(NOW), spool, SqlQuerySums(engine))
    engine.dispose()


def rows(entry: CatalogEntry) -> list[dict[str, Any]]:
    found = writer(entry).load_table(("icewright", "queries")).scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: (row["query_id"], row["table"]))


def ids(entry: CatalogEntry) -> list[str]:
    return [row["query_id"] for row in rows(entry)]


def test_a_query_is_a_row_for_each_table_that_it_read(entry: CatalogEntry, table: QueryLogTable, log: QueryLog) -> None:
    other = replace(EVENTS, name="users")
    log.take([query(1, read_of(EVENTS, equal("user_id", "7")), read_of(other, files_read=None), at=AT)])
    log.append_to(table)
    first, second = rows(entry)
    assert (first["table"], first["table_uuid"], first["files_read"], first["files_skipped"]) == (
        str(EVENTS),
        record(1).table_id.uuid,
        3,
        7,
    )
    assert first["filters"] == ('[{"column":"user_id","operator":"eq","literals":[{"kind":"string","text":"7"}]}]')
    assert (second["table_uuid"], second["files_read"], second["tables"]) == (None, None, 2)
    assert int(first["started_at"].timestamp() * 1_000) == AT


def test_readers_find_rows_by_day(entry: CatalogEntry, table: QueryLogTable, log: QueryLog) -> None:
    log.take([query(number, read_of(EVENTS), at=AT + number * DAY_MS) for number in range(3)])
    log.append_to(table)
    loaded = writer(entry).load_table(("icewright", "queries"))
    one_day = loaded.scan(row_filter=f"started_at >= '{rows(entry)[2]['started_at'].isoformat()}'")
    assert len(list(one_day.plan_files())) == 1


def test_what_is_appended_twice_is_there_once(entry: CatalogEntry, table: QueryLogTable, log: QueryLog) -> None:
    log.take([query(1), query(2)])
    assert log.append_to(table) == (2, 2)
    assert log.append_to(table) == (0, 2)
    log.take([query(3)])
    assert log.append_to(table) == (1, 3)
    assert ids(entry) == ["q-1", "q-2", "q-3"]


def test_a_lost_answer_is_looked_up_and_nothing_is_repeated(
    entry: CatalogEntry, table: QueryLogTable, log: QueryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.take([query(1)])
    true = SqlCatalog.commit_table

    def lost(self: SqlCatalog, *arguments: Any) -> Any:
        true(self, *arguments)
        raise ConnectionError("the answer is lost")

    table.position("any")  # the table is there
    monkeypatch.setattr(SqlCatalog, "commit_table", lost)
    with pytest.raises(OutcomeUnknown):
        log.append_to(table)
    monkeypatch.undo()
    assert log.append_to(table) == (0, 1)
    assert ids(entry) == ["q-1"]


def test_spools_of_several_servers_have_places_of_their_own(
    entry: CatalogEntry, table: QueryLogTable, log: QueryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two that commit at once one has to try again, and then both are in."""
    with closing(QuerySpool(tmp_path / "second.db", 1 << 20, ManualClock())) as spool:
        second = QueryLog({"lake"}, log._tables, ManualClock(AT), spool, log.sums)
        second.take([query(2)])
        log.take([query(1)])
        true = SqlCatalog.commit_table

        def after_the_other(self: SqlCatalog, *arguments: Any) -> Any:
            monkeypatch.undo()
            second.append_to(table)
            return true(self, *arguments)

        table.position("any")
        monkeypatch.setattr(SqlCatalog, "commit_table", after_the_other)
        with pytest.raises(Conflict):
            log.append_to(table)
        log.append_to(table)
        second.append_to(table)
    assert ids(entry) == ["q-1", "q-2"]


def test_the_spool_forgets_only_what_is_counted_and_logged(
    entry: CatalogEntry, table: QueryLogTable, log: QueryLog
) -> None:
    counter = QueryCounter(log, table)
    log.take([query(number) for number in range(4)])
    log.count()
    counter.forget()
    assert log.spool.figures().waiting == 4  # not in the table yet
    assert counter.log() == 4
    counter.forget()
    assert log.spool.figures().waiting == 0
    log.take([query(9)])
    counter.log()
    counter.forget()
    assert log.spool.figures().waiting == 1  # not counted yet
    log.count()
    counter.forget()
    assert (log.spool.figures().waiting, len(ids(entry))) == (0, 5)


def test_what_does_not_fit_into_one_commit_is_logged_at_once_as_well(
    table: QueryLogTable, log: QueryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icewright.queries.spool.BATCH_BYTES_MAX", 1)
    counter = QueryCounter(log, table)
    log.take([query(number) for number in range(3)])
    assert [counter._log_waiting() for _ in range(4)] == [0, 0, 1, 0]


def test_an_end_that_somebody_else_wrote_counts_nothing_twice(
    entry: CatalogEntry, table: QueryLogTable, log: QueryLog
) -> None:
    log.take([query(number) for number in range(3)])
    log.count()
    log.append_to(table)
    with writer(entry).load_table(("icewright", "queries")).transaction() as change:
        change.set_properties({f"icewright.queries.end.{log.spool.spool_id}": "99"})
    log.append_to(table)
    assert log.count() == 0
    assert log.queries_of(record(1).table_id, AT) == 3


def test_a_query_of_which_nothing_can_be_made_holds_nothing_up(
    entry: CatalogEntry, table: QueryLogTable, log: QueryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It alone is set aside; those before and behind it are counted and logged."""
    log.take([query(number) for number in range(4)])

    def fails(said: QueryRecord, read: TableRead, *more: Any) -> Any:
        if said.query_id == "q-2":
            raise ValueError("nobody has thought of it")
        return logged(said, read, *more)

    monkeypatch.setattr("icewright.queries.service.logged", fails)
    assert log.append_to(table)[1] == 4
    assert (ids(entry), log.spool.figures().set_aside) == (["q-0", "q-1", "q-3"], 1)
    assert log.count() == 3


def test_a_spool_that_is_older_than_what_was_counted_of_it_loses_nothing(
    entry: CatalogEntry, table: QueryLogTable, tmp_path: Path, log: QueryLog
) -> None:
    """As one from a backup is, which would give places again that were counted."""
    path, copy = tmp_path / "old.db", tmp_path / "copy.db"
    with closing(QuerySpool(path, 1 << 20, ManualClock(AT))) as spool:
        before = QueryLog({"lake"}, log._tables, ManualClock(NOW), spool, log.sums)
        before.take([query(1)])
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        before.take([query(number) for number in range(2, 5)])
        before.count()
        before.append_to(table)
    copy.replace(path)
    with closing(QuerySpool(path, 1 << 20, ManualClock(AT))) as spool:
        after = QueryLog({"lake"}, log._tables, ManualClock(NOW), spool, log.sums)
        after.adopt_spool()
        after.take([query(9)])
        after.count()
        after.append_to(table)
    assert {*ids(entry)} == {"q-1", "q-2", "q-3", "q-4", "q-9"}  # q-1 twice: the copy does not know that it was logged
    assert after.queries_of(record(1).table_id, AT) == 6


def test_its_own_properties_are_no_settings(entry: CatalogEntry, table: QueryLogTable, log: QueryLog) -> None:
    """It is looked after like any other table: nothing in it is taken for a mistake of its owner."""
    log.take([query(1)])
    log.append_to(table)
    policy = effective_policy(PyIcebergCatalog(entry).load(NAME), ())
    assert (policy.problems, policy.mode) == ((), Mode.AUTO)


def test_no_table_is_made_before_there_is_a_query(entry: CatalogEntry, table: QueryLogTable, log: QueryLog) -> None:
    counter = QueryCounter(log, table)
    assert counter.log() == 0
    assert not writer(entry).table_exists(("icewright", "queries"))
    log.take([query(1)])
    assert (counter.log(), counter.log()) == (1, 0)


def test_a_column_of_a_newer_release_comes_behind_the_others(
    entry: CatalogEntry, table: QueryLogTable, log: QueryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.take([query(1)])
    with monkeypatch.context() as before:
        before.setattr(module, "_COLUMNS", {name: kind for name, kind in module._COLUMNS.items() if name != "splits"})
        log.append_to(table)
    log.take([query(2)])
    log.append_to(table)
    assert writer(entry).load_table(("icewright", "queries")).schema().column_names[-1] == "splits"


def test_a_table_of_somebody_else_is_left_alone(entry: CatalogEntry, log: QueryLog) -> None:
    append(make_table(entry, ("db", "theirs")), range(3))
    log.take([query(1)])
    with pytest.raises(Unsupported, match="does not say where it ends"):
        log.append_to(QueryLogTable(entry, TableName("lake", ("db",), "theirs")))
    assert writer(entry).load_table(("db", "theirs")).schema().column_names == ["id", "city"]


@pytest.mark.parametrize("said", ["", "x", "-1", "1.5", "\u0661"])
def test_what_is_no_place_is_not_guessed(entry: CatalogEntry, table: QueryLogTable, log: QueryLog, said: str) -> None:
    log.take([query(1)])
    log.append_to(table)
    with writer(entry).load_table(("icewright", "queries")).transaction() as change:
        change.set_properties({f"icewright.queries.end.{log.spool.spool_id}": said})
    with pytest.raises(Unreadable):
        log.append_to(table)


def test_a_query_that_names_a_table_several_times_counts_once(
    entry: CatalogEntry, table: QueryLogTable, log: QueryLog
) -> None:
    """As a join of a table with itself, or a DELETE in Spark, which looks for files and then reads them."""
    twice = query(1, read_of(EVENTS, equal("user_id", "7")), read_of(EVENTS, equal("city", "x")))
    log.take([twice])
    assert log.count() == 1
    assert log.queries_of(record(1).table_id, AT) == 1
    (week,) = log.templates_of(record(1).table_id, AT)
    assert [one.column for one in week.template.filters] == ["city", "user_id"]
    assert (week.sums.files_read, week.sums.bytes_read, week.sums.cpu_ms) == (6, 200, 2_000)
    log.append_to(table)
    assert [row["files_read"] for row in rows(entry)] == [3, 3]  # a row for each scan


def test_what_not_every_mention_says_is_not_added_up(log: QueryLog) -> None:
    log.take([query(1, read_of(EVENTS), read_of(EVENTS, files_read=None))])
    log.count()
    (week,) = log.templates_of(record(1).table_id, AT)
    assert (week.sums.queries, week.sums.with_files, week.sums.files_read) == (1, 0, 0)
