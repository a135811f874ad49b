"""Sorted files merged by their key, without a shuffle: every row is read once, and few are held.

The rows of files in any order are sorted at once, where they are few enough to be held.

A file is opened when the merge has come to its first row, so that as many are open as overlap at one place. Of those
that are, a batch or two is held. In each step all rows go out that come before whatever has not been read yet, put in
order by Arrow; rows that are equal in all columns of the layout stay in the order of the group's files.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icewright.core.errors import NotSorted
from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.tables import Json, SortField
from icewright_spark.executors.merge.order import directions_of, in_order
from icewright_spark.executors.merge.values import comparable
from icewright_spark.parquet.errors import UnsupportedColumn
from icewright_spark.parquet.places import places

OPEN_FILES_MAX: Final = 256
"""Files whose rows overlap at one place: each costs an open file, and a batch of memory."""

_ROWS_AT_ONCE: Final = 65_536
"""Of rows that were sorted at once, in one batch: what goes over them on their way has scratch memory for it."""

RowKey: TypeAlias = tuple[Any, ...]
"""The key of one row, as Python compares it."""


class Key:
    """The columns of a layout in record batches of a table."""

    def __init__(self, schema_fields: Sequence[Json], layout: Layout) -> None:
        """Raises :class:`UnsupportedColumn` for a layout that is not a sort by columns of the table as they are."""
        if layout.curve is not Curve.SORT or any(field.transform != "identity" for field in layout.fields):
            raise UnsupportedColumn(
                f"rows cannot be merged by {layout.key}: only by columns as they are", hint="plan it as a shuffle"
            )
        flat = {place.leaf.field_id: place for place in places(schema_fields) if not place.nested}
        missing = [field.source_id for field in layout.fields if field.source_id not in flat]
        if missing:
            raise UnsupportedColumn(f"the table has no column {missing[0]} outside lists and maps to be merged by")
        self.fields = layout.fields
        self.columns = frozenset(flat[field.source_id].column for field in layout.fields)
        """The positions of the top-level columns that it needs."""
        self._places = [flat[field.source_id] for field in layout.fields]
        self._directions = directions_of(layout.fields)

    def values(self, batch: Any) -> Any:
        """The layout's columns of a record batch of the table, as one of their own."""
        found = [place.of(batch) for place in self._places]
        arrays = [array.storage if isinstance(array, pa.ExtensionArray) else array for array in found]
        return pa.RecordBatch.from_arrays(arrays, names=[str(number) for number in range(len(arrays))])

    def in_order(self, values: Any) -> bool:
        """Whether rows, as :meth:`values` has them, stand in order."""
        return in_order(values, self._directions)


def keys_of(values: Any) -> Any:
    """The columns that :meth:`Key.values` gave, as Arrow and Python compare them. Raises ``Unsupported``."""
    return pa.RecordBatch.from_arrays([comparable(array) for array in values.columns], names=values.schema.names)


