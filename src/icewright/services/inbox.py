"""Which events a round of the loop works on: those of known tables first, and none behind a catalog that is away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from icewright.domain.events import StoredEvent
from icewright.domain.names import TableName
from icewright.ports.store import TableStore

UNKNOWN_MAX: Final = 50
"""Events of tables that are not known that a round works on: each costs the catalog a question, and names are free."""


def next_events(
    tables: TableStore, is_away: Callable[[str], bool], most: int
) -> tuple[Mapping[TableName, Sequence[StoredEvent]], bool]:
    """The next events by table, ``most`` of known ones and some of others behind them; whether there may be more.

    ``is_away`` says of a catalog that it is left alone: its events wait without being in the way.
    """
    known, others = _ready(tables, is_away, most, known=True), _ready(tables, is_away, UNKNOWN_MAX, known=False)
    by_table: dict[TableName, list[StoredEvent]] = {}
    for stored in (*known, *others):
        by_table.setdefault(stored.event.table_name, []).append(stored)
    return by_table, len(known) >= most or len(others) >= UNKNOWN_MAX


def _ready(tables: TableStore, is_away: Callable[[str], bool], most: int, *, known: bool) -> Sequence[StoredEvent]:
    limit = most
    while True:
        oldest = tables.inbox(limit, known=known)
        ready = [stored for stored in oldest if not is_away(stored.event.table_name.catalog)]
        if len(ready) >= most or len(oldest) < limit:
            return ready[:most]
        limit *= 2
