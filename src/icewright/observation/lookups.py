"""Which table a uuid is, for routes: by what the store knows, of what the caller may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, cast

from fastapi import Depends, Query, Request

from icewright.core.errors import NotFound, Rejected
from icewright.identity.authorization import unseen
from icewright.model.access.permissions import EVERYWHERE, Scope, Scopes, covers
from icewright.model.iceberg.names import TableId
from icewright.observation.observer import Observer
from icewright.ports.store import TableRecord, TableStore


class SeveralTables(Rejected):
    """Several catalogs have a table with one uuid, and none was named. ``records`` are those tables."""

    def __init__(self, uuid: str, records: Sequence[TableRecord]) -> None:
        names = ", ".join(sorted(record.table_id.catalog for record in records))
        super().__init__(f"several catalogs have a table with the uuid {uuid}", hint=f"add ?catalog=, one of {names}")
        self.uuid, self.records = uuid, records


def is_about(within: Scopes, catalog: str) -> bool:
    """Whether something in the catalog is in one of the scopes."""
    return any(scope.catalog in {"", catalog} for scope in within)


class TablesByUuid:
    """Finds tables by their uuids. Safe for use by several threads."""

    def __init__(self, tables: TableStore, observer: Observer) -> None:
        self._tables, self._observer = tables, observer

    def record(self, uuid: str, catalog: str | None) -> TableRecord:
        """The table of that uuid.

        Raises :class:`NotFound`, also for a dropped table, and :class:`SeveralTables` when several catalogs have the
        uuid (a table registered twice) and none is named.
        """
        catalogs = sorted(self._observer.catalog_names) if catalog is None else (self._observer.catalog(catalog).name,)
        found = [self._tables.record(TableId(name, uuid)) for name in catalogs]
        records = [record for record in found if record is not None and record.dropped_at is None]
        if not records:
            dropped = any(record is not None for record in found)
            raise NotFound(f"no table with the uuid {uuid}" + (" any more: it was dropped" if dropped else ""))
        if len(records) > 1:
            raise SeveralTables(uuid, records)
        return records[0]

    def seen(self, uuid: str, catalog: str | None, within: Scopes) -> TableRecord:
        """As :meth:`record`, of tables in scopes: what is not theirs is answered as what is not there."""
        if within == EVERYWHERE:
            return self.record(uuid, catalog)
        try:
            found: Sequence[TableRecord] = [self.record(uuid, catalog)]
        except SeveralTables as error:
            found = error.records
        except NotFound:
            found = []
        theirs = [one for one in found if covers(within, Scope.of(one.name))]
        if len(found) > 1 and theirs:
            raise SeveralTables(uuid, theirs)
        if not theirs:
            raise unseen("table")
        return theirs[0]

    def require_catalog(self, catalog: str, within: Scopes) -> None:
        """Raise :class:`NotFound` for a catalog that is not there, and for one that is nothing of these scopes."""
        if within != EVERYWHERE and (catalog not in self._observer.catalog_names or not is_about(within, catalog)):
            raise unseen("catalog")  # the answer names those that there are
        self._observer.catalog(catalog)


def _by_uuid(request: Request) -> TablesByUuid:
    return cast("TablesByUuid", request.app.state.lookups)


ByUuid = Annotated[TablesByUuid, Depends(_by_uuid)]

OfCatalog = Annotated[
    str | None, Query(description="Needed only where several catalogs have a table with the same uuid.")
]
NOT_FOUND: Final = {404: "No such table or catalog."}
"""Why a route of one table finds nothing."""
