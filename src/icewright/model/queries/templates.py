"""Templates: queries of a table that differ in their literals alone, and what they cost in a week."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from icewright.core import codec
from icewright.core.times import Instant
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.queries.queries import Operator, QueryRecord, TableRead

NAMES_MAX: Final = 20
"""Users and engines of a template that are counted apart; the others are counted together."""
OTHERS: Final = "(others)"
SUM_MAX: Final = 2**62
"""Where sums end: a database adds no more."""
LENGTH_MAX: Final = 8_192
"""Of a template, as JSON; longer ones are summed together."""
WEEK_MS: Final = 7 * 24 * 3_600_000
_MONDAY_MS: Final = 4 * 24 * 3_600_000
"""The first Monday of the epoch: 1970-01-05."""


@dataclass(frozen=True, slots=True)
class FilteredColumn:
    """A column of the filter, with the operators that it is compared by."""

    column: str
    operators: tuple[Operator, ...]

    def __str__(self) -> str:
        """``ts gt-eq lt``."""
        return " ".join((self.column, *self.operators))


@dataclass(frozen=True, slots=True)
class Template:
    """What reads of one table have in common, without literals; columns as the queries spell them, sorted."""

    filters: tuple[FilteredColumn, ...] = ()
    group_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    joined_on: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits: the same for the same template, in all releases."""
        return hashlib.sha256(codec.dumps(self).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def __str__(self) -> str:
        """``user_id eq, ts gt-eq lt; group by day``."""
        parts = [", ".join(map(str, self.filters)) or "no filter"]
        named = {"group by": self.group_by, "order by": self.order_by, "join on": self.joined_on}
        parts += [f"{what} {', '.join(columns)}" for what, columns in named.items() if columns]
        return "; ".join(parts)


OTHER_TEMPLATES: Final = Template(aggregates=(OTHERS,))
"""What stands for all templates of a table and week beyond those that are counted apart."""


def template_of(read: TableRead) -> Template:
    """The template of a read. Of equal ones the order of filters and columns does not matter.

    One that is too long is :data:`OTHER_TEMPLATES`.
    """
    operators: dict[str, set[Operator]] = {}
    for one in read.filters:
        operators.setdefault(one.column, set()).add(one.operator)
    filters = tuple(FilteredColumn(column, tuple(sorted(found))) for column, found in sorted(operators.items()))
    found = Template(
        filters,
        *(tuple(sorted({*columns})) for columns in (read.group_by, read.order_by, read.joined_on, read.aggregates)),
    )
    return found if len(codec.dumps(found)) <= LENGTH_MAX else OTHER_TEMPLATES


def read_once(query: QueryRecord) -> QueryRecord:
    """The query with one read of each table, however often it names it: so it counts once for each.

    Filters and columns of all mentions are together, and what they opened and read is added up where all say it.
    """
    by_table: dict[TableName, list[TableRead]] = {}
    for read in query.tables:
        by_table.setdefault(read.table, []).append(read)
    if len(by_table) == len(query.tables):
        return query
    return replace(query, tables=tuple(map(_as_one, by_table.values())))


def _as_one(reads: Sequence[TableRead]) -> TableRead:
    first, *others = reads
    if not others:
        return first
    changes: dict[str, Any] = {
        name: tuple(dict.fromkeys(one for read in reads for one in getattr(read, name))) for name in _LISTS
    }
    for name in _AMOUNTS:
        amounts = [getattr(read, name) for read in reads]
        changes[name] = None if None in amounts else sum(amounts)
    return replace(first, **changes)


_LISTS: Final = ("columns", "filters", "group_by", "order_by", "joined_on", "aggregates")
_AMOUNTS: Final = ("files_read", "files_skipped", "bytes_planned", "bytes_read", "rows_read", "rows_after")


def week_of(at: Instant) -> Instant:
    """When the week of an instant began: a Monday, in UTC."""
    return at - (at - _MONDAY_MS) % WEEK_MS


@dataclass(frozen=True, slots=True)
class Sums:
    """Queries of one template, summed.

    What not every query says is summed over those that do: ``files_read``, ``files_skipped`` and ``bytes_read`` over
    ``with_files`` and ``with_bytes`` queries. ``users`` and ``engines`` are numbers of queries.
    """

    queries: int = 0
    failed: int = 0
    duration_ms: int = 0
    cpu_ms: int = 0
    with_bytes: int = 0
    bytes_read: int = 0
    rows_read: int = 0
    rows_after: int = 0
    with_files: int = 0
    files_read: int = 0
    files_skipped: int = 0
    first_at: Instant = 0
    last_at: Instant = 0
    users: Mapping[str, int] = field(default_factory=dict)
    engines: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Sums) -> Sums:
        """Both together."""
        if not (self.queries and other.queries):
            return self if self.queries else other
        numbers = {name: min(SUM_MAX, getattr(self, name) + getattr(other, name)) for name in _ADDED}
        return Sums(
            **numbers,
            first_at=min(self.first_at, other.first_at),
            last_at=max(self.last_at, other.last_at),
            users=_together(self.users, other.users),
            engines=_together(self.engines, other.engines),
        )


_ADDED: Final = tuple(name for name, kind in Sums.__annotations__.items() if kind == "int")


def sums_of(query: QueryRecord, read: TableRead) -> Sums:
    """One query. What it took as a whole counts for each table that it read."""
    bytes_read = query.bytes_read if read.bytes_read is None and len(query.tables) == 1 else read.bytes_read
    has_files = read.files_read is not None
    return Sums(
        queries=1,
        failed=int(not query.succeeded),
        duration_ms=query.duration_ms or 0,
        cpu_ms=query.cpu_ms or 0,
        with_bytes=int(bytes_read is not None),
        bytes_read=bytes_read or 0,
        rows_read=read.rows_read or 0,
        rows_after=read.rows_after or 0,
        with_files=int(has_files),
        files_read=read.files_read or 0,
        files_skipped=(read.files_skipped or 0) if has_files else 0,
        first_at=query.started_at,
        last_at=query.started_at,
        users={query.user: 1},
        engines={query.engine: 1},
    )


@dataclass(frozen=True, slots=True)
class TemplateWeek:
    """A template of a table in the week that began at ``week_at``."""

    table_id: TableId
    week_at: Instant
    template: Template
    sums: Sums


def _together(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    counted = Counter(one) + Counter(other)
    if len(counted) <= NAMES_MAX + 1:
        return dict(counted)
    named = [name for name, _ in counted.most_common() if name != OTHERS][:NAMES_MAX]
    found = {name: counted[name] for name in named}
    return {**found, OTHERS: counted.total() - sum(found.values())}
