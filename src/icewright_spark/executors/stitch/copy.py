"""Copying row groups into a new file: the bytes as they are, and a footer that says where they are now.

Laid out as parquet-java does it, bloom filters apart: row groups one after the other, then all column indexes, then all
offset indexes, then the footer. Bloom filters stand behind their row group, so that none has to be held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import xxhash

from icewright_spark.executors.stitch.pages import whole_pages
from icewright_spark.executors.stitch.rebase import chunk_at, group_of, with_indexes
from icewright_spark.parquet.errors import unwritable
from icewright_spark.parquet.footer import MAGIC, Chunk, FileField, Footer, RowGroup, Span
from icewright_spark.parquet.indexes import moved, offset_index
from icewright_spark.parquet.proof_cost import ProofCost
from icewright_spark.parquet.source import Copied, FileSource
from icewright_spark.parquet.thrift import LIST, STRUCT, Struct, write_struct


@dataclass(frozen=True, slots=True)
class _Placed:
    """A column chunk in the new file, with the page indexes that are still to be written."""

    struct: Struct
    column_index: bytes | None
    offset_index: bytes | None


class Copy:
    """A file being written from row groups of others; digests for the proof are counted as ``proving``.

    Raises :class:`OutputUnwritable` and what storages raise.
    """

    def __init__(self, file: Any, location: str, proving: ProofCost) -> None:
        self._file, self._location, self._at, self._proving = file, location, 0, proving
        self._groups: list[tuple[RowGroup, list[_Placed]]] = []
        self._starts: list[int] = []
        self._put(MAGIC)

    def row_group(self, footer: Footer, group: RowGroup, source: FileSource) -> Copied:
        """Copies a row group; gives what was read of it. Raises :class:`FileUnreadable` and :class:`NotStitchable`."""
        copied, starts = Copied(footer.location), []
        for chunk in group.chunks:
            to, copied.digests[chunk.pages] = self._copy(whole_pages(footer.location, chunk, source.pages(chunk.pages)))
            starts.append(to.start)
        bloom_filters = [self._bloom_filter(chunk, source, copied) for chunk in group.chunks]
        placed = []
        for chunk, start, bloom_filter in zip(group.chunks, starts, bloom_filters, strict=True):
            for span in (chunk.column_index, chunk.offset_index):
                if span is not None:
                    copied.indexes[span] = source.read(span)
            column_index = None if chunk.column_index is None else copied.indexes[chunk.column_index]
            offsets = None
            if chunk.offset_index is not None:
                index = offset_index(footer.location, copied.indexes[chunk.offset_index], chunk, group)
                offsets = write_struct(moved(index, start - chunk.pages.start))
            placed.append(_Placed(chunk_at(chunk, start, bloom_filter), column_index, offsets))
        self._groups.append((group, placed))
        self._starts.append(starts[0])
        return copied

    def finish(self, fields: Struct) -> None:
        """Writes page indexes and footer; ``fields`` are those of the file as a whole."""
        chunks = [chunk for _, placed in self._groups for chunk in placed]
        column_indexes = iter([self._index(chunk.column_index) for chunk in chunks])
        offset_indexes = iter([self._index(chunk.offset_index) for chunk in chunks])
        groups = []
        for ordinal, ((group, placed), start) in enumerate(zip(self._groups, self._starts, strict=True)):
            structs = [with_indexes(chunk.struct, next(column_indexes), next(offset_indexes)) for chunk in placed]
            groups.append(group_of(group, structs, start, ordinal))
        footer = write_struct({**fields, FileField.ROW_GROUPS: (LIST, (STRUCT, groups))})
        self._put(footer + len(footer).to_bytes(4, "little") + MAGIC)

    def _bloom_filter(self, chunk: Chunk, source: FileSource, copied: Copied) -> Span | None:
        found = source.bloom_filter(chunk)
        if found is None:
            return None
        copied.bloom_filters[found.start] = found
        span, copied.digests[found] = self._copy(source.aside(found))
        return span

    def _index(self, data: bytes | None) -> Span | None:
        if data is None:
            return None
        start = self._at
        self._put(data)
        return Span(start, len(data))

    def _copy(self, pieces: Iterable[memoryview]) -> tuple[Span, str]:
        """Writes the pieces; gives where they are now, and their digest."""
        start, digest = self._at, xxhash.xxh3_128()
        for piece in pieces:
            with self._proving.of_thread():
                digest.update(piece)
            self._put(piece)
        return Span(start, self._at - start), digest.hexdigest()

    def _put(self, data: bytes | memoryview) -> None:
        try:
            self._file.write(data)
        except (OSError, pa.ArrowException) as error:
            raise unwritable(self._location, error) from error
        self._at += len(data)
