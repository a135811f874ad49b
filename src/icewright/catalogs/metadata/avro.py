"""Avro files of table metadata, block by block, without the columns nobody asked for.

PyIceberg's own readers are not used as they are: they keep manifests in a process-wide cache by path alone, though
paths have been reused, and they end quietly where a truncated file ends, which would lose files from sight. Its
schema resolution and its readers of values are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.reader import (
    BinaryReader,
    IntegerReader,
    ListReader,
    MapReader,
    OptionReader,
    Reader,
    StructReader,
)
from pyiceberg.avro.resolver import ReadSchemaResolver, SchemaPartnerAccessor
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema, visit_with_partner
from pyiceberg.types import IcebergType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from icewright.catalogs.metadata.avro_decoder import CheckedDecoder, OptionalBlock, ints, ints_with_short_bytes
from icewright.catalogs.metadata.bounded_reader import read_whole, unpack_block

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_READERS_KEPT = 64
_BYTES_KEPT = 256 << 10
"""Of a file with longer records nothing is kept: it takes some four times as much memory, in each thread that reads."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """The fields to be read. Told apart by identity, so that readers can be kept for it: a module constant."""

    schema: Schema


class RecordsByBytes(Generic[_T]):
    """What the records of one file became, by their bytes: those of the next file need not be decoded again.

    The same bytes under the same schema are the same record, wherever they stand. Not for several threads at once.
    """

    def __init__(self) -> None:
        self._reader: Reader | None = None
        self._kept: dict[bytes, tuple[bytes, _T]] = {}

    def of(self, reader: Reader) -> Mapping[bytes, tuple[bytes, _T]]:
        """By how they begin, the bytes of records and what they became; none where another reader read them."""
        return self._kept if reader is self._reader else {}

    def keep(self, reader: Reader, records: dict[bytes, tuple[bytes, _T]]) -> None:
        """Keep these instead, if they are not too long."""
        length_bytes = sum(len(record) for record, _ in records.values())
        self._reader, self._kept = reader, records if length_bytes <= _BYTES_KEPT else {}


class AvroRecords:
    """The records of one Avro file as far as ``wanted`` names their fields, matched by field id.

    The file is read into memory at once, its blocks are decoded one after the other. ``bytes_max`` is the
    most that the file, and all its blocks together unpacked, may have: :class:`~icewright.core.errors.Unreadable`
    is raised beyond. All methods raise EOFError or ValueError for a damaged file.
    """

    def __init__(self, io: FileIO, path: str, wanted: Wanted, bytes_max: int) -> None:
        content = read_whole(io, path, bytes_max)
        self._path, self._bytes_max = path, bytes_max
        self.size_bytes = len(content)
        self._decoder = CheckedDecoder(content)
        self._meta, self._sync = _header(self._decoder)
        self.schema, self._reader = _projection(self._meta["avro.schema"], wanted)

    def records(self) -> Iterator[list[Any]]:
        """All records, fields by position as ``wanted`` has them; to be iterated once."""
        return self._each(self._reader.read)

    def converted(self, convert: Callable[[Sequence[Any]], _T], last: RecordsByBytes[_T]) -> tuple[_T, ...]:
        """What ``convert`` makes of each record that ``last`` has not, and what it has. It keeps those of this file."""
        known, now = last.of(self._reader), dict[bytes, tuple[bytes, _T]]()

        def read(decoder: CheckedDecoder) -> _T:
            head = decoder.head()
            found = known.get(head)
            if found is None or not decoder.skip_same(found[0]):
                start = decoder.tell()
                value = convert(self._reader.read(decoder))
                found = decoder.since(start), value
            now[head] = found
            return found[1]

        values = tuple(self._each(read))
        last.keep(self._reader, now)
        return values

    def _each(self, read: Callable[[CheckedDecoder], _T]) -> Iterator[_T]:
        """What ``read`` reads of each record."""
        codec = self._meta.get("avro.codec", "null")
        left_bytes = self._bytes_max
        while self._decoder.tell() < self.size_bytes:
            count = self._decoder.read_int()
            if count < 0:
                raise ValueError(f"a block of {count} records")
            block = self._decoder.read_bytes()
            if self._decoder.read(_SYNC_BYTES) != self._sync:
                raise ValueError(f"no sync marker before byte {self._decoder.tell()}")
            content = unpack_block(codec, block, self._path, left_bytes)
            left_bytes -= len(content)
            decoder = CheckedDecoder(content)
            for _ in range(count):
                yield read(decoder)
            if decoder.read_rest():
                raise ValueError(f"more than {count} records in a block")


def _header(decoder: CheckedDecoder) -> tuple[Mapping[str, str], bytes]:
    """What a file says of itself, and its sync marker (Avro specification, "Object Container Files")."""
    if decoder.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("not an Avro file")
    meta: dict[str, str] = {}
    while (count := decoder.read_int()) != 0:
        if count < 0:
            count = -count
            decoder.skip_int()  # the block's bytes
        for _ in range(count):
            key = decoder.read_utf8()
            meta[key] = decoder.read_utf8()
    return meta, decoder.read(_SYNC_BYTES)


@lru_cache(maxsize=_READERS_KEPT)
def _projection(avro_schema: str, wanted: Wanted) -> tuple[Schema, Reader]:
    """The file's schema and a reader for the wanted part of it; kept, since a table's manifests share few schemas."""
    schema = AvroSchemaConversion().avro_to_iceberg(json.loads(avro_schema))
    visit: Any = visit_with_partner  # its single dispatch hides its types from the type checker
    return schema, _quick(visit(schema, wanted.schema, ReadSchemaResolver({}, {}), _PartlyWanted()))


def _quick(reader: Reader) -> Reader:
    """The same reader, but structs come as lists, and maps from column to number or bytes are passed over at once."""
    match reader:
        case StructReader():
            return _StructReader(tuple((position, _quick(field)) for position, field in reader.field_readers))
        case OptionReader():
            return _option(_quick(reader.option))
        case ListReader():
            return ListReader(_quick(reader.element))
        case MapReader() if isinstance(reader.key, IntegerReader) and isinstance(
            reader.value, IntegerReader | BinaryReader
        ):
            return _QuickMapReader(reader.key, reader.value)
        case _:
            return reader


class _StructReader(Reader):
    """Reads a struct as the list of its wanted fields: PyIceberg's takes two calls more for each of them."""

    def __init__(self, fields: tuple[tuple[int | None, Reader], ...]) -> None:
        self._reads = [(position, field.skip if position is None else field.read) for position, field in fields]
        self._skips = [field.skip for _, field in fields]
        self._width = 1 + max((position for position, _ in fields if position is not None), default=-1)

    def read(self, decoder: BinaryDecoder) -> list[Any]:
        """The wanted fields."""
        values: list[Any] = [None] * self._width
        for position, read in self._reads:
            value = read(decoder)
            if position is not None:
                values[position] = value
        return values

    def skip(self, decoder: BinaryDecoder) -> None:
        """Pass over the struct."""
        for skip in self._skips:
            skip(decoder)


