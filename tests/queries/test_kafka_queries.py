"""Trino's events from a Kafka topic: at least once, and nothing is fetched while the spool is full.

Kafka is librdkafka's own mock here; ``ICEWRIGHT_ACCEPTANCE=1`` has a real broker as well, whose jars are fetched first.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from icewright.configuration.load import load_config
from icewright.core.errors import InvalidConfiguration, InvalidMessage, SpoolFull, Unavailable
from icewright.queries import kafka as module
from icewright.queries.kafka import QueriesTopic, TrinoTopic
from icewright.queries.service import QueryLog
from icewright.queries.sources.trino import read_event
from icewright.queries.spool import QuerySpool
from icewright.queries.wiring import counting_queries
from tests.builders.served import RULES, Served
from tests.cases import each_case
from tests.doubles.clock import ManualClock
from tests.narrowing import not_none
from tests.servers.kafka import kafka_broker
from tests.servers.mock_kafka import mock_kafka, send
from tests.waiting import until

SAMPLES = (Path(__file__).parent / "samples" / "trino_476_events.jsonl").read_bytes().splitlines()
NOW = 1_795_800_000_000
"""Behind the samples' times."""
QUICK = {
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "200",
    "topic.metadata.refresh.fast.interval.ms": "50",
    "fetch.wait.max.ms": "50",
    "coordinator.query.interval.ms": "500",
}
LONG = bool(os.environ.get("ICEWRIGHT_ACCEPTANCE"))
WAIT_S = 30


@pytest.fixture(scope="module", params=["mock", *(["broker"] if LONG else [])])
def brokers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "broker":
        with kafka_broker(tmp_path_factory.mktemp("kafka")) as address:
            yield address
        return
    with mock_kafka() as cluster:
        yield cluster.brokers


@pytest.fixture
def log(tmp_path: Path) -> Iterator[QueryLog]:
    clock = ManualClock(NOW)
    with closing(QuerySpool(tmp_path / "queries.db", 1 << 24, clock)) as spool:
        served = Served()
        yield QueryLog(
            {"lake"}, served.control.tables, clock, spool, served.control.queries.sums, {"ice": "lake"}, RULES
        )


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"trino{abs(hash(request.node.nodeid))}"


