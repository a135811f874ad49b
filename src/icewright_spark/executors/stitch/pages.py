"""Whether a column chunk is as long as its pages are: only then does a copy of so many bytes have all of them.

Readers go on behind the end of a chunk where its pages do, since parquet-java up to 1.2.8 left the header of the
dictionary out of the length (PARQUET-816). In a copy another chunk would begin there, and rows would be lost; bytes
that were never copied differ in no digest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from icewright.core.errors import NotStitchable
from icewright_spark.parquet.errors import reading
from icewright_spark.parquet.footer import Chunk, ColumnField, number
from icewright_spark.parquet.thrift import STRUCT, Malformed, Struct, read_struct

_HEADER_BYTES: Final = 256
_HEADER_BYTES_MAX: Final = 64 << 10
_PAGE_SIZE: Final = 3
_DATA_PAGES: Final = (5, 8)
"""The headers of data pages of version 1 and 2 within that of a page."""
_NUM_VALUES: Final = 1


def whole_pages(location: str, chunk: Chunk, pieces: Iterator[memoryview]) -> Iterator[memoryview]:
    """The pieces of a chunk's pages as they are.

    Raises :class:`NotStitchable` behind the last one unless they end where a page does, with as many values as the
    footer says; :class:`FileUnreadable` for pages of no size.
    """
    left, values, head = 0, 0, b""
    for piece in pieces:
        yield piece
        at = 0
        while at < len(piece):
            if left:
                step = min(left, len(piece) - at)
                left, at = left - step, at + step
                continue
            window = head + bytes(piece[at : at + _HEADER_BYTES_MAX])
            header, end = _header(window)
            if header is None and len(window) >= _HEADER_BYTES_MAX:
                raise NotStitchable(f"{location}: the pages of a column chunk do not follow each other")
            if header is None:
                head, at = window, len(piece)
                continue
            at, head = at + end - len(head), b""
            with reading(location):
                left, values = number(header, _PAGE_SIZE), values + _values(header)
    with reading(location):
        expected = number(chunk.column, ColumnField.NUM_VALUES)
    if left or head or values != expected:
        said = f"{values} values of {expected}, and {left or len(head)} bytes of a page"
        raise NotStitchable(f"{location}: a column chunk is not as long as its pages: {said} where it ends")


def _header(window: bytes) -> tuple[Struct | None, int]:
    """The page header that bytes begin with, and where it ends; None for one that is not all there."""
    for size in (_HEADER_BYTES, _HEADER_BYTES_MAX):
        try:
            return read_struct(window[:size])
        except Malformed:
            continue
    return None, 0


def _values(header: Struct) -> int:
    """The values of a page; 0 of one that is none of data."""
    for kind, found in (header[field_id] for field_id in _DATA_PAGES if field_id in header):
        if kind != STRUCT:
            raise ValueError("the header of a data page should be a struct")
        return number(found, _NUM_VALUES)
    return 0
