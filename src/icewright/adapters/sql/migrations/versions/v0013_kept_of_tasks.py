"""What expiries took from tables, so that they can be undone whatever becomes of the files of before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision: str | None = "0012"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "kept_of_tasks",
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("kept_at", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("task_id", name="pk_kept_of_tasks"),
    )
    op.create_index("ix_kept_of_tasks_age", "kept_of_tasks", ["kept_at", "task_id"])
