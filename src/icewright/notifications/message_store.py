"""Messages and how far their receivers were told, in an SQL database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Engine, Select, and_, delete, func, insert, or_, select, update

from icewright.core.clock import Clock
from icewright.core.errors import Conflict, NotAllowed, NotFound
from icewright.core.times import Instant
from icewright.feed.schema import messages, receivers
from icewright.model.events.notifications import (
    RATE_MS,
    Message,
    MessageState,
    ReceiverFigures,
    ReceiverState,
    StoredMessage,
)
from icewright.store import transactions
from icewright.store.documents import dump, load, text_of
from icewright.store.transactions import reading, writing

_WAITS: Final = messages.c.state == MessageState.WAITING
_DEAD: Final = messages.c.state == MessageState.DEAD


class SqlMessages:
    """How far each receiver has been told of the feed, and its messages, durable, in their order.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer.

    Time is the database's unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine, self._clock = engine, clock

    def state(self, receiver: str) -> ReceiverState:
        """How far a receiver is."""
        of_it = messages.c.receiver == receiver
        with reading(self._engine) as connection:
            now = transactions.now(connection, self._clock)
            first = _stored(connection, select(messages).where(of_it, _WAITS).order_by(messages.c.number).limit(1))
            lately = select(func.count()).where(of_it, messages.c.composed_at > now - RATE_MS)
            composed = connection.scalar(lately) or 0
            return ReceiverState(now, _position(connection, receiver), first[0] if first else None, composed)

    def compose(self, receiver: str, expected: int | None, position: int, composed: Sequence[Message]) -> None:
        """Keep these messages to be sent, and with them that the feed was looked at as far as ``position``.

        Raises :class:`~icewright.core.errors.Conflict`, and nothing changes, where the receiver is not at
        ``expected`` (None: before the first look) any more: then somebody else has composed them.
        """
        with writing(self._engine) as connection:
            present = _position(connection, receiver)  # it is alone: it stays so until this is written
            if present != expected:
                raise Conflict(f"receiver {receiver} was sent facts up to {present}, not {expected}")
            now = transactions.now(connection, self._clock)
            moved = {"position": position, "looked_at": now}
            if present is None:
                none = {"sent": 0, "failed": 0, "given_up": 0}
                connection.execute(insert(receivers).values(name=receiver, **moved, **none))
            else:
                connection.execute(update(receivers).where(receivers.c.name == receiver).values(**moved))
            if composed:
                connection.execute(insert(messages), [_row(message, now) for message in composed])

    def sent(self, message_id: str) -> None:
        """A waiting message has arrived; nothing happens to one that waits no more."""
        with writing(self._engine) as connection:
            now = transactions.now(connection, self._clock)
            ended = {"state": MessageState.SENT.value, "ended_at": now, "problem": dump("")}
            self._end(connection, message_id, ended, {"sent": receivers.c.sent + 1})

    def failed(self, message_id: str, problem: str, next_at: Instant | None) -> None:
        """A waiting message did not arrive: it waits until ``next_at``, or with None is given up."""
        with writing(self._engine) as connection:
            values: dict[str, Any] = {"attempts": messages.c.attempts + 1, "problem": dump(problem)}
            counted = {"failed": receivers.c.failed + 1}
            if next_at is None:
                values |= {"state": MessageState.DEAD.value, "ended_at": transactions.now(connection, self._clock)}
                counted["given_up"] = receivers.c.given_up + 1
            else:
                values["next_at"] = next_at
            self._end(connection, message_id, values, counted)

    def retry(self, message_id: str) -> StoredMessage:
        """Have a dead letter sent again, behind all that wait. Raises ``NotFound``, and ``NotAllowed`` for another."""
        this = messages.c.message_id == message_id
        with writing(self._engine) as connection:
            found = _stored(connection, select(messages).where(this))
            if not found:
                raise NotFound(f"no message {message_id}", hint="`icewright notifications deadletters` lists them")
            if found[0].state is not MessageState.DEAD:
                raise NotAllowed(f"message {message_id} is no dead letter: it is {found[0].state}")
            now = transactions.now(connection, self._clock)
            connection.execute(delete(messages).where(this))
            connection.execute(insert(messages), [_row(found[0].message, now)])
            return _stored(connection, select(messages).where(this))[0]

    def dead_letters(self, *, limit: int, before: int | None = None) -> Sequence[StoredMessage]:
        """Messages that were given up, the latest first; ``before`` is the number of the last one of another page."""
        query = select(messages).where(_DEAD).order_by(messages.c.number.desc()).limit(limit)
        with reading(self._engine) as connection:
            return _stored(connection, query if before is None else query.where(messages.c.number < before))

    def figures(self) -> Mapping[str, ReceiverFigures]:
        """What is counted of each receiver that was ever looked at, by its name."""
        counted = (
            select(messages.c.receiver, messages.c.state, func.count().label("count"), func.min(messages.c.first_at))
            .where(or_(_WAITS, _DEAD))
            .group_by(messages.c.receiver, messages.c.state)
        )
        with reading(self._engine) as connection:
            rows = connection.execute(select(receivers)).mappings().all()
            counts = {(name, state): (count, first) for name, state, count, first in connection.execute(counted)}
        return {row["name"]: _figures(dict(row), counts) for row in rows}

    def prune(self, sent_before: Instant, dead_before: Instant, limit: int) -> int:
        """Forget at most so many messages that were sent, or given up, before; how many there were."""
        old = or_(
            and_(messages.c.state == MessageState.SENT, messages.c.ended_at < sent_before),
            and_(_DEAD, messages.c.ended_at < dead_before),
        )
        with writing(self._engine) as connection:
            found = list(connection.scalars(select(messages.c.number).where(old).limit(limit)))
            if found:
                connection.execute(delete(messages).where(messages.c.number.in_(found)))
            return len(found)

    def _end(
        self, connection: Connection, message_id: str, values: Mapping[str, Any], counted: Mapping[str, Any]
    ) -> None:
        """Change a message that waits, and count that with its receiver; nothing happens to another."""
        this = and_(messages.c.message_id == message_id, _WAITS)
        receiver = connection.scalar(select(messages.c.receiver).where(this))
        if receiver is not None:
            connection.execute(update(messages).where(this).values(**values))
            connection.execute(update(receivers).where(receivers.c.name == receiver).values(**counted))


