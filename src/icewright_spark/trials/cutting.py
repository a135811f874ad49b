"""A tree of cuts from the filters of older queries, the best cut first (qd-tree, Yang et al. 2020).

1. Candidates are the ends of what filters ask for: ``x >= 5 AND x <= 9`` may cut at ``x < 5`` and at ``x <= 9``.
2. A cut gains the rows that queries need not read because they ask for the other side alone. It counts in the
   partitions where both sides have half a file at least: only there files follow it.
3. Where older partitions are asked for other columns than newer ones, one tree for all would have files follow cuts
   that nobody asks of them. So partitions are divided into ranges where the best cuts of both ranges gain clearly more
   than the best cut of all: a division costs no files, and each range gets cuts of its own.
4. The cut of all leaves that gains most is made next, until none gains or the tree is as large as it may be.

Queries are held to read a side where its range of the cut column has what they ask for, as readers judge by bounds.
"""

from __future__ import annotations

import heapq
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from icewright.model.iceberg.predicates.cuts import COLUMNS_MAX, CUTS_MAX, DEPTH_MAX, TEXT_LENGTH_MAX, Cut, CutTree
from icewright.model.queries.queries import Filter, Literal, LiteralKind, Operator
from icewright_spark.executors.sort.cut_cells import FILE_SHARE_MIN, threshold_of
from icewright_spark.executors.sort.literals import as_cut
from icewright_spark.trials.predicates import (
    IN_LITERALS_MAX,
    UNKNOWN_HIGH,
    UNKNOWN_LOW,
    Codes,
    ColumnBounds,
    Flags,
    Path,
    files_that_may_match,
)
from icewright_spark.trials.simulation import Amounts, Simulation
from icewright_spark.trials.table_sample import CodedColumn
from icewright_spark.trials.workload import Unit, Workload

ROWS_MAX: Final = 100_000
"""Of the sample, evenly chosen: more rows move no cut, since cuts are where filters are."""
UNITS_MAX: Final = 500
"""Queries, those that ran most often first, the newest of them first."""
CANDIDATES_MAX: Final = 256
"""Cuts of a column, those of most queries first."""
PARTITIONS_MAX: Final = 64
"""Partitions, the largest first: one tree is for all of them."""
DIVISION_GAIN_MIN: Final = 1.2
"""What the best cuts of two ranges of partitions gain over the best cut of both: less may be chance."""
DIVISION_SHARE_MIN: Final = 0.05
"""Of what the first cut of the tree gains: what a division gains at least beyond the best cut."""

_BELOW: Final = frozenset({Operator.LT, Operator.GT_EQ})
_UP_TO: Final = frozenset({Operator.LT_EQ, Operator.GT})
_ENDS: Final = frozenset({Operator.EQ, Operator.IN})
_SPREAD: Final = 0x9E3779B9
_ENVELOPE: Final = 4_096
"""Of the text: what all but the cuts take."""


def cut_tree(
    queries: Workload, columns: Mapping[Path, CodedColumn], simulation: Simulation, paths: Sequence[Path]
) -> CutTree | None:
    """The tree of these queries, by columns among ``paths``; None where no cut gains anything. The same each time."""
    units = sorted(enumerate(queries.units), key=lambda numbered: (-numbered[1].weight, -numbered[0]))[:UNITS_MAX]
    some = [unit for _, unit in sorted(units)]
    named = [path for path in paths if columns[path].bounded][:COLUMNS_MAX]
    rows, partitions, of_files, files = _rows(simulation)
    axes = [axis for path in named if (axis := _axis(path, columns[path], some, rows)) is not None]
    if not axes or not len(rows):
        return None
    asked = {condition.column for unit in some for condition in unit.conditions or ()}
    bounds = {
        path: _of_partitions(columns[path], rows, partitions, of_files, len(files))
        for path in asked
        if columns[path].bounded
    }
    read = _partitions_read(some, bounds, len(files))
    return _Growth(axes, some, partitions, files, read).tree()


@dataclass(frozen=True, slots=True)
class _Axis:
    """A column with the cuts that it may have, ascending by threshold.

    ``bins`` has, for each row, how many thresholds are not above it. ``left`` and ``right`` are, for each query and
    cut, whether the query may have to read that side; ``several`` the queries that ask for several values.
    """

    path: Path
    cuts: Sequence[tuple[Operator, Literal]]
    thresholds: Codes
    bins: Codes
    left: Flags
    right: Flags
    several: Sequence[int]


