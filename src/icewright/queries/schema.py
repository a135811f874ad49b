"""The table of what queries took; see :mod:`icewright.store.schema`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, PrimaryKeyConstraint, Table, Text

from icewright.store.schema_access import Key, metadata

query_templates = Table(
    "query_templates",
    metadata,
    Column("catalog", Key, nullable=False),
    Column("table_uuid", Key, nullable=False),
    Column("week_at", BigInteger, nullable=False),
    Column("fingerprint", Key, nullable=False),
    Column("template", Text, nullable=False),
    Column("queries", BigInteger, nullable=False),
    Column("bytes_read", BigInteger, nullable=False),
    Column("sums", Text, nullable=False),
    PrimaryKeyConstraint("catalog", "table_uuid", "week_at", "fingerprint", name="pk_query_templates"),
)
Index("ix_query_templates_week", query_templates.c.week_at)
