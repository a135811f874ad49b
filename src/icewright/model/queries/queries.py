"""A query that an engine ran, reduced to what layouts are judged by: which tables, filters and figures.

Engines say different parts of it: what is not known is None, never zero. A record is what the spool and the query log
keep; everything else (templates, recommendations) is made from records.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from icewright.core.times import Instant
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.predicates.comparisons import Literal as Literal  # noqa: PLC0414 - words of queries, too
from icewright.model.iceberg.predicates.comparisons import LiteralKind as LiteralKind  # noqa: PLC0414 - words of queries, too
from icewright.model.iceberg.predicates.comparisons import Operator as Operator  # noqa: PLC0414 - words of queries, too


class QuerySource(StrEnum):
    """By which way a query came in."""

    TRINO = "trino"
    """Trino's event listener, by HTTP or Kafka: a QueryCompletedEvent."""
    SPARK = "spark"
    """Spark's event log."""
    SCAN_REPORT = "scan-report"
    """Iceberg's own ScanReport: literals are hashed by the client."""
    SQL = "sql"
    """A text of SQL alone, as a file or a table has it."""


class LiteralPolicy(StrEnum):
    """What is kept of the values in queries."""

    KEEP = "keep"
    HASH = "hash"
    """Strings are replaced by keyed digests, so that equal ones stay equal; numbers, dates and timestamps stay."""
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Filter:
    """``column operator literals``: one conjunct of the filter of a scan. All conjuncts hold at once.

    ``column`` is a dotted path as the query spells it (lower case where the engine has it so). ``literals`` has one for
    comparisons, several for IN, none for IS NULL; a range is two filters.
    """

    column: str
    operator: Operator
    literals: tuple[Literal, ...] = ()


@dataclass(frozen=True, slots=True)
class TableRead:
    """What one query read of one table.

    ``catalog`` in ``table`` is the engine's name of the catalog, until the intake translates it. ``columns`` are those
    that were read; empty where it is not known. ``snapshot_id`` is what was read, where that is said.
    A table that a query names twice is read twice, each with filters of its own.
    ``files_read`` and ``files_skipped`` are data files; ``bytes_planned`` is the size of those that were read, of which
    ``bytes_read`` were needed. ``rows_read`` came out of the files, ``rows_after`` of the filter.
    """

    table: TableName
    columns: tuple[str, ...] = ()
    filters: tuple[Filter, ...] = ()
    group_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    joined_on: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    snapshot_id: int | None = None
    files_read: int | None = None
    files_skipped: int | None = None
    bytes_planned: int | None = None
    bytes_read: int | None = None
    rows_read: int | None = None
    rows_after: int | None = None


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """A query that ended, of one engine. The same ``query_id`` of the same ``source`` is the same query.

    ``sql`` is its text with literals as the policy of the log has them, cut at :data:`SQL_LENGTH_MAX`; empty where none
    is kept. ``engine`` is a name for people, such as ``trino 476``. ``succeeded`` is False of a query that failed: it
    counts for no layout.
    """

    query_id: str
    source: QuerySource
    engine: str
    user: str
    started_at: Instant
    duration_ms: int | None = None
    cpu_ms: int | None = None
    bytes_read: int | None = None
    rows_read: int | None = None
    splits: int | None = None
    limit: int | None = None
    succeeded: bool = True
    sql: str = ""
    tables: tuple[TableRead, ...] = ()


LOG_PREFIX = "icewright.queries."
"""How properties begin in which the table of queries says where it ends, and which column is which."""
SQL_LENGTH_MAX = 4_000
"""Characters of a query's text that are kept."""
