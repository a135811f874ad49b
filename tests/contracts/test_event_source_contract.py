"""What every source of events must do, sentence by sentence of the port.

Kafka is librdkafka's own mock here; ``ICEWRIGHT_ACCEPTANCE=1`` has a real broker as well, whose jars are fetched first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from icewright.core.errors import Unavailable
from icewright.events.sources.kafka import KafkaSource
from icewright.events.sources.port import EventSource, Fetched
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.names import TableName
from tests.doubles.event_source import MemoryEventSource, MemoryTopic
from tests.servers.kafka import kafka_broker
from tests.servers.mock_kafka import MockKafka, mock_kafka, send

NAME = TableName("lake", ("db",), "t")
TRIES = 100
LONG = bool(os.environ.get("ICEWRIGHT_ACCEPTANCE"))
KAFKAS = ("kafka", "broker") if LONG else ("kafka",)


@dataclass
class Topic:
    """Somewhere that messages are sent to, and readers of it."""

    send: Callable[[bytes], None]
    reader: Callable[[], EventSource]


@pytest.fixture(scope="module")
def kafka() -> Iterator[MockKafka]:
    with mock_kafka() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture(params=["memory", *KAFKAS])
def topic(request: pytest.FixtureRequest) -> Iterator[Topic]:
    if request.param == "memory":
        messages = MemoryTopic()
        yield Topic(messages.messages.append, lambda: MemoryEventSource(messages))
        return
    brokers, name = brokers_and_topic(request, request.param)
    opened: list[EventSource] = []

    def reader() -> EventSource:
        opened.append(member(brokers, name))
        return opened[-1]

    yield Topic(lambda message: send(brokers, name, message), reader)
    for source in opened:
        source.close()


def brokers_and_topic(request: pytest.FixtureRequest, kind: str, partitions: int = 1) -> tuple[str, str]:
    name = f"t{abs(hash(request.node.nodeid))}"
    if kind == "broker":
        brokers: str = request.getfixturevalue("broker")
        admin = AdminClient({"bootstrap.servers": brokers})  # which has to live until it is answered
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(60)
        return brokers, name
    cluster: MockKafka = request.getfixturevalue("kafka")
    return cluster.brokers, cluster.topic(name, partitions)


def member(brokers: str, topic: str) -> EventSource:
    """A new member of the topic's one group."""
    quick = {
        "session.timeout.ms": "6000" if LONG else "2000",
        "heartbeat.interval.ms": "200",
        "topic.metadata.refresh.fast.interval.ms": "50",
    }
    return KafkaSource(
        brokers, topic, f"group-{topic}", {**quick, "fetch.wait.max.ms": "50", "coordinator.query.interval.ms": "500"}
    )


def event(snapshot_id: int) -> bytes:
    return json.dumps({"table_name": str(NAME), "snapshot_id": snapshot_id}).encode()


def fetched(source: EventSource, count: int, most: int = 100) -> Fetched:
    """So many messages: a source may give them in any number of turns."""
    events: list[CommitEvent] = []
    passed_over, problem = 0, ""
    for _ in range(TRIES):
        try:
            some = source.fetch(most, 0.2)
        except Unavailable:
            continue
        events += some.events
        passed_over, problem = passed_over + some.passed_over, problem or some.problem
        if len(events) + passed_over >= count:
            return Fetched(tuple(events), passed_over, problem=problem)
    raise AssertionError(f"only {events} came")


def ids(found: Fetched) -> list[int | None]:
    return [one.snapshot_id for one in found.events]


def test_what_is_acknowledged_does_not_come_again_and_all_else_does(topic: Topic) -> None:
    for number in (1, 2):
        topic.send(event(number))
    first = topic.reader()
    assert ids(fetched(first, 2)) == [1, 2]
    first.acknowledge()
    first.acknowledge()
    topic.send(event(3))
    assert ids(fetched(first, 1)) == [3]
    first.close()
    assert ids(fetched(topic.reader(), 1)) == [3]


def test_t13_messages_of_no_known_shape_are_counted_and_stop_nothing(topic: Topic) -> None:
    for message in (b"\xff{", b"[" * 100_000, b"{}", event(1), b'{"specversion": "1.0", "data": 5}'):
        topic.send(message)
    reader = topic.reader()
    found = fetched(reader, 5)
    assert (ids(found), found.passed_over) == ([1], 4)
    assert found.problem
    reader.acknowledge()
    topic.send(event(2))
    assert ids(fetched(reader, 1)) == [2]


@pytest.mark.parametrize("kind", KAFKAS)
def test_nothing_is_lost_between_members_that_come_and_go(request: pytest.FixtureRequest, kind: str) -> None:
    brokers, name = brokers_and_topic(request, kind, 2)
    for number in range(8):
        send(brokers, name, event(number), partition=number % 2)
    first = member(brokers, name)
    by_first, by_second = set(ids(fetched(first, 3, most=1))), set[int | None]()
    second = member(brokers, name)  # the group is balanced anew while nothing is acknowledged
    for _ in range(TRIES):
        by_first |= set(ids(first.fetch(1, 0.1)))
        by_second |= set(ids(second.fetch(1, 0.1)))
        if by_second:
            break
    assert by_second  # which acknowledges nothing
    first.acknowledge()
    first.acknowledge()
    for source in (first, second):
        source.close()
    last = member(brokers, name)
    missing = set(range(8)) - by_first
    send(brokers, name, event(8))
    found: set[int | None] = set()
    while not missing | {8} <= found:
        found |= set(ids(fetched(last, 1)))
    last.close()
