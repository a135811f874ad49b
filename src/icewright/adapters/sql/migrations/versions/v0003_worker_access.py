"""What optimizers found out of storages: whether their workers can read and write there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision: str | None = "0002"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the one table; nothing is known at first, and is found out again."""
    op.create_table(
        "worker_access",
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("root_digest", KEY, nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("decided_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("catalog", "root_digest", name="pk_worker_access"),
    )
