"""Lists of tables in an SQL database: rows that are read by an index from one place on, sums by one query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    Select,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from icewright.model.access.permissions import EVERYTHING, EVERYWHERE, Scope
from icewright.model.iceberg.names import TableId
from icewright.model.work.figures import FAIR_HEALTH_MIN, GOOD_HEALTH_MIN, Grade, SeriesPoint
from icewright.ports.table_lists import (
    UNKNOWN_HEALTH,
    Changes,
    PlaceKind,
    PlaceRank,
    PlaceSort,
    PlaceTotals,
    TablePlace,
    TableQuery,
    TableSort,
    TableTotals,
)
from icewright.ports.table_records import TableRecord
from icewright.store.documents import pack, unpack
from icewright.store.locks import Lock, LockKind
from icewright.store.schema import LISTED_CHANGED, UNNUMBERED, counters, listed_tables, table_series, tables
from icewright.store.table_rows import id_columns, is_table, record_of, replacing
from icewright.store.transactions import asking, reading, writing

SORT_LENGTH: Final = 200
"""So much of a name is sorted by: an index of PostgreSQL takes no entry of more than 2.7 KB."""
_POINTS: Final = tuple[SeriesPoint, ...]
_LISTED: Final = listed_tables.c
_SORTED_BY: Final[Mapping[TableSort, Any]] = {
    TableSort.NAME: _LISTED.sort_name,
    TableSort.HEALTH: _LISTED.health,
    TableSort.BYTES: _LISTED.size_bytes,
    TableSort.FILES: _LISTED.data_files,
    TableSort.SMALL_FILES: _LISTED.small_files,
    TableSort.DELETE_FILES: _LISTED.delete_files,
    TableSort.LAST_LOOK: _LISTED.observed_at,
    TableSort.LAST_TASK: _LISTED.last_task_at,
}


NUMBERED_AT_ONCE: Final = 1_000
_NUMBERS: Final = (Lock(LockKind.LISTS),)
_WITHOUT: Final = (
    select(_LISTED.catalog, _LISTED.table_uuid)
    .where(_LISTED.changed == UNNUMBERED)
    .order_by(_LISTED.catalog, _LISTED.table_uuid)
    .limit(NUMBERED_AT_ONCE)
)
_NUMBER: Final = update(listed_tables).where(
    _LISTED.catalog == bindparam("of_catalog"), _LISTED.table_uuid == bindparam("of_uuid")
)
_IDS: Final = ("catalog", "table_uuid")
_SHOWN: Final = frozenset(_LISTED.keys()) - {"changed", *_IDS}
_COMPARED: Final = _SHOWN - {"observed_at"}
_LISTING: Final = insert(listed_tables)
_IS_SAME: Final = and_(*(_LISTED[name] == _LISTING.excluded[name] for name in sorted(_COMPARED)))
_LIST: Final = _LISTING.on_conflict_do_update(
    index_elements=_IDS,
    set_={
        **{name: _LISTING.excluded[name] for name in sorted(_SHOWN)},
        "changed": case((_IS_SAME, _LISTED.changed), else_=UNNUMBERED),
    },
)
_PUT_SERIES: Final = replacing(table_series)


def list_table(connection: Connection, record: TableRecord) -> None:
    """Write what lists show of a table, as part of the transaction that saves its record.

    A look that found nothing else than before only says when it was, and is no change. A change gets its number from
    whoever asks what changed, so that looks do not wait for each other's.
    """
    if record.dropped_at is not None:
        connection.execute(delete(listed_tables).where(*is_table(listed_tables, record.table_id)))
        return
    connection.execute(_LIST, {**listed_row(record), "changed": UNNUMBERED})


def put_series(connection: Connection, table_id: TableId, points: Sequence[SeriesPoint]) -> None:
    """Replace the series of a table, as part of a transaction that has the table alone."""
    connection.execute(_PUT_SERIES, {**id_columns(table_id), "points": pack(tuple(points))})


def unlist_namesakes(connection: Connection, record: TableRecord) -> None:
    """Take other tables off the lists that were seen under the name of this one: they were dropped."""
    dotted = str(record.name)
    named = (_LISTED.sort_name == dotted[:SORT_LENGTH], _LISTED.name == dotted)
    others = (_LISTED.catalog != record.table_id.catalog) | (_LISTED.table_uuid != record.table_id.uuid)
    connection.execute(delete(listed_tables).where(*named, others))


def page_query(
    query: TableQuery, sort: TableSort, *, descending: bool, limit: int, after: TablePlace | None
) -> Select[Any]:
    """What gives a page: by one index, which has all that it asks for, from the place on where the last page ended.

    A search by name reads the rows as they lie and sorts what it finds, unless they are wanted by name: in the order of
    another index each row would have to be fetched for its name, which takes eight times as long.
    """
    by, ids = _SORTED_BY[sort], (_LISTED.catalog, _LISTED.table_uuid)
    if query.search and sort is not TableSort.NAME:
        by = by + 0  # no index has that
    order = [column.desc() if descending else column.asc() for column in (by, *ids)]
    wanted = select(by, *ids).where(*_conditions(query)).order_by(*order).limit(limit)
    if after is None:
        return wanted
    place, row = tuple_(after.value, after.table_id.catalog, after.table_id.uuid), tuple_(by, *ids)
    return wanted.where(row < place if descending else row > place)


class SqlTableLists:
    """A :class:`~icewright.ports.table_lists.TableLists` over an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def page(
        self, query: TableQuery, sort: TableSort, *, descending: bool, limit: int, after: TablePlace | None = None
    ) -> Sequence[tuple[TablePlace, TableRecord]]:
        """See the port."""
        wanted = page_query(query, sort, descending=descending, limit=limit, after=after)
        with reading(self._engine) as connection:
            found = [TablePlace(value, TableId(*table_id)) for value, *table_id in connection.execute(wanted)]
            records = _records(connection, [place.table_id for place in found])
        return [(place, records[place.table_id]) for place in found if place.table_id in records]

    def totals(self, query: TableQuery) -> TableTotals:
        """See the port."""
        with reading(self._engine) as connection:
            row = connection.execute(select(*_SUMS).where(*_conditions(query))).mappings().one()
        return _totals(row)

    def places(
        self,
        query: TableQuery,
        kind: PlaceKind,
        sort: PlaceSort,
        *,
        descending: bool,
        limit: int,
        after: PlaceRank | None = None,
    ) -> Sequence[tuple[PlaceRank, PlaceTotals]]:
        """See the port."""
        by_catalog = kind is PlaceKind.CATALOG
        name = _LISTED.catalog if by_catalog else _LISTED.namespace
        groups = select(name.label("name"), func.min(_LISTED.catalog).label("catalog"), *_SUMS)
        summed = groups.where(*_conditions(query)).group_by(name).subquery()
        rank = summed.c[_RANKED_BY[sort]]
        by = func.coalesce(rank, UNKNOWN_HEALTH) if sort is PlaceSort.HEALTH else rank
        order = [column.desc() if descending else column.asc() for column in (by, summed.c.name)]
        wanted = select(summed, by.label("rank_value")).order_by(*order).limit(limit)
        if after is not None:
            place, row = tuple_(after.value, after.name), tuple_(by, summed.c.name)
            wanted = wanted.where(row < place if descending else row > place)
        with reading(self._engine) as connection:
            rows = connection.execute(wanted).mappings().all()
        return [
            (
                PlaceRank(_ranked(row["rank_value"]), row["name"]),
                PlaceTotals(str(Scope(row["name"])) if by_catalog else row["name"], row["catalog"], _totals(row)),
            )
            for row in rows
        ]

    def last_change(self) -> int:
        """See the port."""
        self._number_changes()
        with reading(self._engine) as connection:
            return int(connection.scalar(select(counters.c.value).where(counters.c.name == LISTED_CHANGED)) or 0)

    def changed(self, after: int, query: TableQuery, limit: int) -> Changes:
        """See the port."""
        self._number_changes()
        last = select(counters.c.value).where(counters.c.name == LISTED_CHANGED)
        wanted = select(_LISTED.changed, _LISTED.catalog, _LISTED.table_uuid)
        wanted = wanted.where(_LISTED.changed > after, *_conditions(query)).order_by(_LISTED.changed).limit(limit)
        with reading(self._engine) as connection:
            through = int(connection.scalar(last) or 0)
            rows = connection.execute(wanted).all()
            records = _records(connection, [TableId(catalog, uuid) for _, catalog, uuid in rows])
        found = [  # without a table that was pruned between the two statements
            (number, records[TableId(catalog, uuid)])
            for number, catalog, uuid in rows
            if TableId(catalog, uuid) in records
        ]
        return Changes(found, rows[-1][0] if len(rows) == limit else max(after, through))

    def _number_changes(self) -> None:
        """Give changes their numbers; one that a look is just about to change again gets the next time's."""
        while True:
            with reading(self._engine) as connection:
                if connection.execute(_WITHOUT.limit(1)).first() is None:
                    return
            with writing(self._engine, _NUMBERS) as connection:
                found = connection.execute(_WITHOUT.with_for_update(skip_locked=True)).all()
                if found:
                    counter = update(counters).where(counters.c.name == LISTED_CHANGED)
                    more = counter.values(value=counters.c.value + len(found)).returning(counters.c.value)
                    first = connection.execute(more).scalar_one() - len(found) + 1
                    rows = [
                        {"of_catalog": catalog, "of_uuid": uuid, "changed": number}
                        for number, (catalog, uuid) in enumerate(found, start=first)
                    ]
                    connection.execute(_NUMBER, rows)
            if len(found) < NUMBERED_AT_ONCE:
                return

    def series(self, table_id: TableId) -> Sequence[SeriesPoint]:
        """See the port."""
        with asking(self._engine, beside=True) as connection:  # a series is written with the record that ends a look
            blob = connection.scalar(select(table_series.c.points).where(*is_table(table_series, table_id)))
        return () if blob is None else unpack(_POINTS, blob)


