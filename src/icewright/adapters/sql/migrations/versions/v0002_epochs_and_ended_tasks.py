"""An epoch for each server that holds the store, and ended tasks by age, for those that are forgotten."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision: str | None = "0001"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

ENDED = "state IN ('cancelled', 'failed', 'succeeded', 'superseded')"


def upgrade() -> None:
    """Begin to count epochs at zero, and index what has ended."""
    op.execute("INSERT INTO counters (name, value) VALUES ('server_epoch', 0)")
    op.create_index(
        "ix_tasks_ended",
        "tasks",
        ["state", "updated_at", "task_id"],
        sqlite_where=sa.text(ENDED),
        postgresql_where=sa.text(ENDED),
    )
