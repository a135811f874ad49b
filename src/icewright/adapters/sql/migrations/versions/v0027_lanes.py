"""Tasks wait in lanes, and those that run say what they hold of their resource group."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision: str | None = "0026"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
QUEUED = "state IN ('queued')"
SHAREABLE = f"{QUEUED} AND shareable_bytes IS NOT NULL"
LEASED = "state IN ('in_doubt', 'running')"


def upgrade() -> None:
    """Add the columns; the indexes of the queue go by lane."""
    op.add_column("tasks", sa.Column("lane", KEY, nullable=False, server_default="normal/normal/"))
    op.add_column("tasks", sa.Column("held_cores", sa.BigInteger()))
    op.add_column("tasks", sa.Column("held_memory_bytes", sa.BigInteger()))
    op.add_column("tasks", sa.Column("held_resident", sa.Boolean()))
    op.execute(
        "UPDATE tasks SET held_cores = 0, held_memory_bytes = 0, held_resident = TRUE"
        " WHERE state IN ('in_doubt', 'running')"
    )
    op.drop_index("ix_tasks_queue", "tasks")
    op.drop_index("ix_tasks_shareable", "tasks")
    _index("ix_tasks_queue", ["resource_group", "lane", "ranked_at", "task_id", "not_before_at"], QUEUED)
    _index("ix_tasks_shareable", ["resource_group", "lane", "ranked_at", "task_id", "shareable_bytes"], SHAREABLE)
    _index("ix_tasks_held", ["resource_group"], LEASED)
    op.create_table(
        "turns",
        sa.Column("resource_group", KEY, nullable=False),
        sa.Column("tenant", KEY, nullable=False),
        sa.Column("fencing_token", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("resource_group", "tenant", name="pk_turns"),
    )


def _index(name: str, columns: list[str], where: str) -> None:
    op.create_index(name, "tasks", columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
