"""What tasks took from tables, in an SQL database."""

from __future__ import annotations

from sqlalchemy import Engine, delete, insert, select

from icewright.actions.undo.undo_records_schema import kept_of_tasks
from icewright.core.times import Instant
from icewright.model.actions.undo import Kept, check_size
from icewright.model.iceberg.names import TableId
from icewright.store.table_rows import id_columns
from icewright.store.transactions import reading, writing


class SqlUndoRecordStore:
    """The port over an engine of :func:`icewright.store.engine.open_store`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def keep(self, kept: Kept) -> None:
        """See the port."""
        check_size(kept)
        row = {
            "task_id": kept.task_id,
            **id_columns(kept.table_id),
            "kept_at": kept.kept_at,
            "content": kept.content,
        }
        with writing(self._engine) as connection:
            connection.execute(delete(kept_of_tasks).where(kept_of_tasks.c.task_id == kept.task_id))
            connection.execute(insert(kept_of_tasks), row)

    def kept(self, task_id: str) -> Kept | None:
        """See the port."""
        with reading(self._engine) as connection:
            row = connection.execute(select(kept_of_tasks).where(kept_of_tasks.c.task_id == task_id)).one_or_none()
        if row is None:
            return None
        return Kept(row.task_id, TableId(row.catalog, row.table_uuid), row.kept_at, bytes(row.content))

    def forget(self, kept_before: Instant, limit: int) -> int:
        """See the port."""
        old = (
            select(kept_of_tasks.c.task_id)
            .where(kept_of_tasks.c.kept_at < kept_before)
            .order_by(kept_of_tasks.c.kept_at, kept_of_tasks.c.task_id)
            .limit(limit)
        )
        with writing(self._engine) as connection:
            return connection.execute(delete(kept_of_tasks).where(kept_of_tasks.c.task_id.in_(old))).rowcount
