"""Where a data file lies in the table's sort order, told by its bounds: neighbours are merged with neighbours."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pyiceberg.transforms import parse_transform

from icewright.adapters.pyiceberg.manifests import Bounds
from icewright.adapters.pyiceberg.values import TypeName, bound, library_type, primitive_types
from icewright.domain.files import SortKey
from icewright.domain.tables import SortField, TableMetadata

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
        nulls = bounds.null_counts.get(self._source_id)
        null_element = (self._null_rank, None)
        if nulls and (self._null_rank == _NULL_FIRST or nulls == bounds.value_counts.get(self._source_id)):
            return null_element
        raw = (bounds.upper if self._descending else bounds.lower).get(self._source_id)
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
