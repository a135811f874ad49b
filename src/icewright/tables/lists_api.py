"""Lists of tables, of catalogs and of namespaces: sorted, filtered, summed up, cut into pages by the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from icewright.core.codec import to_json
from icewright.core.errors import InvalidMessage
from icewright.feed.api import LastEventId, stream_operation
from icewright.feed.streams import Event, EventStream
from icewright.identity.authentication import Gate
from icewright.identity.authorization import On, needs
from icewright.identity.gate import whose
from icewright.model.access.permissions import EVERYTHING, Permission, Scope
from icewright.model.iceberg.names import TableName, require_text
from icewright.model.policy.policy import Mode
from icewright.model.work.figures import HEALTH_MAX
from icewright.ports.store import TableStore
from icewright.ports.table_lists import (
    PlaceKind,
    PlaceRank,
    PlaceSort,
    PlaceTotals,
    TableLists,
    TablePlace,
    TableQuery,
    TableSort,
    TableTotals,
)
from icewright.tables.api_views import TableSummary
from icewright.tables.lookups import Looked, Lookups
from icewright.web.deps import Caller, Service
from icewright.web.messages import Cursor, Limit, decode_cursor, first_page, page, render
from icewright.web.schema import operation, page_of

router = APIRouter(tags=["tables"])

_SEARCH_MAX: Final = 1_000
_NOT_FOUND: Final = {404: "No such catalog."}

InCatalog = Annotated[str | None, Query(description="Only tables of that catalog.")]
InNamespace = Annotated[
    str | None,
    Query(description="Only tables of that namespace and of those below it, by its dotted name with the catalog."),
]
Score = Annotated[int | None, Query(ge=0, le=HEALTH_MAX, description="Only tables whose health is known and so.")]


@dataclass(frozen=True, slots=True)
class _TableCursor:
    """Where a page of tables ended, and by what it was sorted."""

    sort: str
    place: TablePlace


@dataclass(frozen=True, slots=True)
class _PlaceCursor:
    """Where a page of catalogs or namespaces ended, and by what it was sorted."""

    sort: str
    rank: PlaceRank


def _filters(
    lookups: Looked,
    caller: Caller,
    *,
    catalog: InCatalog = None,
    namespace: InNamespace = None,
    health_min: Score = None,
    health_max: Score = None,
    mode: Annotated[Mode | None, Query(description="Only tables that had this mode at their last look.")] = None,
    failing: Annotated[
        bool | None,
        Query(description="Only tables that cannot be looked after or whose tasks failed last; or only the others."),
    ] = None,
    search: Annotated[
        str, Query(max_length=_SEARCH_MAX, description="Only tables with this in their dotted name, in any case.")
    ] = "",
) -> TableQuery:
    """What is asked for, of what the caller may see."""
    within = caller.scopes(Permission.READ)
    require_text(search)
    under = EVERYTHING if namespace is None else Scope.parse(namespace)
    if catalog is not None:
        lookups.require_catalog(catalog, within)
        if under.catalog not in {"", catalog}:
            raise InvalidMessage(f"the namespace {under} is not of the catalog {catalog}", hint="leave one of them out")
        under = under if under.catalog else Scope(catalog)
    return TableQuery(within, under, health_min, health_max, mode, failing, search)


Filters = Annotated[TableQuery, Depends(_filters)]


def _sorted_by(names: type[TableSort | PlaceSort]) -> str:
    return f"^-?({'|'.join(one.value for one in names)})$"


SortedBy = Annotated[
    str, Query(pattern=_sorted_by(TableSort), description="What to sort by; with `-` before it the greatest first.")
]
PlacesBy = Annotated[
    str, Query(pattern=_sorted_by(PlaceSort), description="What to sort by; with `-` before it the greatest first.")
]


@router.get(
    "/tables",
    dependencies=[needs(Permission.READ, On.ANYWHERE)],
    **operation(page_of(TableSummary), problems=_NOT_FOUND),
)
def list_tables(
    table_store: Service[TableStore],
    lookups: Looked,
    filters: Filters,
    *,
    name: Annotated[str | None, Query(description="Only the table of that full dotted name.")] = None,
    catalog: InCatalog = None,
    sort: SortedBy = "name",
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Tables that have been seen and not dropped, of those that the caller may read.

    What is sorted and filtered by is what the last look found; tables with the same value are by catalog and uuid. One
    that no look came to a plan for has no health: it comes before all others, and in descending order last.
    """
    if name is not None:
        return page(_of_name(table_store, lookups, filters, TableName.parse(name, default_catalog=catalog)), None)
    by, descending = TableSort(sort.removeprefix("-")), sort.startswith("-")
    begin = decode_cursor(_TableCursor, cursor)
    after = None if begin is None else begin.place
    if begin is not None:
        is_text = by is TableSort.NAME
        _require_cursor(begin.sort == sort and isinstance(begin.place.value, str) is is_text)
        require_text(str(begin.place.value), begin.place.table_id.catalog, begin.place.table_id.uuid)
    found = table_store.lists.page(filters, by, descending=descending, limit=limit + 1, after=after)
    items = lookups.summaries([record for _, record in found[:limit]])
    return page(items, _TableCursor(sort, found[limit - 1][0]) if len(found) > limit else None)


