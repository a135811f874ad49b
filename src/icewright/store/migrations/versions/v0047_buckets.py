"""Servers share the looks at tables by buckets; and claims have numbers, by which others find those that changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision: str | None = "0046"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables, empty: the first leader assigns; and the column."""
    op.create_table(
        "server_sessions",
        sa.Column("session", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("server_id", _KEY, nullable=False),
        sa.Column("backend", sa.BigInteger, nullable=False),
        sa.Column("joined_at", sa.BigInteger, nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("ended_by", _KEY),
        sa.PrimaryKeyConstraint("session", name="pk_server_sessions"),
    )
    op.create_table(
        "buckets",
        sa.Column("bucket", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("session", sa.BigInteger),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("target", sa.BigInteger),
        sa.Column("moved_at", sa.BigInteger, nullable=False),
        sa.Column("moved_by", _KEY, nullable=False),
        sa.PrimaryKeyConstraint("bucket", name="pk_buckets"),
    )
    for counter in ("server_session", "assignment", "claims_changed"):
        op.execute(sa.text("INSERT INTO counters (name, value) VALUES (:name, 0)").bindparams(name=counter))
    op.add_column("claims", sa.Column("changed", sa.BigInteger, nullable=False, server_default="0"))
    op.create_index("ix_claims_changed", "claims", ["changed"])
