"""Whether rows stand in an order, told from Arrow's columns, batch by batch.

Values are compared as Iceberg and Spark do: NaN is greater than all other numbers and equal to itself, 0.0 and -0.0
are equal, strings and bytes go by their unsigned bytes, and where nulls belong is said beside the direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icewright.model.iceberg.tables import SortField

_Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Direction:
    """How one column counts in an order."""

    descending: bool = False
    nulls_first: bool = True


def directions_of(fields: Sequence[SortField]) -> tuple[Direction, ...]:
    """The order by the values of these fields, the first one leading."""
    return tuple(Direction(field.direction == "desc", field.null_order == "nulls-first") for field in fields)


def after(left: Any, right: Any, directions: Sequence[Direction]) -> _Mask:
    """For each row of a record batch, whether it comes after the row of the other one in the same place.

    The batches have one column for each of the directions; rows that are equal in all of them are not after each other.
    """
    found, open_rows = np.zeros(left.num_rows, np.bool_), np.ones(left.num_rows, np.bool_)
    for ours, theirs, direction in zip(left.columns, right.columns, directions, strict=True):
        later, sooner = _greater(ours, theirs, direction), _greater(theirs, ours, direction)
        found |= open_rows & later
        open_rows &= ~(later | sooner)
    return found


def in_order(rows: Any, directions: Sequence[Direction]) -> bool:
    """Whether no row of a record batch comes after the one behind it."""
    if rows.num_rows < 2:  # noqa: PLR2004 - a pair
        return True
    return not after(rows.slice(0, rows.num_rows - 1), rows.slice(1), directions).any()


def _greater(ours: Any, theirs: Any, direction: Direction) -> _Mask:
    """Where a value comes after the other one, by one column."""
    our_null, their_null = _mask(ours.is_null()), _mask(theirs.is_null())
    found = _mask((pc.less if direction.descending else pc.greater)(ours, theirs))
    if pa.types.is_floating(ours.type):
        our_nan, their_nan = _mask(pc.is_nan(ours)), _mask(pc.is_nan(theirs))
        found |= ~our_nan & ~our_null & their_nan if direction.descending else our_nan & ~their_nan & ~their_null
    return found | (their_null & ~our_null if direction.nulls_first else our_null & ~their_null)


def _mask(found: Any) -> _Mask:
    known: _Mask = found.fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
    return known
