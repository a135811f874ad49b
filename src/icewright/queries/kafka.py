"""Trino's events from a Kafka topic. Its client is an extra, so this module is imported where a topic is configured.

At least once: offsets are committed behind the spool, which knows a query that comes again by its id. While the spool
takes nothing, nothing is fetched.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import Final

import structlog
from confluent_kafka import Message

from icewright.core.errors import InvalidMessage, SpoolFull, Unavailable
from icewright.events.sources.kafka import KafkaTopic
from icewright.model.queries.bounds import bounded
from icewright.model.queries.queries import QueryRecord
from icewright.queries.service import QueryLog
from icewright.queries.sources.trino import read_event

_log = structlog.get_logger("icewright.queries")

MESSAGE_BYTES_MAX: Final = 8 * 1024 * 1024
"""As long as the body of a request may be; longer messages are set aside unread."""
AT_ONCE: Final = 50
"""Messages of one fetch: some 10 MB of events."""
FETCH_S: Final = 1.0
PAUSE_S: Final = 5.0
"""How long the topic, or the spool, is left alone that did not answer."""


class QueriesTopic(KafkaTopic):
    """The topic that ``[queries]`` names."""

    section = "queries.kafka"


class TrinoTopic:
    """The topic of Trino's Kafka event listener, read by a thread of its own. No message, and no failure, ends it."""

    def __init__(self, topic: KafkaTopic, log: QueryLog) -> None:
        self._topic, self._log = topic, log
        self._fetched: Sequence[Message] = ()
        """What is not in the spool yet: a failure in between must not let the next commit pass it."""

    def run(self, stop: threading.Event) -> None:
        """Read until ``stop`` is set; then leave the group."""
        try:
            while not stop.is_set():
                try:
                    self.step(stop)
                except Unavailable as error:
                    _log.warning("topic away", topic=self._topic.name, detail=error.message)
                    stop.wait(PAUSE_S)
                except Exception:  # noqa: BLE001 - the thread's outermost edge: whatever a message brings never stops it
                    _log.exception("reading a topic failed", topic=self._topic.name)
                    stop.wait(PAUSE_S)
        finally:
            self._topic.close()

    def step(self, stop: threading.Event) -> None:
        """Fetch once, and see it into the spool, however long there is no room; then commit the offsets."""
        self._fetched = self._fetched or self._topic.messages(AT_ONCE, FETCH_S)
        if not self._fetched:
            return
        # Read again each time: what waits for room may grow too old meanwhile.
        while not self._is_taken(*self._read(self._fetched)):
            if stop.wait(PAUSE_S):
                return  # not committed: it comes again
        self._fetched = ()
        self._topic.acknowledge()

    def _read(self, messages: Sequence[Message]) -> tuple[list[QueryRecord], list[bytes]]:
        """The queries of messages, and what is set aside of those that cannot be read: their values are kept nowhere.

        Events of queries that have not ended are passed over.
        """
        queries: list[QueryRecord] = []
        malformed: list[bytes] = []
        now = self._log.clock.now()
        for message in messages:
            body = message.value()
            try:
                query = read_event(_checked(body), self._log.rules)
                if query is not None:
                    queries.append(bounded(self._log.named(query), now))
            except Exception as error:  # noqa: BLE001 - of whatever kind: it is set aside, and holds up no other message
                said = error.message if isinstance(error, InvalidMessage) else type(error).__name__
                digest = hashlib.sha256(body if isinstance(body, bytes) else b"").hexdigest()
                place = f"{self._topic.name} partition {message.partition()} offset {message.offset()}"
                malformed.append(f"{place}: {said} (sha256 {digest})".encode("utf-8", "replace"))
        return queries, malformed

    def _is_taken(self, queries: Sequence[QueryRecord], malformed: Sequence[bytes]) -> bool:
        try:
            self._log.take(queries, malformed)
        except (InvalidMessage, SpoolFull, Unavailable) as error:
            _log.warning("the spool of queries takes nothing", topic=self._topic.name, detail=error.message)
            return False
        return True


def _checked(body: object) -> bytes:
    if not isinstance(body, bytes):
        raise InvalidMessage("a message without a value")
    if len(body) > MESSAGE_BYTES_MAX:
        raise InvalidMessage(f"a message of {len(body):,} bytes, more than {MESSAGE_BYTES_MAX:,}")
    return body