@contextmanager
def reading(brokers: str, name: str, log: QueryLog) -> Iterator[None]:
    stop = threading.Event()
    topic = QueriesTopic(brokers, name, f"group-of-{name}", QUICK)
    thread = threading.Thread(target=TrinoTopic(topic, log).run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(WAIT_S)
        assert not thread.is_alive()


def committed(brokers: str, name: str) -> int:
    """The offset that the group has committed; 0 where it has none."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": f"group-of-{name}"})
    try:
        (found,) = consumer.committed([TopicPartition(name, 0)], timeout=WAIT_S)
        return max(0, found.offset)
    finally:
        consumer.close()


def waiting(log: QueryLog) -> int:
    figures = log.figures()
    return 0 if figures is None else figures.waiting


def sample(number: int, *, envelope: bool = False) -> bytes:
    """The event of a query of two tables, with an id of its own; the other samples read none."""
    event = json.loads(SAMPLES[0])
    event["metadata"]["queryId"] = f"20261121_080147_{number:05}_kafka"
    return json.dumps({"eventPayload": event, "eventMetadata": {}} if envelope else event).encode()


def test_events_of_trino_are_in_the_spool_before_their_offsets_are_committed(
    brokers: str, name: str, log: QueryLog
) -> None:
    send(brokers, name, *SAMPLES, *(sample(number, envelope=number % 2 == 0) for number in range(8)))
    with reading(brokers, name, log):
        until(lambda: committed(brokers, name) == 12)
    assert waiting(log) == 9
    assert log.received == {("trino", "accepted"): 9, ("trino", "ignored"): 2}  # one has not ended, two read no table
    found = [one.query for one in log.spool.after(0, 100)]
    assert {read.table.catalog for query in found for read in query.tables} == {"lake"}
    assert not any("'d1'" in query.sql for query in found)  # literals are hashed, as of those over HTTP


def test_what_was_not_committed_comes_again_and_counts_once(
    brokers: str, name: str, log: QueryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server dies between the spool and the commit of the offsets."""
    send(brokers, name, *(sample(number) for number in range(4)))
    with monkeypatch.context() as dying:
        dying.setattr(QueriesTopic, "acknowledge", lambda self: self._behind.clear())
        with reading(brokers, name, log):
            until(lambda: waiting(log) == 4)
    assert committed(brokers, name) == 0
    send(brokers, name, sample(4))
    with reading(brokers, name, log):
        until(lambda: committed(brokers, name) == 5)
    assert waiting(log) == 5


@each_case("refusal", [SpoolFull(1), Unavailable("the disk is full"), InvalidMessage("it is too old by now")])
def test_while_the_spool_takes_nothing_nothing_is_lost_and_nothing_committed(refusal: Exception) -> None:
    class Topic:
        name = "kafka:t"
        fetched = acknowledged = 0

        def messages(self, _most: int, _timeout_s: float) -> Any:
            self.fetched += 1
            return [Message(sample(0))]

        def acknowledge(self) -> None:
            self.acknowledged += 1

    class Message:
        def __init__(self, body: bytes) -> None:
            self.value, self.partition, self.offset = lambda: body, lambda: 0, lambda: 7

    class Log:
        clock, rules = ManualClock(NOW), RULES
        taken: list[Any] = []  # noqa: RUF012 - of one case
        refusals = 2

        def named(self, query: Any) -> Any:
            return query

        def take(self, queries: Any, _malformed: Any) -> None:
            if self.refusals:
                self.refusals -= 1
                raise refusal
            self.taken = [*queries]

    topic, log, stop = Topic(), Log(), threading.Event()
    with pytest.MonkeyPatch.context() as quick:
        quick.setattr(module, "PAUSE_S", 0.0)
        TrinoTopic(topic, log).step(stop)  # type: ignore[arg-type] # doubles
        assert (topic.fetched, topic.acknowledged, len(log.taken)) == (1, 1, 1)
        log.refusals = 10**6
        stop.set()  # the server ends meanwhile
        TrinoTopic(topic, log).step(stop)  # type: ignore[arg-type] # doubles
    assert (topic.fetched, topic.acknowledged) == (2, 1)


def test_a_failure_on_the_way_to_the_spool_loses_no_fetch(
    brokers: str, name: str, log: QueryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is: the commit of the next fetch would pass this one."""
    monkeypatch.setattr(module, "PAUSE_S", 0.01)
    take, failures = log.take, iter([RuntimeError("a defect"), OSError("no space left")])

    def failing(*what: Any) -> None:
        failure = next(failures, None)
        if failure is not None:
            send(brokers, name, sample(9))  # there is more to be fetched, and to be committed
            raise failure
        take(*what)

    monkeypatch.setattr(log, "take", failing)
    send(brokers, name, *(sample(number) for number in range(3)))
    with reading(brokers, name, log):
        until(lambda: committed(brokers, name) == 5)
    assert waiting(log) == 4


def test_a_message_that_breaks_the_reader_holds_up_no_other(
    brokers: str, name: str, log: QueryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = read_event

    def breaking(body: bytes, rules: Any) -> Any:
        if b"_00001_kafka" in body:
            raise KeyError("a form that nobody thought of")
        return read(body, rules)

    monkeypatch.setattr(module, "read_event", breaking)
    send(brokers, name, *(sample(number) for number in range(3)))
    with reading(brokers, name, log):
        until(lambda: committed(brokers, name) == 3)
    assert (waiting(log), log.received["trino", "malformed"]) == (2, 1)


def test_what_is_no_event_is_counted_and_set_aside_without_its_values(
    brokers: str, name: str, log: QueryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MESSAGE_BYTES_MAX", 500_000)
    wrong = json.loads(sample(1))
    wrong["metadata"]["queryState"] = "SECRET"
    created = json.dumps({"metadata": {"queryId": "q"}, "createTime": "2026-01-01T00:00:00Z"}).encode()
    bad = [b"no json, and a secret", b"[]", b'"text"', b"x" * 500_001, b"[" * 100_000, json.dumps(wrong).encode()]
    send(brokers, name, *bad, created, sample(0))
    with reading(brokers, name, log):
        until(lambda: committed(brokers, name) == len(bad) + 2)
    assert (waiting(log), log.received["trino", "malformed"]) == (1, len(bad))
    assert not_none(log.figures()).set_aside == len(bad)
    bodies = [row[0] for row in log.spool._connection.execute("SELECT body FROM set_aside")]
    assert all(b"sha256" in body and b"a secret" not in body for body in bodies)


def config_of(folder: Path, brokers: str, more: str = "") -> Any:
    catalog = '[[catalogs]]\nname = "lake"\ntype = "rest"\nuri = "http://127.0.0.1:1"\n'
    text = (
        f'{catalog}[queries.catalogs]\nice = "lake"\n[queries.kafka]\nbrokers = "{brokers}"\ntopic = "queries"\n{more}'
    )
    (folder / "icewright.toml").write_text(text)
    return load_config(None, {"HOME": str(folder)}, folder)


def test_a_server_reads_the_topic_that_is_configured(tmp_path: Path, log: QueryLog) -> None:
    with mock_kafka() as kafka:
        send(kafka.brokers, kafka.topic("queries"), sample(0))
        with counting_queries(config_of(tmp_path, kafka.brokers), {}, log, log.clock):
            until(lambda: log.received.get(("trino", "accepted"), 0) == 1)


@each_case(
    ("more", "why"),
    [
        ('[queries.kafka.properties]\n"sasl.password" = "secret"\n', "does not belong here"),
        ('[queries.kafka.properties]\n"ssl.engine.location" = "/lib/x.so"\n', "not a property that may be set"),
        ('groups = "x"\n', "unknown, or empty"),
    ],
)
def test_secrets_are_references_and_nothing_loads_a_library(tmp_path: Path, more: str, why: str) -> None:
    with pytest.raises(InvalidConfiguration, match=why) as refused:
        config_of(tmp_path, "a:1", more)
    assert "queries.kafka" in refused.value.message
