"""Which places the tables under each name say are their own, and which their files lie in, by their manifests.

Both are copies of what the tables say. Manifests that were summed up before did not say where their files lie, so they
are summed up anew.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision: str | None = "0010"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table, empty, and forget the inventories."""
    op.create_table(
        "claims",
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("name_digest", KEY, nullable=False),
        sa.Column("claim", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("catalog", "name_digest", name="pk_claims"),
    )
    op.execute(sa.text("DELETE FROM partitions"))
    op.execute(sa.text("DELETE FROM manifests"))
