"""Avro files of table metadata, read with PyIceberg's compiled decoder, without the columns nobody asked for.

PyIceberg's own readers are not used as they are: they keep manifests in a process-wide cache by path alone, though
paths have been reused, and they end quietly where a truncated file ends, which would lose files from sight.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.file import AvroFile
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import ReadSchemaResolver, SchemaPartnerAccessor
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema, visit_with_partner
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

_READERS_KEPT = 64


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """The fields to be read. Told apart by identity, so that readers can be kept for it: a module constant."""

    schema: Schema


class AvroRecords(AvroFile[Record]):
    """The records of one Avro file as far as ``wanted`` names their fields, matched by field id.

    To be used in a ``with`` statement; iterating ends with EOFError when the file is cut off.
    """

    def __init__(self, io: FileIO, path: str, wanted: Wanted) -> None:
        super().__init__(io.new_input(path), wanted.schema)
        self._wanted = wanted
        self._size_bytes = 0

    def __enter__(self) -> Self:
        """Read the file and its header."""
        with self.input_file.open() as stream:
            content = stream.read()
        self._size_bytes = len(content)
        self.decoder = new_decoder(content)
        self.header = self._read_header()
        self.schema, self.reader = _projection(self.header.meta["avro.schema"], self._wanted)
        return self

    @property
    def size_bytes(self) -> int:
        """The length of the file."""
        return self._size_bytes

    def records(self) -> Iterator[Record]:
        """All records, fields by position as ``wanted`` has them; raises EOFError when the last block is not whole."""
        yield from self
        if self.decoder.tell() != self._size_bytes:
            raise EOFError(f"cut off, or followed by something else, at byte {self.decoder.tell()}")


@lru_cache(maxsize=_READERS_KEPT)
def _projection(avro_schema: str, wanted: Wanted) -> tuple[Schema, Reader]:
    """The file's schema and a reader for the wanted part of it; kept, since a table's manifests share few schemas."""
    schema = AvroSchemaConversion().avro_to_iceberg(json.loads(avro_schema))
    visit: Any = visit_with_partner  # its single dispatch hides its types from the type checker
    return schema, visit(schema, wanted.schema, ReadSchemaResolver({}, {}), _PartlyWanted())


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
