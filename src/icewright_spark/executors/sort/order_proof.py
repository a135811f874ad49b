"""That the rows of new files stand in the order of a layout: watched in each file as it is read back.

Within a file no row comes after the next one, and no file reaches into the next one's range; what is equal may stand
on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from icewright.model.iceberg.layouts import Curve, Layout
from icewright_spark.executors.merge.order import Direction, after, directions_of, in_order
from icewright_spark.executors.sort.cells import Cells
from icewright_spark.executors.staged.hash_job import Watch
from icewright_spark.parquet.errors import ProofFailed

_KEY: Final = (Direction(),)
_FIRST_ROW: Final = pa.array([0])


class OrderOfFiles:
    """Watches the rows of files go by, each file's in its order, by columns that are those of the order."""

    def __init__(self, directions: Sequence[Direction]) -> None:
        self._directions = directions
        self._first: dict[str, Any] = {}
        self._last: dict[str, Any] = {}
        self._broken: set[str] = set()

    def add(self, file: str, columns: Any) -> None:
        """The next rows of a file, one at least."""
        first, last = columns.slice(0, 1), columns.slice(columns.num_rows - 1)
        known = self._last.get(file)
        joined = known is None or not after(known, first, self._directions)[0]
        if not joined or not in_order(columns, self._directions):
            self._broken.add(file)
        self._first.setdefault(file, first.take(_FIRST_ROW))  # a copy, that the batch may go
        self._last[file] = last.take(_FIRST_ROW)

    def found(self, file: str) -> str | None:
        """The first and the last row of a file, as hexadecimal of Arrow's; None where its rows are out of order."""
        if file in self._broken:
            return None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._first[file].schema) as stream:
            stream.write_batch(self._first[file])
            stream.write_batch(self._last[file])
        return str(sink.getvalue().hex().decode())


class OrderOnCurve:
    """As :class:`OrderOfFiles`, by the place on a curve, which the cells of each file's group know."""

    def __init__(self, cells: Mapping[str, Cells]) -> None:
        self._cells, self._files = cells, OrderOfFiles(_KEY)

    def add(self, file: str, columns: Any) -> None:
        """The next rows of a file, one at least."""
        self._files.add(file, self._cells[file].place(columns).select(["key"]))

    def found(self, file: str) -> str | None:
        """As of :class:`OrderOfFiles`."""
        return self._files.found(file)


def watch_of(layout: Layout, cells: Mapping[str, Cells]) -> Callable[[], Watch]:
    """What makes a watch over files; ``cells`` are those of each file's group, by path."""
    if layout.curve is not Curve.SORT:
        return lambda: OrderOnCurve(cells)
    directions = directions_of(layout.fields)
    return lambda: OrderOfFiles(directions)


def check_order(layout: Layout, files: Sequence[str], watched: Mapping[str, Sequence[Any]]) -> None:
    """The rows of a group's ``files``, paths in the order of their cells, are in the layout's order.

    Raises :class:`ProofFailed`. ``watched`` is what the watches found; there is nothing of a file without rows.
    """
    ends: list[list[Any]] = []
    for path in files:
        found = watched.get(path, ())
        if len(found) > 1:
            raise ProofFailed(f"{path} was read in parts: it is unknown whether its rows are in order")
        if any(text is None for text in found):
            raise ProofFailed(f"the rows of {path} are not in the order {layout.key}")
        ends.extend(_rows(text) for text in found)
    if not ends:
        return
    directions = directions_of(layout.fields) if layout.curve is Curve.SORT else _KEY
    if not in_order(pa.concat_batches([batch for each in ends for batch in each]), directions):
        raise ProofFailed(f"files overlap by the order {layout.key}: {', '.join(files)}")


def _rows(text: str) -> list[Any]:
    return list(pa.ipc.open_stream(pa.py_buffer(bytes.fromhex(text))))
