"""What the stores count of everything they have, for metrics: the same on every server, however many there are.

No figure grows with the number of tables, but the few tables that were asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.names import TableName
from icewright.model.work.tasks import TaskState
from icewright.model.work.totals import TotalKey


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task that has not ended, as the metrics of single tables show it."""

    table_name: TableName
    kind: ActionKind
    state: TaskState
    created_at: Instant


@dataclass(frozen=True, slots=True)
class TaskCensus:
    """The queue at ``now``, by the store's clock.

    ``live`` counts the tasks that have not ended. ``oldest`` are those of them that were made first. ``totals`` count
    what has happened since the store was made; they never fall, also when tasks are forgotten. ``epoch`` is how many
    servers have led so far, 0 where none needs to.
    """

    now: Instant
    live: Mapping[tuple[TaskState, ActionKind], int]
    oldest: Sequence[WaitingTask]
    totals: Mapping[TotalKey, int]
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class TableCensus:
    """What is known of tables, counted. Dropped ones are left out.

    ``next_look_at`` is when the table that is due first is due, ``oldest_event_at`` when the event that waits longest
    came in; None where there is none.
    """

    tables: int
    put_aside: int
    next_look_at: Instant | None
    events_waiting: int
    oldest_event_at: Instant | None
    seen_at: Mapping[str, Sequence[Instant]] = field(default_factory=dict)
    """When each optimizer was last heard of, by resource group."""
    asked_at: Mapping[str, Sequence[Instant]] = field(default_factory=dict)
    """When each submitter last asked what waits, by resource group."""
