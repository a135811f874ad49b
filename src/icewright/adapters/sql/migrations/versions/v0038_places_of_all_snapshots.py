"""Claims have the places of all snapshots of a table, and which of these were read; of those of before, none was."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision: str | None = "0037"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None


def upgrade() -> None:
    """Keep the places; each table is read again before it counts as known."""
    connection = op.get_bind()
    stored = connection.execute(sa.text("SELECT catalog, name_digest, claim FROM claims")).all()
    for catalog, name_digest, text in stored:
        document = json.loads(text)
        document["places"] = sorted(document.get("places", ()))
        connection.execute(
            sa.text("UPDATE claims SET claim = :claim WHERE catalog = :catalog AND name_digest = :name_digest"),
            {"claim": json.dumps(document, separators=(",", ":")), "catalog": catalog, "name_digest": name_digest},
        )
