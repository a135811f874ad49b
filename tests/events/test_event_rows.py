"""What ``icewright events list`` prints of an event."""

from __future__ import annotations

from icewright.core.reasons import Reason
from icewright.events.cli import event_cells
from icewright.events.views import event_view
from icewright.model.events.events import Channel, CommitEvent, StoredEvent
from icewright.model.iceberg.names import TableName


def test_a_row_says_where_it_is_and_why_its_table_is_not_looked_after() -> None:
    event = CommitEvent(TableName("lake", ("db",), "t"), 7)
    waits = event_cells(event_view(StoredEvent(3, event, 0, None, Channel.KAFKA), Reason("damaged", "cut off")))
    assert waits[:5] == ("3", "waiting", "lake.db.t", "7", "kafka")
    assert waits[6:] == ("-", "0", "cut off")
    done = event_cells(event_view(StoredEvent(4, CommitEvent(event.table_name), 0, 1_000), None))
    assert done[:5] == ("4", "done", "lake.db.t", "-", "http")
    assert done[6:] == ("1970-01-01 00:00:01 UTC", "0", "")


def test_a_row_says_why_the_last_try_came_to_nothing() -> None:
    event = CommitEvent(TableName("lake", ("db",), "t"), 7)
    away = StoredEvent(3, event, 0, None, tries=12, tried_at=2_000, trouble=Reason("unavailable", "it is away"))
    assert event_cells(event_view(away, None))[7:] == ("12", "it is away (1970-01-01 00:00:02 UTC)")
    assert event_cells(event_view(away, Reason("damaged", "cut off")))[7:] == ("12", "cut off")
