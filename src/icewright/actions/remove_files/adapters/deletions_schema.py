"""The tables of removals: what was intended, what became of it, and who approved; see the module ``schema``."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    literal_column,
    text,
)

from icewright.ports.deletions import HELD_STATES
from icewright.store.schema_access import Key, metadata

deletion_runs = Table(
    "deletion_runs",
    metadata,
    Column("run_id", Key, nullable=False),
    Column("catalog", Key, nullable=False),
    Column("table_uuid", Key, nullable=False),
    Column("plan_hash", Key, nullable=False),
    Column("is_open", Boolean, nullable=False),
    Column("next_at", BigInteger, nullable=False),
    Column("run", Text, nullable=False),
    Column("changed_at", BigInteger, nullable=False, server_default="0"),  # the run, or any of its files
    PrimaryKeyConstraint("run_id", name="pk_deletion_runs"),
)
_OPEN = text("is_open")
Index(
    "uq_deletion_runs_open",
    deletion_runs.c.catalog,
    deletion_runs.c.table_uuid,
    unique=True,
    sqlite_where=_OPEN,
    postgresql_where=_OPEN,
)
Index("ix_deletion_runs_table", deletion_runs.c.catalog, deletion_runs.c.table_uuid, deletion_runs.c.run_id)

Index("ix_deletion_runs_age", deletion_runs.c.changed_at, deletion_runs.c.run_id)

deletion_intents = Table(
    "deletion_intents",
    metadata,
    Column("run_id", Key, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("state", Key, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("intent", Text, nullable=False),
    PrimaryKeyConstraint("run_id", "number", name="pk_deletion_intents"),
    ForeignKeyConstraint(["run_id"], ["deletion_runs.run_id"], name="fk_deletion_intents_run"),
)
_HELD = deletion_intents.c.state.in_([literal_column(f"'{state.value}'") for state in sorted(HELD_STATES)])
Index("ix_deletion_intents_held", deletion_intents.c.run_id, sqlite_where=_HELD, postgresql_where=_HELD)
Index("ix_deletion_intents_state", deletion_intents.c.run_id, deletion_intents.c.state, deletion_intents.c.number)

deletion_approvals = Table(
    "deletion_approvals",
    metadata,
    Column("plan_hash", Key, nullable=False),
    Column("approval", Text, nullable=False),
    Column("approved_at", BigInteger, nullable=False, server_default="0"),
    Column("catalog", Key),
    Column("table_uuid", Key),
    Column("plan_id", Key),  # NULL for approvals that do not say of which plan they are, or are older than the column
    PrimaryKeyConstraint("plan_hash", name="pk_deletion_approvals"),
    Index("ix_deletion_approvals_at", "approved_at", "plan_hash"),
)
