"""People take a session to a program: by a code that knows how they were let in, and one that a browser cannot use."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision: str | None = "0035"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns. What there is belongs to browsers; codes of before go within a day, and by nobody's name."""
    op.add_column("login_codes", sa.Column("name", KEY, nullable=False, server_default='""'))
    op.add_column("login_codes", sa.Column("conditions", sa.Text(), nullable=False, server_default="[]"))
    for table in ("login_codes", "sessions"):
        op.add_column(table, sa.Column("is_program", sa.Boolean(), nullable=False, server_default=sa.false()))
