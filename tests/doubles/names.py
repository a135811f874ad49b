"""By which names stores in memory know tables: lists of tasks and removals are filtered by them, as databases join."""

from __future__ import annotations

from icewright.model.access.permissions import EVERYWHERE, Scope, Scopes, covers
from icewright.model.iceberg.names import TableId, TableName


class MemoryNames(dict[TableId, TableName]):
    """The last name of each table that has a record. The store of tables writes it, the others read."""

    def is_in(self, table_id: TableId, scopes: Scopes) -> bool:
        """Whether a table is in one of these scopes by its record; one without is nowhere but in all of them."""
        if scopes == EVERYWHERE:
            return True
        name = self.get(table_id)
        return name is not None and covers(scopes, Scope.of(name))
