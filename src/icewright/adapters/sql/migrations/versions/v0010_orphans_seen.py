"""Files that nothing was seen to need, from pass to pass: their time runs from the first sighting, by our clock."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision: str | None = "0009"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the two tables, empty: every orphan is first seen after this."""
    op.create_table(
        "orphan_passes",
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("begun", sa.BigInteger(), nullable=False),
        sa.Column("finished_number", sa.BigInteger(), nullable=False),
        sa.Column("finished", sa.Text()),
        sa.PrimaryKeyConstraint("catalog", "table_uuid", name="pk_orphan_passes"),
    )
    op.create_table(
        "orphan_sightings",
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("chunk", sa.BigInteger(), nullable=False),
        sa.Column("sightings", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("catalog", "table_uuid", "number", "chunk", name="pk_orphan_sightings"),
        sa.ForeignKeyConstraint(
            ["catalog", "table_uuid"],
            ["orphan_passes.catalog", "orphan_passes.table_uuid"],
            name="fk_orphan_sightings_pass",
        ),
    )
