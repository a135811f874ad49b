"""Cells: which of a number of files each row goes to, so that files are about equal and follow the layout's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icewright.core.errors import Unsupported
from icewright.model.iceberg.layouts import KEY_BITS, MAX_COORDINATE_BITS, Curve, Layout
from icewright_spark.executors.sort.curves import HILBERT_COLUMNS, hilbert, zorder
from icewright_spark.executors.sort.cut_cells import CutPlaces
from icewright_spark.executors.sort.cuts import TIES, Cuts, Ties
from icewright_spark.executors.sort.scale import Codes, Column, Scale
from icewright_spark.parquet.rows_hash import SEEDS, hash_of_rows

PLACES: Final = pa.schema([pa.field("cell", pa.int32(), nullable=False), pa.field("key", pa.int64(), nullable=False)])
"""Of what :meth:`Cells.place` gives."""

_ROWS_PER_FILE: Final = 400
"""Of a sample: the rows between two of its cuts then scatter by a twentieth (a standard deviation)."""
_FEWEST_ROWS: Final = 20_000
_MOST_ROWS: Final = 400_000

_MARKS_PER_FILE: Final = 16
"""Of each column of a curve, since all rows may lie on the diagonal."""
_FEWEST_MARKS: Final = 1_024
_MOST_MARKS: Final = 16_383
"""Twice as many, and one more, are told apart by 15 bits."""
_MOST_MARK_BYTES: Final = 1 << 20

_GOLDEN: Final = np.uint64(0x9E3779B9)
"""2**32 over the golden ratio: multiples of it, modulo 2**32, lie evenly, however many there are (Weyl 1916)."""


class Cells(Protocol):
    """Places rows. Small, and can be pickled. Any function from rows to a cell and an order in it will do."""

    @property
    def files(self) -> int:
        """How many cells there are. Some may stay empty."""

    def place(self, columns: Any) -> Any:
        """A record batch of :data:`PLACES`, row by row: the cell, from 0, and the key that orders the cell's rows.

        ``columns`` is a record batch whose first columns are the layout's fields in their order, after their
        transforms, whatever they are called. Columns behind them, if any, tell equal rows apart where one value fills
        several files; without such columns the row's position in the batch does. So what is said of a row depends on
        the row alone with them, and on the batches without: then batches must be the same when a task is run again.
        """


def sample_rows(files: int) -> int:
    """How many rows a sample should have for so many files."""
    return min(max(_ROWS_PER_FILE * files, _FEWEST_ROWS), _MOST_ROWS)


def cells_of(sample: Any, layout: Layout, files: int) -> Cells:
    """The cells of a layout, from a sample of the rows: a table with columns as :meth:`Cells.place` takes them.

    The sample may be of any size; an empty one puts everything into cell 0, but under cuts into any of the cells.

    Raises :class:`Unsupported` for a column that has no order, for a Hilbert curve through one column or more than
    four, and for cuts that are not of these columns; ``ValueError`` for fewer columns than fields or no file.
    """
    if files < 1 or not layout.fields or sample.num_columns < len(layout.fields):
        raise ValueError(f"{files} files by {len(layout.fields)} fields from {sample.num_columns} columns")
    columns = [Column.of(sample.column(place), field) for place, field in enumerate(layout.fields)]
    if layout.curve is Curve.SORT:
        return _sort(columns, files)
    if layout.curve is Curve.CUTS:
        if layout.cuts is None or len(layout.cuts.columns) != len(columns):
            raise Unsupported("a layout by cuts is planned, and no tree of its columns")
        return CutCells(files, CutPlaces.of(layout.cuts, columns, files))
    if layout.curve is Curve.HILBERT and not HILBERT_COLUMNS[0] <= len(columns) <= HILBERT_COLUMNS[1]:
        raise Unsupported(
            f"a Hilbert curve takes 2 to 4 columns, not {len(columns)}",
            hint="take zorder or sort, or columns away",
        )
    return _curve(layout.curve, columns, files)


@dataclass(frozen=True, slots=True)
class SortCells:
    """The first column leads, the next one decides among equals. Rows are compared with the cuts in full.

    ``cuts_of`` has, for each column, the distinct cuts down to it: the number of the cut down to the column before,
    times the size of the column's scale, plus the column's code; and then for each of these the first whole cut.
    The key is 0: Spark sorts each file by the columns themselves.
    """

    files: int
    scales: tuple[Scale, ...]
    cuts_of: tuple[tuple[Codes, Codes], ...]
    cuts: Cuts

    def place(self, columns: Any) -> Any:
        """See :class:`Cells`."""
        cells = self.cuts.cells(self._codes(columns), _ties(columns, len(self.scales)))
        return _places(cells, np.zeros(len(cells), np.int64))

    def _codes(self, columns: Any) -> Codes:
        """Against the whole cuts: twice the number of the next one, and one more for rows that equal it."""
        codes = np.zeros(columns.num_rows, np.int64)
        if not len(self.cuts.thresholds):
            return codes
        equal, cut = np.arange(len(codes)), np.zeros(len(codes), np.int64)
        for place, (scale, (cuts, firsts)) in enumerate(zip(self.scales, self.cuts_of, strict=True)):
            column = columns.column(place)
            if place:
                column = column.take(pa.array(equal))
            sought = cut * scale.size + scale.read(column)
            cut = np.searchsorted(cuts, sought)
            found = cuts[np.minimum(cut, len(cuts) - 1)] == sought
            codes[equal] = 2 * firsts[cut]
            equal, cut = equal[found], cut[found]
        codes[equal] += 1
        return codes


@dataclass(frozen=True, slots=True)
class Axis:
    """A column of a curve, spread evenly over its side of the grid, however skewed it is.

    ``coordinates``: for each code of the scale, the share of the rows that lie below, times the side of the grid.
    """

    scale: Scale
    coordinates: npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class CurveCells:
    """The place on a curve through the grid of all columns' quantiles; it is the key, too."""

    files: int
    curve: Curve
    bits: int
    axes: tuple[Axis, ...]
    keys: Codes
    cuts: Cuts

    def place(self, columns: Any) -> Any:
        """See :class:`Cells`."""
        keys = _keys(
            self.curve,
            self.bits,
            [axis.coordinates[axis.scale.read(columns.column(place))] for place, axis in enumerate(self.axes)],
        )
        codes = np.searchsorted(self.keys, keys, "left") + np.searchsorted(self.keys, keys, "right")
        return _places(self.cuts.cells(codes.astype(np.int64), _ties(columns, len(self.axes))), keys)


