"""The table of turns; the others are in the module ``schema``."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Table

from icewright.store.schema_access import Key, metadata

# The fencing token of the last task that was started for a tenant of a resource group: who had their turn when.
turns = Table(
    "turns",
    metadata,
    Column("resource_group", Key, nullable=False),
    Column("tenant", Key, nullable=False),
    Column("fencing_token", BigInteger, nullable=False),
    PrimaryKeyConstraint("resource_group", "tenant", name="pk_turns"),
)
