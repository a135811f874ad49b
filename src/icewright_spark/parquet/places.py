"""Where the values of each leaf are in record batches of a table, and what is seen of them.

A Parquet column has an entry for each value, each null, and each list or map without elements: what is not a value of
these is a null in its statistics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icewright.model.iceberg.tables import Json
from icewright_spark.parquet.schema import Leaf, leaves

_ELEMENTS: Final = -1
_KEYS: Final = -2
_VALUES: Final = -3

Steps: TypeAlias = tuple[int, ...]
"""From a column down: the position of a struct's field, or one of the three above."""


@dataclass(frozen=True, slots=True)
class Place:
    """A leaf, the position of its column, the steps down to the first list or map on its way, and those behind."""

    leaf: Leaf
    column: int
    flat: Steps
    nested: Steps

    def of(self, batch: Any) -> Any:
        """The array of a batch, a slot for each row, that the values of the leaf are in."""
        return _down(batch.column(self.column), self.flat)[0]

    def values(self, array: Any) -> tuple[Any, int]:
        """The leaf's slots in a part of what :meth:`of` gives, and how many entries its Parquet column has besides."""
        return _down(array, self.nested)


@dataclass(slots=True)
class Seen:
    """What is seen of a leaf in some rows: entries, how many of them are values, and NaN, whether zeros, the extremes.

    The latter are integers, floats or bytes, as bounds of Parquet are compared; None without values, NaN being none.
    """

    entries: int = 0
    values: int = 0
    nans: int = 0
    zeros: bool = False
    least: Any = None
    greatest: Any = None

    @property
    def nulls(self) -> int:
        """Entries that are no values."""
        return self.entries - self.values

    def add(self, other: Seen) -> None:
        """More rows."""
        self.entries += other.entries
        self.values += other.values
        self.nans += other.nans
        self.zeros |= other.zeros
        if other.least is None:
            return
        if self.least is None or key(other.least) < key(self.least):
            self.least = other.least
        if self.greatest is None or key(self.greatest) < key(other.greatest):
            self.greatest = other.greatest


def places(schema_fields: Sequence[Json]) -> list[Place]:
    """All leaves of a schema, in the order of a file's columns."""
    return [
        Place(leaf, position, _split(steps)[0], _split(steps)[1])
        for position, field in enumerate(schema_fields)
        for leaf, steps in zip(leaves([field]), _ways(field["type"]), strict=True)
    ]


def look(place: Place, array: Any) -> Seen:
    """What is seen in a part of what :meth:`Place.of` gives."""
    found, gaps = place.values(array)
    seen = Seen(len(found) + gaps, len(found) - found.null_count)
    if not seen.values:
        return seen
    if pa.types.is_floating(found.type):
        seen.nans, seen.zeros, seen.least, seen.greatest = _floats(found)
    else:
        seen.least, seen.greatest = _extremes(place.leaf, found)
    return seen


def key(value: Any) -> Any:
    """What values are compared by: -0.0 is less than 0.0, as for the readers that are strictest."""
    return (value, math.copysign(1, value)) if isinstance(value, float) else value


def _extremes(leaf: Leaf, array: Any) -> tuple[Any, Any]:
    if pa.types.is_decimal(array.type):
        narrow = _narrow(array)
        if narrow is not None:
            return int(narrow.min()), int(narrow.max())
    found = pc.min_max(comparable(array))
    least, greatest = (unscaled(found[end].as_py()) for end in ("min", "max"))
    if leaf.type == "uuid" and pa.types.is_string(array.type):  # as Spark shows them
        return bytes.fromhex(least.decode().replace("-", "")), bytes.fromhex(greatest.decode().replace("-", ""))
    return least, greatest


def _narrow(array: Any) -> npt.NDArray[np.int64] | None:
    """Unscaled values of decimals, where all of them fit into 64 bits: a fifth of the time that Arrow takes."""
    words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    if array.null_count:
        words = words[array.is_valid().to_numpy(zero_copy_only=False)]
    low, high = words[:, 0], words[:, 1]
    return low if (high == low >> np.int64(63)).all() else None


def _floats(array: Any) -> tuple[int, bool, float | None, float | None]:
    """How many are NaN, whether any is zero, and the least and the greatest; of two zeros -0.0 is the lesser."""
    values = array.drop_null().to_numpy()
    count, greatest = len(values), values.max()
    if np.isnan(greatest):
        values = values[~np.isnan(values)]
        if not len(values):
            return count, False, None, None
        greatest = values.max()
    least, greatest = float(values.min()), float(greatest)
    zeros = least <= 0 <= greatest and bool((values == 0).any())
    if 0 in (least, greatest):
        negative = np.signbit(values[values == 0])
        least = least or (-0.0 if negative.any() else 0.0)
        greatest = greatest or (-0.0 if negative.all() else 0.0)
    return count - len(values), zeros, least, greatest


def _down(array: Any, steps: Steps) -> tuple[Any, int]:
    """What a column's array has at the end of some steps, and the lists and maps without elements on the way."""
    gaps = 0
    for step in steps:
        if step >= 0:
            array = array.flatten()[step]
            continue
        if step != _ELEMENTS:
            array = array.view(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
        gaps += len(array) - (pc.sum(pc.greater(array.value_lengths(), 0)).as_py() or 0)
        array = array.flatten()
        if step != _ELEMENTS:
            array = array.flatten()[0 if step == _KEYS else 1]
    return array, gaps


def _ways(kind: Any) -> Iterator[Steps]:
    if isinstance(kind, str):
        yield ()
        return
    match kind["type"]:
        case "struct":
            inner = [(position, field["type"]) for position, field in enumerate(kind["fields"])]
        case "list":
            inner = [(_ELEMENTS, kind["element"])]
        case _:
            inner = [(_KEYS, kind["key"]), (_VALUES, kind["value"])]
    for step, below in inner:
        for rest in _ways(below):
            yield (step, *rest)


def _split(steps: Steps) -> tuple[Steps, Steps]:
    first = next((at for at, step in enumerate(steps) if step < 0), len(steps))
    return steps[:first], steps[first:]


def comparable(array: Any) -> Any:
    """The array as a type whose minimum is Iceberg's: bytes unsigned, dates and times as integers."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if pa.types.is_string(kind):
        return array.cast(pa.binary())
    if pa.types.is_date32(kind):
        return array.view(pa.int32())
    if pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        return array.view(pa.int64())
    return array


def unscaled(value: Any) -> Any:
    """A decimal as its unscaled integer; everything else as it is."""
    digits = getattr(value, "as_tuple", None)
    if digits is None:
        return value
    sign, figures, _ = digits()
    number = int("".join(map(str, figures)))
    return -number if sign else number
