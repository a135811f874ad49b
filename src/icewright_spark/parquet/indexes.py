"""Page indexes and bloom filters, as far as they must be understood to be copied.

A column index and a bloom filter hold no positions and are copied as they are. An offset index says where in the file
each page is, so that its positions move with the pages.
"""

from __future__ import annotations

from typing import Final

from icewright.core.errors import NotStitchable
from icewright_spark.parquet.errors import reading
from icewright_spark.parquet.footer import Chunk, ColumnField, RowGroup, Span, number, structs
from icewright_spark.parquet.thrift import I64, LIST, STRUCT, Struct, read_struct

INDEX_BYTES_MAX: Final = 32 << 20
"""What the page indexes of a group may have together: they are held until all of its row groups are written."""

BLOOM_FILTER_BYTES_MAX: Final = 128 << 20
BLOOM_FILTER_HEADER_BYTES_MAX: Final = 64
_NUM_BYTES: Final = 1

_LOCATIONS: Final = 1
_OFFSET_INDEX_FIELDS: Final = frozenset({_LOCATIONS, 2})
_OFFSET: Final = 1
_PAGE_SIZE: Final = 2
_FIRST_ROW: Final = 3
_LOCATION_FIELDS: Final = frozenset({_OFFSET, _PAGE_SIZE, _FIRST_ROW})


def offset_index(location: str, data: bytes, chunk: Chunk, group: RowGroup) -> Struct:
    """The offset index of a chunk, which must say of each byte behind its dictionary of which page it is.

    Raises :class:`NotStitchable` for one that does not, and for one with more in it than is known here;
    :class:`FileUnreadable` for what is no offset index.
    """
    with reading(location):
        index, end = read_struct(data)
        if end != len(data):
            raise ValueError(f"an offset index of {len(data)} bytes ends after {end}")
        pages = structs(index, _LOCATIONS)
        unknown = (index.keys() - _OFFSET_INDEX_FIELDS).union(*(page.keys() - _LOCATION_FIELDS for page in pages))
        if unknown:
            raise NotStitchable(f"{location}: field {min(unknown)} of an offset index is not known here")
        at, row = number(chunk.column, ColumnField.DATA_PAGE_OFFSET), -1
        for page in pages:
            if number(page, _OFFSET) != at or number(page, _FIRST_ROW) <= row or (row < 0 < number(page, _FIRST_ROW)):
                raise NotStitchable(f"{location}: an offset index does not have the pages in their order")
            at, row = at + number(page, _PAGE_SIZE), number(page, _FIRST_ROW)
        if at != chunk.pages.end or row >= group.rows:
            raise NotStitchable(f"{location}: an offset index has other pages than its column chunk")
    return index


def moved(index: Struct, by: int) -> Struct:
    """An offset index whose pages are ``by`` bytes further on."""
    pages = [{**page, _OFFSET: (I64, page[_OFFSET][1] + by)} for page in index[_LOCATIONS][1][1]]
    return {**index, _LOCATIONS: (LIST, (STRUCT, pages))}


def bloom_filter_span(location: str, head: bytes, chunk: Chunk) -> Span:
    """Where the bloom filter of a chunk is, header and bits, from its first bytes.

    Its own header has its length, which the footer may not have. Raises :class:`FileUnreadable` and
    :class:`NotStitchable`.
    """
    with reading(location):
        start = number(chunk.column, ColumnField.BLOOM_FILTER_OFFSET)
        header, end = read_struct(head)
        span = Span(start, end + number(header, _NUM_BYTES))
        said = number(chunk.column, ColumnField.BLOOM_FILTER_LENGTH, span.size)
        if said != span.size:
            raise ValueError(f"a bloom filter of {span.size} bytes at {start} is said to have {said}")
        if span.size > BLOOM_FILTER_BYTES_MAX:
            raise NotStitchable(f"{location} has a bloom filter of {span.size} bytes")
    return span
