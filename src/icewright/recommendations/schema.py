"""The tables of recommendations and of what they brought; see :mod:`icewright.store.schema`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, PrimaryKeyConstraint, Table, Text

from icewright.store.schema_access import Key, metadata

recommendations = Table(
    "recommendations",
    metadata,
    Column("recommendation_id", Key, nullable=False),
    Column("catalog", Key, nullable=False),
    Column("table_uuid", Key, nullable=False),
    Column("task_id", Key, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("verdict", Key, nullable=False),
    Column("recommendation", Text, nullable=False),
    Column("state", Key, nullable=False),
    Column("decision", Text),
    PrimaryKeyConstraint("recommendation_id", name="pk_recommendations"),
)
Index("ix_recommendations_table", recommendations.c.catalog, recommendations.c.table_uuid, recommendations.c.made_at)
Index("ix_recommendations_made", recommendations.c.made_at, recommendations.c.recommendation_id)

judged_queries = Table(
    "judged_queries",
    metadata,
    Column("recommendation_id", Key, nullable=False),
    Column("catalog", Key, nullable=False),
    Column("table_uuid", Key, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("queries", Text, nullable=False),
    PrimaryKeyConstraint("recommendation_id", name="pk_judged_queries"),
)

measurements = Table(
    "measurements",
    metadata,
    Column("task_id", Key, nullable=False),
    Column("recommendation_id", Key, nullable=False),
    Column("catalog", Key, nullable=False),
    Column("table_uuid", Key, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("effect", Key, nullable=False),
    Column("measurement", Text, nullable=False),
    PrimaryKeyConstraint("task_id", name="pk_measurements"),
)
Index("ix_measurements_of", measurements.c.recommendation_id, measurements.c.made_at)
