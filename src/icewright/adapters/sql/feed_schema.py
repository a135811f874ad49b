"""The tables of the feed and of those who are told by it; see :mod:`icewright.adapters.sql.schema`."""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, Integer, PrimaryKeyConstraint, Table, Text, UniqueConstraint

from icewright.adapters.sql.schema_access import Key, metadata

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
