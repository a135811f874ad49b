"""Manifest lists and manifests as the spec defines them, one file at a time, with what entries inherit."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from icewright.catalogs.metadata.avro import AvroRecords, RecordsByBytes, Wanted
from icewright.catalogs.metadata.bounded_reader import MANIFEST_BYTES_MAX, MANIFEST_LIST_BYTES_MAX
from icewright.catalogs.metadata.translated_errors import reading
from icewright.catalogs.metadata.values import TypeName, partition_json, primitive_types, result_types
from icewright.core.errors import Conflict, Unsupported
from icewright.model.iceberg.files import UNPARTITIONED, FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import ManifestKey
from icewright.model.iceberg.tables import PartitionSpec, Snapshot, TableMetadata

EXISTING = 0
ADDED = 1
DELETED = 2
_CONTENTS = {0: FileContent.DATA, 1: FileContent.POSITION_DELETES, 2: FileContent.EQUALITY_DELETES}
_FORMATS = {file_format.value: file_format for file_format in FileFormat}
_PARTITION_ID = 102

_LIST_FIELDS = Schema(
    NestedField(500, "manifest_path", StringType(), required=True),
    NestedField(501, "manifest_length", LongType(), required=True),
    NestedField(502, "partition_spec_id", IntegerType(), required=True),
    NestedField(503, "added_snapshot_id", LongType(), required=True),
    NestedField(504, "added_files_count", IntegerType(), required=False),
    NestedField(505, "existing_files_count", IntegerType(), required=False),
    NestedField(506, "deleted_files_count", IntegerType(), required=False),
    NestedField(515, "sequence_number", LongType(), required=True, initial_default=0),
    NestedField(517, "content", IntegerType(), required=True, initial_default=0),
    NestedField(520, "first_row_id", LongType(), required=False),
)
_MANIFESTS = Wanted(_LIST_FIELDS)

_FILE_FIELDS = (
    NestedField(134, "content", IntegerType(), required=True, initial_default=0),
    NestedField(100, "file_path", StringType(), required=True),
    NestedField(101, "file_format", StringType(), required=True),
    NestedField(_PARTITION_ID, "partition", StructType(), required=True),
    NestedField(103, "record_count", LongType(), required=True),
    NestedField(104, "file_size_in_bytes", LongType(), required=True),
    NestedField(142, "first_row_id", LongType(), required=False),
)
# Iceberg's own writers leave it out where there are none.
_SPLIT_FIELD = NestedField(132, "split_offsets", ListType(element_id=133, element=LongType()), required=False)
_COUNT_OF_FIELD = MapType(key_id=0, key_type=IntegerType(), value_id=0, value_type=LongType())
_BOUND_OF_FIELD = MapType(key_id=0, key_type=IntegerType(), value_id=0, value_type=BinaryType())
_BOUND_FIELDS = (
    NestedField(109, "value_counts", _COUNT_OF_FIELD, required=False),
    NestedField(110, "null_value_counts", _COUNT_OF_FIELD, required=False),
    NestedField(125, "lower_bounds", _BOUND_OF_FIELD, required=False),
    NestedField(128, "upper_bounds", _BOUND_OF_FIELD, required=False),
)
_PATHS_OF_DELETES = 2_147_483_546
"""The reserved id of the column ``file_path`` of position deletes (spec, "Reserved Field IDs")."""

_DELETE_FIELDS = (
    NestedField(125, "lower_bounds", _BOUND_OF_FIELD, required=False),
    NestedField(128, "upper_bounds", _BOUND_OF_FIELD, required=False),
    # The spec has int; PyIceberg writes long, which int can be read as.
    NestedField(135, "equality_ids", ListType(element_id=136, element=LongType()), required=False),
    NestedField(143, "referenced_data_file", StringType(), required=False),
    NestedField(144, "content_offset", LongType(), required=False),
    NestedField(145, "content_size_in_bytes", LongType(), required=False),
)


def _entries_with(*file_fields: NestedField) -> Wanted:
    schema = Schema(
        NestedField(0, "status", IntegerType(), required=True),
        NestedField(1, "snapshot_id", LongType(), required=False),
        NestedField(3, "sequence_number", LongType(), required=False),
        NestedField(2, "data_file", StructType(*file_fields), required=True),
    )
    return Wanted(schema)


_ENTRIES = _entries_with(*_FILE_FIELDS)
_ENTRIES_OF_FILES = _entries_with(*_FILE_FIELDS, _SPLIT_FIELD)
_ENTRIES_WITH_BOUNDS = _entries_with(*_FILE_FIELDS, _SPLIT_FIELD, *_BOUND_FIELDS)
_DELETE_ENTRIES = _entries_with(*_FILE_FIELDS, *_DELETE_FIELDS)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One line of a manifest list. ``entries`` is how many entries it must have, None where the list leaves it out.

    ``first_row_id`` is None for delete manifests, before format version 3, and in lists from before an upgrade to it.
    """

    key: ManifestKey
    spec_id: int
    sequence_number: int
    is_data: bool
    entries: int | None
    first_row_id: int | None


