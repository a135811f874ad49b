"""Statistics files as Iceberg's own code computes and writes them, and as they are read back by other code.

Iceberg's actions for it commit by themselves (decision 0034). What they are made of does not, and is what is called
here: ``NDVSketchUtil``, which is not public and is reached by name, and ``PartitionStatsHandler``.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from icewright.core.errors import Unsupported
from icewright.model.actions.compute_statistics import (
    NDV_TOLERANCE,
    ComputeStatistics,
    PartitionFigures,
    PartitionTotals,
    figures_digest,
)
from icewright.model.iceberg.tables import NDV_KEY, THETA_SKETCH
from icewright.model.work.jobs import TaskSpec
from icewright_spark.iceberg.java_api import SparkTable, iterate
from icewright_spark.iceberg.puffin import distinct_values, read_puffin
from icewright_spark.parquet.errors import ProofFailed

_API: Final = "org.apache.iceberg."
_SKETCHES: Final = f"{_API}spark.actions.NDVSketchUtil"
_SKETCHES_OF: Final = ("org.apache.spark.sql.SparkSession", f"{_API}Table", f"{_API}Snapshot", "java.util.List")
_PARTITIONS: Final = f"{_API}PartitionStatsHandler"
_DELETES: Final = ("position_delete_file_count", "equality_delete_file_count", "dv_count")
_SIZE_MAX: Final = 512 * 1024 * 1024
"""The largest statistics file that is read back: some five million partitions."""


@dataclass(frozen=True, slots=True)
class ComputedFile:
    """A statistics file that was written: Java's object for the metadata, where it is, and how long."""

    java: Any
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ComputedFiles:
    """The files of one attempt; None where the action wants none."""

    of_columns: ComputedFile | None
    of_partitions: ComputedFile | None

    def __iter__(self) -> Iterator[ComputedFile]:
        """Those that there are."""
        return (each for each in (self.of_columns, self.of_partitions) if each is not None)


def sketch_columns(spark: SparkSession, table: SparkTable, spec: TaskSpec, action: ComputeStatistics) -> ComputedFile:
    """Read the columns by Spark and write a sketch of each into one Puffin file, whose name has the task's id."""
    session = spark._jsparkSession  # noqa: SLF001 - what Iceberg's utility takes
    names = table.lists.of([column.name for column in action.columns])
    snapshot = table.java.snapshot(action.base_snapshot_id)
    blobs = table.lists.call_hidden(_SKETCHES, "generateBlobs", _SKETCHES_OF, (session, table.java, snapshot, names))
    name = f"{action.base_snapshot_id}-{spec.task_id}-{spec.attempt}-{uuid.uuid4()}.stats"
    output = table.java.io().newOutputFile(table.java.operations().metadataFileLocation(name))
    api = table.jvm.org.apache.iceberg
    writer = (
        api.puffin.Puffin.write(output).createdBy(f"{api.IcebergBuild.fullVersion()} Spark {spark.version}").build()
    )
    try:
        for blob in iterate(blobs):
            writer.add(blob)
        writer.finish()
        blobs_written = getattr(api.GenericBlobMetadata, "from")(writer.writtenBlobsMetadata())
        path, size, footer = str(output.location()), int(writer.fileSize()), int(writer.footerSize())
    finally:
        writer.close()
    java = api.GenericStatisticsFile(action.base_snapshot_id, path, size, footer, blobs_written)
    return ComputedFile(java, path, size)


def partition_figures(table: SparkTable, action: ComputeStatistics) -> ComputedFile:
    """Write the figures of each partition into a file: from those of an earlier snapshot on, where there are any.

    Raises :class:`Unsupported` where Iceberg writes none.
    """
    handler = table.jvm.org.apache.iceberg.PartitionStatsHandler
    return _of_partitions(handler.computeAndWriteStatsFile(table.java, action.base_snapshot_id))


def partition_figures_in_full(table: SparkTable, action: ComputeStatistics) -> ComputedFile:
    """As :func:`partition_figures`, from all manifests of the snapshot, whatever earlier figures there are.

    Iceberg does so by itself only where there are none, so these are the steps that it then takes.
    """
    api, call = table.jvm.org.apache.iceberg, partial(table.lists.call_hidden, _PARTITIONS)
    manifests = table.java.snapshot(action.base_snapshot_id).allManifests(table.java.io())
    kinds: tuple[str, ...] = (f"{_API}Table", "java.util.List", "boolean")
    by_partition = call("computeStats", kinds, (table.java, manifests, False))
    values = table.lists.method(f"{_API}util.PartitionMap", "values", "()Ljava/util/Collection;")
    figures = values.apply(by_partition)  # py4j's own would be Python's
    of = api.Partitioning.partitionType(table.java)
    kinds = ("java.util.Collection", f"{_API}types.Types$StructType")
    in_order = call("sortStatsByPartition", kinds, (figures, of))
    schema = api.PartitionStatistics.schema(of, table.format_version)
    kinds = (f"{_API}Table", "long", f"{_API}Schema", "java.lang.Iterable")
    arguments = (table.java, action.base_snapshot_id, schema, in_order)
    return _of_partitions(call("writePartitionStatsFile", kinds, arguments))


