"""Events are taken in turns of their reporters, and parked; those whose names no catalog could take are forgotten.

Tries of before were counted while catalogs were away as well: they begin at none again.
"""

from __future__ import annotations

import json
import re

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision: str | None = "0036"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
WAITS = sa.text("done_at IS NULL AND parked_at IS NULL")
NO_NAME = re.compile("[\0\ud800-\udfff]")
AT_ONCE = 1_000


def upgrade() -> None:
    """Add the columns, fill in the catalogs, and forget what could not be read any more."""
    op.add_column("inbox", sa.Column("reporter", KEY))
    op.add_column("inbox", sa.Column("catalog", KEY))
    op.add_column("inbox", sa.Column("parked_at", sa.BigInteger()))
    connection = op.get_bind()
    connection.execute(sa.text("UPDATE inbox SET tries = 0, reporter = ''"))
    last = 0
    while rows := connection.execute(
        sa.text("SELECT event_id, event FROM inbox WHERE event_id > :last ORDER BY event_id LIMIT :most"),
        {"last": last, "most": AT_ONCE},
    ).all():
        last = rows[-1].event_id
        events = {row.event_id: json.loads(row.event) for row in rows}
        lost = {event_id for event_id, event in events.items() if not _readable(event)}
        for event_id in lost:
            connection.execute(sa.text("DELETE FROM inbox WHERE event_id = :event_id"), {"event_id": event_id})
        kept = [
            {"event_id": event_id, "catalog": event["table_name"]["catalog"]}
            for event_id, event in events.items()
            if event_id not in lost
        ]
        if kept:
            connection.execute(sa.text("UPDATE inbox SET catalog = :catalog WHERE event_id = :event_id"), kept)
    op.drop_index("ix_inbox_waiting", "inbox")
    op.create_index("ix_inbox_waiting", "inbox", ["event_id"], sqlite_where=WAITS, postgresql_where=WAITS)
    columns = ["reporter", "name_digest", "event_id", "tries", "catalog", "tried_at"]
    op.create_index("ix_inbox_turns", "inbox", columns, sqlite_where=WAITS, postgresql_where=WAITS)


def _readable(event: dict[str, object]) -> bool:
    texts = [text for text in _texts(event) if NO_NAME.search(text)]
    return not texts


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts(one)]
