"""The live rows of a data file a second time, by code that shares nothing with the first.

A wrong decode, a wrong delete mask or a wrong row id would be in both digests of the proof. So sampled inputs are read
again: data and position deletes with arrow-rs rather than Parquet C++, bitmaps by the reader below (from the format's
specification, github.com/RoaringBitmap/RoaringFormatSpec) rather than CRoaring, rows taken one by one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from icewright.model.actions.actions import FileGroup, InputFile
from icewright.model.iceberg.files import DeleteFile, FileFormat
from icewright_spark.executors.merge.deletes import column_names, vector_bitmap
from icewright_spark.executors.merge.read import BATCH_ROWS_MAX, decode_arrow_rs
from icewright_spark.parquet.errors import FileUnreadable, reading
from icewright_spark.parquet.storage import Storage

_NO_RUNS = 12346
_WITH_RUNS = 12347
_OFFSETS_FROM_CONTAINERS = 4
"""Bitmaps with runs and fewer containers than that have no table of offsets."""
_ARRAY_VALUES_MAX = 4096
_BITSET_BYTES = 8192


def live_rows(
    group: FileGroup, file: InputFile, batches: Callable[[], Iterator[Any]], storage: Storage, *, row_lineage: bool
) -> Iterator[Any]:
    """The rows of ``file``, as ``batches`` gives all of them, without those that the group's delete files remove."""
    dead = bytearray(file.record_count)
    for index in file.deletes:
        for position in _positions(group.delete_files[index], file.path, storage):
            dead[position] = 1
    start = 0
    for batch in batches():
        whole = _with_lineage(batch, start, file) if row_lineage else batch
        alive = [row for row in range(batch.num_rows) if not dead[start + row]]
        yield whole if len(alive) == batch.num_rows else whole.take(pa.array(alive, pa.int64()))
        start += batch.num_rows


def _with_lineage(batch: Any, start: int, file: InputFile) -> Any:
    """The last two columns with the values that the file leaves out."""
    ids, updates = (column.to_pylist() for column in batch.columns[-2:])
    if file.first_row_id is not None:
        ids = [file.first_row_id + start + row if value is None else value for row, value in enumerate(ids)]
    updates = [file.data_sequence_number if value is None else value for value in updates]
    columns = [*batch.columns[:-2], pa.array(ids, pa.int64()), pa.array(updates, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _positions(delete: DeleteFile, path: str, storage: Storage) -> Iterator[int]:
    if delete.file_format is FileFormat.PUFFIN:
        yield from bitmap_values(vector_bitmap(delete, storage), delete.path)
        return
    with reading(delete.path):
        schema, batches = decode_arrow_rs(storage.source(delete.path), BATCH_ROWS_MAX)
        path_name, position_name = column_names(delete.path, schema)
        for batch in batches:
            paths, positions = (batch.column(name).to_pylist() for name in (path_name, position_name))
            yield from (position for other, position in zip(paths, positions, strict=True) if other == path)


def bitmap_values(data: bytes, location: str) -> Iterator[int]:
    """The values of a 64-bit roaring bitmap in its portable form. Raises :class:`FileUnreadable` for anything else."""
    try:
        (count,), at = struct.unpack_from("<Q", data), 8
        for _ in range(count):
            (high,) = struct.unpack_from("<I", data, at)
            values, at = _bitmap32(data, at + 4)
            yield from (high << 32 | value for value in values)
    except (struct.error, ValueError) as error:
        raise FileUnreadable(f"{location}: the deletion vector is no roaring bitmap: {error}") from error
    if at != len(data):
        raise FileUnreadable(f"{location}: the deletion vector has {len(data) - at} bytes too many")


def _bitmap32(data: bytes, at: int) -> tuple[list[int], int]:
    """The values of the 32-bit bitmap that begins at a byte, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    if cookie == _NO_RUNS:
        (count,) = struct.unpack_from("<I", data, at)
        at, runs = at + 4, b""
    elif cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        runs = data[at : at + (count + 7) // 8]
        at += len(runs)
    else:
        raise ValueError(f"it begins with {cookie}")
    keys = [struct.unpack_from("<HH", data, at + 4 * index) for index in range(count)]
    at += 4 * count
    if not runs or count >= _OFFSETS_FROM_CONTAINERS:
        at += 4 * count
    values: list[int] = []
    for index, (high, last) in enumerate(keys):
        is_run = bool(runs) and bool(runs[index // 8] >> index % 8 & 1)
        low, at = _container(data, at, last + 1, is_run=is_run)
        values += [high << 16 | value for value in low]
    return values, at


def _container(data: bytes, at: int, cardinality: int, *, is_run: bool) -> tuple[Sequence[int], int]:
    if is_run:
        (count,) = struct.unpack_from("<H", data, at)
        pairs = [struct.unpack_from("<HH", data, at + 2 + 4 * index) for index in range(count)]
        return [value for first, more in pairs for value in range(first, first + more + 1)], at + 2 + 4 * count
    if cardinality > _ARRAY_VALUES_MAX:
        words = struct.unpack_from(f"<{_BITSET_BYTES // 8}Q", data, at)
        bits = [64 * index + bit for index, word in enumerate(words) for bit in range(64) if word >> bit & 1]
        return bits, at + _BITSET_BYTES
    return struct.unpack_from(f"<{cardinality}H", data, at), at + 2 * cardinality
