"""How much room the rows of a table take under a layout: what lies beside its like compresses better.

What is predicted is a ratio: the bytes of each column in the order of the layout over those in the present order, both
by one model of Parquet's two encodings and of the codec behind them; columns count by the bytes that they have now.
Columns that no query asks for count as well: a layout that gains by one column takes the order of arrival from others.

- A value is *new* where it differs from the one before it. How many are new, and by how many bits, depends on how far
  apart two rows lie, and neighbours in a sample are further apart than neighbours in a file. Both are measured at
  distances of one and of :data:`FAR` sampled rows and continued to that of one row by the power law through both, where
  they differ by more than chance. Values without an order are alike at all distances.
- *Plain*, a new value costs its bytes by their entropy; or, where its high bytes repeat those of the value before it,
  the others and one more: Zstandard, Iceberg's default, takes repetitions at the same distance from four bytes on.
- In a *dictionary*, each row has an index, packed into bits, or in runs where values repeat; and each value costs once.
  How many a file has is extrapolated from those that came once and twice in the sample (Chao et al. 2014). As writers
  do it, a dictionary is taken where it is smaller before the codec.

Nothing in it was fitted but :data:`MISSED`. On tables by which nothing else was judged (15 of B3 of even number,
another seed, 80 rows a file, up to four layouts each, written by Arrow with Zstandard) sizes were off by 2.2 % on the
mean and 6.1 % at most; without this model, by 3.9 % and 11.5 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icewright.model.iceberg.layouts import Curve, Layout, LayoutExpression
from icewright.model.iceberg.tables import SortField
from icewright_spark.executors.sort.cells import cells_of
from icewright_spark.executors.sort.sample import ROWS_PER_FILE_MIN
from icewright_spark.executors.sort.scale import Column
from icewright_spark.trials.distinct import combined, distinct_among
from icewright_spark.trials.predicates import Codes, Flags, Path, flat_columns
from icewright_spark.trials.table_sample import METRICS, CodedColumn, TableSample, has_order, table_sample

FAR: Final = 4
"""Sampled rows between the pairs that are compared with neighbours."""
MISSED: Final = 0.06
"""By how much of the size a prediction may be off: twice the standard deviation on the tables named above."""

_STANDARD_ERRORS: Final = 2.0
_REPEATED_BYTES: Final = 4
_WINDOW_ROWS: Final = 32
"""Of the sample, that count as a file where a file has fewer of its own."""
_SMALL: Final = 0.01
"""Of the bytes: columns below count as unchanged."""
_SHORT_DECIMAL, _LONG_DECIMAL = 9, 18
"""Digits of a decimal that Parquet holds in 4 and in 8 bytes."""


def layout_by_place(layout: LayoutExpression) -> Layout:
    """The layout of rows that have its columns alone, in its order: the place of each is its field's id."""
    fields = tuple(
        SortField(place, "identity", column.direction, column.null_order) for place, column in enumerate(layout.columns)
    )
    return Layout(layout.curve, fields, cuts=layout.cuts)


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Rows of a sample in an order, and the file of each, ascending.

    A file has ``records`` rows on the mean, and there are ``stretch`` rows in files for each one of the sample.
    """

    rows: Codes
    files: Codes
    records: float
    stretch: float


class Sizes:
    """What predicts sizes: rows with all columns of some files, and what share of the bytes each column has."""

    def __init__(self, rows: TableSample, shares: Mapping[Path, float]) -> None:
        self._rows, self._shares = rows, shares
        self._now: dict[Path, float] = {}

    @classmethod
    def of(cls, whole: Any, files: Any) -> Sizes | None:
        """From rows with all columns and :data:`FILE`, and the list of files; None where it says no column's size."""
        flat, shares = flat_columns(whole), shares_of_columns(files)
        known = {path: share for path, share in shares.items() if path in flat and has_order(flat[path].type)}
        return cls(table_sample(flat, files.drop_columns([METRICS]), known, {}), known) if known else None

    def ratio(self, layout: LayoutExpression, counts: Codes, changed: Flags) -> float:
        """The bytes of the partitions that are ``changed`` under a layout, over those that they have now.

        ``counts`` are the files of each partition. 1 where the sample does not tell.
        """
        columns = self._rows.columns
        partitions = self._rows.files.partitions[self._rows.files_of_rows]
        chosen = np.argsort(self._rows.files_of_rows, kind="stable")
        chosen = chosen[changed[partitions[chosen]]]
        paths = [column.path for column in layout.columns]
        if len(chosen) < ROWS_PER_FILE_MIN or not all(path in columns for path in paths):
            return 1.0
        now, then = self._present(chosen), self._under(layout, chosen, counts, changed)
        ratio = 1.0
        for path, share in self._shares.items():
            if path not in self._now:
                self._now[path] = bytes_per_row(columns[path], now)
            leads = paths[: paths.index(path) + 1] if layout.curve is Curve.SORT and path in paths else []
            after = bytes_per_row(columns[path], then, [columns[lead] for lead in leads])
            ratio += share * (after / self._now[path] - 1)
        return ratio

    def _present(self, chosen: Codes) -> RowOrder:
        own = self._rows.files_of_rows[chosen]
        seen = np.unique(own)
        records = float(self._rows.files.rows[seen].sum())
        return RowOrder(chosen, own, records / len(seen), max(1.0, records / len(chosen)))

    def _under(self, layout: LayoutExpression, chosen: Codes, counts: Codes, changed: Flags) -> RowOrder:
        files = self._rows.files
        records = float(files.rows[changed[files.partitions]].sum())
        per_file, stretch = records / float(counts[changed].sum()), max(1.0, records / len(chosen))
        window = max(_WINDOW_ROWS, round(per_file / stretch))
        rows, windows, first = [], [], 0
        partitions = files.partitions[self._rows.files_of_rows[chosen]]
        for partition in np.unique(partitions):
            ordered = self._ordered(layout, chosen[partitions == partition], int(counts[partition]))
            rows.append(ordered)
            windows.append(first + np.arange(len(ordered)) // window)
            first += 1 + len(ordered) // window
        return RowOrder(np.concatenate(rows), np.concatenate(windows), per_file, stretch)

    def _ordered(self, layout: LayoutExpression, rows: Codes, files: int) -> Codes:
        """Rows in their present order as they lie under the layout; equal ones stay as they came, since sorts do so."""
        by_place = layout_by_place(layout)
        columns = [self._rows.columns[column.path].values.take(pa.array(rows)) for column in layout.columns]
        if layout.curve is Curve.SORT:
            ranks = [Column.of(values, field).ranks() for values, field in zip(columns, by_place.fields, strict=True)]
            return rows[np.lexsort(ranks[::-1])]
        batch = pa.RecordBatch.from_arrays(columns, [f"f{place}" for place in range(len(columns))])
        found = cells_of(pa.Table.from_batches([batch]), by_place, files).place(batch)
        return rows[np.lexsort([np.asarray(found["key"]), np.asarray(found["cell"])])]


def bytes_per_row(column: CodedColumn, order: RowOrder, leads: Sequence[CodedColumn] = ()) -> float:
    """Of a column in an order. ``leads`` are the columns that rows are sorted by down to this one, itself included."""
    codes = np.asarray(column.rows.codes[order.rows], np.int64)
    distinct = _distinct(codes, order)
    near, far = (_changed(codes, order, gap) for gap in (1, FAR))
    rise = math.log2(max(far[0], near[0]) / near[0]) if near[0] else 0.0
    new: float = near[0] * order.stretch ** -_slope(rise, near, far)
    if leads:
        together = combined([lead.rows.codes[order.rows] for lead in leads])
        new = min(new, _distinct(together, order) / order.records)
    new = max(new, 1 / order.records)
    width, literal, numbers = _plain(column.values)
    value = literal if numbers is None else _value(numbers[order.rows], codes, order, (width, literal))
    index = math.ceil(math.log2(max(2.0, distinct))) / 8
    share = distinct / order.records
    if share * width + index < width:
        return min(index, new * (index + 1)) + share * value
    return new * value


def _slope(rise: float, near: tuple[float, float], far: tuple[float, float]) -> float:
    """The exponent of the power law from a rise in powers of two; 0 where both ends differ by no more than chance."""
    (one, error), (other, other_error) = near, far
    if other - one <= _STANDARD_ERRORS * math.hypot(error, other_error):
        return 0.0
    return min(1.0, rise / math.log2(FAR))


def _pairs(order: RowOrder, gap: int) -> Flags:
    return np.asarray(order.files[gap:] == order.files[:-gap], np.bool_)


def _changed(codes: Codes, order: RowOrder, gap: int) -> tuple[float, float]:
    """The share of pairs at this distance that differ, with its standard error."""
    changed = (codes[gap:] != codes[:-gap])[_pairs(order, gap)]
    share = float(changed.mean()) if len(changed) else 1.0
    return share, math.sqrt(share * (1 - share) / max(len(changed), 1))


def _value(numbers: Codes, codes: Codes, order: RowOrder, alone: tuple[float, float]) -> float:
    """The bytes of a new value. ``alone`` is what it has plain, and by its entropy, whatever was before it."""
    width, literal = alone
    near, far = (_bits(numbers, codes, order, gap) for gap in (1, FAR))
    if not len(near) or not len(far):
        return literal
    mean, further = ((float(bits.mean()), float(bits.std()) / math.sqrt(len(bits))) for bits in (near, far))
    slope = _slope(further[0] - mean[0], mean, further)
    repeated = np.floor(width - np.maximum(near - slope * math.log2(order.stretch), 0) / 8)
    cost = np.where(repeated >= _REPEATED_BYTES, np.minimum(width - repeated + 1, literal), literal)
    return float(cost.mean())


def _bits(numbers: Codes, codes: Codes, order: RowOrder, gap: int) -> npt.NDArray[np.float64]:
    """By how many bits the pairs at this distance that differ do."""
    pairs = _pairs(order, gap) & (codes[gap:] != codes[:-gap])
    apart = numbers[gap:][pairs].astype(np.float64) - numbers[:-gap][pairs].astype(np.float64)
    return np.asarray(np.log2(1 + np.abs(apart)), np.float64)


def _distinct(codes: Codes, order: RowOrder) -> float:
    """The distinct values of a file: those among as many rows of the whole, times how much fewer a file has of them."""
    counts = np.unique(codes, return_counts=True)[1].astype(np.float64)
    seen = len(np.unique(combined([order.files, codes])))
    _, sampled = np.unique(order.files, return_counts=True)
    alike = sum(distinct_among(counts, len(codes), float(rows)) for rows in sampled)
    whole = distinct_among(counts, len(codes), order.records)
    return float(min(order.records, max(1.0, min(1.0, seen / alike) * whole)))


def _plain(values: Any) -> tuple[float, float, Any]:
    """The bytes of a value, the same by their entropy, and whole numbers whose differences tell how many bits differ.

    There are no such numbers for text and decimals.
    """
    kind = values.type
    if pa.types.is_boolean(kind):
        return 1 / 8, 1 / 8, None
    if pa.types.is_decimal(kind):
        width = float(4 if kind.precision <= _SHORT_DECIMAL else 8 if kind.precision <= _LONG_DECIMAL else 16)
        return width, width, None
    if not pa.types.is_primitive(kind):
        width = float(pc.mean(pc.binary_length(values)).as_py() or 0)
        return width + 4, width * _entropy(b"".join(filter(None, values.cast(pa.binary()).to_pylist()))) / 8, None
    wide = kind.bit_width == 64  # noqa: PLR2004 - Parquet has integers and floats of 32 and of 64 bits
    whole = values if kind.bit_width >= 32 else values.cast(pa.int32())  # noqa: PLR2004 - see above
    numbers = np.asarray(whole.view(pa.int64() if wide else pa.int32()).fill_null(0))
    width = float(numbers.itemsize)
    return width, width * _entropy(numbers.tobytes()) / 8, numbers


def _entropy(text: bytes) -> float:
    """Bits of a byte that comes from nowhere; corrected for what was not seen (Miller 1955)."""
    counts = np.bincount(np.frombuffer(text, np.uint8), minlength=256)
    shares = counts[counts > 0] / max(len(text), 1)
    found = -(shares * np.log2(shares)).sum() + (len(shares) - 1) / (2 * max(len(text), 1) * math.log(2))
    return float(min(8.0, found))


def shares_of_columns(files: Any) -> dict[Path, float]:
    """What share of the bytes each column has, without those of a hundredth or less; none where files do not say."""
    if METRICS not in files.column_names:
        return {}
    said = _column_bytes(files[METRICS].combine_chunks())
    total = sum(said.values())
    return {path: size / total for path, size in said.items() if size > _SMALL * total}


def _column_bytes(metrics: Any) -> dict[Path, float]:
    """The bytes of each column in all files, as ``readable_metrics`` has them."""
    found = {}
    for place in range(metrics.type.num_fields):
        field = metrics.type.field(place)
        if field.type.get_field_index("column_size") >= 0:
            size = pc.sum(pc.struct_field(metrics, [place, field.type.get_field_index("column_size")])).as_py()
            found[tuple(field.name.split("."))] = float(size or 0)
    return found
