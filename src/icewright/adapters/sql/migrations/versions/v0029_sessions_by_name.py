"""Sessions keep whose they are and by which rules, so that those of one person can be ended.

Those of before end, and people log in again: nobody knows by which rules they have what they may do.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision: str | None = "0028"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Empty the table, and add the columns."""
    op.execute(sa.text("DELETE FROM sessions"))
    op.add_column("sessions", sa.Column("name", KEY, nullable=False, server_default='""'))
    op.add_column("sessions", sa.Column("conditions", sa.Text(), nullable=False, server_default="[]"))
