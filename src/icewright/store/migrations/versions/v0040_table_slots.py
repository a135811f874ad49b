"""Which slot of its table a task holds: a column, and a unique index for each slot instead of one for the table."""

from __future__ import annotations

from alembic import op

revision = "0040"
down_revision: str | None = "0039"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

_KEY = {"postgresql": 'TEXT COLLATE "C"', "sqlite": "TEXT"}
_KINDS = {
    "data": (
        "expire_data",
        "remove_dangling_deletes",
        "rewrite_data_files",
        "rewrite_manifests",
        "rewrite_position_delete_files",
        "undo_expire_data",
    ),
    "metadata": ("compute_statistics",),
}
"""Tasks of all other kinds are alone with their table, as every task was before."""


def upgrade() -> None:
    """Tasks get the slot of their kind. Of each table at most one is active, so no two can want the same."""
    connection = op.get_bind()
    key = _KEY[connection.dialect.name]
    connection.exec_driver_sql(f"ALTER TABLE tasks ADD COLUMN table_slot {key} DEFAULT 'table' NOT NULL")
    for slot, kinds in _KINDS.items():
        names = ", ".join(f"'{kind}'" for kind in kinds)
        connection.exec_driver_sql(f"UPDATE tasks SET table_slot = '{slot}' WHERE kind IN ({names})")  # noqa: S608 - constants
    connection.exec_driver_sql("DROP INDEX uq_tasks_active_table")
    for slot in ("data", "metadata"):
        connection.exec_driver_sql(
            f"CREATE UNIQUE INDEX uq_tasks_active_{slot} ON tasks (catalog, table_uuid) "
            f"WHERE state IN ('committed', 'in_doubt', 'running') AND table_slot IN ('{slot}', 'table')"
        )
