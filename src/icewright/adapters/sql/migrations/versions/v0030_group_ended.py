"""Which tasks of a resource group ended last is found by an index: how long they took tells when others start."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision: str | None = "0029"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

ENDED = "state IN ('cancelled', 'failed', 'succeeded', 'superseded')"


def upgrade() -> None:
    """Create the index."""
    op.create_index(
        "ix_tasks_group_ended",
        "tasks",
        ["resource_group", "updated_at", "task_id"],
        sqlite_where=sa.text(ENDED),
        postgresql_where=sa.text(ENDED),
    )
