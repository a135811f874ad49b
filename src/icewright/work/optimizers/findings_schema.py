"""The tables of what optimizers found, and are asked; see :mod:`icewright.store.schema`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Table, Text

from icewright.store.schema_access import Key, metadata

# What optimizers found of tables' files, by the code of their finding.
exclusion_rows = Table(
    "unfit_files",
    metadata,
    Column("catalog", Key, nullable=False),
    Column("table_uuid", Key, nullable=False),
    Column("code", Key, nullable=False),
    Column("detail", Text, nullable=False),
    Column("found_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("catalog", "table_uuid", "code", name="pk_unfit_files"),
)

# What optimizers shall find out of storages, and who was asked.
probes = Table(
    "probes",
    metadata,
    Column("catalog", Key, nullable=False),
    Column("root_digest", Key, nullable=False),
    Column("request", Text, nullable=False),
    Column("wanted_at", BigInteger, nullable=False),
    Column("optimizer_id", Text),
    Column("asked_at", BigInteger),
    PrimaryKeyConstraint("catalog", "root_digest", name="pk_probes"),
)