class SortedRows:
    """Takes the rows of a stream, and tells when one comes before the one ahead of it."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self._last: Any = None

    def update(self, batch: Any) -> bool:
        """Whether the next rows are in order, and behind all before them."""
        values = self._key.values(batch)
        if not values.num_rows:
            return True
        ahead, self._last = (
            self._last,
            pa.RecordBatch.from_arrays(
                [column.take(pa.array([values.num_rows - 1])) for column in values.columns], schema=values.schema
            ),
        )
        joined = ahead is None or self._key.in_order(pa.concat_batches([ahead, values.slice(0, 1)]))
        return joined and self._key.in_order(values)


class SortedFile:
    """A file to be merged: its first row, deleted or not, and the rows that are left of it, in its order."""

    def __init__(self, number: int, path: str, first: Any | None, rows: Iterable[Any], key: Key) -> None:
        """``number`` is its place in the group, ``first`` a record batch of the layout's columns.

        Of a file without rows that is None, or an empty one. ``rows`` is not begun before it has to be.
        """
        self.number, self.path, self._key = number, path, key
        self.begins = _row(keys_of(first), 0, key.fields) if first is not None and first.num_rows else None
        self._batches = iter(rows)
        self._watch = SortedRows(key)
        self._rows: Any = None
        self._keys: Any = None
        self._enough = 0
        self.more = True

    def fill(self) -> None:
        """Hold a batch at least, as long as there are rows. Raises :class:`NotSorted`, and what reading raises."""
        while self.more and (self._rows is None or self._rows.num_rows <= self._enough):
            batch = next(self._batches, None)
            if batch is None:
                self.more = False
            elif batch.num_rows:
                self._hold(batch)

    def _hold(self, batch: Any) -> None:
        if not self._watch.update(batch):
            raise NotSorted(f"the rows of {self.path} are not in the order that is said of it", hint=_HINT)
        keys = keys_of(self._key.values(batch))
        if self._rows is None:
            self._enough = batch.num_rows // 2
            if self.begins is None or _row(keys, 0, self._key.fields) < self.begins:
                raise NotSorted(f"the first row of {self.path} is not its least", hint=_HINT)
        held = self._rows is not None and self._rows.num_rows
        self._rows = pa.concat_batches([self._rows, batch]) if held else batch
        self._keys = pa.concat_batches([self._keys, keys]) if held else keys

    def __len__(self) -> int:
        """How many rows are held."""
        return 0 if self._rows is None else int(self._rows.num_rows)

    def row(self, index: int) -> RowKey:
        """The key of one of the rows that are held."""
        return _row(self._keys, index, self._key.fields)

    def up_to(self, limit: RowKey, number: int) -> int:
        """How many of the rows that are held come before all rows of file ``number`` from ``limit`` on."""
        if self.number == number:
            return len(self)
        search = bisect_right if self.number < number else bisect_left
        return search(range(len(self)), limit, key=self.row)

    def take(self, count: int) -> tuple[Any, Any]:
        """The next rows and their keys, which are held no longer."""
        taken = self._rows.slice(0, count), self._keys.slice(0, count)
        self._rows, self._keys = self._rows.slice(count), self._keys.slice(count)
        return taken


def merged(files: Sequence[SortedFile], key: Key) -> Iterator[Any]:
    """The rows of all files, in order.

    Raises :class:`NotSorted` for a file that is not in order, and where more than :data:`OPEN_FILES_MAX` overlap.
    """
    for file in files:
        if file.begins is None:
            file.fill()  # nothing, unless something is wrong
    waiting = deque(sorted((file for file in files if file.begins is not None), key=_begin))
    opened: list[SortedFile] = []
    while waiting or opened:
        for file in opened:
            file.fill()
        opened = [file for file in opened if len(file)]
        if waiting and all(_begin(waiting[0]) < (file.row(0), file.number) for file in opened):
            opened = sorted([*opened, waiting.popleft()], key=lambda file: file.number)
            if len(opened) > OPEN_FILES_MAX:
                raise NotSorted(f"more than {OPEN_FILES_MAX} files overlap at one place", hint=_HINT)
        elif opened:
            yield _in_order([file.take(count) for file, count in _steps(opened, waiting)], key)


def sorted_at_once(batches: Iterable[Any], key: Key, held_bytes_max: int) -> Iterator[Any]:
    """All rows in one order; those that are equal in all columns of the layout in that in which they came.

    Raises :class:`NotSorted` for rows of more than so many bytes, decoded.
    """
    parts, held_bytes = [], 0
    for batch in batches:
        held_bytes += batch.nbytes
        if held_bytes > held_bytes_max:
            raise NotSorted(f"more than {held_bytes_max:,} decoded bytes cannot be sorted in one worker", hint=_HINT)
        if batch.num_rows:
            parts.append((batch, keys_of(key.values(batch))))
    if parts:
        whole = _in_order(parts, key) if len(parts) > 1 else _sorted(*parts[0], key)
        yield from (whole.slice(start, _ROWS_AT_ONCE) for start in range(0, whole.num_rows, _ROWS_AT_ONCE))


def _steps(opened: Sequence[SortedFile], waiting: Sequence[SortedFile]) -> Iterator[tuple[SortedFile, int]]:
    """The files that rows are taken of now, and how many: those before all that has not been read."""
    unread = [(file.row(len(file) - 1), file.number) for file in opened if file.more]
    unread += [_begin(file) for file in list(waiting)[:1]]
    for file in opened:
        count = file.up_to(*min(unread)) if unread else len(file)
        if count:
            yield file, count


def _in_order(parts: Sequence[tuple[Any, Any]], key: Key) -> Any:
    """Rows of several files in one order, stable."""
    if len(parts) == 1:
        return parts[0][0]
    return _sorted(pa.concat_batches([part[0] for part in parts]), pa.concat_batches([part[1] for part in parts]), key)


def _sorted(rows: Any, keys: Any, key: Key) -> Any:
    sort_keys = [
        (
            name,
            "descending" if field.direction == "desc" else "ascending",
            "at_start" if field.null_order == "nulls-first" else "at_end",
        )
        for name, field in zip(keys.schema.names, key.fields, strict=True)
    ]
    return rows.take(pc.sort_indices(keys, sort_keys=sort_keys))


def _begin(file: SortedFile) -> tuple[RowKey, int]:
    return file.begins or (), file.number


def _row(keys: Any, index: int, fields: Sequence[SortField]) -> RowKey:
    return tuple(_ranked(column[index].as_py(), field) for column, field in zip(keys.columns, fields, strict=True))


def _ranked(value: int | bytes | None, field: SortField) -> tuple[Any, ...]:
    """A value as Python compares it: nulls before or behind all others."""
    if value is None:
        return (0,) if field.null_order == "nulls-first" else (2,)
    if field.direction == "asc":
        return (1, value)
    return (1, _Descending(value) if isinstance(value, bytes) else -value)


class _Descending:
    """Bytes that come before those that are less."""

    __slots__ = ("value",)

    def __init__(self, value: bytes) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return other.value < self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and other.value == self.value

    __hash__ = None  # type: ignore[assignment] # nobody looks it up


_HINT: Final = "plan it as a shuffle"
