"""A Kafka topic, and one as a source of events, by librdkafka; its client is an extra, so it is imported when needed.

Offsets are committed when what they stand for is kept, and never by the clock. All servers are one group, so
each message goes to one of them; what a server had not committed when it lost a partition goes to the next one again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from icewright.core.errors import InvalidConfiguration, InvalidMessage, Unavailable
from icewright.events.sources.port import Fetched
from icewright.model.events.events import Channel, CommitEvent
from icewright.model.events.messages import parse_message

_log = structlog.get_logger("icewright.events")

MESSAGE_BYTES_MAX: Final = 64 * 1024
"""As long as the body of a request may be; longer messages are passed over unread."""
_FETCHED_KIB_MAX: Final = 16 * 1024
"""What librdkafka may hold that we have not asked for yet."""


class KafkaTopic:
    """One member of a consumer group on one topic."""

    section = "events.kafka"
    """Where it is configured."""

    def __init__(self, brokers: str, topic: str, group: str, properties: Mapping[str, str]) -> None:
        """``properties`` are librdkafka's own, with secrets in place. Raises :class:`InvalidConfiguration`."""
        self.name = f"kafka:{topic}"
        self._topic = topic
        self._behind: dict[tuple[str, int], int] = {}
        """The next offset of each partition, behind what was fetched and not yet acknowledged."""
        self._settings: dict[str, str | int | bool] = {
            "auto.offset.reset": "earliest",
            "client.id": "icewright",
            **properties,
            "bootstrap.servers": brokers,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "queued.max.messages.kbytes": _FETCHED_KIB_MAX,
        }
        self._consumer = self._joined()

    def messages(self, most: int, timeout_s: float) -> Sequence[Message]:
        """The next messages, none that is a failure. Raises :class:`Unavailable` where nothing but failures came."""
        try:
            messages = self._consumer.consume(most, timeout_s)
        except KafkaException as error:
            raise Unavailable(f"Kafka does not answer: {_said(error)}") from error
        failures = [failure for message in messages if (failure := message.error()) is not None]
        if failures and len(failures) == len(messages):
            self._check(failures)
        found = [message for message in messages if message.error() is None]  # failures are said by error_cb as well
        for message in found:
            self._behind[str(message.topic()), int(message.partition() or 0)] = int(message.offset() or 0) + 1
        return found

    def acknowledge(self) -> None:
        """Commit what was fetched. A partition that another member has meanwhile is that one's: it reads all again."""
        try:
            ours = {(partition.topic, partition.partition) for partition in self._consumer.assignment()}
            offsets = [TopicPartition(*key, offset) for key, offset in self._behind.items() if key in ours]
            if offsets:
                done = self._consumer.commit(offsets=offsets, asynchronous=False) or ()
                refused = [one.error.str() for one in done if one.error is not None]
                if refused:
                    _log.info("offsets not committed", source=self.name, detail=refused[0])
        except KafkaException as error:
            # Most often a rebalance. What was not committed comes again, to whoever has the partition then.
            _log.info("offsets not committed", source=self.name, detail=_said(error))
        self._behind.clear()

    def close(self) -> None:
        """Leave the group."""
        with suppress(KafkaException, RuntimeError):  # it leaves the group, or is thrown out of it a little later
            self._consumer.close()

    def _joined(self) -> Consumer:
        try:
            consumer = Consumer({**self._settings, "error_cb": self._note})
            consumer.subscribe([self._topic])
        except KafkaException as error:
            raise InvalidConfiguration(f"{self.section}: {_said(error)}") from error
        return consumer

    def _check(self, failures: Sequence[KafkaError]) -> None:
        """Nothing came but failures. Raises ``Unavailable`` where waiting is all that helps."""
        real = [one for one in failures if one.code() != KafkaError._PARTITION_EOF]  # noqa: SLF001 - its public name
        if any(one.fatal() for one in real):
            self.close()
            self._behind.clear()
            self._consumer = self._joined()
        if real:
            raise Unavailable(f"Kafka: {real[0].str()}")

    def _note(self, failure: KafkaError) -> None:
        _log.warning("kafka", source=self.name, detail=failure.str())


class KafkaSource(KafkaTopic):
    """A topic with events of commits."""

    channel = Channel.KAFKA
    idle_s = 0.0

    def fetch(self, most: int, timeout_s: float) -> Fetched:
        """See the port."""
        events, problems = [], []
        for message in self.messages(most, timeout_s):
            try:
                events.append(_event_of(message))
            except InvalidMessage as error:
                problems.append(f"partition {message.partition()} offset {message.offset()}: {error.message}")
        return Fetched(events, len(problems), problem=problems[0] if problems else "")


def _event_of(message: Message) -> CommitEvent:
    value = message.value()
    if not isinstance(value, bytes):
        raise InvalidMessage("a message without a value")
    if len(value) > MESSAGE_BYTES_MAX:
        raise InvalidMessage(f"a message of {len(value):,} bytes, more than {MESSAGE_BYTES_MAX:,}")
    return parse_message(value)


def _said(error: KafkaException) -> str:
    failure = error.args[0] if error.args else None
    return failure.str() if isinstance(failure, KafkaError) else str(error)
