"""Commit events: hints that a table changed. The tick that they wake reads the truth from the catalog.

They come by several channels, each of which may say the same thing again. What matters of a channel is how late it is
and how many commits it did not tell of; both are measured, since a lost event costs time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Operation


class Channel(StrEnum):
    """By which way an event came in."""

    HTTP = "http"
    OUTBOX = "outbox"
    METRICS_REPORT = "metrics-report"
    KAFKA = "kafka"
    HIVE = "hive"
    LISTING = "listing"
    """No event: the catalog lists a table that nobody has looked at yet."""


class EventState(StrEnum):
    """Whether a table was looked at because of an event."""

    WAITING = "waiting"
    PARKED = "parked"
    """So many looks came to nothing that it is not tried again; a look for anything else answers it as well."""
    DONE = "done"


@dataclass(frozen=True, slots=True)
class CommitEvent:
    """Somebody says that a snapshot was committed. Idempotent by table and snapshot id.

    Without a snapshot id it says only that the table changed, and is never the same as another one.
    """

    table_name: TableName
    snapshot_id: int | None = None
    table_uuid: str | None = None
    operation: Operation | None = None
    added_data_files: int | None = None
    added_records: int | None = None


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event in the inbox, not yet (or already) worked on.

    ``committed_at`` is what the table itself says, once a look has seen the snapshot. ``tries`` counts the looks that
    came to nothing while the catalog answered others: the last one at ``tried_at``, because of ``trouble``.
    """

    event_id: int
    event: CommitEvent
    received_at: Instant
    done_at: Instant | None
    channel: Channel = Channel.HTTP
    committed_at: Instant | None = None
    tries: int = 0
    tried_at: Instant | None = None
    trouble: Reason | None = None
    parked_at: Instant | None = None

    @property
    def state(self) -> EventState:
        """Whether it was worked on."""
        if self.done_at is not None:
            return EventState.DONE
        return EventState.WAITING if self.parked_at is None else EventState.PARKED


@dataclass(frozen=True, slots=True)
class ReportedCommits:
    """Which snapshots of a table events told of, by the channel that was first; ``table`` told of no snapshot."""

    snapshots: Mapping[int, Channel]
    table: Channel | None = None


@dataclass(frozen=True, slots=True)
class Untold:
    """A commit that a look has found, and that no event has told of so far."""

    snapshot_id: int
    seen_at: Instant


@dataclass(frozen=True, slots=True)
class Reporting:
    """How well the commits of others to a table are reported, since it is looked after.

    ``told`` counts them by the channel that told of them first. ``untold`` are those of the last minutes that nobody
    has told of: an event may still be on its way. ``sweep_only`` counts those of which none came in time: only the
    sweep found them.
    """

    since: Instant
    counted_at: Instant
    told: Mapping[Channel, int] = field(default_factory=dict)
    untold: tuple[Untold, ...] = ()
    sweep_only: int = 0


@dataclass(frozen=True, slots=True)
class Lag:
    """How long something took, over so many events, in ms."""

    events: int
    mean_ms: int
    max_ms: int


@dataclass(frozen=True, slots=True)
class ChannelFigures:
    """What came in by a channel in the last day and is kept.

    ``commit_to_receipt`` is by the writer's clock on one side and the store's on the other; ``receipt_to_look`` by the
    store's alone.
    """

    channel: Channel
    events: int
    waiting: int
    oldest_waiting_at: Instant | None
    commit_to_receipt: Lag | None
    receipt_to_look: Lag | None


@dataclass(frozen=True, slots=True)
class UnreportedTable:
    """A table with commits that only the sweep found."""

    table_name: TableName
    told: int
    sweep_only: int


@dataclass(frozen=True, slots=True)
class EventFigures:
    """How events come in: by channel, over all tables, and the tables that are told of least."""

    channels: tuple[ChannelFigures, ...]
    told: int
    sweep_only: int
    least_reported: tuple[UnreportedTable, ...]
