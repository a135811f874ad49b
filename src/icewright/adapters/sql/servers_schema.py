"""The tables of the servers of a store, and of what they removed; see :mod:`icewright.adapters.sql.schema`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Table, Text

from icewright.adapters.sql.schema_access import Key, metadata

servers = Table(
    "servers",
    metadata,
    Column("server_id", Key, nullable=False),
    Column("url", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("epoch", BigInteger),
    Column("started_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("server_id", name="pk_servers"),
)

prunings = Table(
    "prunings",
    metadata,
    Column("kind", Key, nullable=False),
    Column("pruned_at", BigInteger, nullable=False),
    Column("removed", BigInteger, nullable=False),
    Column("left_count", BigInteger, nullable=False),
    Column("oldest_at", BigInteger),
    PrimaryKeyConstraint("kind", name="pk_prunings"),
)
