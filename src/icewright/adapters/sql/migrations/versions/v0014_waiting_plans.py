"""Which plans wait for a person to approve them, one of each kind of action for a table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision: str | None = "0013"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "waiting_plans",
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("kind", KEY, nullable=False),
        sa.Column("plan_id", KEY, nullable=False),
        sa.Column("waiting", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("catalog", "table_uuid", "kind", name="pk_waiting_plans"),
    )
    op.create_index("uq_waiting_plans_plan", "waiting_plans", ["plan_id"], unique=True)
