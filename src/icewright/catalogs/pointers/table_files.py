"""The port of all files over PyIceberg's catalogs and ``FileIO``, with our own Avro decoder.

Less is read of an entry than for planning (no partition, no statistics), and more is refused: a column that the
specification does not have may name a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, StructType

from icewright.catalogs.metadata.avro import AvroRecords, Wanted
from icewright.catalogs.metadata.bounded_reader import MANIFEST_BYTES_MAX, MANIFEST_LIST_BYTES_MAX
from icewright.catalogs.metadata.manifests import ADDED, DELETED, EXISTING
from icewright.catalogs.metadata.metadata import parse_metadata
from icewright.catalogs.metadata.referenced_files import parse_roots
from icewright.catalogs.metadata.translated_errors import reading
from icewright.catalogs.pointers.catalog import open_pointers
from icewright.catalogs.pointers.pointers import read_metadata
from icewright.core.errors import Unreadable, Unsupported
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.files import FileFormat
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import FileClass, ListedFile, ListedManifest, ManifestListing, Roots
from icewright.model.iceberg.tables import TableMetadata

_DATA_FILE: Final = 2
_LISTED = Wanted(
    Schema(
        NestedField(500, "manifest_path", StringType(), required=True),
        NestedField(501, "manifest_length", LongType(), required=True),
        NestedField(503, "added_snapshot_id", LongType(), required=False),
        NestedField(504, "added_files_count", IntegerType(), required=False),
        NestedField(505, "existing_files_count", IntegerType(), required=False),
        NestedField(506, "deleted_files_count", IntegerType(), required=False),
        NestedField(517, "content", IntegerType(), required=True, initial_default=0),
    )
)
_ENTRIES = Wanted(
    Schema(
        NestedField(0, "status", IntegerType(), required=True),
        NestedField(1, "snapshot_id", LongType(), required=False),
        NestedField(
            _DATA_FILE,
            "data_file",
            StructType(
                NestedField(134, "content", IntegerType(), required=True, initial_default=0),
                NestedField(100, "file_path", StringType(), required=True),
                NestedField(101, "file_format", StringType(), required=True),
                NestedField(104, "file_size_in_bytes", LongType(), required=True),
            ),
            required=True,
        ),
    )
)
_KNOWN_IN_LISTS: Final = frozenset({*range(500, 508), *range(512, 518), 519, 520})
_KNOWN_IN_ENTRIES: Final = frozenset({0, 1, _DATA_FILE, 3, 4})
_KNOWN_OF_FILES: Final = frozenset({*range(100, 112), 125, 128, 131, 132, 134, 135, 137, 140, 142, 143, 144, 145})
_FORMATS: Final = {file_format.value: file_format for file_format in FileFormat}
_DELETES: Final = {1: FileClass.POSITION_DELETES, 2: FileClass.EQUALITY_DELETES}


class PyIcebergTableFiles:
    """The port over one catalog. Nothing is asked before the first question, and nothing is kept."""

    def __init__(self, entry: CatalogEntry) -> None:
        """Raises :class:`~icewright.core.errors.InvalidConfiguration` for an entry that cannot be used."""
        entry.check()
        self._pointers = open_pointers(entry)
        self._is_rest = entry.kind is CatalogKind.REST

    def roots(self, name: TableName) -> Roots:
        """The table by its metadata file, also where the catalog answers with the metadata itself.

        A REST catalog may know less than the file: what it does not understand it leaves out.
        """
        found = self._pointers.load(name)
        location = found.metadata_location
        with reading(f"metadata of table {name} in {location}"):
            metadata = parse_metadata(found.metadata, name=name, metadata_location=location)
            if self._is_rest:
                answered, io = metadata, self._pointers.file_io(location)
                found = read_metadata(io, name, location)
                metadata = parse_metadata(found.metadata, name=name, metadata_location=location)
                check_same(answered, metadata)
            return parse_roots(found.metadata, metadata)

    def size_bytes(self, table: TableMetadata, path: str) -> int:
        """How long a file is, by asking for no more than that."""
        with reading(path):
            return len(self._pointers.file_io(table.metadata_location).new_input(path))

    def manifests(self, table: TableMetadata, path: str) -> ManifestListing:
        """All lines of a manifest list."""
        with reading(f"manifest list {path}"):
            io = self._pointers.file_io(table.metadata_location)
            avro = AvroRecords(io, path, _LISTED, MANIFEST_LIST_BYTES_MAX)
            _check_known(path, {field.field_id for field in avro.schema.fields}, _KNOWN_IN_LISTS)
            return ManifestListing(avro.size_bytes, tuple(_listed(record) for record in avro.records()))

    def live_files(self, table: TableMetadata, manifest: ListedManifest) -> Iterator[ListedFile]:
        """The live entries of a manifest."""
        path = manifest.path
        with reading(f"manifest {path}"):
            avro = AvroRecords(self._pointers.file_io(table.metadata_location), path, _ENTRIES, MANIFEST_BYTES_MAX)
            if manifest.length_bytes not in (None, avro.size_bytes):
                raise ValueError(f"{avro.size_bytes} bytes long, and the manifest list says {manifest.length_bytes}")
            _check_known(path, {field.field_id for field in avro.schema.fields}, _KNOWN_IN_ENTRIES)
            _check_known(path, _ids_below(avro.schema, _DATA_FILE), _KNOWN_OF_FILES)
            entries = 0
            for record in avro.records():
                entries += 1
                file = _live(manifest, record)
                if file is not None:
                    yield file
            if manifest.entries not in (None, entries):
                raise ValueError(f"{entries} entries, and the manifest list says {manifest.entries}")


def check_same(answered: TableMetadata, read: TableMetadata) -> None:
    """Whether the catalog and the file speak of the same state of the same table."""
    same = answered.table_id == read.table_id and answered.current_snapshot_id == read.current_snapshot_id
    if not same or {one.snapshot_id for one in answered.snapshots} != {one.snapshot_id for one in read.snapshots}:
        raise Unreadable(f"what the catalog says of table {read.name} is not what is in {read.metadata_location}")


def _listed(record: Sequence[Any]) -> ListedManifest:
    path, length_bytes, added_by, added, existing, deleted, content = record
    if content not in (0, 1):
        raise Unsupported(f"manifest {path} has the unknown content {content}")
    entries = None if None in (added, existing, deleted) else added + existing + deleted
    return ListedManifest(
        path=path,
        length_bytes=length_bytes,
        is_data=content == 0,
        entries=entries,
        live_files=None if entries is None else entries - deleted,
        added_snapshot_id=added_by,
    )


def _live(manifest: ListedManifest, record: Sequence[Any]) -> ListedFile | None:
    """An entry; None for one that is marked as deleted."""
    status, snapshot_id, (content, path, format_name, size_bytes) = record
    if status not in (EXISTING, ADDED, DELETED):
        raise ValueError(f"the entry of {path} has the unknown status {status}")
    if manifest.is_data not in (None, content == 0):
        raise ValueError(f"the entry of {path} has content {content}, and its manifest is for the other kind")
    if status == DELETED:
        return None
    added_by = manifest.added_snapshot_id if snapshot_id is None else snapshot_id
    return ListedFile(path, _class_of(path, content, format_name), size_bytes, added_by)


def _class_of(path: str, content: int, format_name: str) -> FileClass:
    """What a file is. Raises :class:`Unsupported` for what the specification does not have."""
    file_format = _FORMATS.get(format_name.lower())
    if file_format is FileFormat.PUFFIN and content == 1:
        return FileClass.DELETION_VECTORS
    if file_format in (None, FileFormat.PUFFIN) or content not in (0, *_DELETES):
        raise Unsupported(f"{path} is of an unknown kind: content {content}, format {format_name!r}")
    return _DELETES.get(content, FileClass.DATA)


def _ids_below(schema: Schema, field_id: int) -> set[int]:
    found: Any = schema.find_field(field_id).field_type
    return {field.field_id for field in found.fields}


def _check_known(path: str, found: set[int], known: frozenset[int]) -> None:
    """Whether all columns are of the specification. Raises :class:`Unsupported`."""
    if unknown := sorted(found - known):
        raise Unsupported(f"{path} has an unknown column: field {unknown[0]}")
