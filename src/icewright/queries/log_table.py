"""The query log as an Iceberg table of the user's own catalog: a row for each table that a query read.

It is made only where ``queries.catalog`` names a catalog, and is a table like any other: icewright looks after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from icewright.catalogs.own_tables import BOOLEAN, INSTANT, INTEGER, LONG, TEXT, Column, OwnTable
from icewright.core import codec
from icewright.core.errors import Unreadable
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import LOG_PREFIX, QueryRecord, TableRead
from icewright.model.queries.templates import template_of

_END: Final = f"{LOG_PREFIX}end."
_FIELDS: Final = f"{LOG_PREFIX}fields"
_COLUMNS: Final[dict[str, Column]] = {
    "query_id": TEXT,
    "source": TEXT,
    "engine": TEXT,
    "user_name": TEXT,
    "started_at": INSTANT,
    "duration_ms": LONG,
    "cpu_ms": LONG,
    "splits": LONG,
    "row_limit": LONG,
    "succeeded": BOOLEAN,
    "sql": TEXT,
    "tables": INTEGER,
    "catalog": TEXT,
    "table": TEXT,
    "table_uuid": TEXT,
    "template": TEXT,
    "columns": TEXT,
    "filters": TEXT,
    "group_by": TEXT,
    "order_by": TEXT,
    "joined_on": TEXT,
    "aggregates": TEXT,
    "snapshot_id": LONG,
    "files_read": LONG,
    "files_skipped": LONG,
    "bytes_planned": LONG,
    "bytes_read": LONG,
    "rows_read": LONG,
    "rows_after": LONG,
}


LoggedRead: TypeAlias = Mapping[str, Any]
"""A row: one table that one query read. Lists are JSON; ``tables`` is how many the query read."""


def logged(query: QueryRecord, read: TableRead, table_uuid: str | None) -> LoggedRead:
    """The row of one table that a query read."""
    return {
        "query_id": query.query_id,
        "source": query.source.value,
        "engine": query.engine,
        "user_name": query.user,
        "started_at": query.started_at,
        "duration_ms": query.duration_ms,
        "cpu_ms": query.cpu_ms,
        "splits": query.splits,
        "row_limit": query.limit,
        "succeeded": query.succeeded,
        "sql": query.sql,
        "tables": len(query.tables),
        "catalog": read.table.catalog,
        "table": str(read.table),
        "table_uuid": table_uuid,
        "template": template_of(read).fingerprint,
        "columns": codec.dumps(read.columns),
        "filters": codec.dumps(read.filters),
        "group_by": codec.dumps(read.group_by),
        "order_by": codec.dumps(read.order_by),
        "joined_on": codec.dumps(read.joined_on),
        "aggregates": codec.dumps(read.aggregates),
        "snapshot_id": read.snapshot_id,
        "files_read": read.files_read,
        "files_skipped": read.files_skipped,
        "bytes_planned": read.bytes_planned,
        "bytes_read": query.bytes_read if read.bytes_read is None and len(query.tables) == 1 else read.bytes_read,
        "rows_read": read.rows_read,
        "rows_after": read.rows_after,
    }


@dataclass(frozen=True, slots=True)
class QueryLogTable:
    """The table, in one catalog. It says for each spool up to where it has its queries."""

    entry: CatalogEntry
    name: TableName

    def position(self, spool_id: str) -> int:
        """Up to which place of a spool the table has its queries. Raises as :meth:`OwnTable.end`."""
        said = self._table.end(_END + spool_id)
        if said is None:
            return 0
        if not (said.isascii() and said.isdecimal()):
            raise Unreadable(
                f"{self.name} says that it ends at {said[:80]!r}, which is no place in a spool",
                hint="another program wrote this property; give the query log another table",
            )
        return int(said)

    def append(self, spool_id: str, after: int, through: int, rows: Iterable[LoggedRead]) -> None:
        """Append what a spool has between two places. Raises as :meth:`OwnTable.append`."""
        listed = sorted(rows, key=lambda row: (row["catalog"], row["table"], row["started_at"]))
        self._table.append(listed, _END + spool_id, str(after) if after else None, str(through))

    @property
    def _table(self) -> OwnTable:
        return OwnTable(self.entry, self.name, _COLUMNS, "started_at", _FIELDS, _FIELDS, "queries.table")