@dataclass(frozen=True, slots=True)
class Bounds:
    """Column statistics of a data file by field id, as far as the writer kept them."""

    value_counts: Mapping[int, int]
    null_counts: Mapping[int, int]
    lower: Mapping[int, bytes]
    upper: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class DeleteDetails:
    """What manifests say of delete files alone; fields as in :class:`~icewright.model.iceberg.files.DeleteFile`."""

    path_lower: str | None = None
    path_upper: str | None = None
    equality_ids: tuple[int, ...] = ()
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_bytes: int | None = None


_NO_DETAILS = DeleteDetails()


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a manifest, with what it inherits. ``sequence_number`` is None for some deleted entries.

    ``first_row_id`` is told of live data files alone. ``row_groups`` as in
    :class:`~icewright.model.iceberg.files.DataFile`.
    """

    status: int
    snapshot_id: int
    sequence_number: int | None
    content: FileContent
    path: str
    file_format: FileFormat
    partition: Partition
    record_count: int
    size_bytes: int
    first_row_id: int | None
    row_groups: int | None = None
    bounds: Bounds | None = None
    deletes: DeleteDetails = _NO_DETAILS


class _LastList(threading.local):
    """What a thread read last: lists of a table come in their order, and each has most lines of its parent."""

    def __init__(self) -> None:
        self.lines = RecordsByBytes[Manifest]()


_last_list = _LastList()


def read_manifest_list(io: FileIO, snapshot: Snapshot) -> tuple[Manifest, ...]:
    """The manifests of a snapshot, in the list's order.

    Raises :class:`Unsupported` for a v1 snapshot without a manifest list.
    """
    if not snapshot.manifest_list:
        raise Unsupported(f"snapshot {snapshot.snapshot_id} has no manifest list, as very old v1 writers left it")
    path = snapshot.manifest_list
    with reading(f"manifest list {path}"):
        avro = AvroRecords(io, path, _MANIFESTS, MANIFEST_LIST_BYTES_MAX)
        manifests = avro.converted(_manifest, _last_list.lines)
        # A list cut off right behind its header is a valid file without manifests; the summary tells.
        files = snapshot.summary.get("total-data-files", "0")
        if not manifests and files != "0":
            raise EOFError(f"empty, and the snapshot has {files} data files")
        return manifests


def _manifest(record: Sequence[Any]) -> Manifest:
    path, length_bytes, spec_id, snapshot_id, *counts, sequence_number, content, first_row_id = record
    return Manifest(
        key=ManifestKey(path, length_bytes, snapshot_id),
        spec_id=spec_id,
        sequence_number=sequence_number,
        is_data=content == 0,
        entries=None if None in counts else sum(counts),
        first_row_id=first_row_id if content == 0 else None,
    )


def chosen(manifests: Sequence[Manifest], keys: Sequence[ManifestKey], snapshot: Snapshot) -> Iterator[Manifest]:
    """The manifests of these keys, in the order of the keys. Raises :class:`Conflict` for one that is not there."""
    by_key = {manifest.key: manifest for manifest in manifests}
    for key in keys:
        if key not in by_key:
            raise Conflict(f"manifest {key.path} does not belong to snapshot {snapshot.snapshot_id}")
        yield by_key[key]


class ManifestReader:
    """Reads manifests of one table; knows its specs and types, so that partitions come out in canonical form."""

    def __init__(self, io: FileIO, table: TableMetadata) -> None:
        self._io = io
        self._table = table
        self._types = primitive_types(table)

    def entries(self, manifest: Manifest) -> Iterator[Entry]:
        """All entries of a manifest, deleted ones too, one after the other.

        Raises :class:`~icewright.core.errors.Unreadable` for a damaged file, also for one that has not as many
        entries as its manifest list says.
        """
        return self._entries(manifest, _ENTRIES)

    def file_entries(self, manifest: Manifest, *, with_bounds: bool) -> Iterator[Entry]:
        """As :meth:`entries`, of a data manifest, with row groups, and with bounds where these are wanted."""
        return self._entries(manifest, _ENTRIES_WITH_BOUNDS if with_bounds else _ENTRIES_OF_FILES)

    def delete_entries(self, manifest: Manifest) -> Iterator[Entry]:
        """As :meth:`entries`, of a delete manifest, with what is said of delete files alone."""
        return self._entries(manifest, _DELETE_ENTRIES)

    def _entries(self, manifest: Manifest, wanted: Wanted) -> Iterator[Entry]:
        key, row_ids = manifest.key, _RowIds(manifest)
        with reading(f"manifest {key.path}"):
            avro = AvroRecords(self._io, key.path, wanted, MANIFEST_BYTES_MAX)
            if avro.size_bytes != key.length_bytes:
                raise ValueError(f"{avro.size_bytes} bytes long, and the manifest list says {key.length_bytes}")
            partitions = _Partitions(self._table.spec(manifest.spec_id), self._types, avro.schema)
            count = 0
            for record in avro.records():
                count += 1
                yield row_ids.assigned(_entry(manifest, partitions, record, wanted))
            if manifest.entries is not None and count != manifest.entries:
                raise ValueError(f"{count} entries, and the manifest list says {manifest.entries}")


def _entry(manifest: Manifest, partitions: _Partitions, record: Sequence[Any], wanted: Wanted) -> Entry:
    status, snapshot_id, sequence_number, data_file = record
    content, path, format_name, partition, record_count, size_bytes, first_row_id, *rest = data_file
    if status not in (EXISTING, ADDED, DELETED):
        raise ValueError(f"the entry of {path} has the unknown status {status}")
    if (content == 0) != manifest.is_data:
        raise ValueError(f"the entry of {path} has content {content}, and its manifest is for the other kind")
    # Spec, "Sequence Number Inheritance" and "Snapshot ID inheritance".
    if sequence_number is None and (status == ADDED or manifest.sequence_number == 0):
        sequence_number = manifest.sequence_number
    if sequence_number is None and status != DELETED:
        raise ValueError(f"the existing entry of {path} has no sequence number")
    file_format = _FORMATS.get(format_name.lower())
    if file_format is None:
        raise Unsupported(f"{path} is of the unknown format {format_name!r}")
    of_data = wanted in (_ENTRIES_OF_FILES, _ENTRIES_WITH_BOUNDS)
    splits, *rest = rest if of_data else (None, *rest)
    return Entry(
        status=status,
        snapshot_id=manifest.key.added_snapshot_id if snapshot_id is None else snapshot_id,
        sequence_number=sequence_number,
        content=_CONTENTS[content],
        path=path,
        file_format=file_format,
        partition=partitions.of(partition),
        record_count=record_count,
        size_bytes=size_bytes,
        first_row_id=first_row_id,
        row_groups=len(splits) if splits else None,
        bounds=Bounds(*(values or {} for values in rest)) if wanted is _ENTRIES_WITH_BOUNDS else None,
        deletes=_delete_details(rest) if wanted is _DELETE_ENTRIES else _NO_DETAILS,
    )


def _delete_details(fields: Sequence[Any]) -> DeleteDetails:
    lower, upper, equality_ids, referenced, offset, size_bytes = fields
    return DeleteDetails(
        path_lower=_path_bound(lower),
        path_upper=_path_bound(upper),
        equality_ids=tuple(equality_ids or ()),
        referenced_data_file=referenced,
        content_offset=offset,
        content_size_bytes=size_bytes,
    )


def _path_bound(bounds: Mapping[int, bytes] | None) -> str | None:
    raw = (bounds or {}).get(_PATHS_OF_DELETES)
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:  # cut off inside a character by its writer
        return None


class _RowIds:
    """Gives the entries of one manifest their first row ids, in the manifest's order.

    As Iceberg's Java does it (``ManifestReader.idAssigner``; spec, "First Row ID Inheritance"): each live entry
    without an id gets the manifest's, raised by the rows of the entries that got theirs so before it, existing ones
    among them. In a manifest without an id of its own no entry has one: that is a snapshot from before an upgrade to
    format version 3.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._next = manifest.first_row_id

    def assigned(self, entry: Entry) -> Entry:
        if entry.status == DELETED or self._next is None:
            return entry if entry.first_row_id is None else replace(entry, first_row_id=None)
        if entry.first_row_id is not None:
            return entry
        first_row_id, self._next = self._next, self._next + entry.record_count
        return replace(entry, first_row_id=first_row_id)


class _Partitions:
    """Partitions of one manifest by their decoded values; each is put into canonical form once."""

    def __init__(self, spec: PartitionSpec, types: Mapping[int, TypeName], file_schema: Schema) -> None:
        self._spec_id = spec.spec_id
        self._unpartitioned = spec.is_unpartitioned
        self._types = result_types(spec, types)
        positions = _positions_by_field_id(file_schema)
        self._positions = [positions[field.field_id] for field in spec.fields]
        self._known: dict[str, Partition] = {}

    def of(self, record: Any) -> Partition:
        # By repr, because Python holds 0.0 and -0.0, or 1 and True, to be the same key.
        values = () if self._unpartitioned else [record[position] for position in self._positions]
        key = repr(values)
        partition = self._known.get(key)
        if partition is None:
            text = partition_json(values, self._types) if values else UNPARTITIONED
            partition = self._known[key] = Partition(self._spec_id, text)
        return partition


def _positions_by_field_id(file_schema: Schema) -> dict[int, int]:
    partition = file_schema.find_field(_PARTITION_ID).field_type
    fields = partition.fields if isinstance(partition, StructType) else ()
    return {field.field_id: position for position, field in enumerate(fields)}
