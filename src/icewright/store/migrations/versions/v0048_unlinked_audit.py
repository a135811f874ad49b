"""Entries of the audit lie apart until they are linked into the chain."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision: str | None = "0047"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table, empty: what there is was linked as it was written."""
    op.create_table(
        "unlinked_audit",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("action", _KEY, nullable=False),
        sa.Column("resource", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_unlinked_audit"),
        sqlite_autoincrement=True,
    )
