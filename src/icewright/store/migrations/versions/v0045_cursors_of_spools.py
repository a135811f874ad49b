"""When a cursor moved last: those of spools that are gone were kept for ever. Present ones count as of now."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision: str | None = "0044"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("event_cursors", sa.Column("updated_at", sa.BigInteger))
    op.execute(sa.text("UPDATE event_cursors SET updated_at = :now").bindparams(now=int(time.time() * 1_000)))
