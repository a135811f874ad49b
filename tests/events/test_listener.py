"""Events of a source come into the inbox, whatever is among them and whoever is away."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from structlog.testing import capture_logs

from icewright.core.errors import StoreUnavailable, Unavailable
from icewright.events import listener as listener_module
from icewright.events.listener import Listener
from icewright.model.events.events import Channel, CommitEvent
from icewright.model.iceberg.names import TableName
from tests.builders.lakehouse import NAME, Lakehouse
from tests.doubles.event_source import MemoryEventSource, MemoryTopic
from tests.narrowing import not_none


def event(snapshot_id: int, table: str = str(NAME)) -> bytes:
    return json.dumps({"table_name": table, "snapshot_id": snapshot_id}).encode()


@pytest.fixture
def house() -> Lakehouse:
    return Lakehouse()


@pytest.fixture
def topic() -> MemoryTopic:
    return MemoryTopic()


def inbox(house: Lakehouse) -> list[tuple[int | None, Channel]]:
    return [(stored.event.snapshot_id, stored.channel) for stored in house.tables.inbox(99)]


def listened(house: Lakehouse, topic: MemoryTopic) -> float:
    return Listener(MemoryEventSource(topic), house.control.intake).listen(threading.Event())


def test_what_comes_is_in_the_inbox_before_it_is_acknowledged(house: Lakehouse, topic: MemoryTopic) -> None:
    topic.messages += [event(1), event(2), event(1)]
    listened(house, topic)
    assert inbox(house) == [(1, Channel.KAFKA), (2, Channel.KAFKA)]
    assert topic.acknowledged == 3


def test_while_the_store_is_away_it_is_held_on_to_and_not_acknowledged(
    house: Lakehouse, topic: MemoryTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "PAUSE_S", 0.0)
    receive, failures, acknowledged = house.tables.receive, [StoreUnavailable("away"), StoreUnavailable("away")], []

    def failing(*events: CommitEvent, channel: Channel, reporter: str) -> int:
        acknowledged.append(topic.acknowledged)
        if failures:
            raise failures.pop()
        return receive(*events, channel=channel, reporter=reporter)

    monkeypatch.setattr(house.tables, "receive", failing)
    topic.messages.append(event(1))
    listened(house, topic)
    assert inbox(house) == [(1, Channel.KAFKA)]
    assert (acknowledged, topic.acknowledged) == ([0, 0, 0], 1)


def test_a_server_that_ends_while_the_store_is_away_acknowledges_nothing(
    house: Lakehouse, topic: MemoryTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_events: CommitEvent, **_how: Any) -> int:
        raise StoreUnavailable("away")

    monkeypatch.setattr(house.tables, "receive", away)
    topic.messages.append(event(1))
    stop = threading.Event()
    stop.set()
    Listener(MemoryEventSource(topic), house.control.intake).listen(stop)
    assert topic.acknowledged == 0


def test_t13_what_is_wrong_is_counted_said_and_passed_over(house: Lakehouse, topic: MemoryTopic) -> None:
    topic.messages += [b"{", event(1), event(2, "nowhere.db.t"), b"5", event(3)]
    with capture_logs() as logs:
        listened(house, topic)
    assert inbox(house) == [(1, Channel.KAFKA), (3, Channel.KAFKA)]
    assert topic.acknowledged == 5
    assert house.control.intake.passed_over == {"message-of-no-known-shape": 2, "event-of-unknown-catalog": 1}
    assert [log["messages"] for log in logs if log["event"] == "messages passed over"] == [2, 1]


def test_t13_an_event_that_the_store_cannot_hold_is_passed_over_alone(
    house: Lakehouse, topic: MemoryTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = house.tables.receive

    def picky(*events: CommitEvent, channel: Channel, reporter: str) -> int:
        if any(one.snapshot_id == 2 for one in events):
            raise ValueError("a defect")
        return receive(*events, channel=channel, reporter=reporter)

    monkeypatch.setattr(house.tables, "receive", picky)
    topic.messages += [event(1), event(2), event(3)]
    listened(house, topic)
    assert inbox(house) == [(1, Channel.KAFKA), (3, Channel.KAFKA)]
    assert (topic.acknowledged, house.control.intake.passed_over) == (3, {"event-refused": 1})


def test_nothing_that_a_source_does_ends_the_listening(
    house: Lakehouse, topic: MemoryTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "PAUSE_S", 0.0)
    source, stop = MemoryEventSource(topic), threading.Event()
    topic.messages.append(event(1))
    troubles = [Unavailable("away"), ZeroDivisionError("a defect")]
    fetch = source.fetch

    def troubled(most: int, timeout_s: float) -> Any:
        if troubles:
            raise troubles.pop()
        if topic.acknowledged:
            stop.set()
        return fetch(most, timeout_s)

    monkeypatch.setattr(source, "fetch", troubled)
    Listener(source, house.control.intake).run(stop)
    assert inbox(house) == [(1, Channel.KAFKA)]


def test_an_event_brings_its_table_into_the_loop(house: Lakehouse, topic: MemoryTopic) -> None:
    house.ready_table()
    house.control.loop.round()
    snapshot = house.append(1)
    topic.messages.append(event(snapshot.snapshot_id))
    listened(house, topic)
    house.control.loop.turn()
    assert not_none(house.record(TableName.parse(str(NAME))).reporting).told == {Channel.KAFKA: 1}
