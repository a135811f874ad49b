"""Which commits of ours left files in an order, so that it is known after their snapshots have expired."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision: str | None = "0004"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the one table. No commit before it left files in an order, so nothing is missing in what is stored."""
    op.create_table(
        "runs",
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("snapshot_id", sa.BigInteger(), nullable=False),
        sa.Column("level", KEY, nullable=False),
        sa.Column("layout", sa.Text(), nullable=False),
        sa.Column("committed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("catalog", "table_uuid", "snapshot_id", name="pk_runs"),
        sa.ForeignKeyConstraint(
            ["catalog", "table_uuid"], ["tables.catalog", "tables.table_uuid"], name="fk_runs_table"
        ),
    )
