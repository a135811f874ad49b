"""Approvals are listed by when they were given and by their tables; of those of before, the table is not known."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision: str | None = "0032"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns and the index, and fill in when each was given."""
    op.add_column("deletion_approvals", sa.Column("approved_at", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("deletion_approvals", sa.Column("catalog", KEY))
    op.add_column("deletion_approvals", sa.Column("table_uuid", KEY))
    connection = op.get_bind()
    given = connection.execute(sa.text("SELECT plan_hash, approval FROM deletion_approvals")).all()
    for plan_hash, approval in given:
        connection.execute(
            sa.text("UPDATE deletion_approvals SET approved_at = :approved_at WHERE plan_hash = :plan_hash"),
            {"approved_at": json.loads(approval)["approved_at"], "plan_hash": plan_hash},
        )
    op.create_index("ix_deletion_approvals_at", "deletion_approvals", ["approved_at", "plan_hash"])
