"""What requests with an ``Idempotency-Key`` were answered is kept for a day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision: str | None = "0022"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "answers",
        sa.Column("name", KEY, nullable=False),
        sa.Column("fingerprint", KEY, nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("answer", sa.Text()),
        sa.PrimaryKeyConstraint("name", name="pk_answers"),
    )
    op.create_index("ix_answers_until", "answers", ["until"])
