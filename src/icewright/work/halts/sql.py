"""Halts in an SQL database, shared by any number of server processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, Engine, FromClause, and_, delete, func, insert, select

from icewright.audit.acting import acting
from icewright.audit.model import of_halt, of_resume
from icewright.audit.sql import record
from icewright.core.clock import Clock
from icewright.core.errors import NotAllowed
from icewright.feed import sql as feed
from icewright.feed.task_events import fact_of_halt, fact_of_resume
from icewright.model.work.halts import HALTS_MAX, Halt, NewHalt, Part, PartKind, require_why
from icewright.store import transactions
from icewright.store.documents import dump, load
from icewright.store.transactions import reading, writing
from icewright.work.halts.schema import halts

_PARTS: Final = select(halts.c.kind, halts.c.name).where(halts.c.kind != PartKind.TABLE.value)


class SqlHalts:
    """The port over an engine of :func:`icewright.store.engine.open_store`.

    Halts are stamped with the database's clock unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine, self._clock = engine, clock

    def present(self) -> Sequence[Halt]:
        """See the port."""
        with reading(self._engine) as connection:
            return present(connection)

    def halt(self, new: NewHalt) -> Halt:
        """See the port."""
        with writing(self._engine) as connection:  # alone: a claim comes before it, or sees it
            before = _find(connection, new.part)
            if before is not None and (before.state, before.why) == (new.state, new.why):
                return before
            if before is None and (connection.scalar(select(func.count()).select_from(halts)) or 0) >= HALTS_MAX:
                raise NotAllowed(f"there are {HALTS_MAX:,} halts already", hint="pause catalogs or groups instead")
            now = transactions.now(connection, self._clock)
            halt = Halt(new.part, new.state, new.why, acting(), now)
            kind, name, table_uuid = new.part.key
            connection.execute(delete(halts).where(_is(new.part)))
            connection.execute(insert(halts).values(kind=kind, name=name, table_uuid=table_uuid, halt=dump(halt)))
            record(connection, now, of_halt(halt))
            feed.append(connection, (fact_of_halt(halt), now))
            return halt

    def resume(self, part: Part, why: str) -> Halt | None:
        """See the port."""
        require_why(why)
        with writing(self._engine) as connection:
            before = _find(connection, part)
            if before is not None:
                now = transactions.now(connection, self._clock)
                connection.execute(delete(halts).where(_is(part)))
                record(connection, now, of_resume(before, why))
                feed.append(connection, (fact_of_resume(before, acting(), why), now))
            return before


def present(connection: Connection) -> Sequence[Halt]:
    """All halts, in a transaction that goes on."""
    query = select(halts.c.halt).order_by(halts.c.kind, halts.c.name, halts.c.table_uuid)
    return [load(Halt, found) for found in connection.scalars(query)]


def halted_parts(connection: Connection) -> Sequence[Part]:
    """All that is halted but single tables, of which there may be many: queries see to these by :func:`is_halted`."""
    return [Part(PartKind(kind), name) for kind, name in connection.execute(_PARTS)]


def is_halted(of: FromClause) -> ColumnElement[bool]:
    """The condition that the table of a task, or of an alias of them, is halted by itself."""
    of_table = (halts.c.kind == PartKind.TABLE.value, halts.c.name == of.c.catalog)
    query = select(halts.c.kind).where(*of_table, halts.c.table_uuid == of.c.table_uuid)
    return query.correlate(of).exists()


def is_group_halted(of: FromClause) -> ColumnElement[bool]:
    """The condition that the resource group of a task, or of an alias of them, is halted by itself."""
    query = select(halts.c.kind).where(halts.c.kind == PartKind.GROUP.value, halts.c.name == of.c.resource_group)
    return query.correlate(of).exists()


def _find(connection: Connection, part: Part) -> Halt | None:
    found = connection.scalar(select(halts.c.halt).where(_is(part)))
    return None if found is None else load(Halt, found)


def _is(part: Part) -> ColumnElement[bool]:
    kind, name, table_uuid = part.key
    return and_(halts.c.kind == kind, halts.c.name == name, halts.c.table_uuid == table_uuid)
