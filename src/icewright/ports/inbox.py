"""The inbox of commit events, a part of the store of tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from icewright.core.reasons import Reason
from icewright.core.servers import TableShare
from icewright.core.times import Instant
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.events.events import Channel, CommitEvent, EventFigures, EventState, ReportedCommits, StoredEvent
from icewright.model.events.messages import SHARE_MAX, WAITING_MAX
from icewright.model.iceberg.names import TableName


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events of the inbox to list; None does not restrict.

    ``within``: of tables in these scopes that are known and not known to be dropped; of all, also of others.
    """

    state: EventState | None = None
    channel: Channel | None = None
    table_name: TableName | None = None
    within: Scopes = EVERYWHERE


class Inbox(Protocol):
    """Events that came in. Raises :class:`~icewright.core.errors.Unavailable` when the store does not answer."""

    def receive(
        self,
        *events: CommitEvent,
        channel: Channel = Channel.HTTP,
        reporter: str = "",
        waiting_max: int = WAITING_MAX,
        share_max: int = SHARE_MAX,
    ) -> int:
        """Put events into the inbox, all of them or none; how many were new.

        One that was there already (same table, same snapshot id), by whatever channel, stays as it came first. Raises
        :class:`~icewright.core.errors.InboxFull` for new ones where ``waiting_max`` wait already, and
        :class:`~icewright.core.errors.InboxShareFull` where more than ``share_max`` of this reporter would.
        """

    def inbox(self, limit: int) -> Sequence[StoredEvent]:
        """Events not worked on yet and not parked, oldest first."""

    def reported_tables(
        self,
        limit: int,
        *,
        known: bool | None = None,
        tried: bool = False,
        without: Collection[str] = (),
        share: TableShare | None = None,
    ) -> Sequence[TableName]:
        """Tables that events wait of, in turns: of each reporter the one that it told of first, then its second.

        ``known``: those that have, or do not have, a record. ``tried``: those of events whose last look came to nothing
        and whose next try is due (:data:`~icewright.model.events.messages.RETRY_AFTER_MS`); otherwise those of events
        that were not tried. ``without`` are catalogs whose events stay where they are. Of a ``share`` are the
        names in its buckets, those without a record among them.
        """

    def reported_by_name(self, name: TableName) -> Mapping[int, int | None]:
        """The events of a table that were not worked on, parked or not, by id, each with its snapshot id."""

    def remove_event(self, event_id: int) -> None:
        """Forget an event, whatever became of it; raises ``NotFound``. It may then be reported again."""

    def event(self, event_id: int) -> StoredEvent:
        """An event that is kept. Raises ``NotFound``."""

    def received(self, only: EventFilter, *, limit: int, before: int | None = None) -> Sequence[StoredEvent]:
        """Events that are kept, worked on or not, newest first; ``before`` is the id that the last page ended with."""

    def done(self, event_ids: Sequence[int], committed_at: Mapping[int, Instant] = MappingProxyType({})) -> None:
        """Mark events as worked on, ``committed_at`` where tables say so; until pruned the same ones do not count."""

    def tried(self, event_ids: Sequence[int], trouble: Reason, *, counts: bool = True) -> None:
        """Note a look for these events that came to nothing, and why; of those that were worked on nothing changes.

        One that ``counts`` is another try: at :data:`~icewright.model.events.messages.TRIES_MAX` an event is parked.
        """

    def reported_commits(self, name: TableName, snapshot_ids: Sequence[int], since: Instant) -> ReportedCommits:
        """Which of these snapshots events told of, worked on or not, and whether one told of the table since then."""

    def event_figures(self, *, limit: int, within: Scopes = EVERYWHERE) -> EventFigures:
        """How events come in, with at most ``limit`` of the tables that have most commits only the sweep found.

        Of scopes, what tables tell that are known and not known to be dropped.
        """
