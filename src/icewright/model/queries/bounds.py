"""What a record of a query may hold: engines and strangers send them, and each is kept, summed and read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, Final

from icewright.core.errors import InvalidMessage
from icewright.core.times import Instant
from icewright.model.queries.queries import SQL_LENGTH_MAX, Filter, Literal, QueryRecord, TableRead

NUMBER_MAX: Final = 2**53
"""Of any figure of one query; beyond it numbers are not exact in JSON either."""
NAME_LENGTH_MAX: Final = 256
"""Characters of an id, an engine and a user."""
COLUMN_LENGTH_MAX: Final = 1_000
LITERAL_LENGTH_MAX: Final = 1_000
COLUMNS_MAX: Final = 500
"""Columns that are read, filters, and columns of each other list, of one read."""
READS_MAX: Final = 100
"""Tables that one query reads."""
AGE_MS_MAX: Final = 400 * 24 * 3_600_000
AHEAD_MS_MAX: Final = 24 * 3_600_000
"""How far the clock of an engine may be ahead of ours."""


def bounded(query: QueryRecord, now: Instant) -> QueryRecord:
    """The query with what is too long or too many cut.

    Raises :class:`InvalidMessage` for what cannot be cut: an id, a figure below 0 or beyond :data:`NUMBER_MAX`, and a
    time that is none.
    """
    if not query.query_id or len(query.query_id) > NAME_LENGTH_MAX:
        raise InvalidMessage(f"the id of a query has 1 to {NAME_LENGTH_MAX} characters")
    if not now - AGE_MS_MAX <= query.started_at <= now + AHEAD_MS_MAX:
        raise InvalidMessage(
            f"query {query.query_id} has started_at {query.started_at}: more than 400 days ago, or a day in the future",
            hint="send newer queries; started_at is in milliseconds since 1970-01-01 UTC",
        )
    _check_figures(query.query_id, query)
    for read in query.tables:
        _check_figures(query.query_id, read)
    return replace(
        query,
        engine=query.engine[:NAME_LENGTH_MAX],
        user=query.user[:NAME_LENGTH_MAX],
        sql=query.sql[:SQL_LENGTH_MAX],
        tables=tuple(map(_read, query.tables[:READS_MAX])),
    )


def bounded_ones(
    queries: Iterable[QueryRecord], now: Instant, refused: Callable[[InvalidMessage], None]
) -> Iterator[QueryRecord]:
    """Each that is :func:`bounded`. One that is refused is no reason to leave out those behind it."""
    for query in queries:
        try:
            yield bounded(query, now)
        except InvalidMessage as error:
            refused(error)


def _check_figures(query_id: str, value: Any) -> None:
    for field in fields(value):
        found = getattr(value, field.name)
        is_number = isinstance(found, int) and not isinstance(found, bool)
        most = 2**63 - 1 if field.name == "snapshot_id" else NUMBER_MAX
        if is_number and field.name != "started_at" and not 0 <= found <= most:
            raise InvalidMessage(f"query {query_id} has {field.name} {found}", hint=f"0 to {most}")


def _read(read: TableRead) -> TableRead:
    return replace(
        read,
        columns=_names(read.columns),
        filters=tuple(map(_filter, read.filters[:COLUMNS_MAX])),
        group_by=_names(read.group_by),
        order_by=_names(read.order_by),
        joined_on=_names(read.joined_on),
        aggregates=_names(read.aggregates),
    )


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name[:COLUMN_LENGTH_MAX] for name in names[:COLUMNS_MAX])


def _filter(one: Filter) -> Filter:
    literals = tuple(Literal(each.kind, each.text[:LITERAL_LENGTH_MAX]) for each in one.literals[:COLUMNS_MAX])
    return Filter(one.column[:COLUMN_LENGTH_MAX], one.operator, literals)
