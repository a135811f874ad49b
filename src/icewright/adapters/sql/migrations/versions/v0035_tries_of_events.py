"""How often a look that an event asked for came to nothing is counted, and why it did."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision: str | None = "0034"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("inbox", sa.Column("tries", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("inbox", sa.Column("tried_at", sa.BigInteger()))
    op.add_column("inbox", sa.Column("trouble", sa.Text()))
