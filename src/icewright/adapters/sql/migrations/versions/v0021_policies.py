"""Policies as they were applied, revision by revision, and the properties of tables that they are matched with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision: str | None = "0020"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None


def upgrade() -> None:
    """Create the table, and add the column, which is NULL until a table is looked at."""
    op.create_table(
        "policy_revisions",
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("revision", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_policy_revisions"),
    )
    op.add_column("tables", sa.Column("properties", sa.LargeBinary()))
