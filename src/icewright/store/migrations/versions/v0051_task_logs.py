"""What attempts log. Nothing was kept of it before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision: str | None = "0050"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "task_logs",
        sa.Column("task_id", _KEY, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("written_at", sa.BigInteger, nullable=False),
        sa.Column("lines", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("task_id", "attempt", name="pk_task_logs"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.task_id"], name="fk_task_logs_task"),
    )
    op.create_index("ix_task_logs_written", "task_logs", ["written_at"])
