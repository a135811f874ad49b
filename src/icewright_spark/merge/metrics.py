"""Column metrics of the output as Iceberg's Java writer reports them (``ParquetMetrics``, ``MetricsModes``).

Counts and bounds come from the very stream that is written, not from the footer, whose minima and maxima arrow-rs
cuts to 64 bytes; column sizes come from the footer. As in Java: nothing but sizes inside lists and maps, nothing at
all in mode ``none``, bounds of string and binary truncated by the mode (uuid, fixed and numbers never), no NaN in
bounds. A bound of zero is -0.0 below and 0.0 above, which covers both zeros however a reader compares them.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icewright.domain.errors import InvalidConfiguration
from icewright.domain.tables import Json
from icewright_spark.merge.errors import UnsupportedColumn
from icewright_spark.merge.schema import Leaf, leaves

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

    value_counts: dict[int, int]
    null_counts: dict[int, int]
    nan_counts: dict[int, int]
    lower_bounds: dict[int, bytes]
    upper_bounds: dict[int, bytes]


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


class MetricsOfRows:
    """Takes record batches of the table's schema."""

    def __init__(self, schema_fields: Sequence[Json], modes: Mapping[int, str]) -> None:
        """``modes`` by field id of the leaf, ``DEFAULT_MODE`` where none is given."""
        self._rows = 0
        self._columns = [
            (position, steps, _LeafMetrics(leaf, mode))
            for position, steps, leaf in flat_leaves(schema_fields)
            if (mode := metrics_mode(modes.get(leaf.field_id, DEFAULT_MODE))).counts
        ]

    def update(self, batch: Any) -> None:
        """Adds a record batch."""
        self._rows += batch.num_rows
        for position, steps, metrics in self._columns:
            array = batch.column(position)
            for step in steps:
                array = array.flatten()[step]
            metrics.update(array)

    def result(self) -> ColumnMetrics:
        """The metrics of all rows so far."""
        columns = [metrics for _, _, metrics in self._columns]
        return ColumnMetrics(
            value_counts={column.field_id: self._rows for column in columns},
            null_counts={column.field_id: column.nulls for column in columns},
            nan_counts={column.field_id: column.nans for column in columns if column.is_float},
            lower_bounds={c.field_id: bound for c in columns if (bound := c.lower_bound()) is not None},
            upper_bounds={c.field_id: bound for c in columns if (bound := c.upper_bound()) is not None},
        )


class _LeafMetrics:
    """Counts, and the least and greatest value, of one leaf outside lists and maps."""

    def __init__(self, leaf: Leaf, mode: MetricsMode) -> None:
        self.field_id = leaf.field_id
        self.is_float = leaf.type in ("float", "double")
        self.nulls = 0
        self.nans = 0
        self._type = leaf.type
        self._mode = mode
        self._least: Any = None
        self._greatest: Any = None

    def update(self, array: Any) -> None:
        self.nulls += array.null_count
        if self.is_float:
            self.nans += pc.sum(pc.is_nan(array)).as_py() or 0
        if not self._mode.bounds or array.null_count == len(array):
            return
        extremes = pc.min_max(_comparable(array))
        least, greatest = (_number(extremes[key].as_py()) for key in ("min", "max"))
        if isinstance(least, float) and math.isnan(least):  # the batch holds nothing but NaN
            return
        self._least = least if self._least is None else min(self._least, least)
        self._greatest = greatest if self._greatest is None else max(self._greatest, greatest)

    def lower_bound(self) -> bytes | None:
        if self._least is None:
            return None
        if self.is_float and self._least == 0:
            return serialized(self._type, -0.0)
        return truncated_below(self._type, serialized(self._type, self._least), self._mode.length)

    def upper_bound(self) -> bytes | None:
        if self._greatest is None:
            return None
        if self.is_float and self._greatest == 0:
            return serialized(self._type, 0.0)
        return truncated_above(self._type, serialized(self._type, self._greatest), self._mode.length)


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


def _comparable(array: Any) -> Any:
    """The array as a type whose minimum is Iceberg's: bytes unsigned, dates and times as integers."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if pa.types.is_string(kind):
        return array.cast(pa.binary())
    if pa.types.is_date32(kind):
        return array.view(pa.int32())
    if pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        return array.view(pa.int64())
    return array


def _number(value: Any) -> Any:
    """A decimal as its unscaled integer; everything else as it is."""
    digits = getattr(value, "as_tuple", None)
    if digits is None:
        return value
    sign, figures, _ = digits()
    unscaled = int("".join(map(str, figures)))
    return -unscaled if sign else unscaled


def flat_leaves(schema_fields: Sequence[Json]) -> list[tuple[int, tuple[int, ...], Leaf]]:
    """Leaves outside lists and maps: position of the column, positions of the struct fields below it, the leaf."""
    return [
        (position, steps, leaf)
        for position, field in enumerate(schema_fields)
        for steps, leaf in _steps(field, ())
        if not leaf.repeated
    ]


def _steps(field: Json, above: tuple[int, ...]) -> list[tuple[tuple[int, ...], Leaf]]:
    kind = field["type"]
    if isinstance(kind, str) or kind["type"] != "struct":
        return [(above, leaf) for leaf in leaves([field])]
    return [found for index, inner in enumerate(kind["fields"]) for found in _steps(inner, (*above, index))]
