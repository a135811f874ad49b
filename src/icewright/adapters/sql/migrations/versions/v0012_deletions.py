"""What is to be deleted and what became of it, file by file: written before anything is touched."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision: str | None = "0011"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the three tables."""
    op.create_table(
        "deletion_runs",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("plan_hash", KEY, nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_deletion_runs"),
    )
    open_runs = sa.text("is_open")
    op.create_index(
        "uq_deletion_runs_open",
        "deletion_runs",
        ["catalog", "table_uuid"],
        unique=True,
        sqlite_where=open_runs,
        postgresql_where=open_runs,
    )
    op.create_index("ix_deletion_runs_table", "deletion_runs", ["catalog", "table_uuid", "run_id"])
    op.create_table(
        "deletion_intents",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("state", KEY, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("intent", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_deletion_intents"),
        sa.ForeignKeyConstraint(["run_id"], ["deletion_runs.run_id"], name="fk_deletion_intents_run"),
    )
    held = sa.text("state IN ('quarantined', 'unknown')")
    op.create_index(
        "ix_deletion_intents_held", "deletion_intents", ["run_id"], sqlite_where=held, postgresql_where=held
    )
    op.create_index("ix_deletion_intents_state", "deletion_intents", ["run_id", "state", "number"])
    op.create_table(
        "deletion_approvals",
        sa.Column("plan_hash", KEY, nullable=False),
        sa.Column("approval", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("plan_hash", name="pk_deletion_approvals"),
    )
