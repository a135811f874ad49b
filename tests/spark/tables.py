"""Tables as Spark shows them: names for SQL, rows as read from bytes, and every path that a reader may be led to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from icewright.model.iceberg.names import TableName, identifier
from icewright_spark.iceberg.java_api import SparkTable, iterate
from icewright_spark.session.session import java_gateway

SCANS_PER_JOB = 20


def sql_name(name: TableName) -> str:
    return ".".join(identifier(part) for part in (name.catalog, *name.path))


def contents(spark: SparkSession, name: TableName) -> Counter[str]:
    """The multiset of rows, read from bytes, with their lineage where the table has one."""
    frame = spark.table(sql_name(name))
    lineage = SparkTable(spark, name).format_version >= 3
    found = frame.select("*", "_row_id", "_last_updated_sequence_number") if lineage else frame
    return Counter(str(row) for row in found.collect())


def sorted_rows(spark: SparkSession, name: TableName) -> pa.Table:
    """All rows, read from bytes, in one order, numbers with a fraction as text: for tables of thousands of rows."""
    found = spark.table(sql_name(name)).toArrow()
    for place, field in enumerate(found.schema):
        if pa.types.is_floating(field.type):
            found = found.set_column(place, field.name, found[field.name].cast(pa.string()))
    return found.sort_by([(column, "ascending") for column in found.column_names])


def reachable_paths(spark: SparkSession, name: TableName) -> list[str]:
    """What any snapshot of a table leads a reader to, and what the table keeps beside that, of which there is some.

    Iceberg reads it all itself: its tables of metadata would have Spark compile and run a job for each.
    """
    table, iceberg = SparkTable(spark, name), java_gateway(spark).org.apache.iceberg
    io, specs, listed = table.java.io(), table.java.specs(), iceberg.ReachableFileUtil
    manifests = {
        str(one.path()): one for each in iterate(table.java.snapshots()) for one in iterate(each.allManifests(io))
    }
    assert manifests
    files = defaultdict[str, set[str]](set)
    for manifest in manifests.values():
        files[str(manifest.content())] |= {*iterate(iceberg.ManifestFiles.readPaths(manifest, io, specs))}
    assert files["DATA"]
    metadata = listed.metadataFileLocations(table.java, False)
    others = (metadata, listed.manifestListLocations(table.java), listed.statisticsFilesLocations(table.java))
    return sorted({*manifests, *chain(*files.values(), *map(iterate, others))})


def missing_files(spark: SparkSession, name: TableName) -> list[str]:
    """Reachable paths that are not there, of a table on the local disk."""
    return [path for path in reachable_paths(spark, name) if not local(path).exists()]


def data_files(spark: SparkSession, name: TableName) -> list[str]:
    tasks = SparkTable(spark, name).java.newScan().planFiles()
    return sorted(str(local(task.file().location())) for task in iterate(tasks))


def found_by(spark: SparkSession, name: TableName, filters: Sequence[str]) -> dict[str, list[int]]:
    """The ids that each filter finds, in a scan of its own, to which Spark gives it; many of them in one job.

    One text for them all: a union that is put together frame by frame is analysed anew with each of them.
    """
    spark.table(sql_name(name)).createOrReplaceTempView("asked")
    scans = [f"SELECT id, {number} AS n FROM asked WHERE {where}" for number, where in enumerate(filters)]  # noqa: S608 - a test
    found: dict[str, list[int]] = {where: [] for where in filters}
    for start in range(0, len(scans), SCANS_PER_JOB):
        rows = spark.sql(" UNION ALL ".join(scans[start : start + SCANS_PER_JOB])).toArrow()
        for number, identity in zip(rows["n"].to_pylist(), rows["id"].to_pylist(), strict=True):
            found[filters[number]].append(identity)
    return {where: sorted(ids) for where, ids in found.items()}


def local(path: str) -> Path:
    return Path(path.removeprefix("file://").removeprefix("file:"))
