"""The inbox of commit events, in memory; whoever has it holds a lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from icewright.core.errors import InboxFull, InboxShareFull, NotFound
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.events.events import (
    Channel,
    ChannelFigures,
    CommitEvent,
    EventFigures,
    EventState,
    Lag,
    ReportedCommits,
    StoredEvent,
    UnreportedTable,
)
from icewright.model.events.messages import RETRY_AFTER_MS, TRIES_MAX
from icewright.model.iceberg.names import TableName
from icewright.ports.inbox import EventFilter
from icewright.ports.store import TableRecord


class MemoryInbox:
    """Events in the order in which they came."""

    def __init__(self) -> None:
        self._received = 0
        self._events: dict[int, StoredEvent] = {}
        self._ids: dict[tuple[TableName, int], int] = {}
        self._reporters: dict[int, str] = {}

    @property
    def events(self) -> Sequence[StoredEvent]:
        """All of them, oldest first."""
        return list(self._events.values())

    @property
    def waiting(self) -> list[StoredEvent]:
        """Those that are to be worked on, oldest first."""
        return [stored for stored in self._events.values() if stored.state is EventState.WAITING]

    def require_room(self, events: Iterable[CommitEvent], reporter: str, waiting_max: int, share_max: int) -> None:
        """Raises where some of the events are new, and too many wait already: of all, or of their reporter."""
        keys = [one if one.snapshot_id is None else (one.table_name, one.snapshot_id) for one in events]
        alone = sum(isinstance(key, CommitEvent) for key in keys)
        new = alone + len({key for key in keys if not isinstance(key, CommitEvent) and key not in self._ids})
        if new and len(self.waiting) >= waiting_max:
            raise InboxFull(waiting_max)
        if new and sum(self._reporters[one.event_id] == reporter for one in self.waiting) + new > share_max:
            raise InboxShareFull(share_max)

    def reported_tables(self, now: Instant, *, tried: bool) -> Sequence[TableName]:
        """Tables that events wait of, in turns of their reporters."""
        by_reporter: dict[str, dict[TableName, int]] = {}
        for stored in self.waiting:
            due = stored.tries > 0 and (stored.tried_at or 0) <= now - RETRY_AFTER_MS[stored.tries - 1]
            if due if tried else stored.tries == 0:
                told = by_reporter.setdefault(self._reporters[stored.event_id], {})
                told.setdefault(stored.event.table_name, stored.event_id)
        turns = [
            (turn, first, name)
            for told in by_reporter.values()
            for turn, (name, first) in enumerate(sorted(told.items(), key=lambda one: one[1]))
        ]
        return list(dict.fromkeys(name for _, _, name in sorted(turns)))

    def reported_by_name(self, name: TableName) -> Mapping[int, int | None]:
        """Events of a table that were not worked on, by id, with their snapshot ids."""
        ours = (stored for stored in self._events.values() if stored.event.table_name == name)
        return {stored.event_id: stored.event.snapshot_id for stored in ours if stored.done_at is None}

    def event(self, event_id: int) -> StoredEvent:
        """An event that is kept. Raises :class:`NotFound`."""
        try:
            return self._events[event_id]
        except KeyError:
            raise NotFound(f"no event {event_id}") from None

    def remove(self, event_id: int) -> None:
        """Forget an event. Raises :class:`NotFound`."""
        stored = self.event(event_id)
        del self._events[event_id], self._reporters[event_id]
        if stored.event.snapshot_id is not None:
            del self._ids[stored.event.table_name, stored.event.snapshot_id]

    def receive(self, event: CommitEvent, channel: Channel, reporter: str, now: Instant) -> bool:
        """Take an event in, unless it is there."""
        if event.snapshot_id is not None:
            key = (event.table_name, event.snapshot_id)
            if key in self._ids:
                return False
            self._ids[key] = self._received + 1
        self._received += 1
        self._reporters[self._received] = reporter
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
                self._events[event_id] = replace(event, done_at=now, committed_at=committed_at.get(event_id))

    def tried(self, event_ids: Iterable[int], trouble: Reason, now: Instant, *, counts: bool) -> None:
        """Note a look that came to nothing."""
        for event_id in event_ids:
            event = self._events.get(event_id)
            if event is not None and event.done_at is None:
                tries = event.tries + 1 if counts else event.tries
                parked_at = now if counts and tries >= TRIES_MAX else event.parked_at
                self._events[event_id] = replace(event, tries=tries, tried_at=now, trouble=trouble, parked_at=parked_at)

    def forget(self, done_before: Instant, limit: int) -> int:
        """Forget at most so many events that were worked on, or parked, before an instant; how many."""
        over = [(one, one.parked_at if one.done_at is None else one.done_at) for one in self.events]
        old = [stored for stored, over_at in over if over_at is not None and over_at < done_before][:limit]
        for stored in old:
            self.remove(stored.event_id)
        return len(old)

    def reported_commits(self, name: TableName, snapshot_ids: Sequence[int], since: Instant) -> ReportedCommits:
        """See the port of the table store."""
        found = {one: self._events[self._ids[name, one]].channel for one in snapshot_ids if (name, one) in self._ids}
        alone = (
            stored.channel
            for stored in self._events.values()
            if stored.event.table_name == name and stored.event.snapshot_id is None and stored.received_at >= since
            if stored.channel is not Channel.LISTING
        )
        return ReportedCommits(found, next(alone, None))

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
    waiting = [stored.received_at for stored in events if stored.state is EventState.WAITING]
    receipt = [stored.received_at - stored.committed_at for stored in events if stored.committed_at is not None]
    look = [stored.done_at - stored.received_at for stored in events if stored.done_at is not None]
    oldest = min(waiting, default=None)
    return ChannelFigures(channel, len(events), len(waiting), oldest, _lag(receipt), _lag(look))


def _lag(spans_ms: Sequence[int]) -> Lag | None:
    spans = [max(0, span) for span in spans_ms]
    return Lag(len(spans), round(sum(spans) / len(spans)), max(spans)) if spans else None
