"""Servers say how much of their CPU they use."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision: str | None = "0048"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None


def upgrade() -> None:
    """Add the column; servers fill it as they beat."""
    op.add_column("servers", sa.Column("cpu", sa.Float))
