"""The port of lists of tables: sorted, filtered and summed up by what the last look at each of them found.

What lists sort by stands beside the records of tables and is written with them, so that a list of 100,000 tables is an
index that is read from one place on, and asks no catalog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from icewright.model.access.permissions import EVERYTHING, EVERYWHERE, Scope, Scopes
from icewright.model.iceberg.names import TableId
from icewright.model.policy.policy import Mode
from icewright.model.work.figures import Grade, SeriesPoint
from icewright.ports.table_records import TableRecord

UNKNOWN_HEALTH: Final = -1
"""What stands for a health that is not known yet: before all others."""


class TableSort(StrEnum):
    """What tables are sorted by; those with the same value by catalog and uuid."""

    NAME = "name"
    HEALTH = "health"
    BYTES = "bytes"
    FILES = "files"
    SMALL_FILES = "small_files"
    DELETE_FILES = "delete_files"
    LAST_LOOK = "last_look"
    LAST_TASK = "last_task"


class PlaceSort(StrEnum):
    """What catalogs and namespaces are sorted by."""

    NAME = "name"
    HEALTH = "health"
    BYTES = "bytes"
    FILES = "files"
    TABLES = "tables"


class PlaceKind(StrEnum):
    """Of what tables are summed up."""

    CATALOG = "catalog"
    NAMESPACE = "namespace"


@dataclass(frozen=True, slots=True)
class TableQuery:
    """Which tables; None does not restrict. ``within`` is what the caller may see, ``under`` what is asked for.

    A table whose health is not known has none between ``health_min`` and ``health_max``. ``mode`` is by the policy as
    of the last look. One is ``failing`` that cannot be looked after, or has tasks that failed since the last success.
    ``search`` is a part of the dotted name, in any case (of ASCII letters). ``only`` is one table.
    """

    within: Scopes = EVERYWHERE
    under: Scope = EVERYTHING
    health_min: int | None = None
    health_max: int | None = None
    mode: Mode | None = None
    failing: bool | None = None
    search: str = ""
    only: TableId | None = None


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where a table is in a list: what it is sorted by, and its id."""

    value: int | str
    table_id: TableId


@dataclass(frozen=True, slots=True)
class TableTotals:
    """The sums over tables. ``health`` is weighted by MiB, ``health_min`` that of the worst table.

    Both are null where no table has a health yet; ``unknown`` is how many have none.
    """

    tables: int
    bytes: int
    files: int
    small_files: int
    delete_files: int
    health: int | None
    health_min: int | None
    unknown: int
    failing: int
    grades: Mapping[Grade, int]


@dataclass(frozen=True, slots=True)
class PlaceTotals:
    """A catalog or a namespace, and the sums over the tables in it."""

    name: str
    catalog: str
    totals: TableTotals


@dataclass(frozen=True, slots=True)
class PlaceRank:
    """Where a catalog or namespace is in a list: what it is sorted by, and its name."""

    value: int | str
    name: str


@dataclass(frozen=True, slots=True)
class Changes:
    """Tables whose row in the lists changed, oldest change first, each once; ``through`` is how far that is."""

    tables: Sequence[tuple[int, TableRecord]]
    through: int


class TableLists(Protocol):
    """Tables, not known to be dropped, as lists show them. Every method is one transaction.

    Raises :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def page(
        self, query: TableQuery, sort: TableSort, *, descending: bool, limit: int, after: TablePlace | None = None
    ) -> Sequence[tuple[TablePlace, TableRecord]]:
        """Tables in their order; ``after`` is where the last page ended."""

    def totals(self, query: TableQuery) -> TableTotals:
        """The sums over all of them."""

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
        """Catalogs or namespaces that have one of these tables, with the sums over them."""

    def last_change(self) -> int:
        """The number of the latest change of a row."""

    def changed(self, after: int, query: TableQuery, limit: int) -> Changes:
        """Tables whose row changed after a number."""

    def series(self, table_id: TableId) -> Sequence[SeriesPoint]:
        """What looks saw of a table, oldest first, as it was saved with the record."""
