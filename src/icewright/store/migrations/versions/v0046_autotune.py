"""Decisions of autotuning. There were none before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision: str | None = "0045"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_SUBJECT = ("resource_group", "queue", "about")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "autotune_decisions",
        *(sa.Column(name, _KEY, nullable=False) for name in ("decision_id", *_SUBJECT, "move")),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("state", _KEY, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("held_at", sa.BigInteger),
        sa.Column("decision", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("decision_id", name="pk_autotune_decisions"),
    )
    standing = sa.text("state IN ('begun', 'open')")
    op.create_index(
        "uq_autotune_decisions_standing",
        "autotune_decisions",
        list(_SUBJECT),
        unique=True,
        sqlite_where=standing,
        postgresql_where=standing,
    )
    op.create_index("ix_autotune_decisions_of", "autotune_decisions", [*_SUBJECT, "made_at", "decision_id"])
    op.create_index("ix_autotune_decisions_made", "autotune_decisions", ["made_at", "decision_id"])
    op.create_index("ix_autotune_decisions_ended", "autotune_decisions", ["ended_at"])
