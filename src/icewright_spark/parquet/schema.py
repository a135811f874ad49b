"""Iceberg's schema as Arrow's, with the field ids that make a Parquet file an Iceberg data file.

Types follow Iceberg's spec, "Appendix A: Parquet". Names are made compatible with Avro as Iceberg's Java does
(``AvroSchemaUtil.makeCompatibleName``): its own files look like that, readers go by ids, and no name has a dot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icewright.model.iceberg.column_types import first_not_kept, merge_keeps
from icewright.model.iceberg.tables import Json
from icewright_spark.parquet.errors import UnsupportedColumn

FIELD_ID = b"PARQUET:field_id"

RESERVED_IDS_FROM = 2_147_483_447
"""Ids above this belong to metadata columns (spec, "Reserved Field IDs"), such as the row lineage of format v3."""

_PRIMITIVES: Mapping[str, Any] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "uuid": pa.uuid(),
    "binary": pa.binary(),
}
"""All primitive types that can be merged, beside decimal and fixed. Not variant, geometry, geography and unknown."""

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)\Z")
_FIXED = re.compile(r"fixed\[\s*(\d+)\s*\]\Z")
_DECIMAL_DIGITS_MAX = 38


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive column. ``path`` is its place in our Parquet files; ``repeated`` is inside a list or a map."""

    field_id: int
    type: str
    path: tuple[str, ...]
    repeated: bool


def arrow_schema(schema_fields: Sequence[Json]) -> Any:
    """The Arrow schema to write, a field id on every field of every level. Raises :class:`UnsupportedColumn`."""
    found = first_not_kept(schema_fields, merge_keeps)
    if found is not None:
        raise UnsupportedColumn(f"column {found[0]!r}: the type {found[1]} cannot be merged")
    return pa.schema([_struct_field(field) for field in schema_fields])


def leaves(schema_fields: Sequence[Json]) -> tuple[Leaf, ...]:
    """All primitive columns, in the order of the Parquet file's columns."""
    return tuple(leaf for field in schema_fields for leaf in _field_leaves(field, (), repeated=False))


def field_id(field: Any) -> int | None:
    """The id that an Arrow field carries, None without one."""
    text = (field.metadata or {}).get(FIELD_ID)
    return None if text is None else int(text)


def leaf_ids(schema: Any) -> list[int | None]:
    """Ids of the leaves of an Arrow schema, in the order of the Parquet file's columns."""
    return [field_id(leaf) for field in schema for leaf in _arrow_leaves(field)]


def children(data_type: Any) -> tuple[Any, ...]:
    """The fields directly under a nested Arrow type; a map's are key and value."""
    if pa.types.is_map(data_type):
        return (data_type.key_field, data_type.item_field)
    return tuple(data_type.field(index) for index in range(data_type.num_fields))


def shape(fields: Iterable[Any]) -> tuple[Any, ...]:
    """Names, ids, nullability and types of all levels, comparable; what Arrow calls a map's entries is left out."""
    return tuple(
        (f.name, field_id(f), f.nullable, f.type.id, shape(children(f.type)) if pa.types.is_nested(f.type) else f.type)
        for f in fields
    )


def compatible_name(name: str) -> str:
    """``name`` as Iceberg's Java writes it into files: other than letters, digits and ``_`` become ``_xHH``."""
    first, rest = name[:1], name[1:]
    head = first if first.isalpha() or first == "_" else _escaped(first)
    return head + "".join(char if char.isalnum() or char == "_" else _escaped(char) for char in rest)


def _escaped(char: str) -> str:
    return "_" + char if char.isdigit() else f"_x{ord(char):X}" if char else "_"


def primitive(name: str) -> Any | None:
    """Arrow's type of a primitive type; None for one that cannot be merged."""
    if decimal := _DECIMAL.match(name):
        precision, scale = int(decimal[1]), int(decimal[2])
        return pa.decimal128(precision, scale) if 0 < precision <= _DECIMAL_DIGITS_MAX else None
    if fixed := _FIXED.match(name):
        return pa.binary(int(fixed[1]))
    return _PRIMITIVES.get(name)


def _arrow_type(iceberg_type: Any) -> Any:
    if isinstance(iceberg_type, str):
        return primitive(iceberg_type)
    match iceberg_type["type"]:
        case "struct":
            return pa.struct([_struct_field(field) for field in iceberg_type["fields"]])
        case "list":
            return pa.list_(_part(iceberg_type, "element", required=iceberg_type["element-required"]))
        case _:
            return pa.map_(
                _part(iceberg_type, "key", required=True),
                _part(iceberg_type, "value", required=iceberg_type["value-required"]),
            )


def _struct_field(field: Json) -> Any:
    return _field(compatible_name(field["name"]), field["type"], field["id"], required=field["required"])


def _part(nested: Json, part: str, *, required: bool) -> Any:
    return _field(part, nested[part], nested[f"{part}-id"], required=required)


def _field(name: str, iceberg_type: Any, identity: int, *, required: bool) -> Any:
    return pa.field(name, _arrow_type(iceberg_type), nullable=not required, metadata={FIELD_ID: str(identity)})


def _field_leaves(field: Json, parent: tuple[str, ...], *, repeated: bool) -> Iterator[Leaf]:
    path = (*parent, compatible_name(field["name"]))
    yield from _type_leaves(field["type"], field["id"], path, repeated=repeated)


def _type_leaves(iceberg_type: Any, identity: int, path: tuple[str, ...], *, repeated: bool) -> Iterator[Leaf]:
    if isinstance(iceberg_type, str):
        yield Leaf(identity, iceberg_type, path, repeated)
        return
    match iceberg_type["type"]:
        case "struct":
            for field in iceberg_type["fields"]:
                yield from _field_leaves(field, path, repeated=repeated)
        case "list":
            inner = (*path, "list", "element")
            yield from _type_leaves(iceberg_type["element"], iceberg_type["element-id"], inner, repeated=True)
        case _:
            for part in ("key", "value"):
                inner = (*path, "key_value", part)
                yield from _type_leaves(iceberg_type[part], iceberg_type[f"{part}-id"], inner, repeated=True)


def _arrow_leaves(field: Any) -> Iterator[Any]:
    if pa.types.is_nested(field.type):
        for child in children(field.type):
            yield from _arrow_leaves(child)
    else:
        yield field
