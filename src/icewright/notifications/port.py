"""The doors of messages: where they are kept until they are sent, and by which way they go out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from icewright.core.errors import Unavailable
from icewright.core.times import Instant
from icewright.model.iceberg.tables import Json


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
