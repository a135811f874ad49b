"""Tells one receiver what happens: reads the feed, keeps messages in the store, and sends them, one after the other.

Messages are written down, together with how far the feed was read for them, before the first is sent; so a server that
dies leaves none out, and one that dies between sending and writing down that it was sent has it sent again, with the
same id. While a message waits, no other is composed: what happens meanwhile is in the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import structlog

from icewright.core.errors import Conflict, IcewrightError, Rejected
from icewright.core.times import Instant
from icewright.model.events.feed import FeedEntry
from icewright.model.events.notifications import Message, Receiver, ReceiverState, StoredMessage
from icewright.notifications import grouping
from icewright.notifications.grouping import AT_ONCE, Owned
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.message_text import outgoing
from icewright.notifications.owners import Owners
from icewright.notifications.port import Sender, TryLater
from icewright.policy.rules.name_patterns import glob
from icewright.ports.feed import Feed

_log = structlog.get_logger("icewright.notifications")

FACTS_AT_ONCE: Final = 1_000
PAGES_MAX: Final = 20
"""How many pages of facts may share their messages; the others are in the next ones."""
NOTED_MS: Final = 60_000
"""How often it is written down at least that the feed was looked at, also when nothing in it was for this receiver."""


class Notifier:
    """One receiver. Not for use by several threads at once."""

    def __init__(self, receiver: Receiver, sender: Sender, store: SqlMessages, feed: Feed, owners: Owners) -> None:
        self.receiver = receiver
        self._sender, self._store, self._feed, self._owners = sender, store, feed, owners
        self._globs = [glob(text) for text in receiver.owners]
        self._looked: int | None = None
        """As far as the feed was looked at without anything to tell at once, and since when facts wait for others."""
        self._waiting_since: Instant | None = None
        self._noted_at: Instant | None = None

    def step(self) -> bool:
        """Send what is due, or compose what is to be sent; whether there may be more to do at once.

        Raises :class:`~icewright.core.errors.Unavailable` when the store does not answer.
        """
        state = self._store.state(self.receiver.name)
        if state.first is not None:
            return state.first.next_at <= state.now and self._send(state.first, state.now)
        if state.position is None:
            self._store.compose(self.receiver.name, None, self._feed.last(), ())
            return False
        return self._compose(state, state.position)

    def _send(self, stored: StoredMessage, now: Instant) -> bool:
        message = stored.message
        try:
            self._sender.send(outgoing(message), now)
        except IcewrightError as error:
            self._failed(stored, now, error)
            return False
        self._store.sent(message.message_id)
        return True

    def _failed(self, stored: StoredMessage, now: Instant, error: IcewrightError) -> None:
        wait_ms = error.wait_ms if isinstance(error, TryLater) else 0
        refused = isinstance(error, Rejected)
        next_at = next_try(stored.attempts + 1, stored.composed_at, now, is_refused=refused, wait_ms=wait_ms)
        name, message_id = self.receiver.name, stored.message.message_id
        self._store.failed(message_id, error.message, next_at)
        what = "message not sent" if next_at is not None else "message given up"
        _log.warning(what, receiver=name, message=message_id, attempts=stored.attempts + 1, detail=error.message)

    def _compose(self, state: ReceiverState, position: int) -> bool:
        slots = self.receiver.messages_per_hour - state.composed
        if not self._is_due(state, position) or slots <= 0:
            self._note(state, position)
            return False
        facts, through = self._read(position)
        behind = position < self._feed.forgotten_through()
        made = grouping.messages(self.receiver, facts, through, slots, is_behind=behind) if facts else ()
        return self._keep(position, through, made)

    def _keep(self, position: int, through: int, made: Sequence[Message], *, reads_on: bool = False) -> bool:
        try:
            self._store.compose(self.receiver.name, position, through, made)
        except Conflict as error:
            _log.info("composed by another server", receiver=self.receiver.name, detail=error.message)
        if not reads_on:
            self._looked = self._waiting_since = None
        return bool(made)

    def _is_due(self, state: ReceiverState, position: int) -> bool:
        """Whether facts have waited long enough for others, or there is one that waits for none.

        Of what was looked at already nothing is read again until then.
        """
        looked = position if self._looked is None else max(position, self._looked)
        page = self._feed.after(looked, FACTS_AT_ONCE, self.receiver.only)
        told = [one for one in page.told if self._is_for(one)]
        if told and self._waiting_since is None:
            self._waiting_since = told[0].at
        self._looked = page.through
        if self._waiting_since is None:
            return False
        at_once = any(one.fact.fact in AT_ONCE for one in told)
        is_full = len(page.told) == FACTS_AT_ONCE
        if at_once or is_full:
            self._waiting_since = 0
        return state.now - self._waiting_since >= self.receiver.interval_ms

    def _note(self, state: ReceiverState, position: int) -> None:
        """Write down now and then that the feed was looked at, and how far, where nothing in it waits to be told."""
        if self._noted_at is None or abs(state.now - self._noted_at) >= NOTED_MS:
            self._noted_at = state.now
            looked = self._looked if self._waiting_since is None else position
            self._keep(position, position if looked is None else max(position, looked), (), reads_on=True)

    def _read(self, position: int) -> tuple[list[Owned], int]:
        found: list[Owned] = []
        for page, through in self._pages(position):
            found += page
            position = through
        return found, position

    def _pages(self, position: int) -> Iterator[tuple[list[Owned], int]]:
        for _ in range(PAGES_MAX):
            page = self._feed.after(position, FACTS_AT_ONCE, self.receiver.only)
            yield [Owned(one, self._owners.of(one.fact)) for one in page.told if self._is_for(one)], page.through
            if len(page.told) < FACTS_AT_ONCE:
                return
            position = page.through

    def _is_for(self, one: FeedEntry) -> bool:
        """Whether the owner is one of the receiver's; what is about all catalogs is for everybody."""
        if not self._globs or not one.fact.parts:
            return True
        owner = self._owners.of(one.fact)
        return owner is not None and any(pattern.matches(owner) for pattern in self._globs)


_S: Final = 1_000
BACK_OFF_MS: Final = (5 * _S, 30 * _S, 120 * _S, 600 * _S, 1_800 * _S, 3_600 * _S)
"""How long the next attempt is waited for, after so many failed ones; the last one from then on."""
REFUSALS_MAX: Final = 3
"""How often a receiver may refuse a message: it would not take it the next day either, and others wait behind it."""
GIVE_UP_MS: Final = 24 * 3_600 * _S
"""How long a receiver may be away before what was to be told is given up, message by message."""


def next_try(
    attempts: int, composed_at: Instant, now: Instant, *, is_refused: bool, wait_ms: int = 0
) -> Instant | None:
    """When to send a message again that has failed ``attempts`` times by now; None to give it up.

    ``is_refused``: its receiver does not want it, rather than being away. ``wait_ms`` is what the receiver asked for,
    which counts for as long as the longest wait of our own.
    """
    if (attempts >= REFUSALS_MAX) if is_refused else (now - composed_at >= GIVE_UP_MS):
        return None
    own = BACK_OFF_MS[min(attempts, len(BACK_OFF_MS)) - 1]
    return now + max(own, min(wait_ms, BACK_OFF_MS[-1]))
