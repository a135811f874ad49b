"""The history of tasks as an Iceberg table of the user's own catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from icewright.catalogs.own_tables import INSTANT, INTEGER, LONG, TEXT, Column, OwnTable
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.work.history import END_KEY, FIELDS_KEY, EndedTask, Ending

_COLUMNS: Final[dict[str, Column]] = {
    "task_id": TEXT,
    "catalog": TEXT,
    "table": TEXT,
    "table_uuid": TEXT,
    "kind": TEXT,
    "state": TEXT,
    "attempts": INTEGER,
    "resource_group": TEXT,
    "plan_id": TEXT,
    "reason_code": TEXT,
    "reason": TEXT,
    "figures": TEXT,
    "snapshot_id": LONG,
    "created_at": INSTANT,
    "ended_at": INSTANT,
}


@dataclass(frozen=True, slots=True)
class PyIcebergHistory:
    """The history in one table of one catalog, which is made when it is not there."""

    entry: CatalogEntry
    name: TableName

    def end(self) -> Ending | None:
        """See the port."""
        said = self._table.end(END_KEY)
        return None if said is None else Ending.read(said)

    def append(self, rows: Sequence[EndedTask], after: Ending | None) -> None:
        """See the port."""
        end = None if after is None else str(after)
        self._table.append([asdict(row) for row in rows], END_KEY, end, str(rows[-1].ending))

    @property
    def _table(self) -> OwnTable:
        return OwnTable(self.entry, self.name, _COLUMNS, "ended_at", FIELDS_KEY, END_KEY, "history.table")
