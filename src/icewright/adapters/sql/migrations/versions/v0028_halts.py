"""What of the queue is paused, draining or stopped is kept, and when a person last closed the breaker of a table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision: str | None = "0027"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table, and add the column."""
    op.add_column("tables", sa.Column("unparked_at", sa.BigInteger()))
    op.create_table(
        "halts",
        sa.Column("kind", KEY, nullable=False),
        sa.Column("name", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("halt", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", "table_uuid", name="pk_halts"),
    )
