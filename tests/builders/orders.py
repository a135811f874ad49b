"""The order of values as Iceberg and Spark have it, in plain Python, and values that are easily misplaced."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.tables import SortField

PREFIX = "a prefix of exactly forty characters, so"
_EXACT = Context(prec=60)
_INTS = st.one_of(st.sampled_from([0, 1, -1]), st.integers(-(2**31), 2**31 - 1))
_LONGS = st.one_of(_INTS, st.sampled_from([2**63 - 1, -(2**63)]), st.integers(-(2**63), 2**63 - 1))
_FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 2**-149, -(2**-149)]), st.floats(width=32)
)
_TEXTS = st.one_of(
    st.sampled_from(["", "\0", "a", "a\0", "ab", "é", "\uffff", "\U0001f9ca", PREFIX]),
    st.text(max_size=4),
    st.text(max_size=3).map(lambda text: PREFIX + text),
)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**digits - 1
    unscaled = st.one_of(st.sampled_from([0, 1, -1, limit, -limit]), st.integers(-limit, limit))
    return unscaled.map(lambda number: Decimal(number).scaleb(-scale, _EXACT))


@dataclass(frozen=True, slots=True)
class Kind:
    """A type as Spark sends it, values of it, and what Python sorts them by."""

    type: Any
    values: st.SearchStrategy[Any]
    key: Callable[[Any], Any] = lambda value: value


def _float_key(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value)


def _text_key(value: str) -> bytes:
    return value.encode()


KINDS: Mapping[str, Kind] = {
    "boolean": Kind(pa.bool_(), st.booleans()),
    "byte": Kind(pa.int8(), st.integers(-128, 127)),
    "int": Kind(pa.int32(), _INTS),
    "long": Kind(pa.int64(), _LONGS),
    "float": Kind(pa.float32(), _FLOATS, _float_key),
    "double": Kind(pa.float64(), st.one_of(_FLOATS, st.just(5e-324), st.floats()), _float_key),
    "decimal(9,2)": Kind(pa.decimal128(9, 2), _decimals(9, 2)),
    "decimal(18,0)": Kind(pa.decimal128(18, 0), _decimals(18, 0)),
    "decimal(19,4)": Kind(pa.decimal128(19, 4), _decimals(19, 4)),
    "decimal(38,10)": Kind(pa.decimal128(38, 10), _decimals(38, 10)),
    "date": Kind(pa.date32(), _INTS),
    "timestamp": Kind(pa.timestamp("us"), _LONGS),
    "timestamptz": Kind(pa.timestamp("us", tz="UTC"), _LONGS),
    "timestamp_ns": Kind(pa.timestamp("ns"), _LONGS),
    "time": Kind(pa.time64("us"), st.integers(0, 86_399_999_999)),
    "string": Kind(pa.string(), _TEXTS, _text_key),
    "large string": Kind(pa.large_string(), _TEXTS, _text_key),
    "uuid": Kind(pa.string(), st.uuids().map(str), _text_key),
    "binary": Kind(pa.binary(), st.binary(max_size=10)),
    "fixed": Kind(pa.binary(3), st.binary(min_size=3, max_size=3)),
}


def array_of(kind: Kind, values: Sequence[Any]) -> Any:
    """Values as an array of the kind; temporal ones are counts of their unit."""
    if pa.types.is_temporal(kind.type):
        return pa.array(values, pa.int32() if kind.type.bit_width == 32 else pa.int64()).view(kind.type)
    return pa.array(values, kind.type)


def field(direction: str = "asc", null_order: str = "nulls-first") -> SortField:
    return SortField(1, "identity", direction, null_order)


def layout(curve: Curve, *fields: SortField) -> Layout:
    return Layout(curve, fields)


def place_of(kinds: Sequence[Kind], fields: Sequence[SortField]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What Python sorts rows by, ascending, to sort them as the fields say."""
    return lambda row: tuple(
        _Place(None if value is None else kind.key(value), field)
        for value, kind, field in zip(row, kinds, fields, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Place:
    key: Any
    field: SortField

    def __lt__(self, other: _Place) -> bool:
        if self.key is None or other.key is None:
            nulls_last = self.field.null_order == "nulls-last"
            return self.key is not other.key and (other.key if nulls_last else self.key) is None
        smaller: bool = self.key < other.key if self.field.direction == "asc" else other.key < self.key
        return smaller
