"""Which tasks may share a Spark job, and how many bytes they read: claims that fill a batch ask for it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision: str | None = "0005"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None


def upgrade() -> None:
    """Add the column and its index. Tasks that are there already keep none, and run alone."""
    op.add_column("tasks", sa.Column("shareable_bytes", sa.BigInteger()))
    shareable = sa.text("state IN ('queued') AND shareable_bytes IS NOT NULL")
    op.create_index(
        "ix_tasks_shareable",
        "tasks",
        ["resource_group", "ranked_at", "task_id", "shareable_bytes"],
        sqlite_where=shareable,
        postgresql_where=shareable,
    )
