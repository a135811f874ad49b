"""The inbox of commit events as the store of tables has it: each call a transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from sqlalchemy import Engine

from icewright.core.clock import Clock
from icewright.core.errors import InboxFull, InboxShareFull
from icewright.core.reasons import Reason
from icewright.core.servers import TableShare, bucket_of_digest
from icewright.core.times import Instant
from icewright.events import inbox_sql as inbox_rows
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.events.events import Channel, CommitEvent, EventFigures, ReportedCommits, StoredEvent
from icewright.model.events.messages import SHARE_MAX, WAITING_MAX
from icewright.model.iceberg.names import TableName
from icewright.ports.inbox import EventFilter
from icewright.store import transactions
from icewright.store.documents import digest
from icewright.store.locks import Lock, LockKind
from icewright.store.transactions import asking, reading, writing

TOGETHER_MAX: Final = 16
"""So many events of one call come beside others."""
AT_ONCE_MAX: Final = 20 * 16 * TOGETHER_MAX
"""As many come at once from twenty servers, by all connections of each: half of a cap has room for them."""


class SqlInbox:
    """The part of the port over an engine of :func:`icewright.store.engine.open_store`."""

    _engine: Engine
    _clock: Clock | None

    def receive(
        self,
        *events: CommitEvent,
        channel: Channel = Channel.HTTP,
        reporter: str = "",
        waiting_max: int = WAITING_MAX,
        share_max: int = SHARE_MAX,
    ) -> int:
        """See the port. A few events come beside others, as long as what may come at once is far from too much."""
        if len(events) <= TOGETHER_MAX and min(waiting_max, share_max) // 2 >= AT_ONCE_MAX:
            with suppress(InboxFull, InboxShareFull):
                shared = Lock(LockKind.INBOX, shared=True)
                return self._receive(shared, events, channel, reporter, waiting_max // 2, share_max // 2)
        return self._receive(Lock(LockKind.INBOX), events, channel, reporter, waiting_max, share_max)

    def _receive(
        self,
        caps: Lock,
        events: Sequence[CommitEvent],
        channel: Channel,
        reporter: str,
        waiting_max: int,
        share_max: int,
    ) -> int:
        """Whoever has a bucket alone finds what there is of its tables, and nobody adds to that."""
        buckets = {bucket_of_digest(digest(event.table_name)) for event in events}
        with writing(self._engine, [caps, *(Lock(LockKind.BUCKET, bucket) for bucket in buckets)]) as connection:
            now = transactions.now(connection, self._clock)
            return inbox_rows.receive(
                connection, events, channel, reporter, now, waiting_max=waiting_max, share_max=share_max
            )

    def inbox(self, limit: int) -> Sequence[StoredEvent]:
        """See the port."""
        with reading(self._engine) as connection:
            return inbox_rows.waiting(connection, limit)

    def reported_tables(
        self,
        limit: int,
        *,
        known: bool | None = None,
        tried: bool = False,
        without: Collection[str] = (),
        share: TableShare | None = None,
    ) -> Sequence[TableName]:
        """See the port."""
        with reading(self._engine) as connection:
            now = transactions.now(connection, self._clock)
            return inbox_rows.reported_tables(
                connection, limit, now, known=known, tried=tried, without=without, share=share
            )

    def reported_by_name(self, name: TableName) -> Mapping[int, int | None]:
        """See the port."""
        with asking(self._engine) as connection:
            return inbox_rows.reported_by_name(connection, name)

    def event(self, event_id: int) -> StoredEvent:
        """See the port."""
        with reading(self._engine) as connection:
            return inbox_rows.event(connection, event_id)

    def remove_event(self, event_id: int) -> None:
        """See the port."""
        with writing(self._engine) as connection:
            inbox_rows.remove(connection, event_id)

    def received(self, only: EventFilter, *, limit: int, before: int | None = None) -> Sequence[StoredEvent]:
        """See the port."""
        with reading(self._engine) as connection:
            return inbox_rows.received(connection, only, limit, before)

    def done(self, event_ids: Sequence[int], committed_at: Mapping[int, Instant] = MappingProxyType({})) -> None:
        """See the port."""
        if event_ids:
            with writing(self._engine, ()) as connection:
                inbox_rows.done(connection, event_ids, committed_at, transactions.now(connection, self._clock))

    def tried(self, event_ids: Sequence[int], trouble: Reason, *, counts: bool = True) -> None:
        """See the port."""
        if event_ids:
            with writing(self._engine, ()) as connection:
                now = transactions.now(connection, self._clock)
                inbox_rows.tried(connection, event_ids, trouble, now, counts=counts)

    def reported_commits(self, name: TableName, snapshot_ids: Sequence[int], since: Instant) -> ReportedCommits:
        """See the port."""
        asked = asking if len(snapshot_ids) <= inbox_rows.KEYS_AT_ONCE else reading
        with asked(self._engine) as connection:
            return inbox_rows.reported_commits(connection, name, snapshot_ids, since)

    def event_figures(self, *, limit: int, within: Scopes = EVERYWHERE) -> EventFigures:
        """See the port."""
        with reading(self._engine) as connection:
            return inbox_rows.figures(connection, limit, within)
