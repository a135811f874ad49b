"""The inbox of commit events, in memory; whoever has it holds a lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from icewright.domain.errors import InboxFull
from icewright.domain.events import (
    Channel,
    ChannelFigures,
    CommitEvent,
    EventFigures,
    Lag,
    StoredEvent,
    Told,
    UnreportedTable,
)
from icewright.domain.names import TableName
from icewright.domain.reasons import Reason
from icewright.domain.tables import Instant
from icewright.ports.store import EventFilter, TableRecord


class MemoryInbox:
    """Events in the order in which they came."""

    def __init__(self) -> None:
        self._received = self._waiting = 0
        self._events: dict[int, StoredEvent] = {}
        self._ids: dict[tuple[TableName, int], int] = {}

    @property
    def events(self) -> Sequence[StoredEvent]:
        """All of them, oldest first."""
        return list(self._events.values())

    def require_room(self, events: Iterable[CommitEvent], waiting_max: int) -> None:
        """Raises :class:`InboxFull` where one of the events is new, and too many wait already."""
        new = (one.snapshot_id is None or (one.table_name, one.snapshot_id) not in self._ids for one in events)
        if self._waiting >= waiting_max and any(new):
            raise InboxFull(waiting_max)

    def receive(self, event: CommitEvent, channel: Channel, now: Instant) -> bool:
        """Take an event in, unless it is there."""
        if event.snapshot_id is not None:
            key = (event.table_name, event.snapshot_id)
            if key in self._ids:
                return False
            self._ids[key] = self._received + 1
        self._received += 1
        self._waiting += 1
        self._events[self._received] = StoredEvent(self._received, event, now, None, channel)
        return True

    def received(
        self, only: EventFilter, names: AbstractSet[TableName] | None, before: int | None
    ) -> Sequence[StoredEvent]:
        """Events newest first; of tables of these names, if there are any restrictions."""
        return [
            one
            for one in reversed(self._events.values())
            if (before is None or one.event_id < before)
            and only.state in {None, one.state}
            and only.channel in {None, one.channel}
            and only.table_name in {None, one.event.table_name}
            and (names is None or one.event.table_name in names)
        ]

    def done(self, event_ids: Iterable[int], committed_at: Mapping[int, Instant], now: Instant) -> None:
        """Mark events as worked on."""
        for event_id in event_ids:
            event = self._events.get(event_id)
            if event is not None and event.done_at is None:
                self._waiting -= 1
                self._events[event_id] = replace(event, done_at=now, committed_at=committed_at.get(event_id))

    def tried(self, event_ids: Iterable[int], trouble: Reason, now: Instant) -> None:
        """Count a look that came to nothing."""
        for event_id in event_ids:
            event = self._events.get(event_id)
            if event is not None and event.done_at is None:
                self._events[event_id] = replace(event, tries=event.tries + 1, tried_at=now, trouble=trouble)

    def forget(self, done_before: Instant, limit: int) -> int:
        """Forget at most so many events that were worked on before an instant; how many."""
        old = [one for one in self.events if one.done_at is not None and one.done_at < done_before][:limit]
        for stored in old:
            del self._events[stored.event_id]
            if stored.event.snapshot_id is not None:
                del self._ids[stored.event.table_name, stored.event.snapshot_id]
        return len(old)

    def told(self, name: TableName, snapshot_ids: Sequence[int], since: Instant) -> Told:
        """See the port of the table store."""
        found = {one: self._events[self._ids[name, one]].channel for one in snapshot_ids if (name, one) in self._ids}
        alone = (
            stored.channel
            for stored in self._events.values()
            if stored.event.table_name == name and stored.event.snapshot_id is None and stored.received_at >= since
        )
        return Told(found, next(alone, None))

    def figures(self, records: Sequence[TableRecord], limit: int, *, of_all: bool) -> EventFigures:
        """See the port of the table store. ``of_all``: also of events of tables that nobody knows."""
        names = {record.name for record in records}
        events = [stored for stored in self.events if of_all or stored.event.table_name in names]
        rows = [
            UnreportedTable(record.name, sum(record.reporting.told.values()), record.reporting.sweep_only)
            for record in records
            if record.reporting is not None
        ]
        least = sorted((row for row in rows if row.sweep_only), key=lambda row: -row.sweep_only)
        return EventFigures(
            tuple(_of_channel(channel, events) for channel in sorted({stored.channel for stored in events})),
            sum(row.told for row in rows),
            sum(row.sweep_only for row in rows),
            tuple(least[:limit]),
        )


def _of_channel(channel: Channel, among: Sequence[StoredEvent]) -> ChannelFigures:
    events = [stored for stored in among if stored.channel is channel]
    waiting = [stored.received_at for stored in events if stored.done_at is None]
    receipt = [stored.received_at - stored.committed_at for stored in events if stored.committed_at is not None]
    look = [stored.done_at - stored.received_at for stored in events if stored.done_at is not None]
    oldest = min(waiting, default=None)
    return ChannelFigures(channel, len(events), len(waiting), oldest, _lag(receipt), _lag(look))


def _lag(spans_ms: Sequence[int]) -> Lag | None:
    spans = [max(0, span) for span in spans_ms]
    return Lag(len(spans), round(sum(spans) / len(spans)), max(spans)) if spans else None
