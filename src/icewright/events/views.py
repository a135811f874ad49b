"""Events as the API shows them."""

from __future__ import annotations

from dataclasses import dataclass

from icewright.core.times import Instant
from icewright.model.events.events import Channel, EventState, StoredEvent
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Operation
from icewright.model.plans.plans import Reason


@dataclass(frozen=True, slots=True)
class EventView:
    """What somebody said that they committed, and whether its table was looked at because of it.

    It waits until a look was taken that the catalog answered, whatever that came to. ``tries`` counts the looks that
    came to nothing while the catalog answered others, ``tried_at`` and ``trouble`` are when and why the last one did;
    after five tries it is ``parked``. ``problem`` is
    why its table cannot be looked after by now, if so. ``committed_at`` is what the table says of the snapshot, once a
    look has seen it.
    """

    event_id: int
    table: str
    table_name: TableName
    state: EventState
    channel: Channel
    snapshot_id: int | None
    table_uuid: str | None
    operation: Operation | None
    added_data_files: int | None
    added_records: int | None
    received_at: Instant
    done_at: Instant | None
    committed_at: Instant | None
    tries: int
    tried_at: Instant | None
    trouble: Reason | None
    problem: Reason | None


def event_view(stored: StoredEvent, problem: Reason | None) -> EventView:
    """An event of the inbox for display."""
    event = stored.event
    return EventView(
        event_id=stored.event_id,
        table=str(event.table_name),
        table_name=event.table_name,
        state=stored.state,
        channel=stored.channel,
        snapshot_id=event.snapshot_id,
        table_uuid=event.table_uuid,
        operation=event.operation,
        added_data_files=event.added_data_files,
        added_records=event.added_records,
        received_at=stored.received_at,
        done_at=stored.done_at,
        committed_at=stored.committed_at,
        tries=stored.tries,
        tried_at=stored.tried_at,
        trouble=stored.trouble,
        problem=problem,
    )
