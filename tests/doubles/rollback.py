"""The rollback port over the catalog in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from icewright.actions.rollback.plan import is_signed, rollback_conflict
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, TableReplaced
from icewright.model.actions.rollback import Rollback
from icewright.model.actions.undo import SIGNATURE_KEY
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import MAIN_BRANCH
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.lake import MemoryTable, with_ref

_TRIES_MAX: Final = 10


class MemoryRollbacks:
    """Sets ``main`` of the tables of a catalog in memory."""

    def __init__(self, catalog: MemoryCatalog, clock: Clock) -> None:
        self._catalog, self._clock = catalog, clock

    def roll_back(
        self,
        name: TableName,
        table_id: TableId,
        action: Rollback,
        *,
        task_id: str,
        may_commit: Callable[[], None],
    ) -> None:
        """Carry out the action."""

        def changed(table: MemoryTable) -> MemoryTable:
            before = replace(table.metadata, updated_at=self._clock.now())
            settings = next(ref for ref in before.refs if ref.name == MAIN_BRANCH)
            after = with_ref(before, MAIN_BRANCH, action.snapshot_id)
            moved = replace(settings, snapshot_id=action.snapshot_id)
            refs = tuple(moved if ref.name == MAIN_BRANCH else ref for ref in after.refs)
            properties = {**after.properties, SIGNATURE_KEY: task_id}
            return replace(table, metadata=replace(after, refs=refs, properties=properties))

        for _ in range(_TRIES_MAX):
            now = self._catalog.load(name)
            if now.table_id != table_id:
                raise TableReplaced(f"{name} is another table now")
            if is_signed(task_id, now):
                return
            reason = rollback_conflict(action, now)
            if reason is not None:
                raise Conflict(f"table {name} cannot be set back: {reason.text}")
            may_commit()
            if self._catalog.swap(name, now.metadata_location, changed) is not None:
                return
        raise Conflict(f"table {name} is committed to all the time")
