"""The queries of one table, older ones and newer ones, as conditions on its columns.

The log is split by time, never at random: what is chosen on older queries is tested on newer ones. What cannot be used
is counted by its reason.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from icewright.core.times import Instant
from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import Filter, LiteralKind, Operator, QueryRecord
from icewright.model.queries.recommendations import QueryWindow
from icewright_spark.trials.predicates import Columns, Condition, Path, condition_of
from icewright_spark.trials.table_sample import CodedColumn

QUERIES_MIN: Final = 20
"""Of each window, that differ. What happens in one of seven queries is then seen with 95 % probability
(0.86 to the power of 20 is 0.05); with fewer, a harm of that kind would go unnoticed more often."""
EFFECTIVE_MIN: Final = 5
"""Of each window, as :func:`effective` counts: with fewer, one query that ran most often decides all."""

FAILED, UNKNOWN_COLUMN, UNREADABLE = "failed", "unknown-column", "unreadable-literal"
UNREADABLE_ROW = "unreadable-row"
"""Of the table of queries, to which its owner may write."""
"""Why a query is of no use: it failed, filters by a column that the table has not (or several), or by a literal that is
no value of the column's type."""

_HIDDEN: Final = frozenset({LiteralKind.HASHED, LiteralKind.DROPPED})
_UNBOUNDED: Final = frozenset({Operator.OTHER})


@dataclass(frozen=True, slots=True)
class Read:
    """One scan of the table: its filters, with the columns that they are on, and what it reads, where that is known."""

    at: Instant
    filters: tuple[tuple[Path, Filter], ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """Reads with the same filters, literals included: they say the same of a layout, however often they ran.

    ``filters`` are as they are kept, ``conditions`` by the values of digests, where these are known; None where
    literals stay hashed, or are dropped: such reads count for the choice of columns alone.
    """

    filters: tuple[tuple[Path, Filter], ...]
    weight: int
    conditions: tuple[Condition, ...] | None

    @property
    def key(self) -> str:
        """A digest of the filters: the same in each analysis of the table."""
        return hashlib.sha256(repr(self.filters).encode("utf-8", "surrogatepass")).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Workload:
    """The reads of one window. ``units`` can be evaluated, ``hidden`` cannot."""

    window: QueryWindow
    units: tuple[Unit, ...]
    hidden: tuple[Unit, ...]

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """How often each unit ran."""
        return np.array([unit.weight for unit in self.units], np.float64)

    @property
    def conditions(self) -> list[tuple[Condition, ...]]:
        """Those of each unit."""
        return [unit.conditions or () for unit in self.units]

    @property
    def is_enough(self) -> bool:
        """Whether there are queries enough to judge a layout by."""
        return len(self.units) >= QUERIES_MIN and effective(self.weights) >= EFFECTIVE_MIN

    @property
    def days(self) -> float:
        """How long the window is: at least a day, so that a short burst is not taken for what every day brings."""
        return max((self.window.until - self.window.since) / 86_400_000, 1.0)


def effective(weights: npt.NDArray[np.float64]) -> float:
    """How many units of equal weight would tell as much (Kish 1965): one query that ran a thousand times is one."""
    return float(weights.sum() ** 2 / (weights**2).sum()) if len(weights) else 0.0


def reads_of(
    queries: Sequence[QueryRecord], table: TableName, columns: Columns
) -> tuple[list[Read], Mapping[str, int]]:
    """The reads of a table, the oldest first, and how many are of no use, by the reason."""
    reads: list[Read] = []
    unusable: Counter[str] = Counter()
    for query in sorted(queries, key=lambda query: (query.started_at, query.query_id)):
        for read in query.tables:
            if read.table != table:
                continue
            paths = [columns.find(item.column) for item in read.filters]
            if not query.succeeded:
                unusable[FAILED] += 1
            elif any(path is None for path in paths):
                unusable[UNKNOWN_COLUMN] += 1
            else:
                found = tuple((path, item) for path, item in zip(paths, read.filters, strict=True) if path is not None)
                reads.append(Read(query.started_at, found, read.columns))
    return reads, unusable


def split_by_time(reads: Sequence[Read]) -> tuple[list[Read], list[Read]]:
    """The older and the newer half. Reads of one instant are in the same."""
    if not reads:
        return [], []
    first_newer = reads[len(reads) // 2].at
    return [read for read in reads if read.at < first_newer], [read for read in reads if read.at >= first_newer]


def workload_of(reads: Sequence[Read], columns: Mapping[Path, CodedColumn]) -> tuple[Workload, Mapping[str, int]]:
    """The reads of a window as units, in the order in which they first came; also how many are of no use, by reason.

    Filters that bounds can never answer, among them those on columns without an order, count for nothing.
    """
    weights = Counter(filters_of(read) for read in reads)
    units: list[Unit] = []
    hidden: list[Unit] = []
    unusable: Counter[str] = Counter()
    for filters, weight in weights.items():
        unit = unit_of(filters, weight, columns)
        if unit is None:
            unusable[UNREADABLE] += weight
        else:
            (hidden if unit.conditions is None else units).append(unit)
    window = QueryWindow(
        since=reads[0].at if reads else 0,
        until=reads[-1].at if reads else 0,
        queries=len(reads),
        evaluated=sum(unit.weight for unit in units),
    )
    return Workload(window, tuple(units), tuple(hidden)), unusable


def filters_of(read: Read) -> tuple[tuple[Path, Filter], ...]:
    """The filters of a read, each once, in one order."""
    return tuple(sorted(set(read.filters), key=repr))


def unit_of(filters: tuple[tuple[Path, Filter], ...], weight: int, columns: Mapping[Path, CodedColumn]) -> Unit | None:
    """Reads with these filters; None where a literal is no value of its column's type."""
    some = [(path, item) for path, item in filters if item.operator not in _UNBOUNDED and path in columns]
    bounded = [(path, columns[path].with_values(item)) for path, item in some]
    if any(literal.kind in _HIDDEN for _, item in bounded for literal in item.literals):
        return Unit(filters, weight, None)
    conditions = tuple(condition_of(item, path, columns[path].scale) for path, item in bounded)
    known = tuple(condition for condition in conditions if condition is not None)
    return Unit(filters, weight, known) if len(known) == len(conditions) else None
