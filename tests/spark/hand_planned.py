"""Rewrites of whole tables, planned from what Spark says of them: a view that owes nothing to our planner."""

from __future__ import annotations

import json

from pyspark.sql import Row, SparkSession

from icewright.model.actions.actions import FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import TaskSpec
from icewright_spark.iceberg.java_api import SparkTable
from tests.builders.specs import first_attempt
from tests.spark.tables import sql_name

_CONTENTS = (FileContent.DATA, FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES)
_LEASE_MS = 60_000


def hand_planned(spark: SparkSession, name: TableName) -> TaskSpec:
    """One group for each partition, of all its files."""
    table = SparkTable(spark, name)
    entries = spark.sql(f"SELECT sequence_number, data_file.* FROM {sql_name(name)}.entries WHERE status < 2").collect()  # noqa: S608 - a test
    by_partition: dict[Partition, list[Row]] = {}
    for entry in entries:
        by_partition.setdefault(_partition(entry), []).append(entry)
    groups = [_group(number, *found) for number, found in enumerate(sorted(by_partition.items()))]
    snapshot = table.java.currentSnapshot()
    action = RewriteDataFiles(snapshot.snapshotId(), table.schema_id, tuple(filter(_has_files, groups)), 1 << 29)
    return first_attempt(name, table.uuid, action, f"hand-planned-{snapshot.snapshotId()}", _LEASE_MS)


def _partition(entry: Row) -> Partition:
    values = list(entry["partition"]) if "partition" in entry else []
    return Partition(entry["spec_id"], json.dumps(values, separators=(",", ":")))


def _has_files(group: FileGroup) -> bool:
    return bool(group.files)


def _group(number: int, partition: Partition, entries: list[Row]) -> FileGroup:
    deletes = [_delete(partition, entry) for entry in entries if entry["content"]]
    files = [
        InputFile(
            path=entry["file_path"],
            size_bytes=entry["file_size_in_bytes"],
            record_count=entry["record_count"],
            data_sequence_number=entry["sequence_number"],
            first_row_id=entry["first_row_id"],
            deletes=_applying(entry, deletes),
        )
        for entry in sorted(entries, key=lambda entry: (entry["sequence_number"], entry["file_path"]))
        if not entry["content"]
    ]
    return FileGroup(number, partition, "", tuple(files), delete_files=tuple(deletes))


def _delete(partition: Partition, entry: Row) -> DeleteFile:
    return DeleteFile(
        path=entry["file_path"],
        content=_CONTENTS[entry["content"]],
        file_format=FileFormat(entry["file_format"].lower()),
        partition=partition,
        size_bytes=entry["file_size_in_bytes"],
        record_count=entry["record_count"],
        snapshot_id=1,
        data_sequence_number=entry["sequence_number"],
        referenced_data_file=entry["referenced_data_file"],
        content_offset=entry["content_offset"],
        content_size_bytes=entry["content_size_in_bytes"],
    )


def _applying(entry: Row, deletes: list[DeleteFile]) -> tuple[int, ...]:
    """By the plain words of the spec: a deletion vector alone, or else all position deletes that are not older."""
    own = [
        (number, delete)
        for number, delete in enumerate(deletes)
        if delete.referenced_data_file in (None, entry["file_path"])
        and delete.data_sequence_number >= entry["sequence_number"]
    ]
    vectors = [number for number, delete in own if delete.file_format is FileFormat.PUFFIN]
    return tuple(vectors or [number for number, _ in own])
