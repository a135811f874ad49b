"""A receiver in memory, for tests of whoever tells it."""

from __future__ import annotations

from collections.abc import Callable

from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.model.events.feed import FactKind
from icewright.model.events.notifications import Receiver, ReceiverKind
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.port import Outgoing
from icewright.notifications.service import MessageDelivery
from tests.lakes.stores import new_store


class Mailbox:
    """A receiver that takes what it is sent, unless told otherwise."""

    def __init__(self) -> None:
        self.got: list[Outgoing] = []
        self.trouble: Callable[[], Exception] | None = None

    def send(self, outgoing: Outgoing, at: Instant) -> None:
        """See the port."""
        del at
        if self.trouble is not None:
            raise self.trouble()
        self.got.append(outgoing)

    @property
    def titles(self) -> list[str]:
        return [one.title.removeprefix("icewright: ") for one in self.got]


def told(mailbox: Mailbox, clock: Clock, *, name: str = "team") -> MessageDelivery:
    """One receiver, which is told of everything at once."""
    receiver = Receiver(name, ReceiverKind.WEBHOOK, tuple(FactKind), (("lake",),), interval_ms=0)
    return MessageDelivery(SqlMessages(new_store(), clock), (receiver,), {name: mailbox})
