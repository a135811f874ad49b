"""How far logs were read, in the store."""

from __future__ import annotations

from sqlalchemy import Engine, insert, select, update

from icewright.events.schema import event_cursors
from icewright.store.locks import LockKind, lock
from icewright.store.transactions import reading, writing


class SqlCursors:
    """How far logs were read whose keepers do not remember that for their readers; durable.

    Raises :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def position(self, name: str) -> int | None:
        """Where a log was read to, None before the first time."""
        with reading(self._engine) as connection:
            found = connection.scalar(select(event_cursors.c.position).where(event_cursors.c.name == name))
            return None if found is None else int(found)

    def move(self, name: str, position: int) -> None:
        """A log was read to there."""
        with writing(self._engine, (lock(LockKind.ROW, "event_cursors", name),)) as connection:
            where = update(event_cursors).where(event_cursors.c.name == name)
            if connection.execute(where.values(position=position)).rowcount == 0:
                connection.execute(insert(event_cursors).values(name=name, position=position))
