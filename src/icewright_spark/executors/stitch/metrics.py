"""Iceberg's metrics of a stitched file, put together from those of its inputs as the manifests have them.

A count is the sum where every file has it; a bound is the least or greatest where every file has one, or nothing but
nulls and NaN. So the new entry says what the old ones said together, NaN counts included, which no footer has. What
one file lacks is left out: metrics are optional, wrong ones lose rows.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from icewright.model.iceberg.tables import Json
from icewright_spark.parquet.metrics import (
    DEFAULT_MODE,
    ColumnMetrics,
    metrics_mode,
    truncated_above,
    truncated_below,
)
from icewright_spark.parquet.schema import leaves

_LAYOUTS: Final[Mapping[str, Mapping[int, str]]] = {
    "boolean": {1: "?"},
    "int": {4: "<i"},
    "date": {4: "<i"},
    "float": {4: "<f"},
    "double": {8: "<d", 4: "<f"},
    "long": {8: "<q", 4: "<i"},
    **{kind: {8: "<q"} for kind in ("time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")},
}
"""``struct`` layouts by length: files from before a promotion have the bounds of the narrower type."""


def together(files: Sequence[ColumnMetrics], schema_fields: Sequence[Json], modes: Mapping[int, str]) -> ColumnMetrics:
    """The metrics of all files in one.

    ``schema_fields`` are those of the table's current schema, whose columns alone are told of; ``modes`` as
    :func:`~icewright_spark.parquet.metrics.metrics_of` has them, and as there: what a column's mode does not want is
    left out, and bounds are cut to its length.
    """
    types = {leaf.field_id: leaf.type for leaf in leaves(schema_fields)}
    kept = {field_id: metrics_mode(modes.get(field_id, DEFAULT_MODE)) for field_id in types}
    counted = [field_id for field_id, mode in kept.items() if mode.counts]
    bounded = [field_id for field_id, mode in kept.items() if mode.bounds]
    lower, upper = {}, {}
    for field_id in bounded:
        kind, length = types[field_id], kept[field_id].length
        least = _extreme(files, field_id, kind, min, [one.lower_bounds for one in files])
        greatest = _extreme(files, field_id, kind, max, [one.upper_bounds for one in files])
        if least is not None:
            lower[field_id] = truncated_below(kind, least, length)
        above = None if greatest is None else truncated_above(kind, greatest, length)
        if above is not None:
            upper[field_id] = above
    return ColumnMetrics(
        column_sizes=_sums([one.column_sizes for one in files], counted),
        value_counts=_sums([one.value_counts for one in files], counted),
        null_counts=_sums([one.null_counts for one in files], counted),
        nan_counts=_sums([one.nan_counts for one in files], counted),
        lower_bounds=lower,
        upper_bounds=upper,
    )


def _sums(counts: Sequence[Mapping[int, int]], field_ids: Iterable[int]) -> dict[int, int]:
    return {
        field_id: sum(one[field_id] for one in counts)
        for field_id in field_ids
        if all(field_id in one for one in counts)
    }


def _extreme(
    files: Sequence[ColumnMetrics],
    field_id: int,
    kind: str,
    choose: Callable[..., bytes],
    bounds: Sequence[Mapping[int, bytes]],
) -> bytes | None:
    """The least or greatest of the bounds; None where a file has none though it has values, or one is no value."""
    found: dict[bytes, Any] = {}
    for one, its in zip(files, bounds, strict=True):
        bound = its.get(field_id)
        if bound is not None:
            key = _comparable(kind, bound)
            if key is None:
                return None
            found[bound] = key
        elif not _has_no_bounds_to_have(one, field_id):
            return None
    return choose(found, key=found.__getitem__) if found else None


def _has_no_bounds_to_have(metrics: ColumnMetrics, field_id: int) -> bool:
    """Whether all values of a column are null or NaN, as far as is said."""
    values, nulls = metrics.value_counts.get(field_id), metrics.null_counts.get(field_id)
    return values is not None and nulls is not None and values == nulls + metrics.nan_counts.get(field_id, 0)


def _comparable(kind: str, bound: bytes) -> Any:
    """What a bound is compared by; None for what is no value of the type, or NaN, which is no bound."""
    if kind.startswith("decimal"):
        return int.from_bytes(bound, "big", signed=True) if bound else None
    if kind == "string":
        return _text(bound)
    if kind in ("binary", "uuid") or kind.startswith("fixed"):
        return bound
    layout = _LAYOUTS.get(kind, {}).get(len(bound))
    if layout is None:
        return None
    (value,) = struct.unpack(layout, bound)
    if isinstance(value, float):
        return None if math.isnan(value) else (value, math.copysign(1, value))
    return value


def _text(bound: bytes) -> str | None:
    """Compared by code points, which is the order of UTF-8 too."""
    try:
        return bound.decode()
    except UnicodeDecodeError:
        return None
