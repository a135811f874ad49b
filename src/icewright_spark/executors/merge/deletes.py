"""Which rows of its files a group's delete files remove: position deletes in Parquet, and deletion vectors.

Each delete file is read once for the whole group and split by data file, as is a Puffin file of many vectors unless it
is large. A position counts the rows of the data file
from 0, deleted ones included (spec, "Position Delete Files" and "Deletion Vectors"; the frame of a vector's blob is
in the Puffin spec). Paths are compared as exact strings, as the spec has it.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from icewright.core.errors import InvalidMessage
from icewright.model.actions.actions import FileGroup
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat
from icewright_spark.executors.merge.read import expect_size, open_footer
from icewright_spark.parquet.errors import FileChanged, FileUnreadable, ProofFailed, UnsupportedFile, reading
from icewright_spark.parquet.schema import field_id
from icewright_spark.parquet.storage import LOCAL, WHOLE_BYTES_MAX, Storage

FILE_PATH_ID = 2_147_483_546
POSITION_ID = 2_147_483_545

VECTOR_MAGIC = bytes.fromhex("d1d33964")
VECTOR_FRAME_BYTES = 12
"""Of a blob, beside its bitmap: length, magic and checksum, 4 bytes each."""

_BATCH_ROWS = 65_536

Positions: TypeAlias = BitMap64
"""Positions of deleted rows in one data file."""


def deleted_positions(group: FileGroup, storage: Storage = LOCAL) -> dict[str, Positions]:
    """The deleted positions of each file of the group, by its path; files without any are left out.

    Raises :class:`InvalidMessage` for a plan that cannot be right, :class:`UnsupportedFile` for delete files that are
    not read, :class:`FileUnreadable` for damaged ones, and :class:`ProofFailed` for those that are not what their
    manifest says, or name a row that is not there.
    """
    found: dict[str, Positions] = {}
    wanted = wanted_paths(group)
    for location, indexes in _by_location(group, wanted).items():
        for size_bytes in {group.delete_files[index].size_bytes for index in indexes}:
            expect_size(location, size_bytes, storage)
        whole = storage.read(location, 0, size_bytes) if len(indexes) > 1 and size_bytes <= WHOLE_BYTES_MAX else None
        for index in indexes:
            for path, positions in _read(group.delete_files[index], wanted[index], storage, whole):
                if len(positions):
                    found[path] = found.get(path, BitMap64()) | positions
    for file in group.files:
        last = found[file.path].max() if file.path in found else -1
        if last >= file.record_count:
            raise ProofFailed(f"row {last} of {file.path} is deleted, which has {file.record_count} rows")
    return found


def wanted_paths(group: FileGroup) -> dict[int, frozenset[str]]:
    """For each delete file of the group, by its place there, the paths of the data files that it applies to.

    Raises :class:`InvalidMessage` when it cannot apply, :class:`UnsupportedFile` for equality deletes.
    """
    wanted: dict[int, set[str]] = {}
    for file in group.files:
        for index in file.deletes:
            if not 0 <= index < len(group.delete_files):
                raise InvalidMessage(f"group {group.group_id} has no delete file {index}, which {file.path} asks for")
            wanted.setdefault(index, set()).add(file.path)
    for index, paths in wanted.items():
        delete = group.delete_files[index]
        if delete.content is not FileContent.POSITION_DELETES:
            raise UnsupportedFile(f"{delete.path} holds {delete.content.value}, which the merge cannot apply")
        if delete.referenced_data_file is not None and paths != {delete.referenced_data_file}:
            raise InvalidMessage(f"{delete.path} applies to {delete.referenced_data_file} and to no other file")
    return {index: frozenset(paths) for index, paths in sorted(wanted.items())}


def _by_location(group: FileGroup, wanted: Iterable[int]) -> dict[str, list[int]]:
    """Places of delete files by where they are: a Puffin file holds the deletion vectors of many data files."""
    found: dict[str, list[int]] = {}
    for index in wanted:
        found.setdefault(group.delete_files[index].path, []).append(index)
    return found


def without(batch: Any, start: int, positions: Positions | None) -> Any:
    """The rows of a batch that are not deleted; its first row is the file's row ``start``."""
    rows = batch.num_rows
    if positions is None or not rows:
        return batch
    kept = bytearray(b"\x01") * rows
    for position in takewhile(lambda position: position < start + rows, positions.iter_equal_or_larger(start)):
        kept[position - start] = 0
    mask = pa.Array.from_buffers(pa.uint8(), rows, [None, pa.py_buffer(kept)]).cast(pa.bool_())
    return batch.filter(mask)


