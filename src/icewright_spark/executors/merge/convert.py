"""Rows of a file as rows of the table: columns matched by field id, types brought to the table's.

What is converted without loss is listed here and nowhere else: Iceberg's promotions of top-level columns (int to
long, float to double, wider decimals), and mere representations (large strings and lists, dictionaries, string
views, time-zone spellings of UTC instants, milliseconds) which Arrow writers leave in a file's metadata. Everything
else is refused when the file is opened, before a row is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icewright.model.iceberg.tables import Json
from icewright_spark.parquet.errors import UnsupportedColumn, UnsupportedFile
from icewright_spark.parquet.lineage import LINEAGE_IDS
from icewright_spark.parquet.schema import RESERVED_IDS_FROM, children, field_id

Convert: TypeAlias = Callable[[Any], Any]
"""An array of a file's column to one of the table's type."""

_COARSER = {"us": "ms"}
"""Milliseconds, which Iceberg's readers take for microseconds as well: a cast that overflows is refused."""

_PROMOTIONS = frozenset({(pa.int32(), pa.int64()), (pa.float32(), pa.float64())})


class Converter:
    """Converts record batches of one file to the table's schema."""

    def __init__(
        self, have: Any, want: Any, schema_fields: Sequence[Json], partition_scalars: Mapping[int, Any] | None
    ) -> None:
        """``have`` is the file's Arrow schema, ``want`` the table's, from ``schema_fields``.

        ``partition_scalars`` are the values of the partition's identity transforms by source id, which a file may
        leave to the partition; None when they are not known, and then no column may be missing.
        Raises :class:`UnsupportedFile` and :class:`UnsupportedColumn`.
        """
        self._want = want
        positions = _positions(have, {described["id"] for described in schema_fields})
        self._columns: list[tuple[int | None, Convert]] = []
        self._given: dict[str, Any] = {}
        for field, described in zip(want, schema_fields, strict=True):
            identity = described["id"]
            position = positions.get(identity)
            if position is None:
                given = _given_value(described, partition_scalars)
                if given is not None:
                    self._given[field.name] = given
                self._columns.append((None, _same))
            else:
                self._columns.append((position, _top_level(have.field(position), field)))

    def __call__(self, batch: Any) -> Any:
        """A record batch of the table's schema. Raises :class:`UnsupportedColumn` for nulls in required columns."""
        arrays = []
        for (position, convert), field in zip(self._columns, self._want, strict=True):
            if position is None:
                given = self._given.get(field.name)
                rows = batch.num_rows
                arrays.append(pa.nulls(rows, field.type) if given is None else pa.repeat(given, rows))
                continue
            array = convert(batch.column(position))
            if not field.nullable and array.null_count:
                raise UnsupportedColumn(f"required column {field.name!r} holds nulls")
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._want)


def _positions(have: Any, wanted_ids: Collection[int]) -> Mapping[int, int]:
    positions: dict[int, int] = {}
    for position, field in enumerate(have):
        identity = field_id(field)
        if identity is None:
            raise UnsupportedFile(f"the column {field.name!r} has no field id (an imported file?)")
        if identity > RESERVED_IDS_FROM and identity not in wanted_ids:
            raise UnsupportedFile(f"the column {field.name!r} is a metadata column (id {identity}), e.g. row lineage")
        if identity in positions:
            raise UnsupportedFile(f"two columns have the field id {identity}")
        positions[identity] = position
    return positions


def _given_value(described: Json, partition_scalars: Mapping[int, Any] | None) -> Any:
    """The value of all rows in a column that a file lacks, None for NULL (spec, "Column Projection")."""
    name = described["name"]
    if described["id"] in LINEAGE_IDS:
        return None  # to be filled in by who reads the file
    if partition_scalars is None:
        raise UnsupportedColumn(f"a file lacks the column {name!r}, whose value the partition may give")
    given = partition_scalars.get(described["id"])
    if given is None and described["required"]:
        raise UnsupportedColumn(f"a file lacks the required column {name!r}")
    if described["id"] not in partition_scalars and described.get("initial-default") is not None:
        raise UnsupportedColumn(f"a file lacks the column {name!r}, which has an initial default")
    return given


def _top_level(have: Any, want: Any) -> Convert:
    if (have.type, want.type) in _PROMOTIONS or _wider_decimal(have.type, want.type):
        return _cast(want.type)
    return _converter(have, want, want.name)


def _converter(have: Any, want: Any, path: str) -> Convert:
    """How to bring a column of ``have`` to ``want``. Field names are ignored, ids are not."""
    kind = want.type
    if not pa.types.is_nested(kind):
        return _leaf(have.type, kind, path)
    large = pa.types.is_large_list(have.type)
    if have.type.id != kind.id and not (large and pa.types.is_list(kind)):
        raise UnsupportedColumn(f"{path}: {have.type} in a file is not {kind}")
    parts = _parts(have, want, path)
    if have.type == kind:
        return _same
    if pa.types.is_struct(kind):
        return _struct(parts, want)
    if pa.types.is_map(kind):
        return _map(parts, want)
    return _list(parts[0], want, large=large)


def _parts(have: Any, want: Any, path: str) -> list[Convert]:
    inside, wanted = children(have.type), children(want.type)
    have_ids, want_ids = [field_id(field) for field in inside], [field_id(field) for field in wanted]
    if None in have_ids:
        raise UnsupportedFile(f"a field inside {path} has no field id")
    if have_ids != want_ids:
        raise UnsupportedColumn(f"{path}: fields {have_ids} in a file, {want_ids} in the table (nested evolution)")
    parts = []
    for old, new in zip(inside, wanted, strict=True):
        inner = f"{path}.{new.name}"
        convert = _converter(old, new, inner)
        checked = old.nullable and not new.nullable
        parts.append(_refusing_nulls(convert, inner) if checked and not pa.types.is_struct(want.type) else convert)
    return parts


