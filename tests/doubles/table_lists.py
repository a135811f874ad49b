"""Lists of tables in memory: worked out from the records each time, as the plainest statement of the port."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from icewright.model.access.permissions import Scope, covers
from icewright.model.iceberg.names import TableId
from icewright.model.work.figures import Grade, SeriesPoint
from icewright.ports.store import TableRecord
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
from icewright.work.store.table_lists import SORT_LENGTH


class MemoryTableLists:
    """A :class:`~icewright.ports.table_lists.TableLists` over the records of a store beside it."""

    def __init__(self, records: Callable[[], Iterable[TableRecord]]) -> None:
        self._records = records
        self._changed: dict[TableId, int] = {}
        self._shown: dict[TableId, tuple[object, ...]] = {}
        self._number = 0
        self._series: dict[TableId, tuple[SeriesPoint, ...]] = {}

    def note(self, record: TableRecord) -> None:
        """Tell that a record was saved."""
        sorted_by = (*_figures(record), _health(record), _last_task_at(record))
        shown = (*sorted_by, _mode(record), str(record.name), _is_failing(record), record.dropped_at is None)
        if self._shown.get(record.table_id) != shown:
            self._shown[record.table_id] = shown
            if record.dropped_at is None:
                self._number += 1
                self._changed[record.table_id] = self._number

    def page(
        self, query: TableQuery, sort: TableSort, *, descending: bool, limit: int, after: TablePlace | None = None
    ) -> Sequence[tuple[TablePlace, TableRecord]]:
        found = [(TablePlace(_value(record, sort), record.table_id), record) for record in self._of(query)]
        found.sort(key=lambda one: _order(one[0]), reverse=descending)
        if after is not None:
            here = _order(after)
            found = [one for one in found if (_order(one[0]) < here if descending else _order(one[0]) > here)]
        return found[:limit]

    def totals(self, query: TableQuery) -> TableTotals:
        return _totals(list(self._of(query)))

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
        groups: dict[str, list[TableRecord]] = {}
        for record in self._of(query):
            by_catalog = kind is PlaceKind.CATALOG
            name = record.table_id.catalog if by_catalog else str(Scope.of(record.name))
            groups.setdefault(name, []).append(record)
        found = []
        for name, records in groups.items():
            shown = str(Scope(name)) if kind is PlaceKind.CATALOG else name
            place = PlaceTotals(shown, records[0].table_id.catalog, _totals(records))
            found.append((PlaceRank(_rank(name, records, sort), name), place))
        found.sort(key=lambda one: (one[0].value, one[0].name), reverse=descending)
        if after is not None:
            here = (after.value, after.name)
            found = [
                one
                for one in found
                if ((one[0].value, one[0].name) < here if descending else (one[0].value, one[0].name) > here)
            ]
        return found[:limit]

    def last_change(self) -> int:
        return self._number

    def changed(self, after: int, query: TableQuery, limit: int) -> Changes:
        found = sorted(((self._changed[record.table_id], record) for record in self._of(query)), key=lambda one: one[0])
        found = [one for one in found if one[0] > after][:limit]
        return Changes(found, found[-1][0] if len(found) == limit else max(after, self._number))

    def series(self, table_id: TableId) -> Sequence[SeriesPoint]:
        return self._series.get(table_id, ())

    def save_series(self, table_id: TableId, points: Sequence[SeriesPoint]) -> None:
        self._series[table_id] = tuple(points)

    def forget(self, table_id: TableId) -> None:
        """Tell that a table is not known any more."""
        self._series.pop(table_id, None)

    def _of(self, query: TableQuery) -> Iterable[TableRecord]:
        for record in self._records():
            scope, health = Scope.of(record.name), _health(record)
            wants_health = query.health_min is not None or query.health_max is not None
            if record.dropped_at is not None or not covers(query.within, scope) or not query.under.covers(scope):
                continue
            if wants_health and not max(0, query.health_min or 0) <= health <= (
                100 if query.health_max is None else query.health_max
            ):
                continue
            if query.mode is not None and _mode(record) != query.mode.value:
                continue
            if query.failing is not None and _is_failing(record) is not query.failing:
                continue
            if query.only not in {None, record.table_id}:
                continue
            if query.search.lower() in str(record.name).lower():
                yield record


def _figures(record: TableRecord) -> tuple[int, int, int, int]:
    if record.listed is None:
        return 0, 0, 0, 0
    figures = record.listed.figures
    return figures.size_bytes, figures.data_files, figures.small_files, figures.delete_files


def _health(record: TableRecord) -> int:
    listed = record.listed
    return UNKNOWN_HEALTH if listed is None or listed.health is None else listed.health.score


def _mode(record: TableRecord) -> str:
    return "" if record.listed is None else record.listed.mode.value


def _is_failing(record: TableRecord) -> bool:
    return record.problem is not None or (record.listed is not None and record.listed.failures > 0)


def _last_task_at(record: TableRecord) -> int:
    return 0 if record.listed is None else record.listed.last_task_at or 0


def _value(record: TableRecord, sort: TableSort) -> int | str:
    size_bytes, files, small, deletes = _figures(record)
    values: dict[TableSort, int | str] = {
        TableSort.NAME: str(record.name)[:SORT_LENGTH],
        TableSort.HEALTH: _health(record),
        TableSort.BYTES: size_bytes,
        TableSort.FILES: files,
        TableSort.SMALL_FILES: small,
        TableSort.DELETE_FILES: deletes,
        TableSort.LAST_LOOK: record.observed_at,
        TableSort.LAST_TASK: _last_task_at(record),
    }
    return values[sort]


def _order(place: TablePlace) -> tuple[int | str, TableId]:
    return place.value, place.table_id


def _mean_health(records: Sequence[TableRecord]) -> int | None:
    known = [(_health(record), _figures(record)[0] // 2**20 + 1) for record in records if _health(record) >= 0]
    return sum(health * mib for health, mib in known) // sum(mib for _, mib in known) if known else None


def _totals(records: Sequence[TableRecord]) -> TableTotals:
    healths = [_health(record) for record in records if _health(record) >= 0]
    mean = _mean_health(records)
    figures = [_figures(record) for record in records]
    return TableTotals(
        tables=len(records),
        bytes=sum(one[0] for one in figures),
        files=sum(one[1] for one in figures),
        small_files=sum(one[2] for one in figures),
        delete_files=sum(one[3] for one in figures),
        health=mean,
        health_min=min(healths, default=None),
        unknown=len(records) - len(healths),
        failing=sum(_is_failing(record) for record in records),
        grades={grade: sum(Grade.of(health) is grade for health in healths) for grade in Grade},
    )


def _rank(name: str, records: Sequence[TableRecord], sort: PlaceSort) -> int | str:
    totals, mean = _totals(records), _mean_health(records)
    values: dict[PlaceSort, int | str] = {
        PlaceSort.NAME: name,
        PlaceSort.HEALTH: UNKNOWN_HEALTH if mean is None else mean,
        PlaceSort.BYTES: totals.bytes,
        PlaceSort.FILES: totals.files,
        PlaceSort.TABLES: totals.tables,
    }
    return values[sort]
