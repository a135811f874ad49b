"""It is kept how much was removed of the past, and when."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision: str | None = "0030"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "prunings",
        sa.Column("kind", KEY, nullable=False),
        sa.Column("pruned_at", sa.BigInteger(), nullable=False),
        sa.Column("removed", sa.BigInteger(), nullable=False),
        sa.Column("left_count", sa.BigInteger(), nullable=False),
        sa.Column("oldest_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("kind", name="pk_prunings"),
    )