def _of_partitions(java: Any) -> ComputedFile:
    if java is None:
        raise Unsupported("Iceberg writes no statistics of partitions of this snapshot")
    return ComputedFile(java, str(java.path()), int(java.fileSizeInBytes()))


def proved_sketches(
    table: SparkTable, action: ComputeStatistics, made: ComputedFile, entry: dict[str, Any]
) -> dict[int, int]:
    """How many distinct values the columns have by the Puffin file, by field id.

    It is read back byte by byte, and is as its ``entry`` in the metadata says. Raises :class:`ProofFailed` where it is
    not, or cannot be true of so many rows.
    """
    content = _content(table, made)
    footer, blobs = read_puffin(content)
    snapshot = table.java.snapshot(action.base_snapshot_id)
    of = (action.base_snapshot_id, int(snapshot.sequenceNumber()))
    expected = [(THETA_SKETCH, [column.field_id], *of) for column in action.columns]
    for said in ([blob.described for blob in blobs], entry["blob-metadata"]):
        found = [(each["type"], each["fields"], each["snapshot-id"], each["sequence-number"]) for each in said]
        if found != expected:
            raise ProofFailed(f"the statistics file is of {found}"[:500])
    if (entry["file-size-in-bytes"], entry["file-footer-size-in-bytes"]) != (len(content), footer):
        raise ProofFailed(
            f"the statistics file has {len(content)} bytes and a footer of {footer}, and not as it is said"
        )
    counts = {}
    for column, blob, listed in zip(action.columns, blobs, entry["blob-metadata"], strict=True):
        count = distinct_values(blob.content)
        said_twice = {blob.described["properties"].get(NDV_KEY), listed["properties"].get(NDV_KEY)}
        if said_twice != {str(count)} or count > action.records * NDV_TOLERANCE:
            text = f"{column.name} has {count} distinct values by its sketch, {said_twice} are said, "
            raise ProofFailed(f"{text}in {action.records} rows")
        counts[column.field_id] = count
    return counts


def proved_totals(table: SparkTable, expected: PartitionTotals, made: ComputedFile) -> PartitionTotals:
    """What the figures of all partitions add up to, which is what the snapshot has; else :class:`ProofFailed`."""
    content = _content(table, made)
    try:
        rows = pq.read_table(io.BytesIO(content))
        figures = _figures(rows)
    except (pa.ArrowException, KeyError, OSError) as error:
        raise ProofFailed(f"the statistics of partitions cannot be read back: {error!r:.200}") from error
    found = PartitionTotals(
        data_files=sum(each.data_files for each in figures),
        records=sum(each.records for each in figures),
        delete_files=sum(each.delete_files for each in figures),
        data_bytes=None if expected.data_bytes is None else sum(each.data_bytes for each in figures),
        digest=None if expected.digest is None else figures_digest(figures),
    )
    if found != expected:
        raise ProofFailed(f"the statistics of partitions add up to {found}, and the snapshot has {expected}")
    return found


def described(metadata: Any, table: SparkTable) -> dict[str, Any]:
    """A Java ``TableMetadata`` in the spec's JSON."""
    found: dict[str, Any] = json.loads(table.jvm.org.apache.iceberg.TableMetadataParser.toJson(metadata))
    return found


def _content(table: SparkTable, made: ComputedFile) -> bytes:
    """All bytes of a file, as the table's own ``FileIO`` reads them."""
    if made.size_bytes > _SIZE_MAX:
        raise Unsupported(f"a statistics file of {made.size_bytes} bytes is not read back")
    stream = table.java.io().newInputFile(made.path).newStream()
    try:
        content = bytes(stream.readAllBytes())
    finally:
        stream.close()
    if len(content) != made.size_bytes:
        raise ProofFailed(f"{made.path} has {len(content)} bytes, and {made.size_bytes} were written")
    return content


def _figures(rows: pa.Table) -> list[PartitionFigures]:
    """What each row says; a file of a version before 3 has no column of deletion vectors."""
    names = ["spec_id", "data_file_count", "data_record_count", "total_data_file_size_in_bytes", *_DELETES]
    columns = {name: rows[name].to_pylist() if name in rows.column_names else [0] * rows.num_rows for name in names}
    each = zip(*([value or 0 for value in columns[name]] for name in names), strict=True)
    return [
        PartitionFigures(spec_id, files, records, sum(deletes), size)
        for spec_id, files, records, size, *deletes in each
    ]
