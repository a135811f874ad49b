"""The tables of servers, of what they removed, and of submitters; see :mod:`icewright.store.schema`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Table, Text

from icewright.store.schema_access import Key, metadata

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

submitters = Table(
    "submitters",
    metadata,
    Column("submitter_id", Key, nullable=False),
    Column("submitter", Text, nullable=False),
    Column("asked_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("submitter_id", name="pk_submitters"),
)