@router.get(
    "/tables/totals",
    dependencies=[needs(Permission.READ, On.ANYWHERE)],
    **operation(TableTotals, problems=_NOT_FOUND),
)
def show_totals(table_store: Service[TableStore], filters: Filters) -> Response:
    """The sums over the tables that a list with the same filters has."""
    return render(table_store.lists.totals(filters))


@router.get(
    "/catalogs",
    dependencies=[needs(Permission.READ, On.ANYWHERE)],
    **operation(page_of(PlaceTotals), problems=_NOT_FOUND),
)
def list_catalogs(
    table_store: Service[TableStore],
    filters: Filters,
    sort: PlacesBy = "name",
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The catalogs that have one of these tables, each with the sums over them."""
    return _places(table_store, filters, PlaceKind.CATALOG, sort, limit, cursor)


@router.get(
    "/namespaces",
    dependencies=[needs(Permission.READ, On.ANYWHERE)],
    **operation(page_of(PlaceTotals), problems=_NOT_FOUND),
)
def list_namespaces(
    table_store: Service[TableStore],
    filters: Filters,
    sort: PlacesBy = "name",
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The namespaces that have one of these tables, each with the sums over its own, without those below it."""
    return _places(table_store, filters, PlaceKind.NAMESPACE, sort, limit, cursor)


class TableSource:
    """The tables whose row in the lists changed, each as it is now."""

    name = "/api/v1/tables"

    def __init__(self, lists: TableLists, lookups: Lookups, query: TableQuery) -> None:
        self._lists, self._lookups, self._query = lists, lookups, query
        self.last = lists.last_change

    def forgotten_through(self) -> int:
        """Nothing is forgotten: each table is sent as of its last change."""
        return 0

    def after(self, number: int, limit: int) -> tuple[Sequence[Event], int]:
        """See :class:`~icewright.feed.streams.Source`."""
        changes = self._lists.changed(number, self._query, limit)
        summaries = self._lookups.summaries([record for _, record in changes.tables])
        sent = zip(changes.tables, summaries, strict=True)
        return [Event(changed, "table", to_json(summary)) for (changed, _), summary in sent], changes.through


@router.get(
    "/tables/stream",
    dependencies=[needs(Permission.READ, On.ANYWHERE)],
    **stream_operation("Server-sent events: `TableSummary` as `data`."),
)
def stream_tables(
    request: Request,
    access: Gate,
    caller: Caller,
    table_store: Service[TableStore],
    lookups: Looked,
    filters: Filters,
    *,
    last_event_id: LastEventId = None,
) -> Response:
    """Tables that change, as looks find it: server-sent events `table` with the table as `data`, of those asked for.

    It begins with what changed since `Last-Event-ID`, each table once and as it is now; without, with what changes from
    now on. A look that finds nothing new is no event, nor is a table that is dropped. The server ends it now and then,
    and clients ask again with `Last-Event-ID`, as browsers do.
    """

    def stands() -> bool:
        return whose(request.headers, access, attended=False) == caller

    source = TableSource(table_store.lists, lookups, filters)
    return EventStream(request.app.state.streams, source, last_event_id, stands)


def _of_name(table_store: TableStore, lookups: Looked, filters: TableQuery, name: TableName) -> list[TableSummary]:
    """The table of that name, if it is one of those asked for."""
    record = table_store.record_by_name(name)
    if record is None:
        return []
    only = replace(filters, only=record.table_id)
    found = table_store.lists.page(only, TableSort.NAME, descending=False, limit=1)
    return [lookups.summary(one) for _, one in found]


def _places(
    table_store: TableStore, filters: TableQuery, kind: PlaceKind, sort: str, limit: int, cursor: str | None
) -> Response:
    by, descending = PlaceSort(sort.removeprefix("-")), sort.startswith("-")
    begin = decode_cursor(_PlaceCursor, cursor)
    if begin is not None:
        is_text = by is PlaceSort.NAME
        _require_cursor(begin.sort == sort and isinstance(begin.rank.value, str) is is_text)
        require_text(str(begin.rank.value), begin.rank.name)
    after = None if begin is None else begin.rank
    found = table_store.lists.places(filters, kind, by, descending=descending, limit=limit + 1, after=after)
    return first_page(found, limit, lambda one: _PlaceCursor(sort, one[0]), lambda one: one[1])


def _require_cursor(is_ours: bool) -> None:  # noqa: FBT001 - one question
    if not is_ours:
        raise InvalidMessage("the cursor is of a list in another order", hint="begin without a cursor")