def vector_bitmap(delete: DeleteFile, storage: Storage = LOCAL, whole: bytes | None = None) -> bytes:
    """The serialized bitmap of a deletion vector, without its frame; ``whole`` is its Puffin file, if that was read.

    Raises :class:`FileUnreadable` when length, magic or checksum are wrong.
    """
    offset, size_bytes = delete.content_offset, delete.content_size_bytes
    if offset is None or size_bytes is None or delete.referenced_data_file is None:
        raise InvalidMessage(f"{delete.path}: a deletion vector without offset, size or data file")
    if offset < 0 or size_bytes < VECTOR_FRAME_BYTES:
        raise FileUnreadable(f"{delete.path} has no deletion vector of {size_bytes} bytes at {offset}")
    blob = storage.read(delete.path, offset, size_bytes) if whole is None else whole[offset : offset + size_bytes]
    if len(blob) != size_bytes:
        raise FileUnreadable(f"{delete.path} ends within the deletion vector at {offset}")
    length, magic, checksum = struct.unpack(">i4s", blob[:8]) + struct.unpack(">I", blob[-4:])
    if length != size_bytes - 8 or magic != VECTOR_MAGIC:
        raise FileUnreadable(f"{delete.path} has no deletion vector of {size_bytes} bytes at {offset}")
    if zlib.crc32(blob[4:-4]) != checksum:
        raise FileUnreadable(f"{delete.path}: the deletion vector at {offset} is damaged, its checksum is another")
    return blob[8:-4]


def _read(
    delete: DeleteFile, paths: frozenset[str], storage: Storage, whole: bytes | None
) -> Iterator[tuple[str, Positions]]:
    if delete.file_format is FileFormat.PUFFIN:
        (path,) = paths
        yield path, _vector(delete, storage, whole)
    elif delete.file_format is FileFormat.PARQUET:
        yield from _position_deletes(delete, paths, storage)
    else:
        raise UnsupportedFile(f"{delete.path}: position deletes in {delete.file_format.value} are not read")


def _vector(delete: DeleteFile, storage: Storage, whole: bytes | None) -> Positions:
    bitmap = vector_bitmap(delete, storage, whole)
    with reading(delete.path):
        positions = BitMap64.deserialize(bitmap)
    if len(positions) != delete.record_count:
        raise FileChanged(
            f"{delete.path}: the deletion vector at {delete.content_offset} has {len(positions)} positions, "
            f"its manifest says {delete.record_count}"
        )
    return positions


def _position_deletes(delete: DeleteFile, paths: frozenset[str], storage: Storage) -> Iterator[tuple[str, Positions]]:
    footer = open_footer(delete.path, storage)
    rows = footer.metadata.num_rows
    if rows != delete.record_count:
        raise FileChanged(f"{delete.path} has {rows} rows, its manifest says {delete.record_count}")
    names = column_names(delete.path, footer.schema_arrow)
    wanted = pa.array(sorted(paths), pa.string())
    with reading(delete.path):
        file = pq.ParquetFile(
            storage.source(delete.path), memory_map=False, pre_buffer=False, page_checksum_verification=True
        )
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(names), use_threads=False):
            path, position = batch.column(names[0]), batch.column(names[1])
            table = pa.table({"path": _plain(path, pa.string()), "position": _plain(position, pa.int64())})
            if table["path"].null_count or table["position"].null_count:
                raise FileUnreadable(f"{delete.path}: a position delete without path or position")
            yield from _by_path(delete.path, table.filter(pc.is_in(table["path"], wanted)))


def column_names(location: str, schema: Any) -> tuple[str, str]:
    """The names of the columns with path and position, which go by their ids. Raises :class:`UnsupportedFile`."""
    by_id = {field_id(field): field.name for field in schema}
    if FILE_PATH_ID not in by_id or POSITION_ID not in by_id:
        raise UnsupportedFile(f"{location} lacks the columns of position deletes, or their field ids")
    return by_id[FILE_PATH_ID], by_id[POSITION_ID]


def _by_path(location: str, table: Any) -> Iterator[tuple[str, Positions]]:
    if not table.num_rows:
        return
    grouped = table.group_by("path", use_threads=False).aggregate([("position", "list"), ("position", "min")])
    if pc.min(grouped["position_min"]).as_py() < 0:
        raise ProofFailed(f"{location} deletes a row before the first")
    for path, positions in zip(grouped["path"], grouped["position_list"], strict=True):
        yield path.as_py(), BitMap64(_unsigned(positions.values))


def _unsigned(positions: Any) -> array[int]:
    """An int64 array as pyroaring takes it fastest."""
    numbers = array("Q")
    numbers.frombytes(positions.buffers()[1][positions.offset * 8 : (positions.offset + len(positions)) * 8])
    return numbers


def _plain(column: Any, kind: Any) -> Any:
    return column if column.type == kind else column.cast(kind)
