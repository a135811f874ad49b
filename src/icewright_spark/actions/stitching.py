"""Groups to be stitched: as jobs for Python workers, with the metrics that no footer has, from the manifests."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from icewright.core.errors import Conflict
from icewright.model.actions.actions import FileGroup
from icewright.model.work.jobs import TaskSpec
from icewright_spark.executors.stitch.metrics import file_metrics, together
from icewright_spark.executors.stitch.stitch import StitchJob
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.manifests import PartitionFiles
from icewright_spark.iceberg.table_io import worker_storage
from icewright_spark.parquet.partition_values import partition_scalars, without_others


def stitch_jobs(spark: SparkSession, table: SparkTable, spec: TaskSpec, groups: Sequence[FileGroup]) -> list[StitchJob]:
    """One job per group, with its output where the table's location provider wants new files.

    Raises :class:`Conflict` when a planned file is not in the planned snapshot, and :class:`UnsupportedLocation` when
    the workers cannot reach the files.
    """
    if not groups:
        return []
    storage = worker_storage(spark, table.java.io(), str(table.java.locationProvider().newDataLocation("any")))
    files = PartitionFiles(table, spec.rewrite.base_snapshot_id, {group.partition for group in groups})
    described = files.described(frozenset(file.path for group in groups for file in group.files))
    fields, modes = table.schema_fields(), table.metrics_modes()
    jobs = []
    for group in groups:
        missing = [file.path for file in group.files if file.path not in described]
        if missing:
            raise Conflict(f"{missing[0]} is not in the planned snapshot")
        metrics, sizes = together([file_metrics(described[file.path]) for file in group.files], fields, modes)
        scalars = partition_scalars(table.identity_values(group.partition), fields)
        metrics = without_others(metrics, fields, modes, group.record_count, scalars)
        name = f"{group.group_id:05d}-{spec.task_id}-{spec.attempt}.parquet"
        jobs.append(StitchJob(group, table.new_data_locations(group, [name])[0], metrics, sizes, storage))
    return jobs
