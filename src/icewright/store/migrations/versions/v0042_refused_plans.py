"""Plans that people refused, and why. There were none before: what waits goes on waiting."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision: str | None = "0041"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "refused_plans",
        *(sa.Column(name, _KEY, nullable=False) for name in ("plan_id", "catalog", "table_uuid")),
        sa.Column("refused_at", sa.BigInteger, nullable=False),
        sa.Column("refusal", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("plan_id", name="pk_refused_plans"),
    )
    op.create_index("ix_refused_plans_table", "refused_plans", ["catalog", "table_uuid", "refused_at"])
