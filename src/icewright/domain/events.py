"""Commit events: hints that a table changed. The tick that they wake reads the truth from the catalog."""

from __future__ import annotations

from dataclasses import dataclass

from icewright.domain.names import TableName
from icewright.domain.tables import Instant, Operation


@dataclass(frozen=True, slots=True)
class CommitEvent:
    """Somebody says that a snapshot was committed. Idempotent by table and snapshot id."""

    table_name: TableName
    snapshot_id: int
    table_uuid: str | None = None
    operation: Operation | None = None
    added_data_files: int | None = None
    added_records: int | None = None


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event in the inbox, not yet (or already) worked on."""

    event_id: int
    event: CommitEvent
    received_at: Instant
    done_at: Instant | None
