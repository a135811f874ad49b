"""A scale: some values of one column in their order, against which all others are read off, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icewright.model.iceberg.tables import SortField
from icewright_spark.executors.merge.values import comparable

Codes: TypeAlias = npt.NDArray[np.int64]

LONGEST_MARK_BYTES: Final = 1_024
"""Longer strings of a sample are cut to this. They stay exact marks, but of no longer string's own."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the sample as its layout orders it. ``values`` are comparable, strings cut."""

    kind: Any
    values: Any
    descending: bool
    nulls_last: bool

    @classmethod
    def of(cls, array: Any, field: SortField) -> Column:
        """From a column of any orderable type. Raises :class:`~icewright.core.errors.Unsupported` for others."""
        whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        values = comparable(whole)
        if pa.types.is_binary(values.type):
            values = pc.binary_slice(values, 0, LONGEST_MARK_BYTES)
        return cls(_kind(whole), values, field.direction == "desc", field.null_order == "nulls-last")

    def ranks(self) -> Codes:
        """For each row its rank among the distinct values, NULL being one, from 1."""
        order, nulls = "descending" if self.descending else "ascending", "at_end" if self.nulls_last else "at_start"
        return np.array(pc.rank(self.values, sort_keys=[("", order, nulls)], tiebreaker="dense"), np.int64)

    def scale(self, rows: Codes) -> Scale:
        """The scale with the values of these rows as its marks."""
        values = pc.unique(self.values.take(pa.array(rows, pa.int64())).drop_null())
        return Scale(self.kind, values.take(pc.sort_indices(values)), self.descending, self.nulls_last)


@dataclass(frozen=True, slots=True)
class Scale:
    """Marks, distinct and ascending. A code is odd on a mark and on NULL, even between marks; codes are in the order.

    ``size`` is one more than the largest code.
    """

    kind: Any
    marks: Any
    descending: bool
    nulls_last: bool

    @property
    def size(self) -> int:
        """Codes are below it."""
        return 2 * len(self.marks) + 3

    def read(self, array: Any) -> Codes:
        """The code of each value of a column. Raises ``TypeError`` when it is not of the type of the sample's."""
        if _kind(array) != self.kind:
            raise TypeError(f"the layout's column was sampled as {self.kind}, these rows have {array.type}")
        return self.codes(comparable(array))

    def codes(self, values: Any) -> Codes:
        """As :meth:`read`, of values that are comparable already."""
        places = pc.add(
            pc.search_sorted(self.marks, values, side="left"), pc.search_sorted(self.marks, values, side="right")
        )
        codes = np.asarray(places.fill_null(0)).astype(np.int64)
        if self.descending:
            codes = 2 * len(self.marks) - codes
        if not self.nulls_last:
            codes += 2
        if values.null_count:
            codes[np.asarray(values.is_null())] = self.size - 2 if self.nulls_last else 1
        return codes


def _kind(array: Any) -> Any:
    """The type, whatever the width of its offsets, and whatever its time zone is called: instants are UTC in all."""
    kind = array.type
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    return pa.binary() if pa.types.is_large_binary(kind) else kind
