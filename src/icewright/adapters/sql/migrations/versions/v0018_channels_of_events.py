"""Events say by which channel they came and need name no snapshot; tables say how well their commits are reported."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision: str | None = "0017"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Change the inbox (SQLite makes it anew for that), and add columns to the tables."""
    with op.batch_alter_table("inbox", table_kwargs={"sqlite_autoincrement": True}) as inbox:
        inbox.alter_column("snapshot_id", existing_type=sa.BigInteger(), nullable=True)
        inbox.add_column(sa.Column("channel", KEY, nullable=False, server_default="http"))
        inbox.add_column(sa.Column("committed_at", sa.BigInteger()))
    op.add_column("tables", sa.Column("reporting", sa.Text()))
    for name in ("commits_told", "commits_sweep_only"):
        op.add_column("tables", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
