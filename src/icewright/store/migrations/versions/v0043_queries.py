"""What queries of tables took, by template and week, and what they recommend. There was no query log before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision: str | None = "0042"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "query_templates",
        *(sa.Column(name, _KEY, nullable=False) for name in ("catalog", "table_uuid")),
        sa.Column("week_at", sa.BigInteger, nullable=False),
        sa.Column("fingerprint", _KEY, nullable=False),
        sa.Column("template", sa.Text, nullable=False),
        sa.Column("queries", sa.BigInteger, nullable=False),
        sa.Column("bytes_read", sa.BigInteger, nullable=False),
        sa.Column("sums", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("catalog", "table_uuid", "week_at", "fingerprint", name="pk_query_templates"),
    )
    op.create_index("ix_query_templates_week", "query_templates", ["week_at"])
    op.create_table(
        "recommendations",
        *(sa.Column(name, _KEY, nullable=False) for name in ("recommendation_id", "catalog", "table_uuid", "task_id")),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("verdict", _KEY, nullable=False),
        sa.Column("recommendation", sa.Text, nullable=False),
        sa.Column("state", _KEY, nullable=False),
        sa.Column("decision", sa.Text),
        sa.PrimaryKeyConstraint("recommendation_id", name="pk_recommendations"),
    )
    op.create_index("ix_recommendations_table", "recommendations", ["catalog", "table_uuid", "made_at"])
    op.create_index("ix_recommendations_made", "recommendations", ["made_at", "recommendation_id"])