def listed_row(record: TableRecord) -> dict[str, Any]:
    """A record as the columns of ``listed_tables``, all but the number of the change."""
    listed, dotted = record.listed, str(record.name)
    figures = None if listed is None else listed.figures
    health = None if listed is None else listed.health
    return {
        **id_columns(record.table_id),
        "name": dotted,
        "sort_name": dotted[:SORT_LENGTH],
        "namespace": str(Scope.of(record.name)),
        "mode": "" if listed is None else listed.mode.value,
        "health": UNKNOWN_HEALTH if health is None else health.score,
        "size_bytes": 0 if figures is None else figures.size_bytes,
        "data_files": 0 if figures is None else figures.data_files,
        "small_files": 0 if figures is None else figures.small_files,
        "delete_files": 0 if figures is None else figures.delete_files,
        "failing": int(record.problem is not None or (listed is not None and listed.failures > 0)),
        "observed_at": record.observed_at,
        "last_task_at": 0 if listed is None else listed.last_task_at or 0,
    }


def _conditions(query: TableQuery) -> Iterator[ColumnElement[bool]]:
    yield true()
    if query.within != EVERYWHERE:
        yield or_(*(_in(scope) for scope in query.within), ~true())
    if query.under != EVERYTHING:
        yield _in(query.under)
    if query.health_min is not None or query.health_max is not None:
        yield _LISTED.health >= max(0, query.health_min or 0)
    if query.health_max is not None:
        yield _LISTED.health <= query.health_max
    if query.mode is not None:
        yield _LISTED.mode == query.mode.value
    if query.failing is not None:
        yield _LISTED.failing == int(query.failing)
    if query.only is not None:
        yield and_(*is_table(listed_tables, query.only))
    if query.search:  # the index by name has it, but of names that are longer
        is_cut = func.length(_LISTED.sort_name) >= SORT_LENGTH
        long = and_(is_cut, _LISTED.name.icontains(query.search, autoescape=True))
        yield or_(_LISTED.sort_name.icontains(query.search, autoescape=True), long)


