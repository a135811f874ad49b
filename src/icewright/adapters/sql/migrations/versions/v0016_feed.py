"""The feed: facts that people and programs are told of, numbered in the order of commits."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision: str | None = "0015"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table, and the counter of what was forgotten of it."""
    op.create_table(
        "feed",
        sa.Column("sequence", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("kind", KEY, nullable=False),
        sa.Column("parts", KEY, nullable=False),
        sa.Column("once", KEY),
        sa.Column("fact", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name="pk_feed"),
        sa.UniqueConstraint("once", name="uq_feed_once"),
        sqlite_autoincrement=True,
    )
    op.execute("INSERT INTO counters (name, value) VALUES ('feed_forgotten', 0)")
