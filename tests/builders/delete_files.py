"""Delete files for the tests, as other writers leave them."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from icewright.model.actions.actions import FileGroup, InputFile
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition

PATH_ID, POSITION_ID = b"2147483546", b"2147483545"
_NUMBERS = itertools.count()


def position_deletes(
    directory: Path, rows: Sequence[tuple[str, int]], *, schema: Any = None, **changes: Any
) -> DeleteFile:
    """A Parquet file of paths and positions."""
    path = directory / f"deletes-{next(_NUMBERS)}.parquet"
    fields = schema or pa.schema(
        [
            pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": PATH_ID}),
            pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": POSITION_ID}),
        ]
    )
    columns = [[name for name, _ in rows], [position for _, position in rows]]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=fields), path)
    delete = DeleteFile(
        path=str(path),
        content=FileContent.POSITION_DELETES,
        file_format=FileFormat.PARQUET,
        partition=Partition(0, "[]"),
        size_bytes=path.stat().st_size,
        record_count=len(rows),
        snapshot_id=2,
        data_sequence_number=2,
    )
    return replace(delete, **changes)


def vector_blob(positions: Iterable[int]) -> bytes:
    """A deletion vector as the Puffin spec frames it."""
    content = bytes.fromhex("d1d33964") + BitMap64(positions).serialize()
    return struct.pack(">i", len(content)) + content + struct.pack(">I", zlib.crc32(content))


def deletion_vector(
    directory: Path, data_file: str, positions: Sequence[int], *, blob: bytes | None = None, **changes: Any
) -> DeleteFile:
    """A Puffin file with another blob before the vector; the footer, which nobody reads, is left out."""
    path = directory / f"deletes-{next(_NUMBERS)}.puffin"
    before, own = b"PFA1" + vector_blob([0]), vector_blob(positions) if blob is None else blob
    path.write_bytes(before + own)
    delete = DeleteFile(
        path=str(path),
        content=FileContent.POSITION_DELETES,
        file_format=FileFormat.PUFFIN,
        partition=Partition(0, "[]"),
        size_bytes=path.stat().st_size,
        record_count=len(set(positions)),
        snapshot_id=2,
        data_sequence_number=2,
        referenced_data_file=data_file,
        content_offset=len(before),
        content_size_bytes=len(own),
    )
    return replace(delete, **changes)


def shared_vectors(directory: Path, positions: dict[str, Sequence[int]]) -> list[DeleteFile]:
    """One Puffin file with the deletion vectors of several data files."""
    path = directory / f"deletes-{next(_NUMBERS)}.puffin"
    blobs = [vector_blob(rows) for rows in positions.values()]
    offsets = [4 + sum(map(len, blobs[:number])) for number in range(len(blobs))]
    path.write_bytes(b"PFA1" + b"".join(blobs))
    return [
        replace(
            deletion_vector(directory, data_file, rows),
            path=str(path),
            size_bytes=path.stat().st_size,
            content_offset=offset,
            content_size_bytes=len(blob),
        )
        for (data_file, rows), offset, blob in zip(positions.items(), offsets, blobs, strict=True)
    ]


def with_deletes(group: FileGroup, applied: Sequence[tuple[DeleteFile, Sequence[InputFile]]]) -> FileGroup:
    """The group with each delete file applied to these files."""
    files = [
        replace(file, deletes=tuple(number for number, (_, to) in enumerate(applied) if file in to))
        for file in group.files
    ]
    return replace(group, files=tuple(files), delete_files=tuple(delete for delete, _ in applied))
