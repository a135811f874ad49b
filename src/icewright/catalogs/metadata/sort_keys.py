"""Where a data file lies in the table's sort order or by some columns, told by its bounds."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pyiceberg.transforms import parse_transform

from icewright.catalogs.metadata.manifests import Bounds
from icewright.catalogs.metadata.values import TypeName, bound, library_type, primitive_types, single_value
from icewright.model.iceberg.files import Partition, SortKey, Span
from icewright.model.iceberg.tables import SortField, TableMetadata

_ORDER_PRESERVING = ("identity", "truncate", "year", "month", "day", "hour")
_NULL_FIRST, _VALUE, _NULL_LAST = 0, 1, 2
_NUMERIC = ("int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "decimal")


class SortKeys:
    """Makes the keys of one table's files.

    A key has an element (rank, value) per leading field of the sort order that bounds can follow: up to the first
    bucket, void or unknown transform, and up to the first descending field whose values cannot be negated. The
    rank puts nulls where the field's null order has them.
    """

    def __init__(self, table: TableMetadata) -> None:
        types = primitive_types(table)
        self._fields: list[_Field] = []
        for field in table.sort_order.fields:
            usable = _field(field, types.get(field.source_id, ""))
            if usable is None:
                break
            self._fields.append(usable)

    @property
    def any(self) -> bool:
        """Whether the table has a sort order that bounds can follow at all."""
        return bool(self._fields)

    def key(self, bounds: Bounds) -> SortKey | None:
        """The least key that a row of the file can have; None when a bound is missing, or lies beyond the year 9999."""
        elements = []
        for field in self._fields:
            element = field.element(bounds)
            if element is None:
                return None
            elements.append(element)
        return tuple(elements) or None


class Spans:
    """Makes the spans of one table's files by some fields; there is none of a field that bounds cannot follow.

    The direction of a field makes no difference to which files overlap.
    """

    def __init__(self, table: TableMetadata, fields: Sequence[SortField]) -> None:
        types = primitive_types(table) if fields else {}
        ascending = [replace(field, direction="asc") for field in fields]
        self._fields = [_field(field, types.get(field.source_id, "")) for field in ascending]

    @property
    def any(self) -> bool:
        """Whether there are spans at all."""
        return any(field is not None for field in self._fields)

    @property
    def unknown(self) -> tuple[Span | None, ...]:
        """The spans of a file without bounds."""
        return (None,) * len(self._fields)

    def spans(self, bounds: Bounds) -> tuple[Span | None, ...]:
        """By field from the least to the greatest value of a file, nulls among them; None when a bound is missing.

        Bounds know nothing of NaN, nor do spans.
        """
        return tuple(None if field is None else _span(field, bounds) for field in self._fields)


def _span(field: _Field, bounds: Bounds) -> Span | None:
    lower, upper = field.element(bounds), field.greatest(bounds)
    return None if lower is None or upper is None else (lower, upper)


def _field(field: SortField, type_name: TypeName) -> _Field | None:
    if field.transform.split("[")[0] not in _ORDER_PRESERVING:
        return None
    source = library_type(type_name)
    descending = field.direction == "desc"
    if source is None or (descending and type_name.split("(")[0] not in _NUMERIC):
        return None
    transform = parse_transform(field.transform)
    if not transform.can_transform(source):
        return None
    null_rank = _NULL_FIRST if field.null_order == "nulls-first" else _NULL_LAST
    return _Field(
        field.source_id,
        type_name,
        transform.transform(source),
        descending=descending,
        null_rank=null_rank,
    )


class _Field:
    """One usable field of a sort order."""

    def __init__(
        self,
        source_id: int,
        type_name: TypeName,
        transform: Callable[[Any], Any],
        *,
        descending: bool,
        null_rank: int,
    ) -> None:
        self._source_id = source_id
        self._type_name = type_name
        self._transform = transform
        self._descending = descending
        self._null_rank = null_rank

    def element(self, bounds: Bounds) -> tuple[int, Any] | None:
        """The first in this order that a row of the file can have; None when that is not known."""
        return self._end(bounds, null_rank=_NULL_FIRST, raw_bounds=bounds.upper if self._descending else bounds.lower)

    def greatest(self, bounds: Bounds) -> tuple[int, Any] | None:
        """The last in this order, as :meth:`element`."""
        return self._end(bounds, null_rank=_NULL_LAST, raw_bounds=bounds.lower if self._descending else bounds.upper)

    def _end(self, bounds: Bounds, *, null_rank: int, raw_bounds: Mapping[int, bytes]) -> tuple[int, Any] | None:
        nulls = bounds.null_counts.get(self._source_id)
        if nulls and (self._null_rank == null_rank or nulls == bounds.value_counts.get(self._source_id)):
            return (self._null_rank, None)
        raw = raw_bounds.get(self._source_id)
        value = None if raw is None else bound(raw, self._type_name)
        if value is None:
            return None
        try:
            value = self._transform(value)
        except OverflowError:  # a year beyond Python's
            return None
        # Decimal's unary minus rounds to the context's precision; copy_negate is exact.
        if self._descending:
            value = value.copy_negate() if isinstance(value, Decimal) else -value
        return (_VALUE, value)


def misstated(table: TableMetadata, partition: Partition, bounds: Bounds) -> str:
    """What metrics of a file say of an identity partition column and is not so of its partition; nothing if all is.

    Engines read the partition's value whatever the file holds, and skip files by their metrics.
    """
    fields, types = table.spec(partition.spec_id).fields, primitive_types(table)
    for field, value in zip(fields, json.loads(partition.values), strict=False):
        source = field.source_id
        if field.transform != "identity" or source not in types:
            continue
        nulls, values = bounds.null_counts.get(source), bounds.value_counts.get(source)
        if value is None and nulls is not None and values is not None and nulls < values:
            return f"{values - nulls} values in column {source}, whose partition is NULL"
        if value is not None and nulls:
            return f"{nulls} nulls in column {source}, whose partition is {value!r}"
        for name, raw, beyond in (("lower", bounds.lower, operator.gt), ("upper", bounds.upper, operator.lt)):
            found = bound(raw[source], types[source]) if source in raw else None
            said = None if found is None else single_value(found, types[source])
            if said is None or (value is not None and type(said) is not type(value)):
                continue
            is_cut = types[source] in ("string", "binary")
            if value is None or (beyond(said, value) if is_cut else said != value):
                return f"the {name} bound {said!r} in column {source}, whose partition is {value!r}"
    return ""
