"""The bytes of a file, read in ranges, mostly from front to back: in bounded memory, and with few requests.

A row group that is being copied is read once: what was read of it is kept as digests, and the short parts as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

import xxhash

from icewright_spark.parquet.errors import FileUnreadable, reading
from icewright_spark.parquet.footer import Chunk, Span
from icewright_spark.parquet.indexes import BLOOM_FILTER_HEADER_BYTES_MAX, bloom_filter_span

_T = TypeVar("_T")

BLOCK_BYTES: Final = 8 << 20
"""What is asked for at once of pages. Object stores answer one large request at the cost of a small one."""

SIDE_BLOCK_BYTES: Final = 1 << 20
"""The same of page indexes and bloom filters, which mostly lie together elsewhere."""


class Source(Protocol):
    """The bytes that a footer leads to."""

    def digest(self, span: Span) -> str:
        """xxh3-128 of pages or of a bloom filter. Raises :class:`FileUnreadable`."""

    def read(self, span: Span) -> bytes:
        """The bytes of a page index. Raises :class:`FileUnreadable`."""

    def bloom_filter(self, chunk: Chunk) -> Span | None:
        """Where the bloom filter of a chunk is. Raises :class:`FileUnreadable`."""


class FileSource:
    """The bytes of an open file of ``size_bytes``; what it raises are errors of reading ``location``."""

    def __init__(self, file: Any, location: str, size_bytes: int) -> None:
        self._location, self._size = location, size_bytes
        self._pages = _Blocks(file, location, size_bytes, BLOCK_BYTES)
        small = size_bytes <= BLOCK_BYTES
        self._side = self._pages if small else _Blocks(file, location, size_bytes, SIDE_BLOCK_BYTES)

    def pages(self, span: Span) -> Iterator[memoryview]:
        """The bytes of pages, in pieces that are good until the next one. Raises :class:`FileUnreadable`."""
        return self._pages.pieces(span)

    def aside(self, span: Span) -> Iterator[memoryview]:
        """As :meth:`pages`, of what lies elsewhere."""
        return self._side.pieces(span)

    def digest(self, span: Span) -> str:
        """See :class:`Source`."""
        digest = xxhash.xxh3_128()
        for piece in self.pages(span):
            digest.update(piece)
        return digest.hexdigest()

    def read(self, span: Span) -> bytes:
        """See :class:`Source`."""
        return b"".join(self.aside(span))

    def bloom_filter(self, chunk: Chunk) -> Span | None:
        """See :class:`Source`."""
        start = chunk.bloom_filter_at
        if start is None:
            return None
        head = self.read(Span(start, min(BLOOM_FILTER_HEADER_BYTES_MAX, self._size - start)))
        return bloom_filter_span(self._location, head, chunk)


@dataclass(frozen=True, slots=True)
class Copied:
    """What was read of a row group as it was copied. Leads nowhere else: what was not copied is an error."""

    location: str
    digests: dict[Span, str] = field(default_factory=dict)
    indexes: dict[Span, bytes] = field(default_factory=dict)
    bloom_filters: dict[int, Span] = field(default_factory=dict)

    def digest(self, span: Span) -> str:
        """See :class:`Source`."""
        return self._at(self.digests, span)

    def read(self, span: Span) -> bytes:
        """See :class:`Source`."""
        return self._at(self.indexes, span)

    def bloom_filter(self, chunk: Chunk) -> Span | None:
        """See :class:`Source`."""
        return None if chunk.bloom_filter_at is None else self.bloom_filters[chunk.bloom_filter_at]

    def _at(self, found: dict[Span, _T], span: Span) -> _T:
        if span not in found:
            raise FileUnreadable(f"{self.location}: two parsers of its footer do not agree that bytes are at {span}")
        return found[span]


class _Blocks:
    """A file in blocks, of which the last one is held."""

    def __init__(self, file: Any, location: str, size_bytes: int, block_bytes: int) -> None:
        self._file, self._location, self._size, self._block_bytes = file, location, size_bytes, block_bytes
        self._start, self._block = 0, memoryview(b"")

    def pieces(self, span: Span) -> Iterator[memoryview]:
        at = span.start
        while at < span.end:
            if not self._start <= at < self._start + len(self._block):
                self._fetch(at)
            piece = self._block[at - self._start : span.end - self._start]
            at += len(piece)
            yield piece

    def _fetch(self, at: int) -> None:
        with reading(self._location):
            self._file.seek(at)
            size_bytes = min(self._block_bytes, max(0, self._size - at))
            self._start, self._block = at, memoryview(self._file.read(size_bytes))
        if not self._block:
            raise FileUnreadable(f"{self._location} ends before byte {at}")
