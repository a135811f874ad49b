"""What proves a stitch: each row group of the inputs, in order, is in the output as it was, wherever readers look.

A row group is put down as what readers make of it: the digest of the bytes that a footer leads to, all that is said of
them, and the pages that an offset index leads to, positions relative to the first byte. For both sides pyarrow says
where the bytes of a chunk are and what they hold; the footer was written with another parser. So a position that is
wrong by a byte, a chunk of another column or a row group too few makes the two sides differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from icewright_spark.executors.stitch.rebase import said_of
from icewright_spark.parquet.errors import ProofFailed, reading
from icewright_spark.parquet.footer import Chunk, Footer, RowGroup, Span
from icewright_spark.parquet.indexes import moved, offset_index
from icewright_spark.parquet.source import Source
from icewright_spark.parquet.thrift import Struct, write_struct


@dataclass(frozen=True, slots=True)
class ChunkSeen:
    """A column chunk as readers find it. ``said`` is its metadata as we parse it, ``read`` as pyarrow does."""

    path: str
    pages: str
    said: Struct
    read: tuple[Any, ...]
    bloom_filter: str | None
    column_index: bytes | None
    offset_index: bytes | None

    @property
    def digest(self) -> str:
        """All of its bytes in the file."""
        whole = xxhash.xxh3_128()
        whole.update(f"{self.pages}:{self.bloom_filter};".encode())
        for index in (self.column_index, self.offset_index):
            whole.update(b"" if index is None else f"{len(index)};".encode() + index)
        return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class RowGroupSeen:
    """A row group as readers find it."""

    read: tuple[Any, ...]
    chunks: tuple[ChunkSeen, ...]


def metadata_of(footer: Footer) -> Any:
    """A footer as pyarrow parses it."""
    with reading(footer.location):
        return pq.read_metadata(pa.BufferReader(footer.tail))


def seen(footer: Footer, metadata: Any, number: int, source: Source) -> RowGroupSeen:
    """The row group that a footer leads to by this number; ``metadata`` is :func:`metadata_of` the footer.

    Raises :class:`FileUnreadable` and :class:`NotStitchable`.
    """
    group = footer.row_groups[number]
    with reading(footer.location):
        if metadata.num_row_groups != len(footer.row_groups):
            raise ValueError(f"pyarrow finds {metadata.num_row_groups} row groups, not {len(footer.row_groups)}")
        read = metadata.row_group(number)
        columns = [read.column(position) for position in range(read.num_columns)]
        pairs = zip(group.chunks, columns, strict=True)
        chunks = tuple(_chunk(footer, source, chunk, column, group) for chunk, column in pairs)
        return RowGroupSeen((read.num_rows, read.total_byte_size, repr(read.sorting_columns)), chunks)


def digest_of(groups: Sequence[RowGroupSeen]) -> str:
    """One digest over the bytes of all row groups, in their order."""
    whole = xxhash.xxh3_128()
    for group in groups:
        whole.update(f"{group.read[0]}:{':'.join(chunk.digest for chunk in group.chunks)};".encode())
    return whole.hexdigest()


def compare(location: str, expected: Sequence[RowGroupSeen], found: Sequence[RowGroupSeen]) -> None:
    """Raises :class:`ProofFailed` unless the row groups of the output are those of the inputs."""
    hint = "nothing was committed; keep the files, they are the evidence"
    if len(expected) != len(found):
        raise ProofFailed(f"{location} has {len(found)} row groups, the inputs have {len(expected)}", hint=hint)
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        if one == other:
            continue
        pairs = zip(one.chunks, other.chunks, strict=False)
        columns = ", ".join(repr(old.path) for old, new in pairs if old != new) or "none alone"
        raise ProofFailed(f"row group {number} of {location} is not that of the inputs; columns: {columns}", hint=hint)


def _chunk(footer: Footer, source: Source, chunk: Chunk, column: Any, group: RowGroup) -> ChunkSeen:
    positions = [at for at in (column.dictionary_page_offset, column.data_page_offset) if at]
    pages = Span(min(positions), column.total_compressed_size)
    index = None
    if chunk.offset_index is not None:
        index = offset_index(footer.location, source.read(chunk.offset_index), chunk, group)
    bloom = source.bloom_filter(chunk)
    if (bloom.start if bloom else None) != column.bloom_filter_offset:
        raise ValueError(f"pyarrow finds a bloom filter at {column.bloom_filter_offset}, not at {bloom}")
    return ChunkSeen(
        path=column.path_in_schema,
        pages=source.digest(pages),
        said=said_of(chunk),
        read=_read(column, pages.start),
        bloom_filter=None if bloom is None else source.digest(bloom),
        column_index=None if chunk.column_index is None else source.read(chunk.column_index),
        offset_index=None if index is None else write_struct(moved(index, -pages.start)),
    )


def _read(column: Any, start: int) -> tuple[Any, ...]:
    statistics = column.statistics
    return (
        column.physical_type,
        column.compression,
        column.encodings,
        column.num_values,
        column.total_compressed_size,
        column.total_uncompressed_size,
        column.data_page_offset - start,
        column.has_dictionary_page,
        column.has_column_index,
        column.has_offset_index,
        None if statistics is None else _statistics(statistics),
    )


def _statistics(found: Any) -> str:
    """As text, since NaN equals nothing."""
    extremes = (found.min_raw, found.max_raw) if found.has_min_max else ()
    return repr((extremes, found.null_count if found.has_null_count else None, found.num_values))
