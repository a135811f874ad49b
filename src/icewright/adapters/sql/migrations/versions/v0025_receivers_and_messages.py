"""Receivers of notifications, how far each was told of the feed, and their messages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision: str | None = "0024"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
WAITS = sa.text("state = 'waiting'")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "receivers",
        sa.Column("name", KEY, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("looked_at", sa.BigInteger(), nullable=False),
        sa.Column("sent", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("given_up", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_receivers"),
    )
    op.create_table(
        "messages",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("message_id", KEY, nullable=False),
        sa.Column("receiver", KEY, nullable=False),
        sa.Column("state", KEY, nullable=False),
        sa.Column("composed_at", sa.BigInteger(), nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("message", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_messages"),
        sa.UniqueConstraint("message_id", name="uq_messages_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_messages_waiting", "messages", ["receiver", "number"], sqlite_where=WAITS, postgresql_where=WAITS
    )
    op.create_index("ix_messages_composed", "messages", ["receiver", "composed_at"])
    op.create_index("ix_messages_ended", "messages", ["state", "ended_at"])