@dataclass(slots=True)
class _Leaf:
    """Rows, which queries read them in which partitions, and by axis the range of cuts that it lies between."""

    rows: Codes
    read: Flags
    between: dict[int, tuple[int, int]] = field(default_factory=dict)
    depth: int = 0
    cut: tuple[int, int] | None = None
    sides: tuple[_Leaf, _Leaf] | None = None


@dataclass(slots=True)
class _Growth:
    """Grows one tree.

    ``partitions`` are those of the rows, ``files`` how many each of them has, ``read`` which of them each query reads.
    """

    axes: Sequence[_Axis]
    units: Sequence[Unit]
    partitions: Codes
    files: Codes
    read: Flags
    weights: Amounts = field(init=False)
    floors: Amounts = field(init=False)
    first: float = 0.0
    """What the best cut of all rows gains."""

    def tree(self) -> CutTree | None:
        count = len(self.files)
        sizes = np.bincount(self.partitions, minlength=count)
        self.weights = np.array([unit.weight for unit in self.units], np.float64)
        self.floors = FILE_SHARE_MIN * sizes / self.files
        root = _Leaf(np.arange(len(self.partitions)), self.read)
        heap: list[tuple[float, int, _Leaf]] = []
        self._offer(heap, root, 0)
        made, length = 0, _ENVELOPE
        while heap and made < CUTS_MAX:
            _, number, leaf = heapq.heappop(heap)
            if leaf.cut is None:
                raise AssertionError("a leaf without a cut was offered")
            length += self._length(leaf.cut)
            if length > TEXT_LENGTH_MAX:
                break
            leaf.sides = self._sides(leaf, leaf.cut)
            made += 1
            for place, side in enumerate(leaf.sides):
                self._offer(heap, side, 2 * number + place + 1)
        return self._said(root) if made else None

    def _offer(self, heap: list[tuple[float, int, _Leaf]], leaf: _Leaf, number: int) -> None:
        """Put a leaf among those to be cut, by what its best cut gains; numbers of leaves differ and never tie."""
        if leaf.depth == DEPTH_MAX or not leaf.read.any():
            return
        gains = [self._gains(leaf, axis) for axis in self.axes]
        best = 0.0
        for place, found in enumerate(gains):
            of_all = found.sum(axis=1)
            cut = int(np.argmax(of_all))
            if of_all[cut] > best:
                best, leaf.cut = float(of_all[cut]), (place, cut)
        if best > 0:
            divided = self._division(leaf, np.concatenate(gains))
            self.first = self.first or best
            if divided is not None and divided[0] >= max(
                DIVISION_GAIN_MIN * best, best + DIVISION_SHARE_MIN * self.first
            ):
                best, leaf.cut = divided
            heapq.heappush(heap, (-best, number, leaf))

    def _division(self, leaf: _Leaf, gains: Amounts) -> tuple[float, tuple[int, int]] | None:
        """The cut between partitions after which the best cut of either side gains most, and what both gain.

        ``gains`` are those of all cuts of all axes, by partition. Partitions that a cut goes through count on no side.
        """
        best: tuple[float, tuple[int, int]] | None = None
        there = np.bincount(self.partitions[leaf.rows], minlength=len(self.files)) > 0
        if there.sum() <= 1:
            return None
        for place, axis in enumerate(self.axes):
            low, high = np.full(len(there), len(axis.thresholds) + 1), np.full(len(there), -1)
            np.minimum.at(low, self.partitions[leaf.rows], axis.bins[leaf.rows])
            np.maximum.at(high, self.partitions[leaf.rows], axis.bins[leaf.rows])
            cuts = np.arange(len(axis.thresholds))[:, None]
            below, above = (high <= cuts) & there, (low > cuts) & there
            kinds = np.unique(np.stack([below.sum(axis=1), above.sum(axis=1)]), axis=1, return_index=True)[1]
            kinds = kinds[below[kinds].any(axis=1) & above[kinds].any(axis=1)]
            if len(kinds):
                of_both = (gains @ below[kinds].T).max(axis=0) + (gains @ above[kinds].T).max(axis=0)
                found = int(np.argmax(of_both))
                if best is None or of_both[found] > best[0]:
                    best = float(of_both[found]), (place, int(kinds[found]))
        return best

    def _gains(self, leaf: _Leaf, axis: _Axis) -> Amounts:
        """By cut and partition: the rows that queries need not read because of it, as often as the queries ran."""
        count, cuts = len(self.files), len(axis.thresholds)
        bins = axis.bins[leaf.rows] * count + self.partitions[leaf.rows]
        found = np.bincount(bins, minlength=(cuts + 1) * count).reshape(cuts + 1, count)
        below = np.cumsum(found, axis=0)[:-1].astype(np.float64)
        above = found.sum(axis=0) - below
        follows = (below >= self.floors) & (above >= self.floors) & (below > 0) & (above > 0)
        read = self.weights[:, None] * leaf.read
        spared = ((~axis.left).T @ read) * below + ((~axis.right).T @ read) * above
        return np.asarray(spared * follows, np.float64)

    def _sides(self, leaf: _Leaf, cut: tuple[int, int]) -> tuple[_Leaf, _Leaf]:
        axis, place = self.axes[cut[0]], cut[1]
        is_below = axis.bins[leaf.rows] <= place
        count = len(self.files)
        below, above = (
            np.bincount(self.partitions[leaf.rows[side]], minlength=count) for side in (is_below, ~is_below)
        )
        follows = (below >= self.floors) & (above >= self.floors) & (below > 0) & (above > 0)
        low, high = leaf.between.get(cut[0], (-1, len(axis.thresholds)))
        sides = []
        for rows, ends, may in (
            (leaf.rows[is_below], (low, place), axis.left[:, place]),
            (leaf.rows[~is_below], (place, high), axis.right[:, place]),
        ):
            read = leaf.read & (may[:, None] | ~follows[None, :])
            for number in axis.several:
                if not self._asks_between(axis, self.units[number], ends):
                    read[number] &= ~follows
            sides.append(_Leaf(rows, read, {**leaf.between, cut[0]: ends}, leaf.depth + 1))
        return sides[0], sides[1]

    def _asks_between(self, axis: _Axis, unit: Unit, ends: tuple[int, int]) -> bool:
        lower = axis.thresholds[ends[0]] if ends[0] >= 0 else 0
        upper = axis.thresholds[ends[1]] - 1 if ends[1] < len(axis.thresholds) else 1 << 62
        return bool(_may_match(unit, axis.path, np.array([lower]), np.array([upper]))[0])

    def _length(self, cut: tuple[int, int]) -> int:
        """Of a cut in the text of the tree, with a leaf."""
        operator, literal = self.axes[cut[0]].cuts[cut[1]]
        return len(json.dumps([cut[0], operator.value, literal.kind.value, literal.text], ensure_ascii=False)) + len(
            ",null,"
        )

    def _said(self, root: _Leaf) -> CutTree:
        found: list[tuple[int, int] | None] = []
        pending = [root]
        while pending:
            leaf = pending.pop()
            found.append(leaf.cut if leaf.sides is not None else None)
            pending += reversed(leaf.sides or ())
        used = list(dict.fromkeys(cut[0] for cut in found if cut is not None))
        cuts = tuple(None if cut is None else Cut(used.index(cut[0]), *self.axes[cut[0]].cuts[cut[1]]) for cut in found)
        return CutTree(tuple(self.axes[place].path for place in used), cuts)


