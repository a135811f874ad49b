"""Tables as Spark shows them: names for SQL, rows as read from bytes, and every path that a reader may be led to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from icewright.model.iceberg.names import TableName, identifier
from icewright_spark.iceberg.java_api import SparkTable


def sql_name(name: TableName) -> str:
    return ".".join(identifier(part) for part in (name.catalog, *name.path))


def contents(spark: SparkSession, name: TableName) -> Counter[str]:
    """The multiset of rows, read from bytes, with their lineage where the table has one."""
    frame = spark.table(sql_name(name))
    lineage = SparkTable(spark, name).format_version >= 3
    found = frame.select("*", "_row_id", "_last_updated_sequence_number") if lineage else frame
    return Counter(str(row) for row in found.collect())


def reachable_paths(spark: SparkSession, name: TableName) -> list[str]:
    """Data files, delete files and manifests of all snapshots, of which there are some."""
    table = sql_name(name)
    query = f"SELECT file_path FROM {table}.all_files UNION ALL SELECT path FROM {table}.all_manifests"  # noqa: S608 - a test
    paths = {row[0] for row in spark.sql(query).collect()}
    assert len(paths) > 2
    return sorted(paths)


def missing_files(spark: SparkSession, name: TableName) -> list[str]:
    """Reachable paths that are not there, of a table on the local disk."""
    return [path for path in reachable_paths(spark, name) if not local(path).exists()]


def data_files(spark: SparkSession, name: TableName) -> list[str]:
    found = spark.sql(f"SELECT file_path FROM {sql_name(name)}.data_files").collect()  # noqa: S608 - a test
    return sorted(str(local(row[0])) for row in found)


def local(path: str) -> Path:
    return Path(path.removeprefix("file://").removeprefix("file:"))
