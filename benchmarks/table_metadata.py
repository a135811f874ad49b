"""Iceberg's metadata written directly: manifests, manifest lists and metadata files as a writer would leave them.

A table of twelve columns, partitioned by day, in format version 2. Nobody reads its rows.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.avro.file import META_SCHEMA, AvroFileHeader
from pyiceberg.avro.resolver import construct_writer, resolve_writer
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, DoubleType, IcebergType, LongType, NestedField, StringType, TimestampType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

_KINDS_OF_COLUMNS: Final[tuple[IcebergType, ...]] = (LongType(), StringType(), DoubleType(), TimestampType())
_SCHEMA: Final = Schema(
    NestedField(1, "day", DateType(), required=False),
    *(NestedField(n, f"column_{n}", _KINDS_OF_COLUMNS[n % 4], required=False) for n in range(2, 13)),
)
_SPEC: Final = PartitionSpec(PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="day"))
_FORMAT_VERSION: Final = 2
_SYNC: Final = b"icewright-bench!"


def snapshot_id(sequence_number: int) -> int:
    """The id of the snapshot with this sequence number."""
    return 5_000_000_000_000_000_000 + sequence_number


def table_document(
    uuid: str, location: str, snapshots: Sequence[dict[str, Any]], properties: Mapping[str, str]
) -> dict[str, Any]:
    """The content of a metadata file; the last of the snapshots is the current one."""
    current = snapshots[-1]
    return {
        "format-version": _FORMAT_VERSION,
        "table-uuid": uuid,
        "location": location,
        "last-sequence-number": current["sequence-number"],
        "last-updated-ms": current["timestamp-ms"],
        "last-column-id": _SCHEMA.highest_field_id,
        "current-schema-id": 0,
        "schemas": [_SCHEMA.model_dump(mode="json")],
        "default-spec-id": 0,
        "partition-specs": [_SPEC.model_dump(mode="json")],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": dict(properties),
        "current-snapshot-id": current["snapshot-id"],
        "refs": {"main": {"snapshot-id": current["snapshot-id"], "type": "branch"}},
        "snapshots": list(snapshots),
        "snapshot-log": [{"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]} for s in snapshots],
        "metadata-log": [],
    }


def data_file(path: str, day: int, size_bytes: int) -> DataFile:
    """A data file with the column statistics that Spark writes by default: those of every column."""
    columns = [f.field_id for f in _SCHEMA.fields]
    records = size_bytes >> 8
    return DataFile.from_args(
        _table_format_version=_FORMAT_VERSION,
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(day),
        record_count=records,
        file_size_in_bytes=size_bytes,
        column_sizes={column: size_bytes // len(columns) for column in columns},
        value_counts=dict.fromkeys(columns, records),
        null_value_counts=dict.fromkeys(columns, 0),
        nan_value_counts={},
        lower_bounds={f.field_id: _bound(f.field_type, day, day) for f in _SCHEMA.fields},
        upper_bounds={f.field_id: _bound(f.field_type, day, day + records) for f in _SCHEMA.fields},
        key_metadata=None,
        split_offsets=[4],
        equality_ids=None,
        sort_order_id=0,
    )


def _bound(kind: IcebergType, day: int, number: int) -> bytes:
    """A value of the type, as the spec has single values in binary ("Binary single-value serialization")."""
    match kind:
        case DateType():
            return struct.pack("<i", day)
        case StringType():
            return f"value {number:010}".encode()
        case DoubleType():
            return struct.pack("<d", float(number))
        case _:
            return struct.pack("<q", number)


def added_entry(file: DataFile) -> ManifestEntry:
    """The entry of a file in the manifest that it came with."""
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=None,
        sequence_number=None,
        file_sequence_number=None,
        data_file=file,
    )


def write_manifest(path: Path, entries: Sequence[ManifestEntry], sequence_number: int) -> ManifestFile:
    """Write a manifest; what a list says of it."""
    length_bytes = _MANIFEST.write(path, entries)
    counts = {status: sum(1 for e in entries if e.status == status) for status in ManifestEntryStatus}
    rows = {
        status: sum(e.data_file.record_count for e in entries if e.status == status) for status in ManifestEntryStatus
    }
    return ManifestFile.from_args(
        _table_format_version=_FORMAT_VERSION,
        manifest_path=str(path),
        manifest_length=length_bytes,
        partition_spec_id=0,
        content=ManifestContent.DATA,
        sequence_number=sequence_number,
        min_sequence_number=1,
        added_snapshot_id=snapshot_id(sequence_number),
        added_files_count=counts[ManifestEntryStatus.ADDED],
        existing_files_count=counts[ManifestEntryStatus.EXISTING],
        deleted_files_count=counts[ManifestEntryStatus.DELETED],
        added_rows_count=rows[ManifestEntryStatus.ADDED],
        existing_rows_count=rows[ManifestEntryStatus.EXISTING],
        deleted_rows_count=rows[ManifestEntryStatus.DELETED],
        partitions=None,
        key_metadata=None,
    )


def write_list(path: Path, manifests: Sequence[ManifestFile]) -> None:
    """Write a manifest list."""
    _LIST.write(path, manifests)


class _AvroFiles:
    """Writes files of one Avro schema in blocks, as Java's writer does. PyIceberg's own begins a block per entry."""

    def __init__(self, file_schema: Schema, record_schema: Schema, name: str, about: dict[str, str]) -> None:
        avro_schema = json.dumps(AvroSchemaConversion().iceberg_to_avro(file_schema, schema_name=name))
        meta = {**about, "avro.schema": avro_schema, "avro.codec": "deflate"}
        header = BytesIO()
        construct_writer(META_SCHEMA).write(BinaryEncoder(header), AvroFileHeader(b"Obj\x01", meta, _SYNC))
        self._header = header.getvalue()
        self._writer = resolve_writer(record_schema=record_schema, file_schema=file_schema)

    def write(self, path: Path, records: Sequence[Any]) -> int:
        """Write a file; its length."""
        content = b"".join([self._header, *self._blocks(records)])
        path.write_bytes(content)
        return len(content)

    def _blocks(self, records: Sequence[Any]) -> Iterator[bytes]:
        for start in range(0, len(records), 100):
            batch = records[start : start + 100]
            plain, block = BytesIO(), BytesIO()
            for record in batch:
                self._writer.write(BinaryEncoder(plain), record)
            packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            packed = packer.compress(plain.getvalue()) + packer.flush()
            encoder = BinaryEncoder(block)
            encoder.write_int(len(batch))
            encoder.write_int(len(packed))
            yield block.getvalue() + packed + _SYNC


def _entry_schema(version: Any) -> Schema:
    partition = _SPEC.partition_type(_SCHEMA)
    data_file = data_file_with_partition(format_version=version, partition_type=partition)
    return manifest_entry_schema_with_data_file(format_version=version, data_file=data_file)


_MANIFEST: Final = _AvroFiles(
    _entry_schema(_FORMAT_VERSION),
    _entry_schema(DEFAULT_READ_VERSION),
    "manifest_entry",
    {
        "schema": _SCHEMA.model_dump_json(),
        "partition-spec": json.dumps([f.model_dump(mode="json") for f in _SPEC.fields]),
        "partition-spec-id": "0",
        "format-version": "2",
        "content": "data",
    },
)
_LIST: Final = _AvroFiles(
    MANIFEST_LIST_FILE_SCHEMAS[_FORMAT_VERSION],
    MANIFEST_LIST_FILE_SCHEMAS[DEFAULT_READ_VERSION],
    "manifest_file",
    {"format-version": "2"},
)
