"""The sightings of orphans, in memory, for the simulation of worlds with files."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from icewright.core.clock import Clock, ClockNote
from icewright.core.errors import Conflict
from icewright.core.times import Instant
from icewright.model.actions.orphans import FinishedPass, Sighting
from icewright.model.iceberg.names import TableId


@dataclass(slots=True)
class _OfTable:
    begun: int = 0
    is_open: bool = False
    finished: FinishedPass | None = None
    seen: tuple[Sighting, ...] = ()
    coming: list[Sighting] = field(default_factory=list)


class MemorySightings:
    """As :class:`~icewright.actions.remove_files.orphans.sightings_sql.SqlSightings`, over one dictionary."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tables: dict[TableId, _OfTable] = {}
        self._note: ClockNote | None = None

    def now(self) -> Instant:
        return self._clock.now()

    def finished(self, table_id: TableId) -> FinishedPass | None:
        with self._lock:
            return self._tables.get(table_id, _OfTable()).finished

    def sightings(self, table_id: TableId) -> Iterator[Sighting]:
        with self._lock:
            return iter(self._tables.get(table_id, _OfTable()).seen)

    def clock_note(self) -> ClockNote | None:
        with self._lock:
            return self._note

    def keep_clock_note(self, note: ClockNote) -> None:
        with self._lock:
            self._note = note

    def begin(self, table_id: TableId) -> int:
        with self._lock:
            table = self._tables.setdefault(table_id, _OfTable())
            table.begun, table.is_open, table.coming = table.begun + 1, True, []
            return table.begun

    def add(self, table_id: TableId, number: int, sightings: Sequence[Sighting]) -> None:
        with self._lock:
            self._open(table_id, number).coming.extend(sightings)

    def finish(self, table_id: TableId, finished: FinishedPass) -> None:
        with self._lock:
            table = self._open(table_id, finished.number)
            table.finished, table.seen, table.coming, table.is_open = finished, tuple(table.coming), [], False

    def _open(self, table_id: TableId, number: int) -> _OfTable:
        table = self._tables.get(table_id)
        if table is None or not table.is_open or table.begun != number:
            raise Conflict(f"pass {number} over table {table_id} is finished, or another one has begun")
        return table