_INTS = OptionalBlock(ints)
_PAIRS_OF_INTS = OptionalBlock(lambda count: ints(2 * count))
_INTS_WITH_BYTES = OptionalBlock(ints_with_short_bytes)


def _option(reader: Reader) -> OptionReader:
    match reader:
        case ListReader() if isinstance(reader.element, IntegerReader):
            return _QuickOptionReader(reader, _INTS)
        case _QuickMapReader() if isinstance(reader.value, IntegerReader):
            return _QuickOptionReader(reader, _PAIRS_OF_INTS)
        case _QuickMapReader():
            return _QuickOptionReader(reader, _INTS_WITH_BYTES)
        case _:
            return OptionReader(reader)


class _QuickOptionReader(OptionReader):
    """Passes over the whole option at once where it is like most are; reads as PyIceberg's does."""

    _block: OptionalBlock

    def __init__(self, option: Reader, block: OptionalBlock) -> None:
        super().__init__(option)
        object.__setattr__(self, "_block", block)

    def skip(self, decoder: BinaryDecoder) -> None:
        """Pass over the option."""
        if not _checked(decoder).skip_option(self._block):
            super().skip(decoder)


class _QuickMapReader(MapReader):
    """Passes over a block of a map at once; reads as PyIceberg's does."""

    def skip(self, decoder: BinaryDecoder) -> None:
        """Pass over the map."""
        decoder = _checked(decoder)
        while (count := decoder.read_int()) != 0:
            if count < 0:
                decoder.skip(decoder.read_int())
            elif isinstance(self.value, IntegerReader):
                decoder.skip_ints(2 * count)
            else:
                decoder.skip_int_bytes(count)


def _checked(decoder: BinaryDecoder) -> CheckedDecoder:
    """The same: what is decoded here is always decoded by ours."""
    if not isinstance(decoder, CheckedDecoder):
        raise TypeError(f"a {type(decoder).__name__} does not check where it reads")
    return decoder


class _PartlyWanted(SchemaPartnerAccessor):
    """As PyIceberg's, but nothing below a field that is not wanted is wanted either."""

    def field_partner(self, partner: IcebergType | None, field_id: int, field_name: str) -> IcebergType | None:
        return None if partner is None else super().field_partner(partner, field_id, field_name)

    def list_element_partner(self, partner_list: IcebergType | None) -> IcebergType | None:
        return None if partner_list is None else super().list_element_partner(partner_list)

    def map_key_partner(self, partner_map: IcebergType | None) -> IcebergType | None:
        return None if partner_map is None else super().map_key_partner(partner_map)

    def map_value_partner(self, partner_map: IcebergType | None) -> IcebergType | None:
        return None if partner_map is None else super().map_value_partner(partner_map)
