"""``rewrite_position_delete_files``: write each group's delete files as one, prove it, commit all of them together.

The job chooses nothing: groups, what each new file is for, and its sequence number are the planner's. Groups are
written and proved in Spark's Python workers; no data file is read. All groups are committed or none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.sql import SparkSession

from icewright.core.errors import Conflict
from icewright.model.actions.rewrite_delete_files import (
    DELETE_FORMAT_VERSION,
    POSITIONS_METHOD,
    DeleteGroup,
    RewritePositionDeletes,
)
from icewright.model.work.jobs import GroupFigures, Receipt, TaskSpec
from icewright_spark.actions.done import Done
from icewright_spark.actions.groups import Refusal, outcome_of
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.planned_table import check_table
from icewright_spark.actions.spark_tasks import spark_tasks
from icewright_spark.executors.merge.compact_deletes import Compacted, CompactJob, compact
from icewright_spark.iceberg.commits.deletes import commit_deletes
from icewright_spark.iceberg.dangling import found_deletes
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.manifests import FoundDelete, PartitionFiles, remove_deletes
from icewright_spark.iceberg.replaced_deletes import Reached
from icewright_spark.iceberg.table_io import worker_storage
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.session.worker import settle_in


def rewrite_position_deletes(
    spark: SparkSession,
    table: SparkTable,
    spec: TaskSpec,
    action: RewritePositionDeletes,
    phase: Phase,
    may_commit: Callable[[], None],
) -> Done:
    """Carry out one attempt.

    Raises :class:`Conflict` when the table is not what was planned any more, :class:`ProofFailed` when a new file does
    not delete the same rows, and what reading and writing raise; in all these cases nothing has been committed.
    """
    check_table(table, spec, (DELETE_FORMAT_VERSION,))
    reached = Reached(action)
    _check(table, action, reached)  # nothing is written that would not be committed
    phase.name = "merging"
    done = run(spark, compact_jobs(spark, table, spec, action))
    check_done(action, done)

    def fill(operation: Any) -> str:
        found = _check(table, action, reached)
        remove_deletes(table, operation, found)
        like = {each.delete.partition: each.listed.get(each.place) for each in found}
        for group, made in zip(action.groups, done, strict=True):
            if made.output_path:
                operation.addFile(delete_file(table, group, made, like[group.partition]), group.sequence_number)
        return proof_of(done)

    phase.name = "committing"
    result = commit_deletes(table, spec, fill=fill, format_version=DELETE_FORMAT_VERSION, may_commit=may_commit)
    phase.name = "done"
    receipts = tuple(Receipt(m.group_id, POSITIONS_METHOD, m.input_digest, m.output_digest, m.records) for m in done)
    return Done(result, receipts, tuple(map(_figures, action.groups, done)))


def _check(table: SparkTable, action: RewritePositionDeletes, reached: Reached) -> list[FoundDelete]:
    """The delete files to be replaced, in the table's present snapshot. Raises :class:`Conflict`."""
    current = table.java.currentSnapshot()
    if current is None:
        raise Conflict(f"{table.java.name()} has no snapshot any more")
    files = PartitionFiles(table, current.snapshotId(), {group.partition for group in action.groups})
    found = found_deletes(files, action.deletes)
    reached.check(files)
    return found


def compact_jobs(
    spark: SparkSession, table: SparkTable, spec: TaskSpec, action: RewritePositionDeletes
) -> list[CompactJob]:
    """One job per group, with its output where the table's location provider wants new files."""
    storage = worker_storage(spark, table.java.io(), str(table.java.locationProvider().newDataLocation("any")))
    stem = f"{spec.task_id}-{spec.attempt}-deletes"
    return [
        CompactJob(group, table.new_data_locations(group, [f"{group.group_id:05d}-{stem}.parquet"])[0], storage)
        for group in action.groups
    ]


def run(spark: SparkSession, jobs: Sequence[CompactJob]) -> list[Compacted]:
    """Write and prove all groups in one Spark job. Raises the first typed error of any."""

    def carry(task: Iterable[Sequence[CompactJob]]) -> Iterable[Compacted | Refusal]:
        settle_in()
        for its in task:
            for job in its:
                yield outcome_of(job, compact)

    context = spark.sparkContext
    tasks = spark_tasks(jobs, lambda job: job.group.size_bytes, context.defaultParallelism)
    done: list[Compacted] = []
    for outcome in context.parallelize(tasks, len(tasks)).mapPartitions(carry).collect():
        if isinstance(outcome, Refusal):
            raise outcome.error(outcome.message, hint=outcome.hint)
        done.append(outcome)
    return done


def check_done(action: RewritePositionDeletes, done: Sequence[Compacted]) -> None:
    """Every group is done and proved. Raises :class:`ProofFailed`."""
    if [made.group_id for made in done] != [group.group_id for group in action.groups]:
        raise ProofFailed(f"{len(done)} groups are done, of {len(action.groups)} planned")
    for group, made in zip(action.groups, done, strict=True):
        if group.data_file is not None and not made.output_path:
            raise ProofFailed(f"the delete files of group {group.group_id} say nothing of {group.data_file}")
        if made.input_digest != made.output_digest:
            raise ProofFailed(f"group {made.group_id} does not delete the same rows as before")


def delete_file(table: SparkTable, group: DeleteGroup, made: Compacted, like: Any) -> Any:
    """Java's ``DeleteFile`` of a new file, with the metrics that Iceberg reads from its footer.

    ``like`` is Java's of one of the same partition. Raises :class:`ProofFailed` where the footer has another number.
    """
    iceberg = table.jvm.org.apache.iceberg
    source = table.java.io().newInputFile(made.output_path)
    metrics = iceberg.parquet.ParquetUtil.fileMetrics(source, iceberg.MetricsConfig.forPositionDelete())
    if metrics.recordCount() != made.records:
        found = metrics.recordCount()
        raise ProofFailed(f"{made.output_path} has {found} rows by its footer, {made.records} were written")
    spec = table.java.specs().get(group.partition.spec_id)
    builder = iceberg.FileMetadata.deleteFileBuilder(spec).ofPositionDeletes()
    builder = builder.withPath(made.output_path).withFormat("parquet").withFileSizeInBytes(made.size_bytes)
    builder = builder.withMetrics(metrics)
    if spec.isPartitioned():
        builder = builder.withPartition(like.partition())
    if group.data_file is not None:
        builder = builder.withReferencedDataFile(group.data_file)
    return builder.build()


def proof_of(done: Sequence[Compacted]) -> str:
    """The proof for the snapshot summary: method, groups, files, and the digest of all that is deleted."""
    files, positions = sum(bool(made.output_path) for made in done), sum(made.records for made in done)
    digest = hashlib.sha256("".join(made.output_digest for made in done).encode()).hexdigest()
    return f"{POSITIONS_METHOD};groups={len(done)};files={files};positions={positions};digest={digest}"


def _figures(group: DeleteGroup, made: Compacted) -> GroupFigures:
    return GroupFigures(
        group_id=group.group_id,
        input_files=len(group.deletes),
        input_bytes=group.size_bytes,
        output_paths=(made.output_path,) if made.output_path else (),
        output_bytes=made.size_bytes,
        records=made.records,
        cpu_ms=made.cpu_ms,
        wall_ms=made.cpu_ms,
        peak_memory_bytes=made.peak_memory_bytes,
        proof_cpu_ms=made.proof_cpu_ms,
    )
