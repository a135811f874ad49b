"""``compute_statistics``: have Iceberg compute statistics of one snapshot, prove what was written, and commit it.

Nothing of the table is changed but its lists of statistics files, so that there is no row to lose. What is proved is
that readers who plan by the statistics are told what the snapshot has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from pyspark.sql import SparkSession

from icewright.model.actions.compute_statistics import ComputeStatistics, PartitionTotals
from icewright.model.work.jobs import Receipt, TaskSpec
from icewright_spark.actions.done import ONE_GROUP, Done, done_by_driver
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.planned_table import check_table
from icewright_spark.iceberg.commits.statistics import (
    StatisticsUpdate,
    check_base,
    check_update,
    commit_statistics,
    current_metadata,
    entry_of,
)
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.statistics_files import (
    ComputedFile,
    ComputedFiles,
    partition_figures,
    partition_figures_in_full,
    proved_sketches,
    proved_totals,
    sketch_columns,
)
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.session.driver_cost import DriverCost, jvm_thread_clock

METHOD: Final = "statistics-read-back"
"""Sketches by their bytes and their bounds, totals of partitions against the inventory."""


def compute_statistics(
    spark: SparkSession,
    table: SparkTable,
    spec: TaskSpec,
    action: ComputeStatistics,
    phase: Phase,
    may_commit: Callable[[], None],
) -> Done:
    """Carry out one attempt.

    Raises :class:`Conflict` when the snapshot or its statistics are not what was planned any more, and
    :class:`~.errors.ProofFailed` when what was written is not what the snapshot has; then nothing
    has been committed. What was written stays, and nothing points to it.
    """
    cost = DriverCost(jvm_thread_clock(table.jvm))
    check_table(table, spec)
    check_base(current_metadata(table), action)
    phase.name = "computing"
    files = ComputedFiles(
        of_columns=sketch_columns(spark, table, spec, action) if action.columns else None,
        of_partitions=None
        if action.partition_totals is None
        else of_partitions(table, action, action.partition_totals),
    )
    phase.name = "proving"
    with cost.proof():
        proved = prove(table, action, files)
    phase.name = "committing"
    result = commit_statistics(table, spec, action, files, may_commit=may_commit)
    phase.name = "done"
    planned = proof_text(action, [column.field_id for column in action.columns], action.partition_totals)
    return done_by_driver(
        result,
        (Receipt(ONE_GROUP, METHOD, planned, proved, action.records),),
        cost,
        input_files=0 if action.partition_totals is None else action.partition_totals.data_files,
        input_bytes=0,
        output_paths=tuple(file.path for file in files),
        output_bytes=sum(file.size_bytes for file in files),
        records=action.records,
    )


def of_partitions(table: SparkTable, action: ComputeStatistics, expected: PartitionTotals) -> ComputedFile:
    """The figures of partitions: from earlier ones on where these come out right, else from all manifests.

    Iceberg 1.12 loses partitions on the way where a table has had several partition specs. The file that was wrong
    stays where it is, and nothing points to it.
    """
    made = partition_figures(table, action)
    try:
        proved_totals(table, expected, made)
    except ProofFailed:
        return partition_figures_in_full(table, action)
    return made


def prove(table: SparkTable, action: ComputeStatistics, files: ComputedFiles) -> str:
    """What was read back of the files, which is as the metadata would say and as the snapshot has it."""
    update = StatisticsUpdate(table, files)
    check_update(update.before, update.after, action, files)
    counts: dict[int, int] = {}
    totals: PartitionTotals | None = None
    if files.of_columns is not None:
        entry = entry_of(update.after, "statistics", action.base_snapshot_id) or {}
        counts = proved_sketches(table, action, files.of_columns, entry)
    if files.of_partitions is not None and action.partition_totals is not None:
        totals = proved_totals(table, action.partition_totals, files.of_partitions)
    return proof_text(action, counts, totals)


def proof_text(action: ComputeStatistics, field_ids: Iterable[int], totals: PartitionTotals | None) -> str:
    """What there are statistics of, as it was planned or as it was read back."""
    fields = ",".join(str(field_id) for field_id in field_ids)
    counted = ""
    if totals is not None:
        counted = f";files={totals.data_files};records={totals.records};deletes={totals.delete_files}"
    return f"snapshot={action.base_snapshot_id};fields={fields}{counted}"