def _rows(simulation: Simulation) -> tuple[Codes, Codes, Codes, Codes]:
    """Rows of the sample in the largest partitions that a layout changes, their partitions, and how many files each.

    Before the last of these the partition of each file, -1 for others.
    """
    of_rows, of_files, files, size = simulation.changed_partitions()
    largest = np.sort(np.argsort(-size, kind="stable")[:PARTITIONS_MAX])
    numbers = np.full(len(files) + 1, -1, np.int64)
    numbers[largest] = np.arange(len(largest))
    rows = np.flatnonzero(numbers[of_rows] >= 0)
    rows = rows[np.linspace(0, max(len(rows) - 1, 0), min(len(rows), ROWS_MAX)).astype(np.int64)] if len(rows) else rows
    return rows, numbers[of_rows[rows]], numbers[of_files], files[largest]


def _partitions_read(units: Sequence[Unit], bounds: Mapping[Path, ColumnBounds], count: int) -> Flags:
    """Of each query and partition whether the bounds of the partition leave the query something to read."""
    read = np.ones((len(units), count), np.bool_)
    for number, unit in enumerate(units):
        for condition in unit.conditions or ():
            if condition.column in bounds:
                read[number] &= files_that_may_match(condition, bounds[condition.column])
    return read


def _of_partitions(column: CodedColumn, rows: Codes, partitions: Codes, of_files: Codes, count: int) -> ColumnBounds:
    """Bounds of a column in each partition: of its files, since rare values are in no sample, and of the sample.

    Unknown where neither has a value of it.
    """
    low, high = np.full(count, UNKNOWN_HIGH), np.full(count, UNKNOWN_LOW)
    ranks = column.ranks[rows]
    valid = ranks >= 0
    said, ours = column.bounds, of_files >= 0
    for ends, of_sample, of_file, unknown in (
        (low, column.lower, said.lower, UNKNOWN_LOW),
        (high, column.upper, said.upper, UNKNOWN_HIGH),
    ):
        outermost = np.minimum if ends is low else np.maximum
        known = ours & (of_file != unknown)
        outermost.at(ends, partitions[valid], of_sample[ranks[valid] + 1])
        outermost.at(ends, of_files[known], of_file[known])
    no: npt.NDArray[np.bool_] = np.zeros(count, np.bool_)
    lower, upper = np.where(low == UNKNOWN_HIGH, UNKNOWN_LOW, low), np.where(high == UNKNOWN_LOW, UNKNOWN_HIGH, high)
    return ColumnBounds(lower, upper, no, no, ~no)


