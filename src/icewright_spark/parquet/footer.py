"""Parquet footers, as far as copying row groups needs them: what lies where in a file, and nothing of what it means.

Field ids are those of ``parquet.thrift`` (apache/parquet-format 2.12). Structs that hold positions are known field by
field, since a field that nobody here knows could be one more of them: a file with such a field is not stitched.
Everything else is passed on as it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from icewright.core.errors import NotStitchable
from icewright_spark.parquet.errors import FileUnreadable, UnsupportedFile, reading
from icewright_spark.parquet.thrift import BINARY, I16, I32, I64, LIST, STRUCT, Struct, read_struct

MAGIC: Final = b"PAR1"
ENCRYPTED_MAGIC: Final = b"PARE"
FOOTER_BYTES_MAX: Final = 8 << 20
"""What the footers of a group may have together: they are held at once, and each reader of the new file parses the
sum of them."""

TAIL_BYTES: Final = 64 << 10
"""Read from the end of a file at first: mostly the whole footer."""

_END_BYTES: Final = 8
_FEWEST_BYTES: Final = 12


class FileField:
    """Fields of ``FileMetaData``."""

    VERSION: Final = 1
    SCHEMA: Final = 2
    NUM_ROWS: Final = 3
    ROW_GROUPS: Final = 4
    KEY_VALUES: Final = 5
    CREATED_BY: Final = 6
    COLUMN_ORDERS: Final = 7
    ENCRYPTION: Final = 8
    SIGNING_KEY: Final = 9


class GroupField:
    """Fields of ``RowGroup``."""

    COLUMNS: Final = 1
    TOTAL_BYTE_SIZE: Final = 2
    NUM_ROWS: Final = 3
    SORTING_COLUMNS: Final = 4
    FILE_OFFSET: Final = 5
    TOTAL_COMPRESSED_SIZE: Final = 6
    ORDINAL: Final = 7


class ChunkField:
    """Fields of ``ColumnChunk``."""

    FILE_PATH: Final = 1
    FILE_OFFSET: Final = 2
    META_DATA: Final = 3
    OFFSET_INDEX_OFFSET: Final = 4
    OFFSET_INDEX_LENGTH: Final = 5
    COLUMN_INDEX_OFFSET: Final = 6
    COLUMN_INDEX_LENGTH: Final = 7


class ColumnField:
    """Fields of ``ColumnMetaData``, of 17 in all."""

    NUM_VALUES: Final = 5
    TOTAL_COMPRESSED_SIZE: Final = 7
    DATA_PAGE_OFFSET: Final = 9
    INDEX_PAGE_OFFSET: Final = 10
    DICTIONARY_PAGE_OFFSET: Final = 11
    BLOOM_FILTER_OFFSET: Final = 14
    BLOOM_FILTER_LENGTH: Final = 15


_MISSING: Final[tuple[int, Any]] = (0, None)

_FILE_FIELDS: Final = frozenset(range(1, 8))
_GROUP_FIELDS: Final = frozenset(range(1, 8))
_CHUNK_FIELDS: Final = frozenset(range(2, 8))
_COLUMN_FIELDS: Final = frozenset(range(1, 18)) - {ColumnField.INDEX_PAGE_OFFSET}


class Span(NamedTuple):
    """Bytes of a file."""

    start: int
    size: int

    @property
    def end(self) -> int:
        """Where the next bytes begin."""
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk: its ``ColumnChunk``, its pages, and what else there is of it elsewhere in the file."""

    struct: Struct
    pages: Span
    bloom_filter_at: int | None
    column_index: Span | None
    offset_index: Span | None

    @property
    def column(self) -> Struct:
        """Its ``ColumnMetaData``."""
        fields: Struct = self.struct[ChunkField.META_DATA][1]
        return fields


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group: its ``RowGroup`` and its chunks, in the order of the schema."""

    struct: Struct
    rows: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Footer:
    """A footer: ``tail`` are its bytes with all that follows them in the file, ``start`` is where they begin."""

    location: str
    start: int
    tail: bytes
    fields: Struct
    row_groups: tuple[RowGroup, ...]

    @property
    def leaves(self) -> int:
        """Primitive columns."""
        return sum(NUM_CHILDREN not in element for element in self.fields[FileField.SCHEMA][1][1])


NUM_CHILDREN: Final = 5
"""The field of ``SchemaElement`` that groups have and leaves do not."""


class Files(Protocol):
    """Where files are; a :class:`~icewright_spark.parquet.storage.Storage` is one."""

    def open_input(self, location: str) -> AbstractContextManager[Any]:
        """A binary file that has ``seek`` and ``read``."""

    def read(self, location: str, offset: int, size_bytes: int) -> bytes:
        """Bytes of a file."""


def read_footer(storage: Files, location: str, size_bytes: int, *, length_max: int | None = None) -> Footer:
    """The footer of a file of that size, of ``length_max`` bytes itself at most (``FOOTER_BYTES_MAX`` unless given).

    Raises :class:`UnsupportedFile` for what is no Parquet file or is encrypted, :class:`FileUnreadable` for a damaged
    one, :class:`NotStitchable` for one that has more in its footer than is known here, and what storages raise.
    """
    head, tail = _ends(storage, location, size_bytes)
    if ENCRYPTED_MAGIC in (head, tail[-len(MAGIC) :]):
        raise UnsupportedFile(f"{location} is encrypted")
    if head != MAGIC:
        raise UnsupportedFile(f"{location} is not a Parquet file")
    if tail[-len(MAGIC) :] != MAGIC or size_bytes < _FEWEST_BYTES:
        raise FileUnreadable(f"{location} has no Parquet footer: it is truncated")
    length = int.from_bytes(tail[-_END_BYTES : -len(MAGIC)], "little")
    start = size_bytes - _END_BYTES - length
    if start < len(MAGIC):
        raise FileUnreadable(f"{location} is said to have a footer of {length} bytes in {size_bytes}")
    if length > (FOOTER_BYTES_MAX if length_max is None else length_max):
        raise NotStitchable(f"{location} has a footer of {length} bytes, which is too long to be copied")
    if length + _END_BYTES > len(tail):
        tail = storage.read(location, start, length + _END_BYTES)
    return parsed_footer(location, start, tail[-_END_BYTES - length :])


def parsed_footer(location: str, start: int, tail: bytes) -> Footer:
    """A footer from its bytes. Raises :class:`FileUnreadable` and :class:`NotStitchable`."""
    with reading(location):
        fields, end = read_struct(tail)
        if end != len(tail) - _END_BYTES:
            raise ValueError(f"its footer ends {len(tail) - _END_BYTES - end} bytes early")
        if {FileField.ENCRYPTION, FileField.SIGNING_KEY} & fields.keys():
            raise NotStitchable(f"{location} has encrypted columns")
        _known(location, "file", fields, _FILE_FIELDS)
        footer = Footer(location, start, tail, fields, ())
        if not footer.leaves:
            raise NotStitchable(f"{location} has no columns")
        groups = tuple(
            _row_group(location, start, struct, footer.leaves) for struct in structs(fields, FileField.ROW_GROUPS)
        )
        if sum(group.rows for group in groups) != number(fields, FileField.NUM_ROWS):
            raise ValueError("its row groups have not as many rows as the file is said to have")
        _check_disjoint([chunk.pages for group in groups for chunk in group.chunks])
    return Footer(location, start, tail, fields, groups)


def number(struct: Struct, field_id: int, otherwise: int | None = None) -> int:
    """An integer of a struct, at least 0. Raises ``ValueError`` for what is none, or missing without ``otherwise``."""
    kind, value = struct.get(field_id, (I64, otherwise))
    if kind not in (I16, I32, I64) or value is None or value < 0:
        raise ValueError(f"field {field_id} should be a count or a position, and is {str(value)[:40]}")
    return int(value)


def structs(struct: Struct, field_id: int) -> Sequence[Struct]:
    """The elements of a list of structs. Raises ``ValueError`` where there is none."""
    kind, value = struct.get(field_id, _MISSING)
    if kind != LIST or (value[0] != STRUCT and value[1]):
        raise ValueError(f"field {field_id} should be a list of structs")
    found: Sequence[Struct] = value[1]
    return found


def key_values(footer: Footer) -> Mapping[bytes, bytes | None]:
    """The key-value metadata of a file. Raises :class:`NotStitchable` for a key that stands there twice."""
    if FileField.KEY_VALUES not in footer.fields:
        return {}
    found: dict[bytes, bytes | None] = {}
    with reading(footer.location):
        for pair in structs(footer.fields, FileField.KEY_VALUES):
            (kind, key), (value_kind, value) = pair[1], pair.get(2, (BINARY, None))
            if (kind, value_kind) != (BINARY, BINARY):
                raise ValueError("its key-value metadata are no texts")
            if key in found or pair.keys() - {1, 2}:
                raise NotStitchable(f"{footer.location} has key-value metadata that are no pairs of their own")
            found[key] = value
    return found


def _ends(storage: Files, location: str, size_bytes: int) -> tuple[bytes, bytes]:
    with storage.open_input(location) as file, reading(location):
        head = bytes(file.read(len(MAGIC)))
        file.seek(max(0, size_bytes - TAIL_BYTES), os.SEEK_SET)
        return head, bytes(file.read(min(size_bytes, TAIL_BYTES)))


def _row_group(location: str, end: int, struct: Struct, leaves: int) -> RowGroup:
    _known(location, "row group", struct, _GROUP_FIELDS)
    rows = number(struct, GroupField.NUM_ROWS)
    if not rows:
        raise NotStitchable(f"{location} has a row group without rows")
    chunks = tuple(_chunk(location, end, chunk) for chunk in structs(struct, GroupField.COLUMNS))
    if len(chunks) != leaves:
        raise ValueError(f"a row group has {len(chunks)} columns, the schema has {leaves}")
    return RowGroup(struct, rows, chunks)


def _chunk(location: str, end: int, struct: Struct) -> Chunk:
    _known(location, "column chunk", struct, _CHUNK_FIELDS)
    kind, column = struct.get(ChunkField.META_DATA, _MISSING)
    if kind != STRUCT:
        raise NotStitchable(f"{location} does not say in its footer where a column chunk is")
    _known(location, "column", column, _COLUMN_FIELDS)
    number(struct, ChunkField.FILE_OFFSET)
    first = number(column, ColumnField.DATA_PAGE_OFFSET)
    dictionary = number(column, ColumnField.DICTIONARY_PAGE_OFFSET, 0)
    # Some writers of old said 0 where there is no dictionary.
    pages = Span(dictionary if 0 < dictionary < first else first, number(column, ColumnField.TOTAL_COMPRESSED_SIZE))
    if not pages.start <= first < pages.end:
        raise ValueError(f"data pages are said to begin at {first}, outside of their column chunk")
    bloom_filter_at = number(column, ColumnField.BLOOM_FILTER_OFFSET, 0) or None
    spans = (
        _span(struct, ChunkField.COLUMN_INDEX_OFFSET, ChunkField.COLUMN_INDEX_LENGTH),
        _span(struct, ChunkField.OFFSET_INDEX_OFFSET, ChunkField.OFFSET_INDEX_LENGTH),
    )
    for span in (pages, *spans, Span(bloom_filter_at or len(MAGIC), 0)):
        if span is not None and not (len(MAGIC) <= span.start and span.end <= end):
            raise ValueError(f"something is said to be at {span.start} to {span.end}, outside of the file's {end}")
    return Chunk(struct, pages, bloom_filter_at, *spans)


def _span(struct: Struct, at: int, length: int) -> Span | None:
    if at not in struct and length not in struct:
        return None
    return Span(number(struct, at), number(struct, length))


def _known(location: str, what: str, struct: Any, known: frozenset[int]) -> None:
    unknown = sorted(struct.keys() - known)
    if unknown:
        raise NotStitchable(f"{location}: field {unknown[0]} of a {what} may be a position, and is not known here")


def _check_disjoint(spans: Sequence[Span]) -> None:
    end = 0
    for span in sorted(spans):
        if span.start < end:
            raise ValueError(f"two column chunks share byte {span.start}")
        end = span.end
