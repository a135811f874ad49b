"""Records have a revision that writers compare, and what optimizers found and are asked is kept for all servers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision: str | None = "0021"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns, and create the tables."""
    op.add_column("tables", sa.Column("storage_root", sa.Text()))
    op.add_column("tables", sa.Column("revision", sa.BigInteger(), nullable=False, server_default="1"))
    op.create_table(
        "unfit_files",
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("code", KEY, nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("found_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("catalog", "table_uuid", "code", name="pk_unfit_files"),
    )
    op.create_table(
        "probes",
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("root_digest", KEY, nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("wanted_at", sa.BigInteger(), nullable=False),
        sa.Column("optimizer_id", sa.Text()),
        sa.Column("asked_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("catalog", "root_digest", name="pk_probes"),
    )
