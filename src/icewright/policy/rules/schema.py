"""The table of policy revisions; see :mod:`icewright.store.schema`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, LargeBinary, PrimaryKeyConstraint, Table

from icewright.store.schema_access import metadata

policy_revisions = Table(
    "policy_revisions",
    metadata,
    Column("number", BigInteger, nullable=False, autoincrement=False),
    Column("revision", LargeBinary, nullable=False),
    Column("replaced_at", BigInteger),  # NULL for the present one
    PrimaryKeyConstraint("number", name="pk_policy_revisions"),
)
