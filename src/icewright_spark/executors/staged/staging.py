"""Scan tasks staged for Spark: how Iceberg's own rewrites make Spark read given files, and write files uncommitted.

Iceberg keeps three registers in the driver's JVM, all by an id that the caller chooses: of tables, of the scan
tasks to be read, and of the files that were written. ``load(id)`` and ``save(id)`` find them there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from icewright.core.errors import Unsupported
from icewright.model.iceberg.column_types import has_variant
from icewright_spark.iceberg.java_api import REFUSALS, SparkTable, first_line, iterate
from icewright_spark.session.session import java_array, java_gateway

_EVERYTHING: Final = str(1 << 60)
"""Bytes that no group has: of a split that is read by one task, and of the one file that a task writes."""

_SPLIT_BYTES: Final = 128 << 20
"""Iceberg's own default of what one task reads."""

_SWITCHES: Final = ("write.parquet.dict-encoding-enabled.column.", "write.parquet.bloom-filter-enabled.column.")
"""Properties of Iceberg's, each followed by the name of a column."""

_OUTPUT_SEQUENCE_NUMBER: Final = -2
_OUTPUT_FIRST_ROW_ID: Final = -(1 << 60)
"""What the rows of a new file would show if the file did not hold their lineage; no row of a table has these."""


class StagedTasks:
    """Scan tasks of a table under an id, until the block ends."""

    def __init__(self, spark: SparkSession, table: SparkTable, set_id: str) -> None:
        self._spark, self._table, self.set_id = spark, table, set_id

    def rows(self, *, vectorised: bool, **options: str) -> DataFrame:
        """The rows of the tasks, deletes applied; from format version 3 on with their lineage in two more columns.

        ``vectorised`` chooses between Iceberg's two readers of Parquet, but not for variants: of these, the vectorised
        one cannot read those that are shredded. Raises :class:`Unsupported` for a column that Spark cannot read.
        """
        if not vectorised or has_variant(self._table.schema_fields()):
            options["vectorization-enabled"] = "false"
        try:
            return self._spark.read.format("iceberg").options(**options).load(self.set_id)
        except REFUSALS as error:
            raise Unsupported(f"Spark cannot read the table: {first_line(error)}") from error

    def rows_in_one_split(self) -> DataFrame:
        """As :meth:`rows`, in one partition, in the order of the tasks."""
        return self.rows(vectorised=True, **{"split-size": _EVERYTHING, "file-open-cost": "0"}).coalesce(1)

    def rows_of_whole_files(self, largest_bytes: int) -> DataFrame:
        """As :meth:`rows`, each file in one partition from its first row to its last; other files may be in it too.

        ``largest_bytes`` is the size of the largest file; tasks must be over whole files.
        """
        split = str(max(largest_bytes, _SPLIT_BYTES))
        return self.rows(vectorised=True, **{"split-size": split})

    def rows_file_by_file(self) -> DataFrame:
        """As :meth:`rows`, with one partition for each task, which must be over a whole file: its rows in its order."""
        return self.rows(vectorised=True, **{"split-size": _EVERYTHING, "file-open-cost": _EVERYTHING})

    def write(self, rows: DataFrame, spec_id: int, *, sorted_first: bool = False) -> list[Any]:
        """Write rows as new files of the table, a file per partition, in their order; Java's ``DataFile`` of each.

        The rows of a partition must be of one partition of the table; ``sorted_first``, they may be of any of the
        current spec, and are sorted by these first, on disk where they are many, so that one file is open at a time.
        Nothing is committed. Format, codec, sizes, metrics and bloom filters are what the table's properties say.
        """
        options = {
            "target-file-size-bytes": _EVERYTHING,
            "use-table-distribution-and-ordering": str(sorted_first).lower(),
            "distribution-mode": "none",
            "fanout-enabled": "false",
            "output-spec-id": str(spec_id),
        }
        rows.write.format("iceberg").options(**options).mode("append").save(self.set_id)
        coordinator = java_gateway(self._spark).org.apache.iceberg.spark.FileRewriteCoordinator.get()
        return list(iterate(coordinator.fetchNewFiles(self._table.java, self.set_id)))


