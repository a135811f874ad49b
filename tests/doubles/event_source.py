"""A source of events in memory, in place of a broker: it can be away, and shows what was acknowledged."""

from __future__ import annotations

from dataclasses import dataclass, field

from icewright.core.errors import InvalidMessage, Unavailable
from icewright.events.sources.port import Fetched
from icewright.model.events.events import Channel
from icewright.model.events.messages import parse_message


@dataclass
class MemoryTopic:
    """Messages, and how far they were acknowledged."""

    messages: list[bytes] = field(default_factory=list)
    acknowledged: int = 0
    available: bool = True


class MemoryEventSource:
    """A reader of a topic."""

    name = "memory"
    channel = Channel.KAFKA
    idle_s = 0.0

    def __init__(self, topic: MemoryTopic) -> None:
        self._topic, self._at = topic, topic.acknowledged

    def fetch(self, most: int, timeout_s: float) -> Fetched:  # noqa: ARG002 - the port's
        if not self._topic.available:
            raise Unavailable("nobody answers")
        taken = self._topic.messages[self._at : self._at + most]
        self._at += len(taken)
        events, problem, passed_over = [], "", 0
        for message in taken:
            try:
                events.append(parse_message(message))
            except InvalidMessage as error:
                problem, passed_over = problem or error.message, passed_over + 1
        return Fetched(events, passed_over, problem=problem)

    def acknowledge(self) -> None:
        self._topic.acknowledged = max(self._topic.acknowledged, self._at)

    def close(self) -> None:
        """Nothing is open."""
