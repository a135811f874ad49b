"""How much an SQL database keeps of the past, and what was removed of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Engine, FromClause, func, insert, select, update

from icewright.actions.remove_files.adapters.deletions_schema import deletion_approvals, deletion_intents, deletion_runs
from icewright.actions.undo.undo_records_schema import kept_of_tasks
from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.events.schema import inbox
from icewright.feed.schema import feed, messages
from icewright.model.events.notifications import MessageState
from icewright.model.work.retention import Pruned, RowKind, Rows
from icewright.model.work.tasks import TERMINAL_STATES
from icewright.policy.rules.schema import policy_revisions
from icewright.ports.deletions import OVER_STATES
from icewright.queries.schema import query_templates
from icewright.recommendations.schema import recommendations
from icewright.store import transactions
from icewright.store.schema import (
    optimizers,
    plans,
    state_is,
    tables,
    tasks,
    worker_access,
)
from icewright.store.schema_access import audit
from icewright.store.servers_schema import prunings
from icewright.store.transactions import reading, writing
from icewright.work.autotune.schema import decisions
from icewright.work.store import task_logs


@dataclass(frozen=True)
class _Place:
    """Where rows of a kind are. ``order``: the column that grows with their age where that one has no index."""

    table: FromClause
    at: ColumnElement[int]
    only: tuple[ColumnElement[bool], ...] = ()
    order: ColumnElement[Any] | None = None


PLACES: Final[Mapping[RowKind, _Place]] = {
    RowKind.TASKS: _Place(tasks, tasks.c.updated_at, (state_is(*TERMINAL_STATES),)),
    RowKind.TASK_LOGS: _Place(task_logs.table, task_logs.table.c.written_at),
    RowKind.EVENTS: _Place(inbox, inbox.c.done_at, (inbox.c.done_at.is_not(None),)),
    RowKind.FEED: _Place(feed, feed.c.at, order=feed.c.sequence),
    RowKind.MESSAGES: _Place(messages, messages.c.ended_at, (messages.c.state == MessageState.SENT.value,)),
    RowKind.DEAD_LETTERS: _Place(messages, messages.c.ended_at, (messages.c.state == MessageState.DEAD.value,)),
    RowKind.PLANS: _Place(plans, plans.c.planned_at),
    RowKind.FINDINGS: _Place(worker_access, worker_access.c.decided_at),
    RowKind.OPTIMIZERS: _Place(optimizers, optimizers.c.seen_at),
    RowKind.KEPT: _Place(kept_of_tasks, kept_of_tasks.c.kept_at),
    RowKind.AUDIT: _Place(audit, audit.c.at, order=audit.c.number),
    RowKind.REMOVALS: _Place(
        deletion_intents.join(deletion_runs),
        deletion_runs.c.changed_at,
        (~deletion_runs.c.is_open, deletion_intents.c.state.in_(sorted(state.value for state in OVER_STATES))),
        order=deletion_runs.c.changed_at,
    ),
    RowKind.APPROVALS: _Place(deletion_approvals, deletion_approvals.c.approved_at),
    RowKind.POLICIES: _Place(
        policy_revisions, policy_revisions.c.replaced_at, (policy_revisions.c.replaced_at.is_not(None),)
    ),
    RowKind.TABLES: _Place(tables, tables.c.dropped_at, (tables.c.dropped_at.is_not(None),)),
    RowKind.QUERIES: _Place(query_templates, query_templates.c.week_at),
    RowKind.RECOMMENDATIONS: _Place(recommendations, recommendations.c.made_at),
    RowKind.DECISIONS: _Place(decisions, decisions.c.ended_at, (decisions.c.ended_at.is_not(None),)),
}


class SqlPrunings:
    """What was removed of each kind of row, counted since the store was made.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer.

    Time is the database's unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine, self._clock = engine, clock

    def rows(self) -> Mapping[RowKind, Rows]:
        """What there is of each kind at this moment; it is counted, so nothing for every scrape."""
        with reading(self._engine) as connection:
            return {kind: _rows(connection, PLACES[kind]) for kind in RowKind}

    def note(self, removed: Mapping[RowKind, int], left: Mapping[RowKind, Rows]) -> None:
        """Add what was removed, and that it was, at the store's time. What is not in ``left`` stays as it was noted."""
        with writing(self._engine) as connection:
            now = transactions.now(connection, self._clock)
            for kind, count in removed.items():
                _note(connection, kind, now, count, left.get(kind))

    def pruned(self) -> Mapping[RowKind, Pruned]:
        """What was noted, of the kinds of which anything was."""
        with reading(self._engine) as connection:
            found = connection.execute(select(prunings)).all()
        return {
            RowKind(row.kind): Pruned(row.pruned_at, row.removed, Rows(row.left_count, row.oldest_at)) for row in found
        }


def _rows(connection: Connection, place: _Place) -> Rows:
    count = connection.scalar(select(func.count()).select_from(place.table).where(*place.only)) or 0
    oldest = select(func.min(place.at)) if place.order is None else select(place.at).order_by(place.order).limit(1)
    return Rows(int(count), connection.scalar(oldest.select_from(place.table).where(*place.only)))


def _note(connection: Connection, kind: RowKind, now: Instant, removed: int, left: Rows | None) -> None:
    values = {} if left is None else {"left_count": left.count, "oldest_at": left.oldest_at}
    ours = prunings.c.kind == kind.value
    changed = update(prunings).where(ours).values(pruned_at=now, removed=prunings.c.removed + removed, **values)
    if connection.execute(changed).rowcount == 0:
        values = values or {"left_count": 0, "oldest_at": None}
        connection.execute(insert(prunings).values(kind=kind.value, pruned_at=now, removed=removed, **values))
