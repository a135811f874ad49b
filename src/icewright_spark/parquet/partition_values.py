"""Values of identity partition fields, which readers may take in the place of what a file holds.

Where a file lacks the column, its value is the partition's (spec, "Column Projection"). Iceberg's Java and Trino take
the partition's value even where the file has the column; PyIceberg and DuckDB read the file. A file that holds another
value breaks the spec, and imported files do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import time
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from icewright.model.iceberg.tables import Json
from icewright_spark.parquet.errors import UnsupportedColumn
from icewright_spark.parquet.metrics import ColumnMetrics, metrics_of
from icewright_spark.parquet.places import Place, Seen, look
from icewright_spark.parquet.schema import Leaf, leaves, primitive

_READ: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Any]], ...]] = (
    (pa.types.is_binary, bytes.fromhex),
    (pa.types.is_fixed_size_binary, bytes.fromhex),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_floating, float),
    (pa.types.is_time, time.fromisoformat),
)
"""How values are read that JSON has as texts."""

_OF_VALUES: Final = tuple(field.name for field in fields(ColumnMetrics) if field.name != "column_sizes")
"""Metrics that are wrong where the values are others."""


def partition_scalars(values: Mapping[int, Any], schema_fields: Sequence[Json]) -> Mapping[int, Any]:
    """Arrow's scalars of partition values by the field id of the leaf; of columns that are dropped there is none.

    ``values`` are in JSON as :class:`~.files.Partition` has them. Raises :class:`UnsupportedColumn`
    for what is no value of the column's type.
    """
    return {
        leaf.field_id: _scalar(leaf, values[leaf.field_id]) for leaf in leaves(schema_fields) if leaf.field_id in values
    }


def holds_only(leaf: Leaf, scalar: Any, seen: Seen) -> bool:
    """Whether all rows of a file that this was ``seen`` of hold one value in a column, bit by bit."""
    wanted = _seen(leaf, scalar)
    if not wanted.values:
        return not seen.values
    if wanted.nans:
        return seen.nans == seen.entries
    whole = not seen.nulls and not seen.nans
    return whole and repr(seen.least) == repr(seen.greatest) == repr(wanted.least)


def without_others(
    metrics: ColumnMetrics,
    schema_fields: Sequence[Json],
    modes: Mapping[int, str],
    rows: int,
    scalars: Mapping[int, Any],
) -> ColumnMetrics:
    """Metrics of a file of so many rows, without what is said of a partition column and not true of the partition."""
    seen = {
        leaf.field_id: _seen(leaf, scalars[leaf.field_id]) if leaf.field_id in scalars else Seen()
        for leaf in leaves(schema_fields)
    }
    for found in seen.values():
        found.entries, found.values, found.nans = found.entries * rows, found.values * rows, found.nans * rows
    right = metrics_of(schema_fields, modes, rows, seen)
    other = {field_id for field_id in scalars if any(_differ(field_id, *pair) for pair in _pairs(metrics, right))}
    return without_columns(metrics, other)


def without_columns(metrics: ColumnMetrics, field_ids: Collection[int]) -> ColumnMetrics:
    """The metrics of all other columns, and the sizes of all."""
    others = {
        name: {key: value for key, value in getattr(metrics, name).items() if key not in field_ids}
        for name in _OF_VALUES
    }
    return replace(metrics, **others)


def _pairs(one: ColumnMetrics, other: ColumnMetrics) -> Iterator[tuple[Mapping[int, Any], Mapping[int, Any]]]:
    for name in _OF_VALUES:
        yield getattr(one, name), getattr(other, name)


def _differ(field_id: int, said: Mapping[int, Any], right: Mapping[int, Any]) -> bool:
    return field_id in said and said[field_id] != right.get(field_id)


def _seen(leaf: Leaf, scalar: Any) -> Seen:
    """What is seen of a column in a row of that value."""
    return look(Place(leaf, 0, (), ()), pa.nulls(1, primitive(leaf.type)) if scalar is None else pa.repeat(scalar, 1))


def _scalar(leaf: Leaf, value: Any) -> Any:
    """None for NULL."""
    if value is None:
        return None
    kind = primitive(leaf.type)
    try:
        if isinstance(kind, pa.UuidType):
            stored = pa.array([bytes.fromhex(value.replace("-", ""))], kind.storage_type)
            return pa.ExtensionArray.from_storage(kind, stored)[0]
        if pa.types.is_temporal(kind) and isinstance(value, int):  # beyond the years that Python has
            return pa.array([value], pa.int32() if pa.types.is_date(kind) else pa.int64()).view(kind)[0]
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            return pa.scalar(value).cast(kind)
        read = next((read for is_it, read in _READ if is_it(kind)), None)
        return pa.scalar(value if read is None else read(value), kind)
    except (pa.ArrowException, InvalidOperation, ValueError, TypeError, AttributeError) as error:
        raise UnsupportedColumn(f"the partition's value {value!r} is none of {'.'.join(leaf.path)}") from error
