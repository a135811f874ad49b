"""What a Parquet file states of its rows, from its footer and its page indexes.

Read with the parser that stitching has, whose ranges pyarrow and arrow-rs have no part in. Field ids are those of
``parquet.thrift`` (apache/parquet-format 2.12).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icewright_spark.parquet.errors import reading
from icewright_spark.parquet.footer import (
    NUM_CHILDREN,
    Chunk,
    ColumnField,
    FileField,
    Footer,
    RowGroup,
    number,
    structs,
)
from icewright_spark.parquet.indexes import offset_index
from icewright_spark.parquet.source import Source
from icewright_spark.parquet.statistics.bloom import BloomFilter, bloom_filter_of
from icewright_spark.parquet.thrift import BINARY, FALSE, I32, LIST, STRUCT, TRUE, Struct, read_struct

_TYPE: Final = 1
_TYPE_LENGTH: Final = 2
_FIELD_ID: Final = 9
"""Of ``SchemaElement``."""

_STATISTICS: Final = 12
_ENCODINGS, _ENCODING_STATS = 2, 13
"""Of ``ColumnMetaData``; its field 1 is the physical type, as in ``SchemaElement``."""

_PAGE_TYPE, _ENCODING = 1, 2
"""Of ``PageEncodingStats``."""

_DATA_PAGES: Final = frozenset({0, 3})
_OF_DICTIONARIES: Final = frozenset({2, 8})
_OLD_DICTIONARY: Final = 2
_OF_LEVELS: Final = frozenset({3, 4})
"""Types of pages, and encodings: of values by a dictionary, and of what is no value."""

_OLD_MAX, _OLD_MIN, _NULLS, _DISTINCT, _MAX, _MIN, _MAX_EXACT, _MIN_EXACT = range(1, 9)
"""Of ``Statistics``."""

_NULL_PAGES, _MINS, _MAXES, _ORDER, _PAGE_NULLS = range(1, 6)
"""Of ``ColumnIndex``."""

_PAGES: Final = 1
_FIRST_ROW: Final = 3
"""Of ``OffsetIndex`` and ``PageLocation``."""

ASCENDING: Final = 1
DESCENDING: Final = 2

_LAYOUTS: Final[Mapping[int, str]] = {0: "?", 1: "<i", 2: "<q", 4: "<f", 5: "<d"}
_BYTES: Final = (6, 7)
"""Physical types by how their bounds are unpacked; INT96 has no order."""


@dataclass(frozen=True, slots=True)
class Stated:
    """What is stated of the rows from ``start`` to before ``end`` of a file, of one column; None is not stated.

    Bounds are integers, floats or bytes. ``exact`` says of each whether it is said to be a value.
    """

    what: str
    start: int
    end: int
    nulls: int | None
    least: Any
    greatest: Any
    exact: tuple[bool, bool] = (False, False)
    entries: int | None = None
    distinct: int | None = None
    without_values: bool = False


@dataclass(frozen=True, slots=True)
class ChunkStated:
    """What is stated of a column chunk, maybe twice, and of each of its pages: none without an index of them.

    ``whole_dictionary``: readers take its dictionary for all of its values.
    """

    chunk: tuple[Stated, ...]
    pages: tuple[Stated, ...]
    bloom_filter: BloomFilter | None
    whole_dictionary: bool = False

    @property
    def end(self) -> int:
        """Of its rows."""
        return self.chunk[0].end


@dataclass(frozen=True, slots=True)
class ColumnStated:
    """What is stated of a column, by row group. ``width`` is how many bytes a value of fixed length has, or 0."""

    physical: int
    width: int
    chunks: tuple[ChunkStated, ...]


NOTHING: Final = ColumnStated(0, 0, ())
"""Of a column."""


def stated_of(footer: Footer, source: Source, types: Mapping[int, str]) -> Mapping[int, ColumnStated]:
    """What a file states, by field id, of the leaves whose Iceberg types are given.

    Raises :class:`FileUnreadable` and :class:`NotStitchable` for what is not as the format has it.
    """
    found = {}
    with reading(footer.location):
        elements = structs(footer.fields, FileField.SCHEMA)
        own = [element for element in elements if NUM_CHILDREN not in element]
        for position, element in enumerate(own):
            kind = types.get(element.get(_FIELD_ID, (I32, -1))[1])
            if kind is not None:
                bounds = _Bounds(number(element, _TYPE), kind)
                chunks = _chunks(footer, source, position, bounds)
                width = number(element, _TYPE_LENGTH, 0)
                found[element[_FIELD_ID][1]] = ColumnStated(bounds.physical, width, chunks)
    return found


@dataclass(frozen=True, slots=True)
class _Bounds:
    """How bounds of a column are written: by its physical and its Iceberg type."""

    physical: int
    kind: str

    def value(self, bound: bytes | None) -> Any:
        """As it is compared. NaN states nothing, as the format has it. Raises ``ValueError`` for what is no value."""
        if bound is None:
            return None
        if self.physical in _BYTES:
            return int.from_bytes(bound, "big", signed=True) if self.kind.startswith("decimal") else bound
        layout = _LAYOUTS.get(self.physical)
        if layout is None or struct.calcsize(layout) != len(bound):
            raise ValueError(f"a bound of {len(bound)} bytes is none of physical type {self.physical}")
        (value,) = struct.unpack(layout, bound)
        return None if isinstance(value, float) and math.isnan(value) else value


def _chunks(footer: Footer, source: Source, position: int, bounds: _Bounds) -> tuple[ChunkStated, ...]:
    chunks, start = [], 0
    for number_of, group in enumerate(footer.row_groups):
        chunks.append(_chunk(footer, source, position, number_of, start, bounds))
        start += group.rows
    return tuple(chunks)


def _chunk(footer: Footer, source: Source, position: int, number_of: int, start: int, bounds: _Bounds) -> ChunkStated:
    group = footer.row_groups[number_of]
    chunk = group.chunks[position]
    what, end = f"row group {number_of}", start + group.rows
    said = _statistics(chunk)
    stated = [
        Stated(
            what,
            start,
            end,
            nulls=number(said, _NULLS) if _NULLS in said else None,
            least=bounds.value(_bound(said, _MIN)),
            greatest=bounds.value(_bound(said, _MAX)),
            exact=(_true(said, _MIN_EXACT), _true(said, _MAX_EXACT)),
            entries=number(chunk.column, ColumnField.NUM_VALUES),
            distinct=number(said, _DISTINCT) if _DISTINCT in said else None,
        )
    ]
    old = [bounds.value(_bound(said, field_id)) for field_id in (_OLD_MIN, _OLD_MAX)]
    if any(bound is not None for bound in old):
        stated.append(Stated(f"{what}, as of old", start, end, None, *old))
    pages: tuple[Stated, ...] = ()
    if chunk.column_index is not None:
        pages = _pages(footer.location, source, chunk, group, start, bounds)
    span = source.bloom_filter(chunk)
    bloom_filter = None if span is None else bloom_filter_of(source.read(span))
    return ChunkStated(tuple(stated), pages, bloom_filter, whole_dictionary(chunk.column))


def whole_dictionary(column: Struct) -> bool:
    """Whether the dictionary of a column's ``ColumnMetaData`` has all of its values, as Iceberg's reader tells it.

    That is by the encodings of its data pages; where these are not stated, by all encodings. Raises ``ValueError``.
    """
    if _ENCODING_STATS not in column:
        kind, value = column.get(_ENCODINGS, (LIST, (I32, [])))
        if kind != LIST:
            raise ValueError("the encodings of a column should be a list")
        listed = set(value[1])
        return _OLD_DICTIONARY in listed and not listed - {_OLD_DICTIONARY} - _OF_LEVELS
    stated = structs(column, _ENCODING_STATS)
    found = {number(pages, _ENCODING) for pages in stated if number(pages, _PAGE_TYPE) in _DATA_PAGES}
    return bool(found) and found <= _OF_DICTIONARIES


def _pages(
    location: str, source: Source, chunk: Chunk, group: RowGroup, start: int, bounds: _Bounds
) -> tuple[Stated, ...]:
    """What the column index states of the rows that the offset index gives to each page. Raises ``ValueError``."""
    if chunk.column_index is None or chunk.offset_index is None:
        raise ValueError("there is a column index, and no offset index that says of which rows")
    index, _ = read_struct(source.read(chunk.column_index))
    located = structs(offset_index(location, source.read(chunk.offset_index), chunk, group), _PAGES)
    firsts = [*(start + number(page, _FIRST_ROW) for page in located), start + group.rows]
    empty = [value == TRUE for value in _elements(index, _NULL_PAGES)]
    nulls = _elements(index, _PAGE_NULLS) if _PAGE_NULLS in index else [None] * len(empty)
    columns = (empty, nulls, _elements(index, _MINS), _elements(index, _MAXES), firsts[:-1])
    pages = tuple(
        Stated(
            f"page {page}",
            first,
            firsts[page + 1],
            count,
            None if no_values else bounds.value(least),
            None if no_values else bounds.value(greatest),
            without_values=no_values,
        )
        for page, (no_values, count, least, greatest, first) in enumerate(zip(*columns, strict=True))
    )
    _check_order(pages, index.get(_ORDER, (I32, 0))[1])
    return pages


def _check_order(pages: Sequence[Stated], order: int) -> None:
    """Readers look for a page by halving where bounds are said to ascend or descend."""
    if order not in (ASCENDING, DESCENDING):
        return
    for bounds in ([page.least for page in pages], [page.greatest for page in pages]):
        known = [bound for bound in bounds if bound is not None]
        if known != sorted(known, reverse=order == DESCENDING):
            raise ValueError("the bounds of its pages are not in the order that they are said to be in")


def _statistics(chunk: Chunk) -> Struct:
    kind, value = chunk.column.get(_STATISTICS, (STRUCT, {}))
    if kind != STRUCT:
        raise ValueError("the statistics of a column should be a struct")
    found: Struct = value
    return found


def _bound(statistics: Struct, field_id: int) -> bytes | None:
    kind, value = statistics.get(field_id, (BINARY, None))
    if kind != BINARY:
        raise ValueError("a bound should be bytes")
    found: bytes | None = value
    return found


def _true(statistics: Struct, field_id: int) -> bool:
    return statistics.get(field_id, (FALSE, False))[0] == TRUE


def _elements(index: Struct, field_id: int) -> Sequence[Any]:
    kind, value = index.get(field_id, (0, None))
    if kind != LIST:
        raise ValueError(f"field {field_id} of a column index should be a list")
    found: Sequence[Any] = value[1]
    return found
