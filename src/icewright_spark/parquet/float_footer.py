"""What a footer states of floats, so that no reader passes over rows which it should find.

Writers leave NaN out of minima and maxima, as the format has it, and a reader that takes these for bounds of all values
loses such rows: PyArrow takes equal bounds for the one value there is, and Spark holds NaN to be greater than all other
numbers. -0.0 equals 0.0 in SQL and is another value in a dictionary, where Iceberg looks for the one that was asked
for. So a column chunk with NaN has no minimum and no maximum and no index of its pages' ones, one with nothing but
zeros has none either, and of one with a zero it is not said that its dictionary has all values. No library can be told
so of some chunks and not of others: the footer is held back as it is written, and changed.
"""

from __future__ import annotations

import io
import math
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from icewright.model.iceberg.tables import Json
from icewright_spark.parquet.errors import UnsupportedFile
from icewright_spark.parquet.footer import MAGIC, ChunkField, FileField, GroupField, number, structs
from icewright_spark.parquet.places import Place, places
from icewright_spark.parquet.thrift import I32, LIST, Struct, read_struct, write_struct

HELD_BYTES: Final = 16 << 20
"""So much of the end of a file is held back: more than footers of files that are merged ever have."""

_END_BYTES: Final = 8
_OLD_MAX, _OLD_MIN, _MAX, _MIN, _MAX_EXACT, _MIN_EXACT = 1, 2, 5, 6, 7, 8
_BOUNDS: Final = frozenset({_OLD_MAX, _OLD_MIN, _MAX, _MIN, _MAX_EXACT, _MIN_EXACT})
"""Of ``Statistics``."""

_ENCODINGS, _STATISTICS, _ENCODING_STATS = 2, 12, 13
"""Of ``ColumnMetaData``. Where the last one is missing, readers take the pages of a chunk with a dictionary for pages
of several encodings, unless by the encodings there are none but the dictionary's of old."""
_PLAIN: Final = 0
_LAYOUTS: Final = {4: "<f", 8: "<d"}


class FloatFooter:
    """Watches the rows of a file as they are written, and changes its footer."""

    def __init__(self, schema_fields: Sequence[Json]) -> None:
        self._columns = [
            (position, place)
            for position, place in enumerate(places(schema_fields))
            if place.leaf.type in ("float", "double")
        ]
        self._rows = 0
        self._nans: dict[int, list[tuple[int, int]]] = {}
        self._zeros: dict[int, list[tuple[int, int]]] = {}

    def watched(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches, each looked at."""
        for batch in batches:
            end = self._rows + batch.num_rows
            for position, place in self._columns:
                for found, rows in zip((self._nans, self._zeros), _looked_at(place, batch), strict=True):
                    if rows is not None:
                        found.setdefault(position, []).append((self._rows + rows[0], self._rows + rows[1]))
            self._rows = end
            yield batch

    def changed(self, fields: Struct) -> Struct:
        """The ``FileMetaData`` of the file, of all rows that were watched."""
        start = 0
        for group in structs(fields, FileField.ROW_GROUPS):
            end = start + number(group, GroupField.NUM_ROWS)
            chunks = structs(group, GroupField.COLUMNS)
            for position, _ in self._columns:
                if _overlaps(self._nans.get(position, ()), start, end):
                    _without_bounds(chunks[position])
                if _overlaps(self._zeros.get(position, ()), start, end):
                    _of_zeros(chunks[position])
            start = end
        return fields

    @property
    def changes(self) -> bool:
        """Whether there is anything to be changed."""
        return bool(self._nans or self._zeros)


class HeldBack(io.RawIOBase):
    """A file that is written to, the end of which is held back until it is finished."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file, self._held, self._held_bytes, self._at = file, deque[bytes](), 0, 0

    def write(self, data: Any) -> int:
        """Bytes behind all others."""
        piece = bytes(data)
        self._held.append(piece)
        self._held_bytes += len(piece)
        self._at += len(piece)
        while self._held_bytes - len(self._held[0]) >= HELD_BYTES:
            self._held_bytes -= len(self._held[0])
            self._file.write(self._held.popleft())
        return len(piece)

    def tell(self) -> int:
        """How many bytes were written."""
        return self._at

    def writable(self) -> bool:
        """See :class:`io.IOBase`."""
        return True

    def finish(self, change: Callable[[Struct], Struct] | None) -> None:
        """Write what is held back, the ``FileMetaData`` changed. Raises :class:`UnsupportedFile`."""
        tail = b"".join(self._held)
        if change is not None:
            length = int.from_bytes(tail[-_END_BYTES : -len(MAGIC)], "little")
            start = len(tail) - _END_BYTES - length
            if start < 0:
                raise UnsupportedFile(f"a footer of {length:,} bytes is too long to be changed")
            fields, _ = read_struct(tail, start)
            footer = write_struct(change(fields))
            tail = tail[:start] + footer + len(footer).to_bytes(4, "little") + MAGIC
        self._file.write(tail)
        self._held.clear()


def _looked_at(place: Place, batch: Any) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """From which row to which there are NaN in a column, and zeros; None where there are none."""
    array, _ = place.values(place.of(batch))
    masks = (pc.is_nan(array), pc.equal(array, 0.0))
    found = [np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False)) for mask in masks]
    everything = (0, batch.num_rows) if place.nested else None  # of lists and maps, a slot is no row
    nans, zeros = (everything or (int(at[0]), int(at[-1]) + 1) if len(at) else None for at in found)
    return nans, zeros


def _overlaps(ranges: Iterable[tuple[int, int]], start: int, end: int) -> bool:
    return any(first < end and start < last for first, last in ranges)


def _without_bounds(chunk: Struct) -> None:
    column = chunk[ChunkField.META_DATA][1]
    kind, stated = column.get(_STATISTICS, (0, {}))
    if stated:
        column[_STATISTICS] = (kind, {key: value for key, value in stated.items() if key not in _BOUNDS})
    for field_id in (ChunkField.COLUMN_INDEX_OFFSET, ChunkField.COLUMN_INDEX_LENGTH):
        chunk.pop(field_id, None)


def _of_zeros(chunk: Struct) -> None:
    column = chunk[ChunkField.META_DATA][1]
    if column.pop(_ENCODING_STATS, None) is not None:
        listed = column[_ENCODINGS][1][1]
        if _PLAIN not in listed:
            column[_ENCODINGS] = (LIST, (I32, [*listed, _PLAIN]))
    stated = column.get(_STATISTICS, (0, {}))[1]
    bounds = [_value(stated[field_id][1]) for field_id in (_MIN, _MAX) if field_id in stated]
    if bounds == [0, 0]:
        _without_bounds(chunk)


def _value(bound: bytes) -> float:
    layout = _LAYOUTS.get(len(bound))
    return math.nan if layout is None else float(struct.unpack(layout, bound)[0])
