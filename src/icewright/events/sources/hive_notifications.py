"""The notification log of a Hive Metastore as a source of events, read from where the store says on.

The metastore keeps the log for a while (a day by default) and knows no readers. What was cleaned before it was read is
lost to us, and found by the sweep.
"""

from __future__ import annotations

from typing import Any, Final

import structlog
from hive_metastore.ttypes import MetaException, NotificationEventRequest
from thrift.Thrift import TApplicationException

from icewright.catalogs.pointers.hive_pointers import HivePointers
from icewright.core.errors import InvalidName, Unavailable
from icewright.events.sources.hive_messages import table_said
from icewright.events.sources.port import Cursors, Fetched
from icewright.model.events.events import Channel, CommitEvent
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName

_log = structlog.get_logger("icewright.events")

_CHANGES: Final = frozenset({"CREATE_TABLE", "ALTER_TABLE"})
_DROP: Final = "DROP_TABLE"
_AT_ONCE_MAX: Final = 100
"""Notifications asked for at a time: each has a whole table in it, or two."""
_HINT: Final = (
    "it needs hive.metastore.transactional.event.listeners=org.apache.hive.hcatalog.listener.DbNotificationListener, "
    "and to allow reading: hive.metastore.event.db.notification.api.auth=false, or us among its proxy users"
)


class HiveNotifications:
    """A reader of one metastore's log. Begins at its end: what was before, the sweep has seen or will see."""

    channel = Channel.HIVE

    def __init__(self, entry: CatalogEntry, cursors: Cursors, idle_s: float) -> None:
        self.name = f"hive:{entry.name}"
        self.idle_s = idle_s
        self._catalog, self._cursors = entry.name, cursors
        self._pointers = HivePointers(entry)
        self._read_to: int | None = None
        """Behind what was fetched and not acknowledged yet; None when nothing is."""

    def fetch(self, most: int, timeout_s: float) -> Fetched:  # noqa: ARG002 - the metastore answers at once
        """See the port."""
        try:
            with self._pointers.client() as client:
                return self._fetch(client, most)
        except (MetaException, TApplicationException) as error:
            text = f"the notification log of catalog {self._catalog} cannot be read: {error.message}"
            raise Unavailable(f"{text}; {_HINT}", hint=_HINT) from error

    def acknowledge(self) -> None:
        """See the port."""
        if self._read_to is not None:
            self._cursors.move(self.name, self._read_to)
            self._read_to = None

    def close(self) -> None:
        """See the port. Connections are made for each question."""

    def _fetch(self, client: Any, most: int) -> Fetched:
        position = self._cursors.position(self.name) if self._read_to is None else self._read_to
        if position is None:
            return self._begin(client)
        found = client.get_next_notification(
            NotificationEventRequest(lastEvent=position, maxEvents=min(most, _AT_ONCE_MAX))
        ).events
        events = sorted(found or (), key=lambda one: one.eventId)
        if not events:
            if client.get_current_notificationEventId().eventId < position:
                _log.warning("another notification log", source=self.name, detail="its numbers are lower than before")
                return self._begin(client)
            return Fetched()
        told: list[CommitEvent] = []
        problems: list[str] = []
        for one in events:
            try:
                event = self._event_of(one)
            except Exception as error:  # noqa: BLE001 - whatever a stranger's message brings about stops no other one
                problems.append(f"notification {one.eventId}: {type(error).__name__}: {error}")
                continue
            if event is not None:
                told.append(event)
        # Last of all: what a failure above leaves behind is fetched again, and never acknowledged unread.
        self._read_to = events[-1].eventId
        lost = max(0, events[0].eventId - position - 1)
        return Fetched(told, passed_over=len(problems), lost=lost, problem=next(iter(problems), ""))

    def _begin(self, client: Any) -> Fetched:
        self._read_to = client.get_current_notificationEventId().eventId
        self.acknowledge()
        return Fetched()

    def _event_of(self, notification: Any) -> CommitEvent | None:
        """The event, if it is one of an Iceberg table, or may be."""
        kind = notification.eventType
        if kind not in {*_CHANGES, _DROP}:
            return None
        said = table_said(notification.message, notification.messageFormat)
        if not (said.is_commit if kind in _CHANGES else said.may_be_iceberg):
            return None
        try:
            name = TableName(self._catalog, (notification.dbName or "",), notification.tableName or "")
        except InvalidName:
            return None
        return CommitEvent(name, said.snapshot_id if kind in _CHANGES else None)