@contextmanager
def staged(
    spark: SparkSession,
    table: SparkTable,
    set_id: str,
    tasks: Sequence[Any],
    properties: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[StagedTasks]:
    """Stage Java's scan tasks under ``set_id``, which nobody else in this JVM may use (letters, digits and ``-``).

    What is written under it is written as if the table had the ``properties`` besides its own.
    """
    jvm = java_gateway(spark)
    tables = _tables(spark)
    java = _with_properties(table, properties) if properties else table.java
    manager = jvm.org.apache.iceberg.spark.ScanTaskSetManager.get()
    listed = jvm.java.util.ArrayList()
    for task in tasks:
        listed.add(task)
    try:
        tables.add(set_id, java)
        manager.stageTasks(table.java, set_id, listed)
        yield StagedTasks(spark, table, set_id)
    finally:
        tables.remove(set_id)
        manager.removeTasks(table.java, set_id)
        jvm.org.apache.iceberg.spark.FileRewriteCoordinator.get().clearRewrite(table.java, set_id)


def without_dictionaries(table: SparkTable, field_ids: Iterable[int]) -> Mapping[str, str]:
    """Properties of the table with which neither dictionaries nor bloom filters are written of these columns.

    For columns of floats with zeros. -0.0 equals 0.0 in SQL, but Iceberg's reader looks for the one that is asked for,
    by its bits, in a dictionary that has all values of a row group, and in a bloom filter, and it passes over a row
    group that only has the other. parquet-java has no setting for the one row group or the other.
    """
    schema = table.java.schema()
    names = [str(schema.findColumnName(field_id)) for field_id in sorted(field_ids)]
    return {f"{switch}{name}": "false" for name in names for switch in _SWITCHES}


def task_of_new_file(spark: SparkSession, table: SparkTable, data_file: Any, *, unplaced: bool = False) -> Any:
    """A scan task over the whole of a file that is not committed yet.

    ``unplaced``: as if it were in no partition, so that every value is read from the file.
    """
    jvm = java_gateway(spark)
    iceberg = jvm.org.apache.iceberg
    spec = iceberg.PartitionSpec.unpartitioned() if unplaced else table.java.specs().get(data_file.specId())
    builder = iceberg.DataFiles.builder(spec).copy(data_file)
    as_if_committed = builder.withSplitOffsets(None).build()  # or it would be read in parts, on their own
    # Without these three a reader takes the file for one without lineage.
    as_if_committed.setDataSequenceNumber(_OUTPUT_SEQUENCE_NUMBER)
    as_if_committed.setFileSequenceNumber(_OUTPUT_SEQUENCE_NUMBER)
    as_if_committed.setFirstRowId(_OUTPUT_FIRST_ROW_ID)
    everything = iceberg.expressions.ResidualEvaluator.unpartitioned(iceberg.expressions.Expressions.alwaysTrue())
    return iceberg.BaseFileScanTask(
        as_if_committed,
        java_array(spark, iceberg.DeleteFile, 0),
        iceberg.SchemaParser.toJson(table.java.schema()),
        iceberg.PartitionSpecParser.toJson(spec),
        everything,
    )


def _with_properties(table: SparkTable, properties: Mapping[str, str]) -> Any:
    """Java's table as it was loaded, with these properties besides; nothing can be committed to it."""
    iceberg, changed = table.jvm.org.apache.iceberg, table.jvm.java.util.HashMap(table.java.properties())
    for key, value in properties.items():
        changed.put(key, value)
    metadata = table.java.operations().current().replaceProperties(changed)
    operations = iceberg.StaticTableOperations(metadata, table.java.io(), table.java.locationProvider())
    return iceberg.BaseTable(operations, table.java.name())


def _tables(spark: SparkSession) -> Any:
    """``SparkTableCache.get()``, by reflection: py4j cannot tell the static method from the one with an argument."""
    jvm = java_gateway(spark)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    found = loader.loadClass("org.apache.iceberg.spark.SparkTableCache")
    method = found.getMethod("get", java_array(spark, jvm.java.lang.Class, 0))
    return method.invoke(None, java_array(spark, jvm.java.lang.Object, 0))
