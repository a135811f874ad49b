"""The doors of messages: where they are kept until they are sent, and by which way they go out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from icewright.core.errors import Unavailable
from icewright.core.times import Instant
from icewright.model.events.notifications import Message, ReceiverFigures, ReceiverState, StoredMessage
from icewright.model.iceberg.tables import Json


class MessageStore(Protocol):
    """How far each receiver has been told of the feed, and its messages, durable, in their order.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def state(self, receiver: str) -> ReceiverState:
        """How far a receiver is."""
        ...

    def compose(self, receiver: str, expected: int | None, position: int, composed: Sequence[Message]) -> None:
        """Keep these messages to be sent, and with them that the feed was looked at as far as ``position``.

        Raises :class:`~icewright.core.errors.Conflict`, and nothing changes, where the receiver is not at
        ``expected`` (None: before the first look) any more: then somebody else has composed them.
        """
        ...

    def sent(self, message_id: str) -> None:
        """A waiting message has arrived; nothing happens to one that waits no more."""
        ...

    def failed(self, message_id: str, problem: str, next_at: Instant | None) -> None:
        """A waiting message did not arrive: it waits until ``next_at``, or with None is given up."""
        ...

    def retry(self, message_id: str) -> StoredMessage:
        """Have a dead letter sent again, behind all that wait. Raises ``NotFound``, and ``NotAllowed`` for another."""
        ...

    def dead_letters(self, *, limit: int, before: int | None = None) -> Sequence[StoredMessage]:
        """Messages that were given up, the latest first; ``before`` is the number of the last one of another page."""
        ...

    def figures(self) -> Mapping[str, ReceiverFigures]:
        """What is counted of each receiver that was ever looked at, by its name."""
        ...

    def prune(self, sent_before: Instant, dead_before: Instant, limit: int) -> int:
        """Forget at most so many messages that were sent, or given up, before; how many there were."""
        ...


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message in the forms in which it may go out. ``document`` is for programs, the others are for people."""

    message_id: str
    title: str
    plain: str
    markdown: str
    html: str
    document: Json = field(default_factory=dict)


class TryLater(Unavailable):
    """The receiver said when to try again, in so many milliseconds."""

    def __init__(self, message: str, *, wait_ms: int) -> None:
        super().__init__(message)
        self.wait_ms = wait_ms


class Sender(Protocol):
    """The way to one receiver."""

    def send(self, outgoing: Outgoing, at: Instant) -> None:
        """Send a message, at that time of the clock; it may arrive more than once, always with the same id.

        Raises :class:`~icewright.core.errors.Unavailable` where it may arrive later, and
        :class:`~icewright.core.errors.Rejected` where the receiver does not take it, or may not be talked to. No
        error has anything of what the receiver answered, nor of its address' secrets.
        """
        ...
