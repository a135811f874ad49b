"""The query log: queries come in by its door, wait in the spool, and are counted and logged by its thread."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from types import MappingProxyType
from typing import Final, TypeVar

import structlog

from icewright.core.clock import Clock
from icewright.core.errors import Conflict, IcewrightError, InvalidMessage, OutcomeUnknown, Unsupported
from icewright.core.times import Instant
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.queries.bounds import bounded
from icewright.model.queries.queries import LiteralPolicy, QueryRecord, QuerySource
from icewright.model.queries.templates import TemplateWeek, read_once, sums_of, template_of, week_of
from icewright.ports.store import TableRecord, TableStore
from icewright.queries.log_table import LoggedRead, QueryLogTable, logged
from icewright.queries.sources.literals import LiteralRules, parsed_sql
from icewright.queries.spool import QuerySpool, Spooled, SpoolFigures
from icewright.queries.sql import SqlQuerySums
from icewright.queries.views import Accepted

_T = TypeVar("_T")
_log = structlog.get_logger("icewright.queries")

COUNTED_AT_ONCE: Final = 2_000
"""Queries that one transaction of the store counts, and tables that they read: each may be a row of its own."""
LOGGED_AT_ONCE: Final = 20_000
"""Queries of one commit to the table of queries."""
UNKNOWN_MS: Final = 60_000
"""How long a query waits for its table to become known."""
COUNT_EVERY_S: Final = 2.0
LOG_EVERY_S: Final = 300.0
"""How often there is a commit to the table, at most: each is a file more for each day that it has queries of."""


NO_LITERALS: Final = LiteralRules(LiteralPolicy.DROP)


class QueryLog:
    """The door, and what was counted. Safe for use by several threads.

    Where there is no spool, as in a process that only reads, its methods raise :class:`Unsupported`.
    """

    def __init__(
        self,
        catalogs: Collection[str],
        tables: TableStore,
        clock: Clock,
        spool: QuerySpool | None = None,
        sums: SqlQuerySums | None = None,
        names: Mapping[str, str] = MappingProxyType({}),
        rules: LiteralRules = NO_LITERALS,
        table: TableName | None = None,
    ) -> None:
        """``names`` are our catalogs by what engines call them; ``rules`` say what is kept of the values in queries.

        ``table`` is where queries are kept as rows.
        """
        self.rules = rules
        self._table, self.clock = table, clock
        self._catalogs, self._tables, self._names = frozenset(catalogs), tables, names
        self._spool, self._sums = spool, sums
        self._lock = threading.Lock()
        self._received: Counter[tuple[str, str]] = Counter()

    @property
    def table(self) -> TableName | None:
        """The table in which queries are kept, None where there is none."""
        return self._table

    def queries_of(self, table_id: TableId, since: Instant) -> int:
        """How many queries of a table were counted in the weeks since an instant; none where they are not counted."""
        if self._sums is None:
            return 0
        return self._sums.queries_of(table_id, week_of(since))

    def weeks_of(self, table_id: TableId, since: Instant) -> Mapping[Instant, int]:
        """How many were counted of a table in each week since an instant, by its beginning; nothing where none were."""
        return {} if self._sums is None else self._sums.weeks_of(table_id, week_of(since))

    def templates_of(self, table_id: TableId, since: Instant) -> Sequence[TemplateWeek]:
        """What was counted of a table in the weeks since an instant; nothing where they are not counted."""
        return () if self._sums is None else self._sums.of_table(table_id, week_of(since))

    @property
    def spool(self) -> QuerySpool:
        """Where queries wait. Raises :class:`Unsupported`."""
        if self._spool is None:
            raise Unsupported("this server keeps no query log", hint="the log of the server says why")
        return self._spool

    @property
    def is_kept(self) -> bool:
        """Whether there is a spool."""
        return self._spool is not None

    @property
    def sums(self) -> SqlQuerySums:
        """What was counted. Raises :class:`Unsupported`."""
        if self._sums is None:
            raise Unsupported("this server keeps no query log", hint="the log of the server says why")
        return self._sums

    @property
    def kept_sums(self) -> SqlQuerySums | None:
        """As :attr:`sums`, None where there are none."""
        return self._sums

    @property
    def received(self) -> Mapping[tuple[str, str], int]:
        """Queries that came in since this process began, by source and by what became of them: for monitoring."""
        with self._lock:
            return dict(self._received)

    def figures(self) -> SpoolFigures | None:
        """How much waits, None where there is no spool. Raises ``Unavailable``."""
        return None if self._spool is None else self._spool.figures()

    def named(self, query: QueryRecord) -> QueryRecord:
        """The query with catalogs as we call them, and without tables of catalogs that are not configured."""
        found = []
        for read in query.tables:
            catalog = self._names.get(read.table.catalog, read.table.catalog)
            if catalog in self._catalogs:
                found.append(replace(read, table=replace(read.table, catalog=catalog)))
        return replace(query, tables=tuple(found))

    def redacted(self, query: QueryRecord) -> QueryRecord:
        """A query as it was sent, without values that must not be kept; its text goes where it cannot be read."""
        return self.rules.record(query, parsed_sql(query) if query.sql else None)

    def take(self, queries: Sequence[QueryRecord], malformed: Sequence[bytes] = ()) -> Accepted:
        """Keep queries, durably, before anything of them is counted; set aside what are none.

        They are :meth:`named` ones, without values that must not be kept (:attr:`rules`).

        Raises :class:`InvalidMessage` for what no query can be (:func:`~icewright.model.queries.bounds.bounded`);
        :class:`~icewright.core.errors.SpoolFull` and ``Unavailable``: then nothing is kept, and all may be sent again.
        """
        now = self.clock.now()
        ours = [bounded(query, now) for query in queries if query.tables]
        new = self.spool.put(ours) if ours else 0
        if malformed:
            self.spool.set_aside(malformed)
            self.count_malformed(QuerySource.TRINO, len(malformed))
        ignored = len(queries) - len(ours)
        with self._lock:
            for query in queries:
                self._received[query.source.value, "accepted" if query.tables else "ignored"] += 1
        return Accepted(len(ours), len(ours) - new, ignored, len(malformed))

    def count_malformed(self, source: QuerySource, number: int) -> None:
        """Count what could not be read as queries, and is kept where it came from."""
        with self._lock:
            self._received[source.value, "malformed"] += number

    def adopt_spool(self) -> None:
        """Give a spool another id that is older than what was counted of it, before anything new comes in."""
        if self.sums.position(self.spool.spool_id) > self.spool.last_seq:
            self._renew()

    def count(self) -> int:
        """Add the next queries of the spool to the sums; how many they were. Raises what the store raises.

        Queries of a table that is not known yet wait for it, :data:`UNKNOWN_MS` at most, and those behind them.
        """
        after = self.sums.position(self.spool.spool_id)
        if after > self.spool.last_seq:
            self._renew()
            after = 0
        batch = _of_reads(self.spool.after(after, COUNTED_AT_ONCE), COUNTED_AT_ONCE)
        records = self._records(batch)
        ready = self._known(batch, records)
        if ready:
            weeks = self._each(ready, lambda query: _weeks(query, records))
            self.sums.add(self.spool.spool_id, after, ready[-1].seq, weeks)
            unknown = sum(read.table not in records for one in ready for read in one.query.tables)
            if unknown:
                with self._lock:
                    self._received["any", "unknown-table"] += unknown
        return len(ready)

    def _each(self, batch: Sequence[Spooled], make: Callable[[QueryRecord], Iterable[_T]]) -> list[_T]:
        """What is made of each query of a batch. One of which nothing can be made is set aside, whatever it is."""
        made: list[_T] = []
        for one in batch:
            try:
                made += make(one.query)
            except (InvalidMessage, OverflowError, ValueError) as error:
                _log.warning("a query is set aside", query=one.query.query_id, detail=str(error)[:500])
                self.spool.put_aside([one.seq])
                self.count_malformed(one.query.source, 1)
        return made

    def _known(self, batch: Sequence[Spooled], records: Mapping[TableName, TableRecord]) -> Sequence[Spooled]:
        """The queries before the first one that came lately and is of a table that is not known yet."""
        old = self.clock.now() - UNKNOWN_MS
        waits = (
            number
            for number, one in enumerate(batch)
            if one.received_at > old and any(read.table not in records for read in one.query.tables)
        )
        return batch[: next(waits, len(batch))]

    def _renew(self) -> None:
        """Go on under another id, with what is counted of the spool, where that can be."""
        _log.warning("the spool of queries is older than what is known of it", spool=self.spool.spool_id)
        counted = self.sums.position(self.spool.spool_id)
        self.spool.renew()
        if 0 < counted <= self.spool.last_seq:
            self.sums.add(self.spool.spool_id, 0, counted, ())

    def append_to(self, table: QueryLogTable) -> tuple[int, int]:
        """Append the next queries of the spool to the table; how many they were, and up to where it has them.

        Raises what catalogs raise.
        """
        after = table.position(self.spool.spool_id)
        if after > self.spool.last_seq:
            self._renew()
            after = 0
        batch = self.spool.after(after, LOGGED_AT_ONCE)
        records = self._records(batch)
        batch = self._known(batch, records)
        rows = self._each(batch, lambda query: _rows(query, records))
        if rows:
            table.append(self.spool.spool_id, after, batch[-1].seq, rows)
        return len(batch), batch[-1].seq if batch else after

    def _records(self, batch: Iterable[Spooled]) -> Mapping[TableName, TableRecord]:
        return self._tables.records_by_name({read.table for one in batch for read in one.query.tables})


def _of_reads(batch: Sequence[Spooled], most: int) -> Sequence[Spooled]:
    """The first queries of a batch that read so many tables at most; one at least."""
    reads = accumulate(len(one.query.tables) for one in batch)
    return batch[: max(1, sum(number <= most for number in reads))]


def _weeks(query: QueryRecord, records: Mapping[TableName, TableRecord]) -> list[TemplateWeek]:
    week, query = week_of(query.started_at), read_once(query)
    return [
        TemplateWeek(records[read.table].table_id, week, template_of(read), sums_of(query, read))
        for read in query.tables
        if read.table in records
    ]


def _rows(query: QueryRecord, records: Mapping[TableName, TableRecord]) -> list[LoggedRead]:
    def uuid_of(name: TableName) -> str | None:
        record = records.get(name)
        return None if record is None else record.table_id.uuid

    return [logged(query, read, uuid_of(read.table)) for read in query.tables]


class QueryCounter:
    """Counts and logs what is in the spool of this server, again and again; one thread of it."""

    def __init__(self, log: QueryLog, table: QueryLogTable | None) -> None:
        self._log, self._table = log, table
        self._logged_through = 0

    def run(self, stop: threading.Event) -> None:
        """Go on until ``stop`` is set, and once more then. No failure ends it: sums and table say where to go on."""
        log_at_s = 0.0
        while True:
            is_last = stop.is_set()
            counted = self._step("counting", self._log.count)
            if (is_last or time.monotonic() >= log_at_s) and self._step("logging", self._log_waiting):
                log_at_s = time.monotonic() + LOG_EVERY_S
            self._step("forgetting", self.forget)
            if is_last:
                return
            if not counted:
                stop.wait(COUNT_EVERY_S)

    def log(self) -> int:
        """Append the next queries to the table, where there is one; how many they were.

        No catalog is asked, and no table made, before there is something to append.
        """
        if self._table is None or not self._log.spool.after(self._logged_through, 1):
            return 0
        number, self._logged_through = self._log.append_to(self._table)
        return number

    def _log_waiting(self) -> int:
        """Log once; 1 where something was logged, and nothing waits any more of what waited then."""
        began_at = self._log.clock.now()
        if not self.log():
            return 0
        first = self._log.spool.after(self._logged_through, 1)
        return int(not first or first[0].received_at > began_at)

    def forget(self) -> int:
        """Forget of the spool what is both counted and logged; up to where."""
        spool = self._log.spool
        counted = self._log.sums.position(spool.spool_id)
        through = counted if self._table is None else min(counted, self._logged_through)
        spool.done(through)
        return through

    def _step(self, what: str, step: Callable[[], int]) -> int:
        try:
            return step()
        except (Conflict, OutcomeUnknown) as error:
            _log.info(f"{what} queries is tried again", code=error.code, detail=error.message)
        except IcewrightError as error:
            _log.warning(f"{what} queries is put off", code=error.code, detail=error.message)
        except Exception:  # noqa: BLE001 - the thread's outermost edge: the server goes on without a query log
            _log.exception(f"{what} queries failed")
        return 0