def _axis(path: Path, column: CodedColumn, units: Sequence[Unit], rows: Codes) -> _Axis | None:
    asked: dict[tuple[Operator, Literal], int] = {}
    for unit in units:
        for at, item in unit.filters:
            if at == path:
                for end in dict.fromkeys(_ends(item)):
                    cut = as_cut(*end, column.scale.kind)
                    if cut is not None:
                        asked[cut] = asked.get(cut, 0) + unit.weight
    by_threshold: dict[int, tuple[Operator, Literal]] = {}
    weights: dict[int, int] = {}
    for cut, weight in asked.items():
        threshold = threshold_of(Cut(0, *cut), column.scale)
        by_threshold.setdefault(threshold, cut)
        weights[threshold] = weights.get(threshold, 0) + weight
    spread = {threshold: place * _SPREAD & 0xFFFFFFFF for place, threshold in enumerate(sorted(weights))}
    chosen = sorted(weights, key=lambda threshold: (-weights[threshold], spread[threshold]))[:CANDIDATES_MAX]
    if not chosen:
        return None
    thresholds = np.array(sorted(chosen), np.int64)
    codes = column.rows.codes[rows]
    upper, lower = _bounds(column, thresholds)
    return _Axis(
        path,
        [by_threshold[threshold] for threshold in sorted(chosen)],
        thresholds,
        np.searchsorted(thresholds, codes, "right").astype(np.int64),
        np.stack([_may_match(unit, path, np.zeros_like(upper), upper) for unit in units]),
        np.stack([_may_match(unit, path, lower, np.full_like(lower, 1 << 62)) for unit in units]),
        [number for number, unit in enumerate(units) if _asks_for_several(unit, path)],
    )


def _ends(item: Filter) -> Iterator[tuple[Operator, Literal]]:
    """The cuts at which what a filter asks for begins and ends."""
    if len(item.literals) > IN_LITERALS_MAX:
        return
    for literal in item.literals:
        if item.operator in _BELOW or item.operator in _ENDS:
            yield Operator.LT, literal
        if item.operator in _UP_TO or item.operator in _ENDS:
            yield Operator.LT_EQ, literal
        if item.operator is Operator.STARTS_WITH and literal.text:
            yield Operator.LT, literal
            last = ord(literal.text[-1])
            if literal.kind is LiteralKind.STRING and last < sys.maxunicode:
                yield Operator.LT, Literal(literal.kind, literal.text[:-1] + chr(last + 1))


def _bounds(column: CodedColumn, thresholds: Codes) -> tuple[Codes, Codes]:
    """The greatest bound of files below each threshold, and the least of those above: strings are cut short there."""
    valid = column.ranks >= 0
    seen = np.unique(column.rows.codes[valid])
    ranks = np.searchsorted(seen, thresholds, "left")  # so many values are below
    return np.maximum(thresholds - 1, column.upper[ranks]), np.minimum(thresholds, column.lower[ranks + 1])


def _may_match(unit: Unit, path: Path, lower: Codes, upper: Codes) -> Flags:
    no: npt.NDArray[np.bool_] = np.zeros(len(lower), np.bool_)
    bounds = ColumnBounds(lower, upper, no, no, ~no)
    met: Any = ~no
    for condition in unit.conditions or ():
        if condition.column == path:
            met = met & files_that_may_match(condition, bounds)
    return np.asarray(met, np.bool_)


def _asks_for_several(unit: Unit, path: Path) -> bool:
    return any(it.column == path and it.operator is Operator.IN and len(it.lows) > 1 for it in unit.conditions or ())
