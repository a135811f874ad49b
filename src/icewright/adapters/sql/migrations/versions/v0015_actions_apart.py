"""Actions have a table of their own: they are long, and what else there is of a task changes with every heartbeat.

SQLite writes a whole row anew whose length has changed, and every database reads it whole.
"""

from __future__ import annotations

import hashlib

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision: str | None = "0014"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_PAGE = 20
"""Actions held at a time; of 50,000 files, each is some 4 MB."""


def upgrade() -> None:
    """Create the table, and move the actions of all tasks into it."""
    actions = op.create_table(
        "task_actions",
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("digest", KEY, nullable=False),
        sa.Column("action", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("task_id", name="pk_task_actions"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.task_id"], name="fk_task_actions_task"),
    )
    tasks = sa.table("tasks", sa.column("task_id", sa.Text), sa.column("action", sa.LargeBinary))
    connection, last = op.get_bind(), ""
    while True:
        query = sa.select(tasks).where(tasks.c.task_id > last).order_by(tasks.c.task_id).limit(_PAGE)
        page = connection.execute(query).all()
        if not page:
            break
        rows = [
            {"task_id": task_id, "digest": hashlib.sha256(action).hexdigest(), "action": action}
            for task_id, action in page
        ]
        connection.execute(sa.insert(actions), rows)
        last = page[-1].task_id
    op.drop_column("tasks", "action")
