"""Servers say by which coordinator they hear of each other, and what is in their configurations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision: str | None = "0049"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

serves = "0049"
"""The columns are added, and NULL of a server of an older release says nothing."""


def upgrade() -> None:
    """Add the columns; servers fill them as they join."""
    op.add_column("server_sessions", sa.Column("coordinator", sa.Text))
    op.add_column("server_sessions", sa.Column("configuration", sa.Text))
