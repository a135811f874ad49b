"""Values of partitions and bounds: from what the decoders give to JSON single-value form, and to sort keys.

Types are told by the table's schemas and transforms, never by the Python value, so that all writers' manifests
give the same form for the same partition.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

from pyiceberg.conversions import from_bytes
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from icewright.model.iceberg.tables import Json, PartitionSpec, TableMetadata

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.date()
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)\Z")
_FIXED = re.compile(r"fixed\[(\d+)\]\Z")
_INT_TRANSFORMS = re.compile(r"(year|month|hour|bucket\[\d+\])\Z")
_PRIMITIVES: Mapping[str, PrimitiveType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "time": TimeType(),
    "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(),
    "string": StringType(),
    "uuid": UUIDType(),
    "binary": BinaryType(),
}
_WIDTHS = {"boolean": 1, "int": 4, "long": 8, "float": 4, "double": 8, "date": 4, "time": 8, "uuid": 16}
_WIDTHS |= {"timestamp": 8, "timestamptz": 8}
_NARROWER = {"long": "int", "double": "float"}

TypeName: TypeAlias = str
"""A primitive type as the spec writes it in schemas, e.g. ``decimal(9,2)``; empty when it is not known."""


def primitive_types(table: TableMetadata) -> Mapping[int, TypeName]:
    """The type of each primitive field by id: from the current schema, else from the newest that has the field."""
    types: dict[int, TypeName] = {}
    for schema in (table.schema, *reversed(table.schemas)):
        for field_id, type_name in _primitives(schema.fields):
            types.setdefault(field_id, type_name)
    return types


def _primitives(fields: Iterable[Json]) -> Iterable[tuple[int, TypeName]]:
    """Primitive fields of nested structs too; elements of lists and maps cannot be partitioned or sorted by."""
    for field in fields:
        kind = field["type"]
        if isinstance(kind, str):
            yield field["id"], kind
        elif kind.get("type") == "struct":
            yield from _primitives(kind["fields"])


def result_types(spec: PartitionSpec, types: Mapping[int, TypeName]) -> tuple[TypeName, ...]:
    """The types of a spec's partition values (spec, "Partition Transforms")."""
    return tuple(_result_type(field.transform, types.get(field.source_id, "")) for field in spec.fields)


def _result_type(transform: str, source: TypeName) -> TypeName:
    if transform == "day":
        return "date"
    return "int" if _INT_TRANSFORMS.match(transform) else source


def partition_json(values: Iterable[Any], types: Iterable[TypeName]) -> str:
    """Partition values as canonical JSON: without spaces, non-ASCII as it is."""
    items = [single_value(value, type_name) for value, type_name in zip(values, types, strict=True)]
    return json.dumps(items, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def single_value(value: Any, type_name: TypeName) -> Any:
    """A value in JSON single-value form (spec, Appendix D).

    Where the spec or Python has none: NaN and infinities are the strings ``NaN``, ``Infinity``, ``-Infinity``, and
    instants beyond Python's years 1 to 9999 stay the integers that they are stored as.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return _integer_value(value, type_name)
    for kind, to_json in _TO_JSON:
        if isinstance(value, kind):
            return to_json(value)
    raise TypeError(f"a partition value of type {type(value).__name__}")


def _float_value(value: float) -> float | str:
    return value if math.isfinite(value) else json.dumps(value)


_TO_JSON: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (float, _float_value),
    (bytes, bytes.hex),
    (Decimal, lambda value: format(value, "f")),  # str() would write 1E-8
    (UUID, str),
)


def _integer_value(value: int, type_name: TypeName) -> int | str:
    to_text = _INSTANTS.get(type_name)
    if to_text is None:
        return value
    try:
        return to_text(value)
    except OverflowError:
        return value


def _date(days: int) -> str:
    return (_EPOCH_DAY + timedelta(days=days)).isoformat()


def _time(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).time().isoformat()


def _timestamptz(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).isoformat()


def _timestamp(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat()


def _timestamptz_ns(nanos: int) -> str:
    return f"{_timestamp_ns(nanos)}+00:00"


def _timestamp_ns(nanos: int) -> str:
    micros, rest = divmod(nanos, 1000)
    moment = (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='microseconds')}{rest:03d}"


_INSTANTS: Mapping[TypeName, Callable[[int], str]] = {
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
    "timestamp_ns": _timestamp_ns,
    "timestamptz_ns": _timestamptz_ns,
}


def library_type(type_name: TypeName) -> PrimitiveType | None:
    """PyIceberg's type of that name; None for what it does not know, or we do not order by."""
    if match := _DECIMAL.match(type_name):
        return DecimalType(int(match[1]), int(match[2]))
    if match := _FIXED.match(type_name):
        return FixedType(int(match[1]))
    return _PRIMITIVES.get(type_name)


def bound(raw: bytes, type_name: TypeName) -> Any:
    """A lower or upper bound (spec, Appendix D, binary single-value); None when it is not of that type.

    Some writers cut long strings off inside a character; that is None too.

    Bounds written before a promotion (int to long, float to double) have the width of the former type.
    """
    width = _WIDTHS.get(type_name)
    if width is not None and len(raw) != width:
        narrower = _NARROWER.get(type_name)
        return bound(raw, narrower) if narrower is not None else None
    kind = library_type(type_name)
    if kind is None:
        return None
    try:
        value: Any = from_bytes(kind, raw)
    except UnicodeDecodeError:
        return None
    return None if isinstance(value, float) and math.isnan(value) else value
