"""Who is told of what by messages: receivers, and messages that group facts of the feed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from icewright.core.times import Instant
from icewright.model.events.feed import FactKind, FeedEntry, FeedFilter

RECEIVERS_MAX: Final = 100
MENTIONS_MAX: Final = 20
"""How many things a message tells one by one; the others are counted."""
RATE_MS: Final = 3_600_000
"""The span of which receivers have a limit of messages."""


class ReceiverKind(StrEnum):
    """How a receiver gets its messages."""

    WEBHOOK = "webhook"
    """A signed HTTP request, for programs."""
    APPRISE = "apprise"
    """By e-mail or a chat, through the library Apprise, for people."""


class GroupBy(StrEnum):
    """Which facts share a message."""

    OWNER = "owner"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Receiver:
    """Somebody who is told. What is empty does not restrict.

    ``under``: catalogs, namespaces with all below, tables. ``owners``: texts with ``*``; with any, facts of tables
    without an owner and facts of no table are not for this receiver. Facts wait ``interval_ms`` for others to share
    their message, and at most ``messages_per_hour`` are sent.
    """

    name: str
    kind: ReceiverKind
    facts: tuple[FactKind, ...]
    under: tuple[tuple[str, ...], ...] = ()
    owners: tuple[str, ...] = ()
    group_by: GroupBy = GroupBy.OWNER
    interval_ms: int = 300_000
    messages_per_hour: int = 20

    @property
    def only(self) -> FeedFilter:
        """What to read of the feed."""
        return FeedFilter(frozenset(self.facts), self.under)


@dataclass(frozen=True, slots=True)
class Mention:
    """What a message says of one thing: the gravest fact of it, the latest of several, and how often it was told."""

    told: FeedEntry
    owner: str | None
    times: int = 1


@dataclass(frozen=True, slots=True)
class Message:
    """Facts that are told together. Never changes, and neither does its id, however often it is sent.

    ``group`` is the owner or the table that it is about, None where it is about several. ``counts`` has all things by
    the kind of their fact, ``mentions`` the gravest of them, and ``tables`` how many tables they are of. ``through``
    is the last fact of the feed that was looked at for it. ``is_behind``: facts before these were forgotten unread.
    """

    message_id: str
    receiver: str
    group: str | None
    mentions: tuple[Mention, ...]
    counts: Mapping[str, int]
    tables: int
    through: int
    first_at: Instant
    is_behind: bool = False

    @property
    def more(self) -> int:
        """How many things are counted and not mentioned."""
        return sum(self.counts.values()) - len(self.mentions)


class MessageState(StrEnum):
    """What became of a message."""

    WAITING = "waiting"
    SENT = "sent"
    DEAD = "dead"
    """Given up: a dead letter."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message with what became of it. ``number`` grows in the order in which messages are sent.

    ``attempts`` counts those that failed, ``problem`` is why the last one did, and ``next_at`` when the next one is.
    """

    number: int
    message: Message
    state: MessageState
    composed_at: Instant
    next_at: Instant
    attempts: int = 0
    problem: str = ""
    ended_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class ReceiverState:
    """How far a receiver is, at ``now`` of the store's clock.

    ``position`` is the last fact of the feed that was looked at, None before the first look. ``first`` is the message
    to be sent next, and ``composed`` counts those of the last hour.
    """

    now: Instant
    position: int | None = None
    first: StoredMessage | None = None
    composed: int = 0


@dataclass(frozen=True, slots=True)
class ReceiverFigures:
    """What the store counts of a receiver. The first three never fall; ``dead_letters`` are those still kept.

    ``waiting_since`` is when the oldest fact was told that waits in a message, ``looked_at`` when its feed was last
    looked at.
    """

    sent: int = 0
    failed: int = 0
    given_up: int = 0
    position: int | None = None
    looked_at: Instant | None = None
    waiting: int = 0
    waiting_since: Instant | None = None
    dead_letters: int = 0
