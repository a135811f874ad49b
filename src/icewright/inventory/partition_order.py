"""The order of partitions, and which manifests a query for one partition opens.

A manifest list has the least and the greatest value of each partition field in a manifest, and whether there are nulls
(spec, "Manifest Lists", ``field_summary``). A reader opens a manifest where each field's value is within these bounds;
that its own partition is not among those in between, nobody told it.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

from icewright.inventory.placement import column_types
from icewright.model.iceberg.tables import PartitionSpec, TableMetadata

SAMPLE_MAX: Final = 2_048
"""The most partitions that are looked at one by one, so that thousands of manifests cost seconds at the worst."""

Key: TypeAlias = tuple[Any, ...]
"""A partition's values as they compare: one tuple for each field."""

Box: TypeAlias = tuple["Bounds", ...]
"""The bounds of a manifest, field by field."""

_NULL: Final = (0,)
_KEEPS_TYPE: Final = ("identity", "truncate")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a manifest list says of one field; ``least`` and ``greatest`` are None where there are only nulls."""

    least: tuple[Any, ...] | None
    greatest: tuple[Any, ...] | None
    has_null: bool


class PartitionOrder:
    """Partitions of one spec, in the order of their values: by the fields of the spec, nulls first."""

    def __init__(self, metadata: TableMetadata, spec: PartitionSpec) -> None:
        """Of a column that was dropped, values are taken as they are written down."""
        types = column_types(metadata)
        self._decimal = [
            field.transform.startswith(_KEEPS_TYPE) and str(types.get(field.source_id, "")).startswith("decimal")
            for field in spec.fields
        ]
        self._keys: dict[str, Key] = {}

    def key(self, values: str) -> Key:
        """How the values of a partition, as in :class:`~icewright.model.iceberg.files.Partition`, compare."""
        known = self._keys.get(values)
        if known is None:
            found = json.loads(values)
            known = tuple(
                _comparable(value, decimal=decimal)
                for value, decimal in zip(found, self._decimal[: len(found)], strict=True)
            )
            self._keys[values] = known
        return known

    def box(self, partitions: Iterable[str]) -> Box:
        """The bounds of a manifest that speaks of these partitions, entries that are marked as deleted included."""
        columns = list(zip(*(self.key(values) for values in partitions), strict=True))
        return tuple(_bounds(column) for column in columns)


def _comparable(value: Any, *, decimal: bool) -> tuple[Any, ...]:
    """One value. Text of dates and instants is in their order; those beyond the years 1 to 9999 are integers."""
    if value is None:
        return _NULL
    if decimal and isinstance(value, str):
        return (2, Decimal(value))
    if isinstance(value, str):
        return (3, value)
    return (1, value) if value < 0 else (4, value)


def _bounds(column: Sequence[tuple[Any, ...]]) -> Bounds:
    values = [value for value in column if value != _NULL]
    return Bounds(min(values, default=None), max(values, default=None), len(values) < len(column))


class Pruning:
    """Which of some partitions lie within the bounds of a manifest, as bits of one number per manifest."""

    def __init__(self, keys: Iterable[Key]) -> None:
        """Of more than :data:`SAMPLE_MAX` partitions, so many are looked at, evenly spaced in their order."""
        every = sorted(set(keys))
        step = max(1, -(-len(every) // SAMPLE_MAX))
        self._sample = every[::step]
        fields = zip(*self._sample, strict=True)
        self._fields = [_FieldMasks(column) for column in fields]
        self.everything = (1 << len(self._sample)) - 1

    @property
    def partitions(self) -> int:
        """How many partitions are looked at."""
        return len(self._sample)

    def within(self, box: Box) -> int:
        """A bit for each partition that a reader looks for in a manifest of these bounds."""
        mask = self.everything
        for bounds, field in zip(box, self._fields, strict=False):
            mask &= field.within(bounds)
        return mask

    def opened(self, masks: Iterable[int]) -> list[int]:
        """How many of the manifests with these masks a reader of each partition opens."""
        planes: list[int] = []  # the counts of all partitions, bit by bit
        for mask in masks:
            carry, place = mask, 0
            while carry:
                if place == len(planes):
                    planes.append(0)
                planes[place], carry = planes[place] ^ carry, planes[place] & carry
                place += 1
        return [
            sum(((plane >> place) & 1) << power for power, plane in enumerate(planes))
            for place in range(self.partitions)
        ]


class _FieldMasks:
    """The partitions with values of one field up to each of these, as bits."""

    def __init__(self, column: Sequence[tuple[Any, ...]]) -> None:
        self._null = sum(1 << place for place, value in enumerate(column) if value == _NULL)
        self._up_to: list[int] = []
        by_value: dict[tuple[Any, ...], int] = {}
        for place, value in enumerate(column):
            if value != _NULL:
                by_value[value] = by_value.get(value, 0) | (1 << place)
        self._values = sorted(by_value)
        mask = 0
        for value in self._values:
            mask |= by_value[value]
            self._up_to.append(mask)

    def within(self, bounds: Bounds) -> int:
        mask = self._null if bounds.has_null else 0
        if bounds.least is None or bounds.greatest is None:
            return mask
        below, last = bisect_left(self._values, bounds.least), bisect_right(self._values, bounds.greatest)
        if last > below:
            mask |= self._up_to[last - 1] & ~(self._up_to[below - 1] if below else 0)
        return mask
