"""What lists show of a table is kept with it: read from the catalog for each row, a list of 1,000 took seconds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision: str | None = "0038"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None


def upgrade() -> None:
    """Add the column; looks fill it in."""
    op.add_column("tables", sa.Column("listed", sa.Text()))
