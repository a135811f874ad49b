"""Whether the pages of a file are what its footer and its offset indexes say: readers skip by both.

An offset index says at which row a page begins; a reader that takes some pages of one column and some of another puts
their rows together by that. And where a footer says that all pages of a chunk are encoded by its dictionary, readers
look for a value in the dictionary alone (Iceberg's ``ParquetDictionaryRowGroupFilter``), and skip the row group
without it. Bounds tell neither. Field ids are those of ``parquet.thrift`` (apache/parquet-format 2.12).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from icewright.core.errors import NotStitchable
from icewright_spark.parquet.errors import FileUnreadable, UnsupportedFile, reading
from icewright_spark.parquet.footer import Chunk, ColumnField, Footer, RowGroup, Span, number, read_footer, structs
from icewright_spark.parquet.source import FileSource
from icewright_spark.parquet.statistics.check import wrongly_read
from icewright_spark.parquet.storage import Storage
from icewright_spark.parquet.thrift import LIST, STRUCT, Malformed, Struct, read_struct

_ENCODINGS: Final = 2
_PATH: Final = 3
_ENCODING_STATS: Final = 13
"""Of ``ColumnMetaData``; the last one's elements are ``PageEncodingStats``, of a page type and an encoding."""
_PAGE_TYPE, _ENCODING = 1, 2
_TYPES_OF_DATA: Final = (0, 3)
_BY_DICTIONARY: Final = frozenset({2, 8})
_OF_LEVELS: Final = frozenset({3, 4})

_COMPRESSED_BYTES: Final = 3
_V1, _V2 = 5, 8
"""Of ``PageHeader``: the header of a data page of either version."""
_VALUES: Final = 1
_V2_ROWS: Final = 3
_ENCODING_OF: Final = {_V1: 2, _V2: 4}

_LOCATIONS: Final = 1
_OFFSET, _BYTES, _FIRST_ROW = 1, 2, 3
"""Of ``OffsetIndex``, and of ``PageLocation``."""

_HEADER_BYTES: Final = 256
_HEADER_BYTES_MAX: Final = 64 << 10
"""A header has the bounds of its page where its writer wants that."""


@dataclass(frozen=True, slots=True)
class _Page:
    """A data page: its bytes, header and all, its entries, its rows where it says so, and its encoding."""

    span: Span
    entries: int
    rows: int | None
    encoding: int


def check_pages(storage: Storage, location: str, size_bytes: int) -> None:
    """Compare the headers of all data pages of a Parquet file with what is said of them elsewhere in it.

    Raises :class:`ProofFailed` for what does not hold, and what storages raise.
    """
    try:
        footer = read_footer(storage, location, size_bytes, length_max=size_bytes)
        with storage.open_input(location) as file, reading(location):
            wrong = next(_all_wrong(footer, file, size_bytes), None)
    except (FileUnreadable, NotStitchable, UnsupportedFile) as error:
        wrong = f"the positions of its pages are unknown: {error}"
    if wrong is not None:
        raise wrongly_read(location, wrong)


def _all_wrong(footer: Footer, file: Any, size_bytes: int) -> Iterator[str]:
    """In words, what is said of pages and does not hold."""
    source = FileSource(file, footer.location, size_bytes)
    # Indexes are elsewhere in the file: with a source of their own, pages are read from front to back.
    indexes = FileSource(file, footer.location, size_bytes)
    for place, group in enumerate(footer.row_groups):
        for chunk in group.chunks:
            pages = list(_data_pages(source, chunk.pages))
            said = _of_chunk(chunk, pages)
            if said is None and chunk.offset_index is not None:
                index, _ = read_struct(indexes.read(chunk.offset_index))
                said = _of_index(structs(index, _LOCATIONS), _rows(chunk, group, pages), pages)
            if said is not None:
                yield f"row group {place}, column {chunk.column[_PATH][1][1][-1]!r}: {said}"


def _of_chunk(chunk: Chunk, pages: Sequence[_Page]) -> str | None:
    stated, found = number(chunk.column, ColumnField.NUM_VALUES), sum(page.entries for page in pages)
    if stated != found:
        return f"{stated} entries are stated, its pages have {found}"
    others = {page.encoding for page in pages} - _BY_DICTIONARY
    if others and _is_said_to_be_by_dictionary(chunk.column):
        return f"all pages are said to be encoded by its dictionary, and one is by encoding {min(others)}"
    return None


def _rows(chunk: Chunk, group: RowGroup, pages: Sequence[_Page]) -> Sequence[int] | None:
    """How many rows each page has; None where only the entries themselves tell.

    Each row has an entry at least. Where there are no more, each has one.
    """
    if number(chunk.column, ColumnField.NUM_VALUES) == group.rows:
        return [page.entries for page in pages]
    known = [page.rows for page in pages if page.rows is not None]
    return known if len(known) == len(pages) else None


def _of_index(located: Sequence[Struct], rows: Sequence[int] | None, pages: Sequence[_Page]) -> str | None:
    if [Span(number(page, _OFFSET), number(page, _BYTES)) for page in located] != [page.span for page in pages]:
        return "its pages are not where its offset index has them"
    for place, (page, begins_at) in enumerate(zip(located, accumulate(rows or (), initial=0), strict=False)):
        if rows is not None and number(page, _FIRST_ROW) != begins_at:
            return f"page {place} is said to begin at row {number(page, _FIRST_ROW)}, and begins at {begins_at}"
    return None


def _data_pages(source: FileSource, span: Span) -> Iterator[_Page]:
    """The data pages of a chunk, one after the other."""
    at = span.start
    while at < span.end:
        header, size_bytes = _header(source, Span(at, span.end - at))
        end = at + size_bytes + number(header, _COMPRESSED_BYTES)
        if end > span.end:
            raise ValueError(f"a page ends at {end}, after its column chunk")
        for version in (_V1, _V2):
            if version in header:
                kind, found = header[version]
                if kind != STRUCT:
                    raise ValueError("the header of a data page should be a struct")
                rows = number(found, _V2_ROWS) if version == _V2 else None
                yield _Page(Span(at, end - at), number(found, _VALUES), rows, number(found, _ENCODING_OF[version]))
        at = end


def _header(source: FileSource, span: Span) -> tuple[Struct, int]:
    """The page header at the beginning of some bytes, and how long it is. Raises ``ValueError``."""
    for size in (_HEADER_BYTES, _HEADER_BYTES_MAX):
        data = b"".join(source.pages(Span(span.start, min(size, span.size))))
        try:
            return read_struct(data)
        except Malformed:
            continue
    raise ValueError(f"there is no page header at {span.start}")


def _is_said_to_be_by_dictionary(column: Struct) -> bool:
    """Whether readers take the dictionary of a chunk for all of its values, as parquet-java and Iceberg do."""
    if _ENCODING_STATS in column:
        stats = structs(column, _ENCODING_STATS)
        of_data = [number(one, _ENCODING) for one in stats if number(one, _PAGE_TYPE) in _TYPES_OF_DATA]
        return _BY_DICTIONARY.issuperset(of_data)
    kind, value = column.get(_ENCODINGS, (0, None))
    found = set(value[1]) if kind == LIST else set()
    return bool(found & _BY_DICTIONARY) and found <= _BY_DICTIONARY | _OF_LEVELS