def _in(scope: Scope) -> ColumnElement[bool]:
    """Whether a table is in a scope: names are quoted, so that a dot behind one always begins the next part."""
    place = str(scope)
    if not scope.namespace:
        return _LISTED.catalog == scope.catalog
    return or_(_LISTED.namespace == place, and_(_LISTED.namespace >= f"{place}.", _LISTED.namespace < f"{place}/"))


def records_query(table_ids: Sequence[TableId]) -> Select[Any]:
    """What gives the records of tables: catalog by catalog, since SQLite looks up no list of pairs in an index."""
    uuids: defaultdict[str, list[str]] = defaultdict(list)
    for table_id in table_ids:
        uuids[table_id.catalog].append(table_id.uuid)
    of = (and_(tables.c.catalog == catalog, tables.c.table_uuid.in_(found)) for catalog, found in uuids.items())
    return select(tables).where(or_(*of))


def _records(connection: Connection, table_ids: Sequence[TableId]) -> Mapping[TableId, TableRecord]:
    if not table_ids:
        return {}
    found = (record_of(row) for row in connection.execute(records_query(table_ids)).mappings())
    return {record.table_id: record for record in found}


_MIB: Final = 1 << 20
_KNOWN: Final = _LISTED.health >= 0
_RANKED_BY: Final[Mapping[PlaceSort, str]] = {
    PlaceSort.NAME: "name",
    PlaceSort.HEALTH: "health",
    PlaceSort.BYTES: "bytes",
    PlaceSort.FILES: "files",
    PlaceSort.TABLES: "tables",
}


