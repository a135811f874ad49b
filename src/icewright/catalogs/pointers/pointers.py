"""Where a catalog's tables are: the one question that differs between kinds of catalogs, behind one narrow protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from pyiceberg.io import FileIO

from icewright.catalogs.metadata.bounded_reader import METADATA_BYTES_MAX, read_whole, unpack_gzip
from icewright.catalogs.metadata.translated_errors import reading
from icewright.catalogs.pointers.file_io import open_files
from icewright.catalogs.port import TablePointers
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName


@dataclass(frozen=True, slots=True)
class Pointed:
    """A table's metadata as the spec's raw JSON, and the file that it is in."""

    metadata_location: str
    metadata: Any


class Pointers(Protocol):
    """What a catalog is asked, by any number of threads at once. All methods may raise ``Unavailable``."""

    def tables(self) -> Iterator[TableName]:
        """All Iceberg tables; views, tables of other formats and names that cannot be spelled are passed over."""

    def metadata_location(self, name: TableName) -> str:
        """The present metadata file: the cheapest question that tells. Raises ``NotFound`` and ``Unreadable``."""

    def all_shown(self) -> TablePointers:
        """See :meth:`icewright.catalogs.port.Catalog.pointers`."""

    def load(self, name: TableName) -> Pointed:
        """The present metadata. Raises ``NotFound`` and ``Unreadable``."""

    def file_io(self, location: str) -> FileIO:
        """What reads the files of the table whose metadata was last loaded from ``location``."""


class CatalogFiles:
    """``FileIO`` by the settings of a catalog alone, kept per scheme: the connections of an object store are reused.

    A table's own properties are its owner's input, and must not decide which code or credentials this process uses.
    """

    def __init__(self, entry: CatalogEntry) -> None:
        self._properties = entry.pyiceberg_properties()
        self._by_scheme: dict[str, FileIO] = {}

    def file_io(self, location: str) -> FileIO:
        """What reads a location."""
        scheme = urlsplit(location).scheme
        if scheme not in self._by_scheme:
            self._by_scheme[scheme] = open_files(self._properties, location)
        return self._by_scheme[scheme]


def read_metadata(io: FileIO, name: TableName, location: str) -> Pointed:
    """Read a metadata file (plain or gzipped JSON). Raises ``Unreadable`` and ``Unavailable``."""
    with reading(f"metadata of table {name} in {location}"):
        content = read_whole(io, location, METADATA_BYTES_MAX)
        return Pointed(location, json.loads(unpack_gzip(content, location, METADATA_BYTES_MAX)))
