"""What could be done about a table, by rules that can be read: the columns that queries exclude most rows by.

1. A column scores, for each query that filters by it, the share of rows that the filter excludes.
2. Columns are taken by score. One that goes with a column already taken is left out: their order is nearly the same.
3. A column whose value follows from that of another one leads it in a sort (region, city), and curves are tried
   without it too.
4. Sorts have one to three columns, curves two to four. Equality on a column of nearly unique values is also a case for
   Bloom filters.
5. Cuts are of all columns whose filters exclude enough, those that go with others among them
   (:mod:`icewright_spark.trials.cutting`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from icewright.model.iceberg.layouts import Curve, LayoutColumn, LayoutExpression
from icewright.model.queries.queries import Operator
from icewright.model.queries.recommendations import (
    Candidate,
    ColumnScore,
    LayoutChange,
    LeaveAsIs,
    PropertiesChange,
    Revert,
)
from icewright_spark.executors.sort.literals import as_cut
from icewright_spark.trials.predicates import Path, rows_that_match
from icewright_spark.trials.table_sample import CodedColumn
from icewright_spark.trials.workload import Unit, Workload

COLUMNS_MAX: Final = 4
SORT_COLUMNS_MAX: Final = 3
CORRELATED: Final = 0.95
"""Rank correlation from which two columns have the same order for our purpose."""
FOLLOWS: Final = 1.02
"""Pairs of values over values from which one column's value does not follow from the other's."""
NEARLY_UNIQUE: Final = 0.9
"""Distinct values of the sample over its rows."""
SCORE_MIN: Final = 0.05
"""Of the best column's score: what is below it is left out."""
BLOOM_PROPERTY: Final = "write.parquet.bloom-filter-enabled.column."

_EQUALITY: Final = frozenset({Operator.EQ, Operator.IN})
_BOUNDED: Final = _EQUALITY | {Operator.LT, Operator.LT_EQ, Operator.GT, Operator.GT_EQ, Operator.STARTS_WITH}
_CURVES: Final = (Curve.ZORDER, Curve.HILBERT)


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidates, and the columns that they come from.

    ``bloom`` are the columns of the Bloom filters, ``cut`` those that cuts may be of, both the best first.
    """

    candidates: tuple[Candidate, ...]
    scores: tuple[ColumnScore, ...]
    bloom: tuple[Path, ...]
    cut: tuple[Path, ...] = ()


def choose(older: Workload, columns: Mapping[Path, CodedColumn], current: LayoutExpression | None = None) -> Choice:
    """What to try, from the older queries alone. ``current`` is the layout that the table is to have now."""
    scores = _scores(older, columns)
    ranked = sorted(scores, key=lambda path: (-scores[path].score, path))
    taken: list[Path] = []
    for path in ranked:
        reason = _left_out(path, taken, scores, columns, scores[ranked[0]].score)
        scores[path] = replace(scores[path], left_out=reason)
        if not reason:
            taken.append(path)
    found: list[Candidate] = [LayoutChange(layout) for layout in _layouts(taken, columns)]
    if current is not None and current.columns and _is_possible(current, columns):
        found.append(LayoutChange(current))
    bloom = tuple(path for path in ranked if _wants_bloom(path, older, columns[path]))
    if bloom:
        found.append(PropertiesChange({BLOOM_PROPERTY + ".".join(path): "true" for path in bloom}))
    unique = {str(candidate): candidate for candidate in found}
    cut = tuple(path for path in ranked if scores[path].score > SCORE_MIN * scores[ranked[0]].score)
    return Choice(tuple(unique.values()), tuple(scores[path] for path in ranked), bloom, cut)


def _is_possible(layout: LayoutExpression, columns: Mapping[Path, CodedColumn]) -> bool:
    """Whether the sample has the columns of a layout, and of cuts their values are of the columns' types."""
    if not all(column.path in columns for column in layout.columns):
        return False
    cuts = () if layout.cuts is None else layout.cuts.cuts
    kinds = [columns[column.path].scale.kind for column in layout.columns]
    return all(cut is None or as_cut(cut.operator, cut.literal, kinds[cut.column]) is not None for cut in cuts)


def simplicity(candidate: Candidate) -> tuple[int, int]:
    """What sorts simpler candidates first: nothing, properties, sorts, z-order, Hilbert, cuts; then fewer columns."""
    match candidate:
        case LeaveAsIs():
            return 0, 0
        case PropertiesChange(properties):
            return 1, len(properties)
        case LayoutChange(layout):
            return 2 + list(Curve).index(layout.curve), len(layout.columns)
        case Revert():
            raise AssertionError(f"{candidate} is no candidate of the tournament")


