"""The table of what tasks took; see :mod:`icewright.store.schema`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, PrimaryKeyConstraint, Table

from icewright.store.schema_access import Key, metadata

# What expiries took from tables, compressed, for as long as they can be undone.
kept_of_tasks = Table(
    "kept_of_tasks",
    metadata,
    Column("task_id", Key, nullable=False),
    Column("catalog", Key, nullable=False),
    Column("table_uuid", Key, nullable=False),
    Column("kept_at", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
    PrimaryKeyConstraint("task_id", name="pk_kept_of_tasks"),
)
Index("ix_kept_of_tasks_age", kept_of_tasks.c.kept_at, kept_of_tasks.c.task_id)
