"""The tables of the feed and of those who are told by it; see :mod:`icewright.store.schema`."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
)

from icewright.model.events.notifications import MessageState
from icewright.store.schema_access import Key, metadata

FEED_FORGOTTEN: Final = "feed_forgotten"
"""The counter that has the greatest number that was forgotten."""

feed = Table(
    "feed",
    metadata,
    # SQLite counts up only what it calls INTEGER; AUTOINCREMENT never gives a number twice.
    Column("sequence", BigInteger().with_variant(Integer, "sqlite"), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", Key, nullable=False),
    Column("parts", Key, nullable=False),  # catalog, namespace and name, as JSON; long, and no part of any index
    Column("once", Key),  # what a fact that is told once is known by; NULL for those of tasks
    Column("fact", Text, nullable=False),
    PrimaryKeyConstraint("sequence", name="pk_feed"),
    UniqueConstraint("once", name="uq_feed_once"),
    sqlite_autoincrement=True,
)

receivers = Table(
    "receivers",
    metadata,
    Column("name", Key, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("looked_at", BigInteger, nullable=False),
    Column("sent", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("given_up", BigInteger, nullable=False),
    PrimaryKeyConstraint("name", name="pk_receivers"),
)

messages = Table(
    "messages",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), nullable=False),
    Column("message_id", Key, nullable=False),
    Column("receiver", Key, nullable=False),
    Column("state", Key, nullable=False),
    Column("composed_at", BigInteger, nullable=False),
    Column("first_at", BigInteger, nullable=False),
    Column("next_at", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("problem", Text, nullable=False),
    Column("ended_at", BigInteger),
    Column("message", Text, nullable=False),
    PrimaryKeyConstraint("number", name="pk_messages"),
    UniqueConstraint("message_id", name="uq_messages_id"),
    sqlite_autoincrement=True,
)
_WAITS = messages.c.state == literal_column(f"'{MessageState.WAITING.value}'")
Index("ix_messages_waiting", messages.c.receiver, messages.c.number, sqlite_where=_WAITS, postgresql_where=_WAITS)
Index("ix_messages_composed", messages.c.receiver, messages.c.composed_at)
Index("ix_messages_ended", messages.c.state, messages.c.ended_at)
