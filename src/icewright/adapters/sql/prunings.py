"""How much an SQL database keeps of the past, and what was removed of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Engine, Table, func, insert, select, update

from icewright.adapters.sql import transactions
from icewright.adapters.sql.feed_schema import feed, messages
from icewright.adapters.sql.kept_schema import kept_of_tasks
from icewright.adapters.sql.schema import inbox, optimizers, plans, state_is, tasks, worker_access
from icewright.adapters.sql.schema_access import audit
from icewright.adapters.sql.servers_schema import prunings
from icewright.adapters.sql.transactions import reading, writing
from icewright.domain.notifications import MessageState
from icewright.domain.retention import Pruned, RowKind, Rows
from icewright.domain.tables import Instant
from icewright.domain.tasks import TERMINAL_STATES
from icewright.ports.clock import Clock


@dataclass(frozen=True)
class _Place:
    """Where rows of a kind are. ``order``: the column that grows with their age where that one has no index."""

    table: Table
    at: ColumnElement[int]
    only: tuple[ColumnElement[bool], ...] = ()
    order: ColumnElement[Any] | None = None


_PLACES: Final[Mapping[RowKind, _Place]] = {
    RowKind.TASKS: _Place(tasks, tasks.c.updated_at, (state_is(*TERMINAL_STATES),)),
    RowKind.EVENTS: _Place(inbox, inbox.c.done_at, (inbox.c.done_at.is_not(None),)),
    RowKind.FEED: _Place(feed, feed.c.at, order=feed.c.sequence),
    RowKind.MESSAGES: _Place(messages, messages.c.ended_at, (messages.c.state == MessageState.SENT.value,)),
    RowKind.DEAD_LETTERS: _Place(messages, messages.c.ended_at, (messages.c.state == MessageState.DEAD.value,)),
    RowKind.PLANS: _Place(plans, plans.c.planned_at),
    RowKind.FINDINGS: _Place(worker_access, worker_access.c.decided_at),
    RowKind.OPTIMIZERS: _Place(optimizers, optimizers.c.seen_at),
    RowKind.KEPT: _Place(kept_of_tasks, kept_of_tasks.c.kept_at),
    RowKind.AUDIT: _Place(audit, audit.c.at, order=audit.c.number),
}


class SqlPrunings:
    """The port over an engine of :func:`icewright.adapters.sql.engine.open_store`.

    Time is the database's unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine, self._clock = engine, clock

    def rows(self) -> Mapping[RowKind, Rows]:
        """See the port."""
        with reading(self._engine) as connection:
            return {kind: _rows(connection, _PLACES[kind]) for kind in RowKind}

    def note(self, removed: Mapping[RowKind, int], left: Mapping[RowKind, Rows]) -> None:
        """See the port."""
        with writing(self._engine) as connection:
            now = transactions.now(connection, self._clock)
            for kind, count in removed.items():
                _note(connection, kind, now, count, left.get(kind))

    def pruned(self) -> Mapping[RowKind, Pruned]:
        """See the port."""
        with reading(self._engine) as connection:
            found = connection.execute(select(prunings)).all()
        return {
            RowKind(row.kind): Pruned(row.pruned_at, row.removed, Rows(row.left_count, row.oldest_at)) for row in found
        }


def _rows(connection: Connection, place: _Place) -> Rows:
    count = connection.scalar(select(func.count()).select_from(place.table).where(*place.only)) or 0
    oldest = select(func.min(place.at)) if place.order is None else select(place.at).order_by(place.order).limit(1)
    return Rows(int(count), connection.scalar(oldest.where(*place.only)))


def _note(connection: Connection, kind: RowKind, now: Instant, removed: int, left: Rows | None) -> None:
    values = {} if left is None else {"left_count": left.count, "oldest_at": left.oldest_at}
    ours = prunings.c.kind == kind.value
    changed = update(prunings).where(ours).values(pruned_at=now, removed=prunings.c.removed + removed, **values)
    if connection.execute(changed).rowcount == 0:
        values = values or {"left_count": 0, "oldest_at": None}
        connection.execute(insert(prunings).values(kind=kind.value, pruned_at=now, removed=removed, **values))
