"""A table as trials see it: a sample of its rows, the files that it has, and what these say of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icewright.core.errors import Rejected
from icewright.model.iceberg.tables import SortField
from icewright.model.queries.queries import Filter, Literal, LiteralKind
from icewright_spark.executors.merge.values import comparable
from icewright_spark.executors.sort.scale import Column, Scale
from icewright_spark.parquet.metrics import DEFAULT_MODE, MetricsMode, metrics_mode, truncated_above
from icewright_spark.trials.predicates import (
    NULL_CODE,
    UNKNOWN_HIGH,
    UNKNOWN_LOW,
    Codes,
    ColumnBounds,
    Path,
    RowCodes,
    rows_of,
)

FILE: Final = "_file"
"""The column of a sample that says which file each row is of: Spark's metadata column."""
PATH, ROWS, BYTES, PARTITION, SPEC, METRICS = (
    "file_path",
    "record_count",
    "file_size_in_bytes",
    "partition",
    "spec_id",
    "readable_metrics",
)
"""Columns of Iceberg's metadata table ``files``; the last three may be missing."""

_ASCENDING: Final = SortField(0, "identity", "asc", "nulls-first")


@dataclass(frozen=True, slots=True)
class FileList:
    """The data files that have rows, and the number of each one's partition."""

    paths: Any
    rows: Codes
    bytes: Codes
    partitions: Codes

    @classmethod
    def of(cls, files: Any) -> tuple[FileList, Any]:
        """From rows of the metadata table ``files``; also these rows without files that have no rows."""
        missing = {PATH, ROWS, BYTES} - set(files.column_names)
        if missing:
            raise Rejected(f"the list of files has no column {min(missing)}", hint="select it from the table's files")
        live = files.filter(pc.greater(files[ROWS], 0))
        keys = [name for name in (SPEC, PARTITION) if name in live.column_names]
        texts = [repr(row) for row in live.select(keys).to_pylist()] if keys else [""] * live.num_rows
        numbers = np.unique(np.array(texts, dtype=object).astype(str), return_inverse=True)[1]
        rows, size = (np.asarray(live[name]).astype(np.int64) for name in (ROWS, BYTES))
        return cls(live[PATH].combine_chunks().cast(pa.string()), rows, size, numbers.astype(np.int64)), live


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """A column of the sample in codes of a scale, whose marks are all its values and all bounds.

    ``ranks`` are dense, from 0, and -1 for NULL and NaN. ``lower`` and ``upper`` have, for each rank, the codes of the
    bounds of a file that has this as its least or greatest value: strings are truncated there. One more at each end is
    the least and the greatest that any file has. ``bounds`` are those of the files that are there. ``bounded`` is False
    if no file says anything of it, though of other columns, or if the table's metrics mode has no bounds: new files
    have none either then. ``hashed`` are values by the digests that queries have of them, where these are known.
    """

    path: Path
    values: Any
    scale: Scale
    rows: RowCodes
    ranks: Codes
    lower: Codes
    upper: Codes
    bounds: ColumnBounds
    bounded: bool
    hashed: Mapping[str, Literal] = field(default_factory=dict, repr=False)

    @property
    def distinct(self) -> int:
        """How many values the sample has, NULL and NaN apart."""
        return len(self.lower) - 2

    def with_values(self, item: Filter) -> Filter:
        """A filter with the values of its digests, as far as these are known."""
        literals = (self.hashed.get(it.text, it) if it.kind is LiteralKind.HASHED else it for it in item.literals)
        return replace(item, literals=tuple(literals))


@dataclass(frozen=True, slots=True)
class TableSample:
    """``files_of_rows`` are numbers of files. ``lost_rows`` of the sample are of files that the list does not have."""

    files: FileList
    columns: Mapping[Path, CodedColumn]
    files_of_rows: Codes
    lost_rows: int
    has_bounds: bool

    @property
    def rows(self) -> int:
        """Rows of the sample."""
        return len(self.files_of_rows)


def table_sample(
    columns: Mapping[Path, Any], files: Any, wanted: Iterable[Path], modes: Mapping[Path, str]
) -> TableSample:
    """From the flat columns of a sample, with :data:`FILE`, and rows of the metadata table ``files``.

    ``wanted`` are the columns to code; those without an order are left out. ``modes`` are the table's metrics modes,
    Iceberg's default where none is given. Raises :class:`~icewright.core.errors.Rejected` if a column is missing.
    """
    listed, live = FileList.of(files)
    if (FILE,) not in columns:
        raise Rejected(f"the sample has no column {FILE}", hint="select Iceberg's metadata column with the rows")
    places = pc.index_in(columns[FILE,].cast(pa.string()), listed.paths)
    known = np.asarray(places.is_valid())
    has_bounds = METRICS in live.column_names
    coded = {}
    for path in dict.fromkeys(wanted):
        values = columns[path].filter(pa.array(known))
        if has_order(values.type):
            said = _said_of(live, path, values.type) if has_bounds else None
            mode = metrics_mode(modes.get(path, DEFAULT_MODE))
            bounded = mode.bounds and (not has_bounds or (said is not None and said.says_something))
            coded[path] = _coded(path, values, said, mode, bounded=bounded, files=len(live))
    numbers = np.asarray(places.drop_null()).astype(np.int64)
    return TableSample(listed, coded, numbers, int((~known).sum()), has_bounds)


def has_order(kind: Any) -> bool:
    """Whether rows can be ordered by values of this Arrow type, and files have bounds of them."""
    nested = pa.types.is_nested(kind) or pa.types.is_dictionary(kind)
    return not nested and not pa.types.is_unsigned_integer(kind) and not pa.types.is_decimal256(kind)


