"""The table of halts; see :mod:`icewright.store.schema`."""

from __future__ import annotations

from sqlalchemy import Column, PrimaryKeyConstraint, Table, Text

from icewright.store.schema_access import Key, metadata

# What of the queue is paused, draining or stopped. A table goes by its catalog and uuid, all others by their name.
halts = Table(
    "halts",
    metadata,
    Column("kind", Key, nullable=False),
    Column("name", Key, nullable=False),
    Column("table_uuid", Key, nullable=False),
    Column("halt", Text, nullable=False),
    PrimaryKeyConstraint("kind", "name", "table_uuid", name="pk_halts"),
)
