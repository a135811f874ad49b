"""The table of the servers of a store; see :mod:`icewright.adapters.sql.schema`."""

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