def _position(connection: Connection, receiver: str) -> int | None:
    found = connection.scalar(select(receivers.c.position).where(receivers.c.name == receiver))
    return None if found is None else int(found)


def _row(message: Message, now: Instant) -> dict[str, Any]:
    return {
        "message_id": message.message_id,
        "receiver": message.receiver,
        "state": MessageState.WAITING.value,
        "composed_at": now,
        "first_at": message.first_at,
        "next_at": now,
        "attempts": 0,
        "problem": dump(""),
        "message": dump(message),
    }


def _stored(connection: Connection, query: Select[Any]) -> Sequence[StoredMessage]:
    return [
        StoredMessage(
            number=row["number"],
            message=load(Message, row["message"]),
            state=MessageState(row["state"]),
            composed_at=row["composed_at"],
            next_at=row["next_at"],
            attempts=row["attempts"],
            problem=text_of(row["problem"]),
            ended_at=row["ended_at"],
        )
        for row in connection.execute(query).mappings()
    ]


def _figures(row: Mapping[str, Any], counts: Mapping[tuple[str, str], tuple[int, Instant]]) -> ReceiverFigures:
    waiting, since = counts.get((row["name"], MessageState.WAITING), (0, None))
    dead, _ = counts.get((row["name"], MessageState.DEAD), (0, None))
    return ReceiverFigures(
        sent=row["sent"],
        failed=row["failed"],
        given_up=row["given_up"],
        position=row["position"],
        looked_at=row["looked_at"],
        waiting=waiting,
        waiting_since=since,
        dead_letters=dead,
    )
