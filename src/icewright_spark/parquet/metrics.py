"""Column metrics of the output as Iceberg's Java writer reports them (``ParquetMetrics``, ``MetricsModes``).

Counts and bounds come from the rows as they are read back, which are proved to be those that were read, and not from
the footer, whose minima and maxima arrow-rs cuts to 64 bytes; column sizes come from the footer. As in Java: nothing
but sizes inside lists and maps, nothing at all in mode ``none``, bounds of string and binary truncated by the mode
(uuid, fixed and numbers never), no NaN in bounds. A bound of zero is -0.0 below and 0.0 above, which covers both zeros
however a reader compares them. Unlike Java's, there is no upper bound where there is NaN, and no count of NaN where
there is nothing else: Spark holds NaN to be greater than all numbers, and Iceberg would skip it by either.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.tables import Json
from icewright_spark.parquet.errors import UnsupportedColumn
from icewright_spark.parquet.places import Seen
from icewright_spark.parquet.schema import Leaf, leaves

DEFAULT_MODE = "truncate(16)"
"""Iceberg's ``write.metadata.metrics.default``."""

_MODE = re.compile(r"(none|counts|full)\Z|truncate\((\d+)\)\Z")
_CODE_POINT_MAX = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_BYTE_MAX = 0xFF

_LAYOUTS: Mapping[str, str] = {
    "boolean": "?",
    "int": "<i",
    "date": "<i",
    "float": "<f",
    "double": "<d",
    **dict.fromkeys(("long", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), "<q"),
}
"""``struct`` layouts of the types with one; string, binary, fixed and uuid are their bytes."""


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """What is kept of a column. ``length`` is in code points (string) or bytes (binary); None is unlimited."""

    counts: bool
    bounds: bool
    length: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnMetrics:
    """Metrics by field id; bounds in Iceberg's single-value binary serialization (spec, Appendix D)."""

    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_counts: Mapping[int, int] = field(default_factory=dict)
    nan_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)


def metrics_from_json(described: Json) -> ColumnMetrics:
    """The metrics in Iceberg's JSON of a content file."""
    return ColumnMetrics(
        column_sizes=_by_id(described, "column-sizes"),
        value_counts=_by_id(described, "value-counts"),
        null_counts=_by_id(described, "null-value-counts"),
        nan_counts=_by_id(described, "nan-value-counts"),
        lower_bounds={key: bytes.fromhex(value) for key, value in _by_id(described, "lower-bounds").items()},
        upper_bounds={key: bytes.fromhex(value) for key, value in _by_id(described, "upper-bounds").items()},
    )


def metrics_in_json(metrics: ColumnMetrics) -> dict[str, dict[str, list[Any]]]:
    """The metrics as Iceberg's JSON of a content file has them."""
    return {
        "column-sizes": _listed(metrics.column_sizes),
        "value-counts": _listed(metrics.value_counts),
        "null-value-counts": _listed(metrics.null_counts),
        "nan-value-counts": _listed(metrics.nan_counts),
        "lower-bounds": _listed({key: bound.hex().upper() for key, bound in metrics.lower_bounds.items()}),
        "upper-bounds": _listed({key: bound.hex().upper() for key, bound in metrics.upper_bounds.items()}),
    }


def metrics_mode(text: str) -> MetricsMode:
    """A mode from how Iceberg writes it: ``none``, ``counts``, ``full`` or ``truncate(n)``.

    Raises :class:`InvalidConfiguration`.
    """
    match = _MODE.match(text.strip().lower())
    if match is None or (match[2] is not None and int(match[2]) == 0):
        raise InvalidConfiguration(f"{text!r} is no metrics mode", hint="none, counts, full or truncate(length)")
    if match[1] is None:
        return MetricsMode(counts=True, bounds=True, length=int(match[2]))
    return MetricsMode(counts=match[1] != "none", bounds=match[1] == "full")