@dataclass(frozen=True, slots=True)
class CutCells:
    """The leaf of a tree of cuts; it is the key, too."""

    files: int
    places: CutPlaces

    def place(self, columns: Any) -> Any:
        """See :class:`Cells`."""
        fields = len(self.places.tree.scales)
        leaves = self.places.leaves([columns.column(place) for place in range(fields)])
        return _places(self.places.cells(leaves, _ties(columns, fields)), leaves)


def _sort(columns: Sequence[Column], files: int) -> SortCells:
    ranks = [column.ranks() for column in columns]
    order = np.lexsort(ranks[::-1])
    changes = np.zeros(len(order), bool)
    for rank in ranks:
        changes[1:] |= np.diff(rank[order]) != 0
    cuts, first = Cuts.of(np.cumsum(changes), files)
    rows = order[first]
    scales = tuple(column.scale(rows) for column in columns)
    numbers, cuts_of = np.zeros(len(rows), np.int64), []
    for column, scale in zip(columns, scales, strict=True):
        down_to = numbers * scale.size + scale.codes(column.values.take(pa.array(rows, pa.int64())))
        distinct, firsts, numbers = np.unique(down_to, return_index=True, return_inverse=True)
        cuts_of.append((distinct, np.append(firsts, len(rows)).astype(np.int64)))
    return SortCells(files, scales, tuple(cuts_of), cuts)


def _curve(curve: Curve, columns: Sequence[Column], files: int) -> CurveCells:
    marks = min(max(_MARKS_PER_FILE * files, _FEWEST_MARKS), _MOST_MARKS)
    bits = min(MAX_COORDINATE_BITS, KEY_BITS // len(columns), (2 * marks).bit_length())
    axes, grid = [], []
    for column in columns:
        scale = _quantiles(column, marks)
        codes = scale.codes(column.values)
        rows = np.bincount(codes, minlength=scale.size)
        middles = (np.cumsum(rows) - rows / 2) / max(len(codes), 1)
        axes.append(Axis(scale, np.minimum(middles * (1 << bits), (1 << bits) - 1).astype(np.uint16)))
        grid.append(axes[-1].coordinates[codes])
    keys = np.sort(_keys(curve, bits, grid))
    cuts, first = Cuts.of(keys, files)
    return CurveCells(files, curve, bits, tuple(axes), keys[first], cuts)


def _quantiles(column: Column, marks: int) -> Scale:
    """The scale of a column's quantiles, fewer of them if they are long strings."""
    order = np.argsort(column.ranks(), kind="stable")
    aims = np.linspace(0, max(len(order) - 1, 0), min(marks, len(order))).astype(np.int64)
    scale = column.scale(order[aims])
    thinned = -(-scale.marks.nbytes // _MOST_MARK_BYTES)
    return scale if thinned <= 1 else column.scale(order[aims[::thinned]])


def _keys(curve: Curve, bits: int, grid: Sequence[npt.NDArray[np.uint16]]) -> Codes:
    coordinates = [side.astype(np.int64) for side in grid]
    return hilbert(coordinates, bits) if curve is Curve.HILBERT else zorder(coordinates)


def _ties(columns: Any, fields: int) -> Ties:
    """By the columns behind the layout's, or else by the position in the batch."""
    if columns.num_columns == fields:
        return lambda rows: ((rows.astype(np.uint64) * _GOLDEN) % np.uint64(TIES)).astype(np.int64)
    others = columns.select(list(range(fields, columns.num_columns)))
    return lambda rows: (hash_of_rows(others.take(pa.array(rows)), SEEDS[0]) >> np.uint64(32)).astype(np.int64)


def _places(cells: npt.NDArray[np.int32], keys: Codes) -> Any:
    return pa.RecordBatch.from_arrays([pa.array(cells), pa.array(keys)], schema=PLACES)
