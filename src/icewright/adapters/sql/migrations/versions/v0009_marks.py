"""When snapshots were first seen: marks in the record of each table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision: str | None = "0008"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None


def upgrade() -> None:
    """Add the column. Of what is there already, nothing was seen before the next look."""
    op.add_column("tables", sa.Column("marks", sa.Text()))
