"""The sightings of orphans, in an SQL database: in compressed chunks, of which a pass replaces all at once.

A row for each would be a million rows of one table, all of them changed by every pass.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, select, update

from icewright.core.clock import Clock, ClockNote, Uptime
from icewright.core.errors import Conflict, Unreadable
from icewright.core.times import Instant
from icewright.model.actions.orphans import FinishedPass, Sighting
from icewright.model.iceberg.names import TableId
from icewright.store import transactions
from icewright.store.documents import dump, load_optional
from icewright.store.schema import counters, orphan_passes, orphan_sightings
from icewright.store.table_rows import id_columns, is_table
from icewright.store.transactions import reading, writing

_NOTE = ("clock_noted_at", "clock_uptime_ms", "clock_boot", "graces_since")


class SqlSightings:
    """The unneeded files of each table, as its last finished pass has them; durable.

    A pass puts all of them anew, in portions, and takes the place of the one before when it is finished: what it does
    not put is forgotten. One that never finishes changes nothing. All methods raise
    :class:`~icewright.core.errors.Unavailable` when the store does not answer.

    Instants take the database's clock unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock

    def now(self) -> Instant:
        """The store's clock."""
        with reading(self._engine) as connection:
            return transactions.now(connection, self._clock)

    def finished(self, table_id: TableId) -> FinishedPass | None:
        """The last finished pass over a table; None before the first."""
        query = select(orphan_passes.c.finished).where(*is_table(orphan_passes, table_id))
        with reading(self._engine) as connection:
            return load_optional(FinishedPass, connection.scalar(query))

    def sightings(self, table_id: TableId) -> Iterator[Sighting]:
        """What the last finished pass saw, in no particular order, one after the other.

        No transaction is open between two chunks; a pass that finishes meanwhile is a conflict.
        """
        with reading(self._engine) as connection:
            number = _number(connection, table_id)
            chunks = 0 if number is None else _chunks(connection, table_id, number)
        for chunk in range(chunks):
            query = select(orphan_sightings.c.sightings).where(
                *is_table(orphan_sightings, table_id),
                orphan_sightings.c.number == number,
                orphan_sightings.c.chunk == chunk,
            )
            with reading(self._engine) as connection:
                blob = connection.scalar(query)
            if blob is None:
                raise Conflict(f"another pass over table {table_id} was finished while its sightings were read")
            yield from _unpacked(blob)

    def clock_note(self) -> ClockNote | None:
        """The last note about the clock; None before the first."""
        query = select(counters.c.name, counters.c.value).where(counters.c.name.in_(_NOTE))
        with reading(self._engine) as connection:
            found = {row.name: int(row.value) for row in connection.execute(query)}
        if len(found) < len(_NOTE):
            return None
        at, uptime_ms, boot, since = (found[name] for name in _NOTE)
        return ClockNote(at, Uptime(uptime_ms, boot), since)

    def keep_clock_note(self, note: ClockNote) -> None:
        """Keep a note in place of the last one."""
        values = zip(_NOTE, (note.at, note.uptime.ms, note.uptime.boot, note.graces_since), strict=True)
        with writing(self._engine) as connection:
            connection.execute(delete(counters).where(counters.c.name.in_(_NOTE)))
            connection.execute(insert(counters), [{"name": name, "value": value} for name, value in values])

    def begin(self, table_id: TableId) -> int:
        """The number of a new pass. What one before it put and did not finish is gone."""
        with writing(self._engine) as connection:
            row = connection.execute(select(orphan_passes).where(*is_table(orphan_passes, table_id))).one_or_none()
            if row is None:
                fresh = {**id_columns(table_id), "begun": 1, "finished_number": 0, "finished": None}
                connection.execute(insert(orphan_passes).values(fresh))
                return 1
            others = orphan_sightings.c.number != row.finished_number
            connection.execute(delete(orphan_sightings).where(*is_table(orphan_sightings, table_id), others))
            connection.execute(
                update(orphan_passes).where(*is_table(orphan_passes, table_id)).values(begun=row.begun + 1)
            )
            return int(row.begun) + 1

    def add(self, table_id: TableId, number: int, sightings: Sequence[Sighting]) -> None:
        """Put some more; they count once the pass is finished.

        Raises :class:`~icewright.core.errors.Conflict` when another pass over the table has begun meanwhile, or
        this one is finished.
        """
        blob = _packed(sightings)
        with writing(self._engine) as connection:
            _require_open(connection, table_id, number)
            chunk = _chunks(connection, table_id, number)
            row = {**id_columns(table_id), "number": number, "chunk": chunk, "sightings": blob}
            connection.execute(insert(orphan_sightings).values(row))

    def finish(self, table_id: TableId, finished: FinishedPass) -> None:
        """Let a pass take the place of the one before, all at once. Raises ``Conflict`` as :meth:`add` does."""
        with writing(self._engine) as connection:
            _require_open(connection, table_id, finished.number)
            connection.execute(
                update(orphan_passes)
                .where(*is_table(orphan_passes, table_id))
                .values(finished_number=finished.number, finished=dump(finished))
            )
            former = orphan_sightings.c.number != finished.number
            connection.execute(delete(orphan_sightings).where(*is_table(orphan_sightings, table_id), former))


def _number(connection: Connection, table_id: TableId) -> int | None:
    found = connection.scalar(select(orphan_passes.c.finished_number).where(*is_table(orphan_passes, table_id)))
    return None if found is None else int(found)


def _chunks(connection: Connection, table_id: TableId, number: int) -> int:
    rows = select(func.count()).where(*is_table(orphan_sightings, table_id), orphan_sightings.c.number == number)
    return int(connection.scalar(rows) or 0)


def _require_open(connection: Connection, table_id: TableId, number: int) -> None:
    row = connection.execute(select(orphan_passes).where(*is_table(orphan_passes, table_id))).one_or_none()
    if row is None or row.begun != number or row.finished_number == number:
        raise Conflict(f"pass {number} over table {table_id} is finished, or another one has begun")


def _packed(sightings: Sequence[Sighting]) -> bytes:
    """In the order of their paths, which have much in common then; escaped as everything that strangers name."""
    rows = [
        (s.path, s.size_bytes, s.modified_at, s.etag, s.version_id, s.first_seen_at, s.last_seen_at, s.passes)
        for s in sorted(sightings, key=lambda sighting: sighting.path)
    ]
    return zlib.compress(json.dumps(rows, separators=(",", ":"), ensure_ascii=True).encode("ascii"))


def _unpacked(blob: bytes) -> list[Sighting]:
    try:
        rows: list[list[Any]] = json.loads(zlib.decompress(blob))
        return [Sighting(*row) for row in rows]
    except (ValueError, TypeError, zlib.error) as error:
        raise Unreadable(f"stored sightings of orphans cannot be read: {error}") from error
