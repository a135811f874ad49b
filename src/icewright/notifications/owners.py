"""Whose tables are, by what was last seen of them and the rules of the moment."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.model.events.feed import Fact
from icewright.model.iceberg.names import TableId
from icewright.policy.owners import owner_of
from icewright.policy.source import PolicySource
from icewright.ports.store import TableStore

KNOWN_MAX: Final = 10_000
KNOWN_FOR_MS: Final = 60_000
"""How long it is believed whose a table is; a change is heeded after that."""


class Owners:
    """Whose the tables of facts are. Safe for use by several threads: at worst something is read twice."""

    def __init__(self, tables: TableStore, source: PolicySource, clock: Clock) -> None:
        self._tables, self._source, self._clock = tables, source, clock
        self._known: OrderedDict[TableId, tuple[Instant, str | None]] = OrderedDict()

    def of(self, fact: Fact) -> str | None:
        """Whose the table of a fact is; None where nobody says so, or it is of no table.

        Raises :class:`~icewright.core.errors.Unavailable` when the store does not answer.
        """
        table_id = fact.table_id
        if table_id is None:
            return None
        now, known = self._clock.now(), self._known.get(table_id)
        if known is not None and 0 <= now - known[0] < KNOWN_FOR_MS:
            return known[1]
        record = self._tables.record(table_id)
        name = fact.table_name if record is None else record.name
        properties = {} if record is None else record.properties or {}
        owner = None if name is None else owner_of(name, properties, self._source.present().rules)
        self._known[table_id] = now, owner
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return owner
