"""The tables of events, and of how far their sources were read; see :mod:`icewright.store.schema`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, PrimaryKeyConstraint, Table, Text, UniqueConstraint, and_

from icewright.store.schema_access import Key, metadata

inbox = Table(
    "inbox",
    metadata,
    # SQLite counts up only what it calls INTEGER; AUTOINCREMENT never gives an id twice.
    Column("event_id", BigInteger().with_variant(Integer, "sqlite"), nullable=False),
    Column("name_digest", Key, nullable=False),
    Column("snapshot_id", BigInteger),  # NULL for an event that tells of the table alone, which is always another one
    Column("event", Text, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("done_at", BigInteger),
    Column("channel", Key, nullable=False, server_default="http"),
    Column("committed_at", BigInteger),  # as the table says, once a look has seen the snapshot
    Column("tries", BigInteger, nullable=False, server_default="0"),  # those that came to nothing
    Column("tried_at", BigInteger),
    Column("trouble", Text),
    Column("reporter", Key),  # the principal, or the source, that told of it first
    Column("catalog", Key),
    Column("parked_at", BigInteger),
    PrimaryKeyConstraint("event_id", name="pk_inbox"),
    UniqueConstraint("name_digest", "snapshot_id", name="uq_inbox_snapshot"),
    sqlite_autoincrement=True,
)
WAITS = and_(inbox.c.done_at.is_(None), inbox.c.parked_at.is_(None))
"""The condition of an event that is to be worked on."""
Index("ix_inbox_waiting", inbox.c.event_id, sqlite_where=WAITS, postgresql_where=WAITS)
# In turns of reporters: has all that the question whose turn it is asks for.
Index(
    "ix_inbox_turns",
    inbox.c.reporter,
    inbox.c.name_digest,
    inbox.c.event_id,
    inbox.c.tries,
    inbox.c.catalog,
    inbox.c.tried_at,
    sqlite_where=WAITS,
    postgresql_where=WAITS,
)

# How far logs were read whose keepers do not remember that for their readers.
event_cursors = Table(
    "event_cursors",
    metadata,
    Column("name", Key, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("updated_at", BigInteger),  # of those of spools of queries
    PrimaryKeyConstraint("name", name="pk_event_cursors"),
)
