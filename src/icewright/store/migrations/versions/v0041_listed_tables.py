"""What lists of tables are sorted by, in columns of its own; and what looks saw over time.

Tables that are known already are listed by what their last look found; they have no health before the next one.
"""

from __future__ import annotations

import json
import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision: str | None = "0040"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TEXTS = ("catalog", "table_uuid", "name", "sort_name", "namespace", "mode")
_NUMBERS = ("health", "size_bytes", "data_files", "small_files", "delete_files", "failing")
_LATER = ("observed_at", "last_task_at", "changed")
_SORTED_BY = (
    "sort_name",
    "health",
    "size_bytes",
    "data_files",
    "small_files",
    "delete_files",
    "observed_at",
    "last_task_at",
    "changed",
)
_SORT_LENGTH = 200
_PLAIN = re.compile(r"[^\W][\w-]*\Z", re.UNICODE)
_ROWS_AT_ONCE = 1_000


def upgrade() -> None:
    """Create both tables, and list what is known."""
    listed = op.create_table(
        "listed_tables",
        *(sa.Column(name, _KEY, nullable=False) for name in _TEXTS),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in (*_NUMBERS, *_LATER)),
        sa.PrimaryKeyConstraint("catalog", "table_uuid", name="pk_listed_tables"),
    )
    for name in _SORTED_BY:
        op.create_index(f"ix_listed_tables_{name}", "listed_tables", [name, "catalog", "table_uuid"])
    op.create_table(
        "table_series",
        sa.Column("catalog", _KEY, nullable=False),
        sa.Column("table_uuid", _KEY, nullable=False),
        sa.Column("points", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("catalog", "table_uuid", name="pk_table_series"),
    )
    connection = op.get_bind()
    known = sa.text(
        "SELECT catalog, table_uuid, name, observed_at, problem, listed FROM tables WHERE dropped_at IS NULL"
        " ORDER BY catalog, table_uuid"
    )
    rows = [_row(row, number) for number, row in enumerate(connection.execute(known).mappings(), 1)]
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        connection.execute(sa.insert(listed), rows[first : first + _ROWS_AT_ONCE])
    counter = sa.text("INSERT INTO counters (name, value) VALUES ('listed_tables_changed', :value)")
    connection.execute(counter, {"value": len(rows)})


def _row(row: Any, number: int) -> dict[str, Any]:
    name = json.loads(row["name"])
    namespace = ".".join(_quoted(part) for part in (name["catalog"], *name["namespace"]))
    dotted = f"{namespace}.{_quoted(name['name'])}"
    known = {} if row["listed"] is None else json.loads(row["listed"])
    figures = known.get("figures", {})
    return {
        "catalog": row["catalog"],
        "table_uuid": row["table_uuid"],
        "name": dotted,
        "sort_name": dotted[:_SORT_LENGTH],
        "namespace": namespace,
        "mode": known.get("mode", ""),
        "health": -1,
        **{column: figures.get(column, 0) for column in ("size_bytes", "data_files", "small_files", "delete_files")},
        "failing": 0 if row["problem"] is None else 1,
        "observed_at": row["observed_at"],
        "last_task_at": 0,
        "changed": number,
    }


def _quoted(part: str) -> str:
    return part if _PLAIN.match(part) else "`" + part.replace("`", "``") + "`"
