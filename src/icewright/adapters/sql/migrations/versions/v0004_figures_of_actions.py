"""What lists show of an action lies beside it, so that a list does not unpack the names of all files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision: str | None = "0003"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None


def upgrade() -> None:
    """Add the column. Tasks that are there already keep none, and are unpacked as before."""
    op.add_column("tasks", sa.Column("figures", sa.Text()))
