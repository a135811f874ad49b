"""Messages and how far their receivers were told, in memory: the plainest statement of the port."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from icewright.core.clock import Clock
from icewright.core.errors import Conflict, NotAllowed, NotFound
from icewright.core.times import Instant
from icewright.model.events.notifications import (
    RATE_MS,
    Message,
    MessageState,
    ReceiverFigures,
    ReceiverState,
    StoredMessage,
)
from icewright.model.work.retention import RowKind


class MemoryMessages:
    """A :class:`~icewright.notifications.port.MessageStore` that is gone with the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._figures: dict[str, ReceiverFigures] = {}
        self._stored: dict[str, StoredMessage] = {}
        self._last = 0

    def state(self, receiver: str) -> ReceiverState:
        """See the port."""
        with self._lock:
            now = self._clock.now()
            own = [one for one in self._stored.values() if one.message.receiver == receiver]
            waiting = sorted((one for one in own if one.state is MessageState.WAITING), key=lambda one: one.number)
            composed = sum(one.composed_at > now - RATE_MS for one in own)
            return ReceiverState(now, self._position(receiver), waiting[0] if waiting else None, composed)

    def compose(self, receiver: str, expected: int | None, position: int, composed: Sequence[Message]) -> None:
        """See the port."""
        with self._lock:
            present = self._position(receiver)
            if present != expected:
                raise Conflict(f"receiver {receiver} was sent facts up to {present}, not {expected}")
            if len({message.message_id for message in composed} - self._stored.keys()) < len(composed):
                raise ValueError("the id of a message has been used")
            figures = self._figures.get(receiver, ReceiverFigures())
            self._figures[receiver] = replace(figures, position=position, looked_at=self._clock.now())
            for message in composed:
                self._keep(message)

    def sent(self, message_id: str) -> None:
        """See the port."""
        with self._lock:
            found = self._waiting(message_id)
            if found is not None:
                ended = replace(found, state=MessageState.SENT, problem="", ended_at=self._clock.now())
                self._stored[message_id] = ended
                self._count(found, sent=1)

    def failed(self, message_id: str, problem: str, next_at: Instant | None) -> None:
        """See the port."""
        with self._lock:
            found = self._waiting(message_id)
            if found is None:
                return
            failed = replace(found, attempts=found.attempts + 1, problem=problem)
            if next_at is None:
                self._stored[message_id] = replace(failed, state=MessageState.DEAD, ended_at=self._clock.now())
            else:
                self._stored[message_id] = replace(failed, next_at=next_at)
            self._count(found, failed=1, given_up=int(next_at is None))

    def retry(self, message_id: str) -> StoredMessage:
        """See the port."""
        with self._lock:
            found = self._stored.get(message_id)
            if found is None:
                raise NotFound(f"no message {message_id}", hint="`icewright notifications deadletters` lists them")
            if found.state is not MessageState.DEAD:
                raise NotAllowed(f"message {message_id} is no dead letter: it is {found.state}")
            return self._keep(found.message)

    def dead_letters(self, *, limit: int, before: int | None = None) -> Sequence[StoredMessage]:
        """See the port."""
        with self._lock:
            dead = [one for one in self._stored.values() if one.state is MessageState.DEAD]
            dead.sort(key=lambda one: -one.number)
            return [one for one in dead if before is None or one.number < before][:limit]

    def figures(self) -> Mapping[str, ReceiverFigures]:
        """See the port."""
        with self._lock:
            return {name: self._counted(name, found) for name, found in self._figures.items()}

    def prune(self, sent_before: Instant, dead_before: Instant, limit: int) -> int:
        """See the port."""
        before = {MessageState.SENT: sent_before, MessageState.DEAD: dead_before}
        with self._lock:
            old = [
                message_id
                for message_id, one in self._stored.items()
                if one.ended_at is not None and one.ended_at < before[one.state]
            ][:limit]
            for message_id in old:
                del self._stored[message_id]
            return len(old)

    def ages(self) -> Mapping[RowKind, Sequence[Instant]]:
        """When messages arrived, or were given up."""
        with self._lock:
            ended = [(one.state, one.ended_at) for one in self._stored.values() if one.ended_at is not None]
        kinds = {RowKind.MESSAGES: MessageState.SENT, RowKind.DEAD_LETTERS: MessageState.DEAD}
        return {kind: [at for found, at in ended if found is state] for kind, state in kinds.items()}

    def _position(self, receiver: str) -> int | None:
        return self._figures[receiver].position if receiver in self._figures else None

    def _keep(self, message: Message) -> StoredMessage:
        self._last += 1
        now = self._clock.now()
        self._stored[message.message_id] = kept = StoredMessage(self._last, message, MessageState.WAITING, now, now)
        return kept

    def _waiting(self, message_id: str) -> StoredMessage | None:
        found = self._stored.get(message_id)
        return found if found is not None and found.state is MessageState.WAITING else None

    def _count(self, stored: StoredMessage, *, sent: int = 0, failed: int = 0, given_up: int = 0) -> None:
        name = stored.message.receiver
        was = self._figures[name]
        self._figures[name] = replace(
            was, sent=was.sent + sent, failed=was.failed + failed, given_up=was.given_up + given_up
        )

    def _counted(self, name: str, found: ReceiverFigures) -> ReceiverFigures:
        own = [one for one in self._stored.values() if one.message.receiver == name]
        waiting = [one.message.first_at for one in own if one.state is MessageState.WAITING]
        dead = sum(one.state is MessageState.DEAD for one in own)
        return replace(found, waiting=len(waiting), waiting_since=min(waiting, default=None), dead_letters=dead)