def _count(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _sum(value: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.coalesce(func.sum(value), 0)


# In whole MiB, and one more so that an empty table counts: a hundred times the bytes of a large fleet is more than 64
# bits hold, and sums of floats depend on their order.
_WEIGHT: Final = case((_KNOWN, _LISTED.size_bytes // _MIB + 1), else_=0)
_WEIGHTS: Final = func.nullif(cast(func.sum(_WEIGHT), BigInteger), 0, type_=BigInteger)
_HEALTH: Final = cast(func.sum(_LISTED.health * _WEIGHT), BigInteger) // _WEIGHTS
_SUMS: Final = (
    func.count().label("tables"),
    _sum(_LISTED.size_bytes).label("bytes"),
    _sum(_LISTED.data_files).label("files"),
    _sum(_LISTED.small_files).label("small_files"),
    _sum(_LISTED.delete_files).label("delete_files"),
    _HEALTH.label("health"),
    func.min(case((_KNOWN, _LISTED.health))).label("health_min"),
    _count(~_KNOWN).label("unknown"),
    _sum(_LISTED.failing).label("failing"),
    _count(_LISTED.health >= GOOD_HEALTH_MIN).label("good"),
    _count(and_(_LISTED.health >= FAIR_HEALTH_MIN, _LISTED.health < GOOD_HEALTH_MIN)).label("fair"),
    _count(and_(_KNOWN, _LISTED.health < FAIR_HEALTH_MIN)).label("poor"),
)


def _totals(row: Any) -> TableTotals:
    return TableTotals(
        tables=row["tables"],
        bytes=int(row["bytes"]),
        files=int(row["files"]),
        small_files=int(row["small_files"]),
        delete_files=int(row["delete_files"]),
        health=row["health"],
        health_min=row["health_min"],
        unknown=int(row["unknown"]),
        failing=int(row["failing"]),
        grades={grade: int(row[grade.value]) for grade in Grade},
    )


def _ranked(value: Any) -> int | str:
    return value if isinstance(value, str) else int(value)