def _scores(older: Workload, columns: Mapping[Path, CodedColumn]) -> dict[Path, ColumnScore]:
    excluded: dict[Path, float] = {}
    queries: dict[Path, int] = {}
    for unit in (*older.units, *older.hidden):
        for path in {path for path, item in unit.filters if item.operator in _BOUNDED and path in columns}:
            excluded[path] = excluded.get(path, 0.0) + unit.weight * (1 - _selectivity(unit, path, columns[path]))
            queries[path] = queries.get(path, 0) + unit.weight
    return {
        path: ColumnScore(".".join(path), queries[path], score, _distinct_share(columns[path]))
        for path, score in excluded.items()
    }


def _selectivity(unit: Unit, path: Path, column: CodedColumn) -> float:
    """The share of rows that satisfy all filters on a column. Of equality with hidden literals, that of a mean value.

    Of other comparisons with hidden literals nothing is known: they exclude nothing.
    """
    rows = len(column.ranks)
    if unit.conditions is not None:
        met = np.ones(rows, np.bool_)
        for condition in unit.conditions:
            if condition.column == path:
                met &= rows_that_match(condition, column.rows)
        return float(met.mean()) if rows else 1.0
    values = [len(item.literals) for at, item in unit.filters if at == path and item.operator in _EQUALITY]
    return min(1.0, min(values) / max(column.distinct, 1)) if values else 1.0


def _distinct_share(column: CodedColumn) -> float:
    return column.distinct / max(int((column.ranks >= 0).sum()), 1)


def _left_out(
    path: Path,
    taken: Sequence[Path],
    scores: Mapping[Path, ColumnScore],
    columns: Mapping[Path, CodedColumn],
    best: float,
) -> str:
    if scores[path].score <= SCORE_MIN * best:
        return "its filters exclude few rows"
    if len(taken) == COLUMNS_MAX:
        return f"{COLUMNS_MAX} columns score higher"
    for other in taken:
        if _correlation(columns[path], columns[other]) > CORRELATED:
            return f"has nearly the order of {'.'.join(other)}"
    return ""


def _correlation(one: CodedColumn, other: CodedColumn) -> float:
    """Spearman's, of rows that have a value of both; without its sign, which min and max do not care for."""
    both = (one.ranks >= 0) & (other.ranks >= 0)
    if min(one.distinct, other.distinct) <= 1 or not both.any():
        return 0.0
    first, second = _mid_ranks(one.ranks[both]), _mid_ranks(other.ranks[both])
    if not first.std() or not second.std():
        return 0.0
    return abs(float(np.corrcoef(first, second)[0, 1]))


def _mid_ranks(ranks: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    counts = np.bincount(ranks)
    return np.asarray((np.cumsum(counts) - counts / 2)[ranks], np.float64)


def follows(dependent: CodedColumn, other: CodedColumn) -> bool:
    """Whether the value of a column follows from that of another one; never from one of nearly unique values."""
    both = (dependent.ranks >= 0) & (other.ranks >= 0)
    if not both.any() or _distinct_share(other) > NEARLY_UNIQUE / 2:
        return False
    values = len(np.unique(other.ranks[both]))
    pairs = len(np.unique(other.ranks[both] * (dependent.distinct + 1) + dependent.ranks[both]))
    return pairs <= FOLLOWS * values


def _layouts(taken: Sequence[Path], columns: Mapping[Path, CodedColumn]) -> list[LayoutExpression]:
    found = [_expression(Curve.SORT, [path]) for path in taken[:SORT_COLUMNS_MAX]]
    found += [_expression(Curve.SORT, taken[:count]) for count in range(2, min(len(taken), SORT_COLUMNS_MAX) + 1)]
    found += [_expression(Curve.SORT, taken[1::-1])] if len(taken) > 1 else []
    dependent = {
        path: other
        for path in taken
        for other in taken
        if path != other and follows(columns[path], columns[other]) and not follows(columns[other], columns[path])
    }
    found += [_expression(Curve.SORT, [path, other]) for path, other in dependent.items()]
    free = [path for path in taken if path not in dependent]
    for among in (taken, free):
        found += [_expression(curve, among[:count]) for count in range(2, len(among) + 1) for curve in _CURVES]
    return list(dict.fromkeys(found))


def _expression(curve: Curve, paths: Sequence[Path]) -> LayoutExpression:
    return LayoutExpression(curve, tuple(LayoutColumn(path) for path in paths))


def _wants_bloom(path: Path, older: Workload, column: CodedColumn) -> bool:
    asked = any(
        at == path and item.operator in _EQUALITY for unit in (*older.units, *older.hidden) for at, item in unit.filters
    )
    return asked and _distinct_share(column) >= NEARLY_UNIQUE
