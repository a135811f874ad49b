"""Everybody who is told of things by messages: their notifiers, how they are, and letters that did not arrive."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import structlog

from icewright.core.clock import Clock
from icewright.core.errors import IcewrightError, NotFound, OutcomeUnknown, Unavailable
from icewright.core.times import Instant
from icewright.model.events.feed import FactKind
from icewright.model.events.notifications import (
    GroupBy,
    Receiver,
    ReceiverFigures,
    ReceiverKind,
    StoredMessage,
)
from icewright.model.iceberg.names import quote_part
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.message_text import outgoing, trial
from icewright.notifications.notifier import NOTED_MS, Notifier
from icewright.notifications.owners import Owners
from icewright.notifications.port import Sender
from icewright.ports.feed import Feed

_log = structlog.get_logger("icewright.notifications")

PAUSE_S: Final = 2.0
"""How long the feed is left alone after a look at it for each receiver."""
AWAY_PAUSE_S: Final = 10.0
"""How long the store is left alone that did not answer."""
SENT_AT_ONCE: Final = 10
"""How many messages go to one receiver before it is the turn of the others that share its thread."""
LATE_MS: Final = 15 * 60_000
"""A receiver whose message waits for longer is in trouble."""
SILENT_MS: Final = 5 * NOTED_MS
"""Nobody has looked at the feed for a receiver for so long: no server sends."""


@dataclass(frozen=True, slots=True)
class MessageDelivery:
    """Who is told, by which way, and where messages are kept until they arrive."""

    store: SqlMessages
    receivers: tuple[Receiver, ...] = ()
    senders: Mapping[str, Sender] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class ReceiverView:
    """A receiver as it is configured, but for its address, and how it is.

    ``sent``, ``failed`` and ``given_up`` count attempts and messages since it was first configured; ``waiting``
    messages have not arrived yet, the oldest fact in them since ``waiting_since``; ``dead_letters`` are kept.
    ``looked_at`` is when the feed was last looked at for it, null before the first time. ``trouble`` is empty while
    all is well. ``lag_ms`` is how long the oldest fact waits that it should know of, or nobody has looked for any.
    """

    name: str
    kind: ReceiverKind
    facts: tuple[FactKind, ...]
    under: tuple[str, ...]
    owners: tuple[str, ...]
    group_by: GroupBy
    interval_ms: int
    messages_per_hour: int
    sent: int
    failed: int
    given_up: int
    waiting: int
    waiting_since: Instant | None
    dead_letters: int
    looked_at: Instant | None
    trouble: str
    lag_ms: int


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a message that says nothing. ``problem`` is empty where it arrived."""

    receiver: str
    message_id: str
    has_arrived: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up. ``text`` is as people would have read it, ``problem`` why it did not arrive."""

    message_id: str
    receiver: str
    title: str
    text: str
    composed_at: Instant
    given_up_at: Instant
    attempts: int
    problem: str


def dead_letter(stored: StoredMessage) -> DeadLetter:
    """A message that was given up, as it is listed."""
    shown = outgoing(stored.message)
    return DeadLetter(
        message_id=stored.message.message_id,
        receiver=stored.message.receiver,
        title=shown.title,
        text=shown.plain,
        composed_at=stored.composed_at,
        given_up_at=stored.ended_at or stored.composed_at,
        attempts=stored.attempts,
        problem=stored.problem,
    )


class Notifications:
    """All receivers of one configuration."""

    def __init__(self, delivery: MessageDelivery, feed: Feed, owners: Owners, clock: Clock) -> None:
        self._telling, self._clock = delivery, clock
        self.store = delivery.store
        self._notifiers = [
            Notifier(receiver, delivery.senders[receiver.name], delivery.store, feed, owners)
            for receiver in delivery.receivers
        ]

    @property
    def receivers(self) -> tuple[Receiver, ...]:
        """Who is told."""
        return self._telling.receivers

    def views(self) -> list[ReceiverView]:
        """All receivers and how they are. Raises :class:`~icewright.core.errors.Unavailable`."""
        figures, now = self.store.figures(), self._clock.now()
        return [_view(one, figures.get(one.name, ReceiverFigures()), now) for one in self.receivers]

    def test(self, name: str) -> Trial:
        """Send a message that says nothing, now and from this process. Raises ``NotFound``."""
        sender = self._telling.senders.get(name)
        if sender is None:
            known = ", ".join(one.name for one in self.receivers) or "none"
            raise NotFound(f"there is no receiver {name[:100]!r}", hint=f"known: {known}")
        now = self._clock.now()
        message_id = f"msg_test_{now}"
        try:
            sender.send(trial(name, message_id), now)
        except IcewrightError as error:
            return Trial(name, message_id, has_arrived=False, problem=error.message)
        return Trial(name, message_id, has_arrived=True)

    def run(self, stop: threading.Event, share: int = 0, shares: int = 1) -> None:
        """Tell every ``shares``-th receiver, from the ``share``-th on, until told to stop."""
        own = self._notifiers[share::shares]
        while not stop.is_set():
            answered = [self._tell(one, stop) for one in own]
            stop.wait(PAUSE_S if all(answered) else AWAY_PAUSE_S)

    def _tell(self, notifier: Notifier, stop: threading.Event) -> bool:
        """Whether the store answered; what else goes wrong with one receiver is no other one's trouble."""
        try:
            for _ in range(SENT_AT_ONCE):
                if stop.is_set() or not notifier.step():
                    break
        except (Unavailable, OutcomeUnknown) as error:
            _log.warning("put off", receiver=notifier.receiver.name, detail=error.message)
            return False
        except Exception:  # noqa: BLE001 - the thread's outermost edge: a defect met at one receiver never stops others
            _log.exception("telling failed", receiver=notifier.receiver.name)
        return True


def _view(receiver: Receiver, figures: ReceiverFigures, now: Instant) -> ReceiverView:
    return ReceiverView(
        name=receiver.name,
        kind=receiver.kind,
        facts=receiver.facts,
        under=tuple(".".join(quote_part(part) for part in parts) for parts in receiver.under),
        owners=receiver.owners,
        group_by=receiver.group_by,
        interval_ms=receiver.interval_ms,
        messages_per_hour=receiver.messages_per_hour,
        sent=figures.sent,
        failed=figures.failed,
        given_up=figures.given_up,
        waiting=figures.waiting,
        waiting_since=figures.waiting_since,
        dead_letters=figures.dead_letters,
        looked_at=figures.looked_at,
        trouble=_trouble(figures, now),
        lag_ms=_lag_ms(figures, now),
    )


def _lag_ms(figures: ReceiverFigures, now: Instant) -> int:
    """How long the oldest fact waits in a message, or for somebody to look at the feed for longer than is usual."""
    if figures.waiting_since is not None:
        return max(0, now - figures.waiting_since)
    silent_ms = 0 if figures.looked_at is None else now - figures.looked_at
    return silent_ms if silent_ms > SILENT_MS else 0


def _trouble(figures: ReceiverFigures, now: Instant) -> str:
    if figures.looked_at is not None and now - figures.looked_at > SILENT_MS and not figures.waiting:
        return "no server reads the feed for it"
    if figures.waiting_since is not None and now - figures.waiting_since > LATE_MS:
        return "messages do not arrive"
    return "there are dead letters" if figures.dead_letters else ""
