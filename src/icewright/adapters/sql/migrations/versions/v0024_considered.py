"""Records keep what was said of upkeep when it was looked into last, for whoever asks why nothing happens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision: str | None = "0023"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("tables", sa.Column("considered", sa.Text()))