def metrics_of(
    schema_fields: Sequence[Json],
    modes: Mapping[int, str],
    rows: int,
    seen: Mapping[int, Seen],
    *,
    left_out: Collection[int] = (),
) -> ColumnMetrics:
    """The metrics of a file of so many rows, from what was seen of each leaf in all of them.

    ``modes`` by field id of the leaf, ``DEFAULT_MODE`` where none is given. Of leaves ``left_out`` nothing is said.
    """
    kept = [
        (leaf, metrics_mode(modes.get(leaf.field_id, DEFAULT_MODE)), seen[leaf.field_id])
        for leaf in leaves(schema_fields)
        if not leaf.repeated and leaf.field_id not in left_out
    ]
    counted = [(leaf, found) for leaf, mode, found in kept if mode.counts]
    bounded = [(leaf, mode, found) for leaf, mode, found in kept if mode.bounds and found.least is not None]
    return ColumnMetrics(
        value_counts={leaf.field_id: rows for leaf, _ in counted},
        null_counts={leaf.field_id: found.nulls for leaf, found in counted},
        nan_counts={
            leaf.field_id: found.nans
            for leaf, found in counted
            if leaf.type in ("float", "double") and not 0 < found.nans == rows
        },
        lower_bounds={leaf.field_id: _lower(leaf, mode, found) for leaf, mode, found in bounded},
        upper_bounds={
            leaf.field_id: bound
            for leaf, mode, found in bounded
            if not found.nans and (bound := _upper(leaf, mode, found)) is not None
        },
    )


def _by_id(described: Json, name: str) -> dict[int, Any]:
    found = described.get(name) or {"keys": (), "values": ()}
    return dict(zip(found["keys"], found["values"], strict=True))


def _listed(by_id: Mapping[int, Any]) -> dict[str, list[Any]]:
    return {"keys": list(by_id), "values": list(by_id.values())}


def _lower(leaf: Leaf, mode: MetricsMode, seen: Seen) -> bytes:
    least = -0.0 if isinstance(seen.least, float) and seen.least == 0 else seen.least
    return truncated_below(leaf.type, serialized(leaf.type, least), mode.length)


def _upper(leaf: Leaf, mode: MetricsMode, seen: Seen) -> bytes | None:
    greatest = 0.0 if isinstance(seen.greatest, float) and seen.greatest == 0 else seen.greatest
    return truncated_above(leaf.type, serialized(leaf.type, greatest), mode.length)


def serialized(iceberg_type: str, value: Any) -> bytes:
    """A value (dates and times as integers, decimals unscaled) in Iceberg's single-value binary serialization."""
    if iceberg_type.startswith("decimal"):
        magnitude_bits = (value if value >= 0 else ~value).bit_length()
        return int(value).to_bytes(magnitude_bits // 8 + 1, "big", signed=True)
    layout = _LAYOUTS.get(iceberg_type)
    return bytes(value) if layout is None else struct.pack(layout, value)


def truncated_below(iceberg_type: str, bound: bytes, length: int | None) -> bytes:
    """A lower bound of at most ``length`` code points (string) or bytes (binary)."""
    if length is None or iceberg_type not in ("string", "binary"):
        return bound
    return _text(bound)[:length].encode() if iceberg_type == "string" else bound[:length]


def truncated_above(iceberg_type: str, bound: bytes, length: int | None) -> bytes | None:
    """An upper bound cut to ``length`` and raised at its last possible place; None when there is none so short."""
    if length is None or iceberg_type not in ("string", "binary"):
        return bound
    if iceberg_type == "binary":
        return bound if len(bound) <= length else _raised_bytes(bound[:length])
    text = _text(bound)
    return bound if len(text) <= length else _raised_text(text[:length])


def _raised_bytes(prefix: bytes) -> bytes | None:
    kept = prefix.rstrip(bytes([_BYTE_MAX]))
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _raised_text(prefix: str) -> bytes | None:
    kept = prefix.rstrip(chr(_CODE_POINT_MAX))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return (kept[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)).encode()


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise UnsupportedColumn(f"a string column holds bytes that are not UTF-8: {value[:40]!r}") from error
