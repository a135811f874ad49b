"""Manifests of format version 3 by hand: PyIceberg writes neither delete manifests nor row ids, other engines do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from icewright.model.iceberg.tables import Snapshot

ADDED, EXISTING, DELETED = ManifestEntryStatus.ADDED, ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED
SNAPSHOT_ID, SEQUENCE_NUMBER = 99, 7


@dataclass(frozen=True)
class Made:
    """An entry to be written; ``more`` are further fields of Iceberg's ``data_file`` struct, by name."""

    path: str
    content: DataFileContent = DataFileContent.DATA
    file_format: FileFormat = FileFormat.PARQUET
    status: ManifestEntryStatus = ADDED
    sequence_number: int | None = None
    records: int = 10
    city: str = "Bonn"
    more: dict[str, Any] = field(default_factory=dict)

    def entry(self, *, partitioned: bool) -> ManifestEntry:
        """As PyIceberg's writer takes it."""
        data_file = DataFile.from_args(
            _table_format_version=3,
            content=self.content,
            file_path=self.path,
            file_format=self.file_format,
            partition=Record(self.city) if partitioned else Record(),
            record_count=self.records,
            file_size_in_bytes=1000,
            **self.more,
        )
        data_file.spec_id = 0
        return ManifestEntry.from_args(
            _table_format_version=3,
            status=self.status,
            snapshot_id=None,
            sequence_number=self.sequence_number,
            file_sequence_number=self.sequence_number,
            data_file=data_file,
        )


class _WriterV3(ManifestWriterV2):
    kind = ManifestContent.DATA

    def content(self) -> ManifestContent:
        return self.kind

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        schema = self._with_partition(3)
        return AvroOutputFile[ManifestEntry](
            output_file=self._output_file,
            file_schema=schema,
            record_schema=schema,
            schema_name="manifest_entry",
            metadata=self._meta,
        )


class _DeleteWriterV3(_WriterV3):
    kind = ManifestContent.DELETES


def snapshot_of(table: Table, *manifests: Sequence[Made], first_row_ids: Sequence[int | None] = ()) -> Snapshot:
    """A snapshot with these manifests, each of data files or of delete files alone; it is in no metadata."""
    listed: list[ManifestFile] = []
    for number, made in enumerate(manifests):
        is_data = made[0].content is DataFileContent.DATA
        output = table.io.new_output(f"{table.location()}/metadata/made-{number}.avro")
        kind = _WriterV3 if is_data else _DeleteWriterV3
        with kind(table.spec(), table.schema(), output, SNAPSHOT_ID, "null") as writer:
            for one in made:
                writer.add_entry(one.entry(partitioned=not table.spec().is_unpartitioned()))
        first_row_id = first_row_ids[number] if number < len(first_row_ids) else None
        listed.append(_listed(writer.to_manifest_file(), first_row_id))
    location = f"{table.location()}/metadata/made-list.avro"
    schema = MANIFEST_LIST_FILE_SCHEMAS[3]
    with AvroOutputFile[ManifestFile](
        output_file=table.io.new_output(location),
        file_schema=schema,
        record_schema=schema,
        schema_name="manifest_file",
        metadata={"format-version": "3", "avro.codec": "null"},
    ) as list_writer:
        list_writer.write_block(listed)
    return Snapshot(SNAPSHOT_ID, None, SEQUENCE_NUMBER, 1, None, location, None, {})


def _listed(manifest: ManifestFile, first_row_id: int | None) -> ManifestFile:
    names = [field.name for field in MANIFEST_LIST_FILE_SCHEMAS[2].fields]
    values = dict(zip(names, (manifest[position] for position in range(len(names))), strict=True))
    values |= {"sequence_number": SEQUENCE_NUMBER, "min_sequence_number": 1, "first_row_id": first_row_id}
    return ManifestFile.from_args(_table_format_version=3, **values)
