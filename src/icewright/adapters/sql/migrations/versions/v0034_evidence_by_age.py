"""It is known how old removals, approvals and replaced policies are, which tasks a plan has, and what was dropped.

What is there already counts as new: nobody knows better of all of it, and it is evidence. Approvals of before do not
say of which plan they are, and stay.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from icewright.adapters.sql.transactions import now

revision = "0034"
down_revision: str | None = "0033"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns, with the present instant for what is there, and their indexes."""
    at = now(op.get_bind())
    op.add_column("deletion_runs", sa.Column("changed_at", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(sa.text("UPDATE deletion_runs SET changed_at = :at").bindparams(at=at))
    op.create_index("ix_deletion_runs_age", "deletion_runs", ["changed_at", "run_id"])
    op.add_column("deletion_approvals", sa.Column("plan_id", KEY))
    op.add_column("policy_revisions", sa.Column("replaced_at", sa.BigInteger()))
    present = "SELECT max(number) FROM policy_revisions"
    op.execute(
        sa.text(
            f"UPDATE policy_revisions SET replaced_at = :at WHERE number < ({present})"  # noqa: S608 - a constant
        ).bindparams(at=at)
    )
    dropped = sa.text("dropped_at IS NOT NULL")
    op.create_index("ix_tables_dropped", "tables", ["dropped_at"], sqlite_where=dropped, postgresql_where=dropped)
    op.create_index("ix_tasks_plan", "tasks", ["plan_id"])
