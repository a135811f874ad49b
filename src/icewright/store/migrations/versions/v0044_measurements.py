"""What accepted recommendations have brought, and what is kept to be compared with. Nothing was measured before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision: str | None = "0043"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "judged_queries",
        *(sa.Column(name, _KEY, nullable=False) for name in ("recommendation_id", "catalog", "table_uuid")),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("queries", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("recommendation_id", name="pk_judged_queries"),
    )
    op.create_table(
        "measurements",
        *(sa.Column(name, _KEY, nullable=False) for name in ("task_id", "recommendation_id", "catalog", "table_uuid")),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("effect", _KEY, nullable=False),
        sa.Column("measurement", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("task_id", name="pk_measurements"),
    )
    op.create_index("ix_measurements_of", "measurements", ["recommendation_id", "made_at"])
