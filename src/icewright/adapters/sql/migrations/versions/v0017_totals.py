"""Sums over all that happens from now on, for metrics."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision: str | None = "0016"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "totals",
        sa.Column("total", KEY, nullable=False),
        sa.Column("kind", KEY, nullable=False),
        sa.Column("by", KEY, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("total", "kind", "by", name="pk_totals"),
    )
