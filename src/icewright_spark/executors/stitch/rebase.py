"""Row groups and column chunks as they are to be said of another place in another file."""

from __future__ import annotations

from typing import Final

from icewright_spark.parquet.footer import Chunk, ChunkField, ColumnField, GroupField, RowGroup, Span
from icewright_spark.parquet.thrift import I16, I32, I64, LIST, STRUCT, Struct

ORDINAL_MAX: Final = (1 << 15) - 1
"""Row groups of one file that an ordinal can tell apart."""

_POSITIONS: Final = (ColumnField.DATA_PAGE_OFFSET, ColumnField.DICTIONARY_PAGE_OFFSET)
_INDEXES: Final = (
    ChunkField.OFFSET_INDEX_OFFSET,
    ChunkField.OFFSET_INDEX_LENGTH,
    ChunkField.COLUMN_INDEX_OFFSET,
    ChunkField.COLUMN_INDEX_LENGTH,
)


def chunk_at(chunk: Chunk, start: int, bloom_filter: Span | None) -> Struct:
    """The ``ColumnChunk`` of a chunk whose pages begin at ``start`` and whose bloom filter is there; no indexes yet."""
    by = start - chunk.pages.start
    column = dict(chunk.column)
    for field_id in _POSITIONS:
        if field_id in column and column[field_id][1]:
            column[field_id] = (I64, column[field_id][1] + by)
    for field_id in (ColumnField.BLOOM_FILTER_OFFSET, ColumnField.BLOOM_FILTER_LENGTH):
        column.pop(field_id, None)
    if bloom_filter is not None:
        column[ColumnField.BLOOM_FILTER_OFFSET] = (I64, bloom_filter.start)
        column[ColumnField.BLOOM_FILTER_LENGTH] = (I32, bloom_filter.size)
    struct = {field_id: field for field_id, field in chunk.struct.items() if field_id not in _INDEXES}
    # Of old it was the place of a second copy of the column's metadata; what points to its pages is passed on.
    at = struct[ChunkField.FILE_OFFSET][1]
    inside = chunk.pages.start <= at < chunk.pages.end
    struct[ChunkField.FILE_OFFSET] = (I64, at + by if inside else 0)
    struct[ChunkField.META_DATA] = (STRUCT, dict(sorted(column.items())))
    return struct


def with_indexes(struct: Struct, column_index: Span | None, offset_index: Span | None) -> Struct:
    """A ``ColumnChunk`` with its page indexes where they are now."""
    fields = dict(struct)
    for at, length, span in ((*_INDEXES[:2], offset_index), (*_INDEXES[2:], column_index)):
        if span is not None:
            fields[at], fields[length] = (I64, span.start), (I32, span.size)
    return fields


def group_of(group: RowGroup, chunks: list[Struct], start: int, ordinal: int) -> Struct:
    """The ``RowGroup`` of these chunks, the first byte of which is at ``start``."""
    struct = dict(group.struct)
    struct[GroupField.COLUMNS] = (LIST, (STRUCT, chunks))
    if GroupField.FILE_OFFSET in struct:
        struct[GroupField.FILE_OFFSET] = (I64, start)
    if GroupField.ORDINAL in struct:
        struct[GroupField.ORDINAL] = (I16, ordinal)
    return struct


def said_of(chunk: Chunk) -> Struct:
    """All that is said of a chunk but where it is: equal for a chunk and its copy."""
    struct = chunk_at(chunk, 0, None)
    struct[ChunkField.FILE_OFFSET] = (I64, 0)
    return struct