def _leaf(have: Any, want: Any, path: str) -> Convert:
    if have == want:
        return _same
    if isinstance(want, pa.UuidType) and have == want.storage_type:
        return lambda array: pa.ExtensionArray.from_storage(want, array)
    if pa.types.is_dictionary(have):
        decoded = _leaf(have.value_type, want, path)
        return lambda array: decoded(array.dictionary_decode())
    if _same_kind(have, want):
        return _cast(want)
    raise UnsupportedColumn(f"{path}: {have} in a file cannot become {want}")


def _same_kind(have: Any, want: Any) -> bool:
    """Whether two types hold the same values in another representation."""
    if pa.types.is_string(want):
        return bool(pa.types.is_large_string(have) or pa.types.is_string_view(have))
    if pa.types.is_binary(want):
        return bool(pa.types.is_large_binary(have) or pa.types.is_binary_view(have))
    if pa.types.is_timestamp(want) and pa.types.is_timestamp(have):
        return have.unit in (want.unit, _COARSER.get(want.unit)) and (have.tz is None) == (want.tz is None)
    return bool(pa.types.is_time(want) and pa.types.is_time(have) and have.unit == _COARSER.get(want.unit))


def _wider_decimal(have: Any, want: Any) -> bool:
    return bool(
        pa.types.is_decimal(have)
        and pa.types.is_decimal(want)
        and have.scale == want.scale
        and have.precision < want.precision
    )


def _same(array: Any) -> Any:
    return array


def _cast(data_type: Any) -> Convert:
    return lambda array: array.cast(data_type, safe=True)


def _refusing_nulls(convert: Convert, path: str) -> Convert:
    def check(array: Any) -> Any:
        if array.null_count:
            raise UnsupportedColumn(f"required field {path!r} holds nulls")
        return convert(array)

    return check


def _struct(parts: Sequence[Convert], want: Any) -> Convert:
    fields = children(want.type)

    def convert(array: Any) -> Any:
        mask = array.is_null() if array.null_count else None
        arrays = []
        for index, (part, field) in enumerate(zip(parts, fields, strict=True)):
            child = array.field(index)
            converted = part(child)
            if not field.nullable and child.null_count:
                if _null_without_parent(child, mask):
                    raise UnsupportedColumn(f"required field {field.name!r} of {want.name!r} holds nulls")
                converted = _without_nulls(converted)
            arrays.append(converted)
        return pa.StructArray.from_arrays(arrays, fields=list(fields), mask=mask)

    return convert


def _null_without_parent(child: Any, parent_is_null: Any | None) -> bool:
    nulls = child.is_null()
    alone = nulls if parent_is_null is None else pc.and_not(nulls, parent_is_null)
    return bool(pc.any(alone).as_py())


def _without_nulls(array: Any) -> Any:
    """The same slots, all valid: a required field's nulls under null parents mean nothing, and pyarrow refuses them."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, _without_nulls(array.storage))
    if pa.types.is_struct(kind):
        fields = list(children(kind))
        return pa.StructArray.from_arrays([array.field(index) for index in range(len(fields))], fields=fields)
    below = []
    if pa.types.is_map(kind):
        below = [pa.StructArray.from_arrays([array.keys, array.items], fields=[kind.key_field, kind.item_field])]
    elif pa.types.is_list(kind):
        below = [array.values]
    own = len(array.buffers()) if not below else 2
    buffers = [None, *array.buffers()[1:own]]
    return pa.Array.from_buffers(kind, len(array), buffers, 0, array.offset, children=below)


def _list(part: Convert, want: Any, *, large: bool) -> Convert:
    def convert(array: Any) -> Any:
        plain = _without_garbage(array)
        offsets = plain.offsets.cast(pa.int32()) if large else plain.offsets
        return _rebuilt(want.type, plain, offsets, part(plain.values))

    return convert


def _map(parts: Sequence[Convert], want: Any) -> Convert:
    fields = [want.type.key_field, want.type.item_field]

    def convert(array: Any) -> Any:
        entries = array.view(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
        plain = _without_garbage(entries)
        keys_and_items = [part(child) for part, child in zip(parts, plain.values.flatten(), strict=True)]
        values = pa.StructArray.from_arrays(keys_and_items, fields=fields)
        return _rebuilt(want.type, plain, plain.offsets, values)

    return convert


def _without_garbage(array: Any) -> Any:
    """The same lists over a child that holds their elements and nothing else (no slice, nothing under nulls)."""
    offsets_type = array.offsets.type
    lengths = array.value_lengths().fill_null(0)
    offsets = pa.concat_arrays([pa.array([0], offsets_type), pc.cumulative_sum(lengths).cast(offsets_type)])
    kind = pa.LargeListArray if pa.types.is_large_list(array.type) else pa.ListArray
    mask = array.is_null() if array.null_count else None
    return kind.from_arrays(offsets, array.flatten(), mask=mask)


def _rebuilt(data_type: Any, lists: Any, offsets: Any, values: Any) -> Any:
    """An array of ``data_type`` (list or map) with the validity of ``lists``, which has no offset of its own."""
    buffers = [lists.buffers()[0], offsets.buffers()[1]]
    return pa.Array.from_buffers(data_type, len(lists), buffers, lists.null_count, children=[values])