@dataclass(frozen=True, slots=True)
class _Said:
    """What ``readable_metrics`` has of a column, with an entry for each file; NULL where a file does not say."""

    lower: Any
    upper: Any
    values: Any
    nulls: Any
    nans: Any

    @property
    def says_something(self) -> bool:
        """Whether any file has a bound, or says that it has nothing but NULL."""
        return bool(self.lower.null_count < len(self.lower) or pc.any(pc.equal(self.values, self.nulls)).as_py())


def _said_of(live: Any, path: Path, kind: Any) -> _Said | None:
    metrics = live[METRICS].combine_chunks()
    place = metrics.type.get_field_index(".".join(path))
    if place < 0:
        return None
    said = metrics.flatten()[place]
    parts = dict(zip((said.type.field(i).name for i in range(said.type.num_fields)), said.flatten(), strict=True))
    counts = (parts[name].cast(pa.int64()) for name in ("value_count", "null_value_count", "nan_value_count"))
    return _Said(parts["lower_bound"].cast(kind), parts["upper_bound"].cast(kind), *counts)


def scale_of(values: Any, marks: Any) -> Scale:
    """The ascending scale of a column of the type of ``values``, with marks that are comparable already."""
    kind, unique = Column.of(values, _ASCENDING).kind, pc.unique(marks)
    return Scale(kind, unique.take(pc.sort_indices(unique)), descending=False, nulls_last=False)


def _coded(path: Path, values: Any, said: _Said | None, mode: MetricsMode, *, bounded: bool, files: int) -> CodedColumn:
    plain = comparable(values)
    distinct = pc.unique(plain.drop_null())
    least, greatest = _ends(distinct, values.type, mode)
    parts = [distinct, least, greatest.drop_null()]
    if said is not None:
        parts += [comparable(said.lower).drop_null(), comparable(said.upper).drop_null()]
    scale = scale_of(values.slice(0, 0), pa.concat_arrays(parts))
    rows = rows_of(values, scale)
    valid = (rows.codes != NULL_CODE) & ~rows.nan
    seen = np.unique(rows.codes[valid])
    ranks = np.where(valid, np.searchsorted(seen, rows.codes), -1)
    own = scale.codes(distinct)
    order = np.argsort(own)
    order = order[np.isin(own[order], seen)]  # without NaN
    bounds = unknown_bounds(files) if said is None else _bounds(said, scale)
    lows = np.where(bounds.lower == UNKNOWN_LOW, scale.size, bounds.lower)
    highs = np.where(bounds.upper == UNKNOWN_HIGH, NULL_CODE + 1, bounds.upper)
    upper = np.where(np.asarray(greatest.is_valid()), scale.codes(greatest), UNKNOWN_HIGH)[order]
    lower = scale.codes(least)[order]
    lowest = min(lows.min(initial=scale.size), lower.min(initial=scale.size))
    highest = max(highs.max(initial=NULL_CODE + 1), upper.max(initial=NULL_CODE + 1))
    return CodedColumn(
        path=path,
        values=values,
        scale=scale,
        rows=rows,
        ranks=ranks.astype(np.int64),
        lower=np.concatenate([[lowest], lower, lower[-1:] if len(lower) else [lowest]]),
        upper=np.concatenate([upper[:1] if len(upper) else [highest], upper, [highest]]),
        bounds=bounds,
        bounded=bounded,
    )


def _ends(distinct: Any, kind: Any, mode: MetricsMode) -> tuple[Any, Any]:
    """For each value the bounds of a file that ends with it; an upper one is NULL where there is none so short."""
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if mode.length is None or not (text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        return distinct, distinct
    if text:
        short = pc.utf8_slice_codeunits(distinct.cast(pa.string()), 0, mode.length).cast(pa.binary())
    else:
        short = pc.binary_slice(distinct, 0, mode.length)
    encoded = short.dictionary_encode()
    iceberg_type = "string" if text else "binary"
    raised = [truncated_above(iceberg_type, prefix + b"_", mode.length) for prefix in encoded.dictionary.to_pylist()]
    above = pa.array(raised, pa.binary()).take(encoded.indices)
    return short, pc.if_else(pc.equal(short, distinct), distinct, above)


def unknown_bounds(files: int) -> ColumnBounds:
    """Those of files that say nothing of a column."""
    no = np.zeros(files, np.bool_)
    return ColumnBounds(
        np.full(files, UNKNOWN_LOW, np.int64), np.full(files, UNKNOWN_HIGH, np.int64), no, no, np.ones(files, np.bool_)
    )


def _bounds(said: _Said, scale: Scale) -> ColumnBounds:
    lower, upper = rows_of(said.lower, scale), rows_of(said.upper, scale)
    values, nulls, nans = (np.asarray(count.fill_null(-1)) for count in (said.values, said.nulls, said.nans))
    all_null = (values >= 0) & (nulls == values)
    # NaN as a bound says that it cannot be relied upon: Iceberg's evaluator takes the file then.
    no_lower, no_upper = (lower.codes == NULL_CODE) | lower.nan, (upper.codes == NULL_CODE) | upper.nan | lower.nan
    return ColumnBounds(
        lower=np.where(no_lower, UNKNOWN_LOW, lower.codes),
        upper=np.where(no_upper, UNKNOWN_HIGH, upper.codes),
        empty=all_null | ((values > 0) & (nans == values)),
        all_null=all_null,
        may_have_null=nulls != 0,
    )
