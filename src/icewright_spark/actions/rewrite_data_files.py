"""``rewrite_data_files``: rewrite every group as its plan says, prove it, commit all of them together.

The job chooses nothing: the groups, their order, their executors and the base snapshot are the planner's. What it adds
is doubt: it checks for itself that the table is the one that was planned, that the delete files are those that apply to
what it reads, and that every group gave back the rows it took.

A group that cannot be read or written, or that met somebody else's commit, is left out, and the others are committed
(decision 0016). A proof that fails stops them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import xxhash
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icewright.core.errors import Conflict
from icewright.core.fault_points import Fault, fault
from icewright.model.actions.actions import Executor, FileGroup, RewriteDataFiles
from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.tables import ROW_LINEAGE_SINCE
from icewright.model.iceberg.writer_settings import writer_settings
from icewright.model.work.jobs import GROUP_CONFLICT, Conflicted, Failed, GroupLeft, Receipt, TaskSpec
from icewright_spark.actions.done import Done
from icewright_spark.actions.groups import (
    OF_ONE_GROUP,
    Carrier,
    Job,
    SingleAttemptCarrier,
    failure,
    results_and_failures,
)
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.planned_table import check_table
from icewright_spark.executors.merge.merge import MergeJob, MergeResult
from icewright_spark.executors.merge.output import OutputFile
from icewright_spark.executors.sort.rewrite import shuffle_groups
from icewright_spark.executors.staged.checks import StagedResult
from icewright_spark.executors.staged.inputs import damaged_input
from icewright_spark.executors.staged.rewrite import rewrite_group
from icewright_spark.executors.stitch.metrics import together
from icewright_spark.executors.stitch.stitch import StitchJob
from icewright_spark.iceberg.commits.commit import Rewritten, check_spec, commit_rewrite, said_of
from icewright_spark.iceberg.free_space import check_metadata_directory, room_for
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.manifests import PartitionFiles, check_planned_files, lost_groups
from icewright_spark.iceberg.own_outputs import OwnOutputs
from icewright_spark.iceberg.scan_tasks import planned_tasks
from icewright_spark.iceberg.table_io import worker_storage
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.parquet.metrics import metrics_from_json
from icewright_spark.parquet.partition_values import partition_scalars, without_others


def rewrite_data_files(
    spark: SparkSession,
    table: SparkTable,
    spec: TaskSpec,
    phase: Phase,
    may_commit: Callable[[], None],
    *,
    carrier: Carrier | None = None,
) -> Done:
    """Carry out one attempt; ``carrier`` has its groups merged and stitched, in a Spark job of their own if it is None.

    Raises :class:`Conflict` when the table is not what was planned any more, :class:`Unsupported` for what the merge
    cannot do without loss, and :class:`ProofFailed` when a group did not give back its rows; in all these
    cases nothing has been committed.

    There must be room for what is to be written, and the metadata directory must take a file, or nothing is begun:
    :class:`DiskFull`. An attempt that ends before its commit is sent takes its outputs back.
    """
    check_planned_table(table, spec)
    check_metadata_directory(table, spec)
    outputs = OwnOutputs(table, spec.rewrite)
    with room_for(table, spec.rewrite.input_bytes), outputs.taken_back():
        return _rewritten(
            spark, table, spec, phase, may_commit, carrier or SingleAttemptCarrier(spark.sparkContext), outputs
        )


def _rewritten(
    spark: SparkSession,
    table: SparkTable,
    spec: TaskSpec,
    phase: Phase,
    may_commit: Callable[[], None],
    carrier: Carrier,
    own: OwnOutputs,
) -> Done:
    action = spec.rewrite
    format_version, vectors = table.format_version, check_planned_files(table, action)
    left = conflicts(lost_groups(table, action))  # nothing is spent on what would not be committed
    whole = without(spec, left)
    stitches = stitch_jobs(spark, table, whole, of_executor(whole.rewrite, Executor.STITCH))
    jobs: list[Job] = [*merge_jobs(spark, table, whole), *stitches]
    tasks = planned_tasks(table, action.base_snapshot_id, of_executor(whole.rewrite, Executor.STAGED, Executor.SHUFFLE))
    phase.name = "merging"
    fault(Fault.MERGE_BEFORE)
    merged, unmerged = results_and_failures(carrier.carry(jobs, phase))
    own.wrote(path for result in merged for path in result.figures.output_paths)
    staged, unstaged = stage_groups(spark, table, whole, tasks, phase)
    own.wrote(path for result in staged for path in result.figures.output_paths)
    shuffled, unshuffled = shuffle(spark, table, whole, tasks, phase)
    own.wrote(path for result in shuffled for path in result.figures.output_paths)
    fault(Fault.MERGE_AFTER)
    left += [*unmerged, *unstaged, *unshuffled]
    done = without(spec, left)
    if not done.rewrite.groups:
        return Done(nothing_done(left), left=tuple(left))
    staged += shuffled
    receipts = (*(result.receipt for result in merged), *(result.receipt for result in staged))
    figures = (*(result.figures for result in merged), *(result.figures for result in staged))
    outputs = [*merged_outputs(table, action, merged), *(output for result in staged for output in result.outputs)]
    check_receipts(done.rewrite, receipts)
    check_outputs(done.rewrite, receipts, outputs)
    phase.name = "committing"
    commit = commit_rewrite(
        table,
        spec,
        outputs,
        proof=lambda group_ids: proof_of([receipt for receipt in receipts if receipt.group_id in group_ids]),
        format_version=format_version,
        may_commit=may_commit,
        vectors=vectors,
        sending=own.sending,
    )
    phase.name = "done"
    return Done(commit.result, receipts, figures, (*left, *conflicts(commit.lost)))


def conflicts(lost: Mapping[int, str]) -> list[GroupLeft]:
    """The groups that met somebody else's commit."""
    return [GroupLeft(group_id, GROUP_CONFLICT, why, retryable=True) for group_id, why in sorted(lost.items())]


def without(spec: TaskSpec, left: Iterable[GroupLeft]) -> TaskSpec:
    """The spec without these groups."""
    gone = {group.group_id for group in left}
    return replace(spec, action=spec.rewrite.only({group.group_id for group in spec.rewrite.groups} - gone))


def nothing_done(left: Sequence[GroupLeft]) -> Conflicted | Failed:
    """How an attempt ends of which no group is done: by what failed, if all did, or else to be planned again."""
    lost = {group.group_id: group.detail for group in left if group.code == GROUP_CONFLICT}
    if lost:
        return Conflicted(said_of(lost))
    first, others = left[0], len(left) - 1
    detail = first.detail + (f" (and {others} more groups failed)" if others else "")
    return Failed(first.code, detail, retryable=all(group.retryable for group in left))


def of_executor(action: RewriteDataFiles, *executors: Executor) -> tuple[FileGroup, ...]:
    """The groups that the planner gave to any of these executors."""
    return tuple(group for group in action.groups if group.executor in executors)


def check_planned_table(table: SparkTable, spec: TaskSpec) -> None:
    """Refuse a table that is not the planned one. Raises :class:`Conflict`."""
    action = spec.rewrite
    check_table(table, spec)
    if not table.has_snapshot(action.base_snapshot_id):
        raise Conflict(f"the planned snapshot {action.base_snapshot_id} no longer exists")
    if table.schema_id != action.schema_id:
        raise Conflict(f"the schema changed from {action.schema_id} to {table.schema_id} since the plan was made")
    check_spec(table, action)


def merge_jobs(spark: SparkSession, table: SparkTable, spec: TaskSpec) -> list[MergeJob]:
    """One job per group to be merged, with its output where the table's location provider wants new files.

    How the workers reach these is asked of the table's ``FileIO`` now: its credentials may be of this hour.
    Raises :class:`UnsupportedLocation` when they cannot.
    """
    groups = of_executor(spec.rewrite, Executor.MERGE, Executor.SORT)
    if not groups:
        return []
    fields, modes, settings = table.schema_fields(), table.metrics_modes(), writer_settings(table.properties)
    storage = worker_storage(spark, table.java.io(), str(table.java.locationProvider().newDataLocation("any")))
    return [
        MergeJob(
            group=group,
            schema_fields=fields,
            output_paths=tuple(table.new_data_locations(group, _output_names(spec, group))),
            settings=settings,
            metrics_modes=modes,
            identity_values=table.identity_values(group.partition),
            row_lineage=table.format_version >= ROW_LINEAGE_SINCE,
            storage=storage,
            sorted_by=sorted_by(spec.rewrite, group),
        )
        for group in groups
    ]


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
        metrics = together([metrics_from_json(described[file.path]) for file in group.files], fields, modes)
        scalars = partition_scalars(table.identity_values(group.partition), fields)
        metrics = without_others(metrics, fields, modes, group.record_count, scalars)
        name = f"{group.group_id:05d}-{spec.task_id}-{spec.attempt}.parquet"
        jobs.append(StitchJob(group, table.new_data_locations(group, [name])[0], metrics, storage))
    return jobs


def sorted_by(action: RewriteDataFiles, group: FileGroup) -> Layout | None:
    """The layout to merge the group's files by, or to sort their rows by; None keeps them as they are.

    A single file on a curve, or sorted by transforms, keeps its rows and its place. The merge refuses what it cannot
    do.
    """
    layout = action.layout
    if layout is None:
        return None
    by_columns = layout.curve is Curve.SORT and all(field.transform == "identity" for field in layout.fields)
    return layout if by_columns or not len(group.files) == group.output_files == 1 else None


def _output_names(spec: TaskSpec, group: FileGroup) -> list[str]:
    stem = f"{group.group_id:05d}-{spec.task_id}-{spec.attempt}"
    if group.output_files == 1:
        return [f"{stem}.parquet"]
    return [f"{stem}-{number:05d}.parquet" for number in range(group.output_files)]


def stage_groups(
    spark: SparkSession, table: SparkTable, spec: TaskSpec, tasks: Mapping[int, Sequence[Any]], phase: Phase
) -> tuple[list[StagedResult], list[GroupLeft]]:
    """Rewrite the groups whose scan tasks these are through Spark's reader and writer, one after the other.

    An error of Spark's is of one group alone where an input of the group is damaged.
    """
    results: list[StagedResult] = []
    failed: list[GroupLeft] = []
    for group in of_executor(spec.rewrite, Executor.STAGED):
        try:
            results.append(rewrite_group(spark, table, spec, group, tasks[group.group_id]))
        except OF_ONE_GROUP as error:
            failed.append(failure(group.group_id, error))
        except (Py4JJavaError, PySparkException):
            damage = damaged_input(table, group)
            if damage is None:
                raise
            failed.append(failure(group.group_id, damage))
        phase.staged += 1
    return results, failed


def shuffle(
    spark: SparkSession, table: SparkTable, spec: TaskSpec, tasks: Mapping[int, Sequence[Any]], phase: Phase
) -> tuple[list[StagedResult], list[GroupLeft]]:
    """Order the groups whose scan tasks these are by the layout of the action, many of them at once.

    They share Spark's jobs: where an input of a group is damaged, the groups that are not done are begun again without
    it.
    """
    results: list[StagedResult] = []
    failed: list[GroupLeft] = []
    waiting = {group.group_id: group for group in of_executor(spec.rewrite, Executor.SHUFFLE)}
    while waiting:
        try:
            for result in shuffle_groups(spark, table, spec, tuple(waiting.values()), tasks):
                results.append(result)
                del waiting[result.receipt.group_id]
                phase.staged += 1
        except (Py4JJavaError, PySparkException):
            found = [(group_id, damaged_input(table, group)) for group_id, group in waiting.items()]
            damaged = [failure(group_id, damage) for group_id, damage in found if damage is not None]
            if not damaged:
                raise
            failed += damaged
            waiting = {
                number: group for number, group in waiting.items() if number not in {d.group_id for d in damaged}
            }
    return results, failed


def check_receipts(action: RewriteDataFiles, receipts: Sequence[Receipt]) -> None:
    """The last look before the commit: a receipt for every group, equal digests, each planned row kept or deleted.

    Raises :class:`ProofFailed` when that does not hold, though no merge should let it come to this.
    """
    by_group = {receipt.group_id: receipt for receipt in receipts}
    for group in action.groups:
        receipt = by_group.get(group.group_id)
        if (
            receipt is None
            or receipt.input_digest != receipt.output_digest
            or receipt.records + receipt.deleted_records != group.record_count
            or (receipt.deleted_records and not group.delete_files)
        ):
            raise ProofFailed(f"group {group.group_id} has no valid proof: {receipt}")


def merged_outputs(table: SparkTable, action: RewriteDataFiles, results: Sequence[MergeResult]) -> list[Rewritten]:
    """The files that the merge wrote, as Java's ``DataFile``, in the table's sort order where that was proved."""
    groups = {group.group_id: group for group in action.groups}
    written: dict[Layout | None, list[tuple[FileGroup, OutputFile]]] = {}
    for result in results:
        group = groups[result.receipt.group_id]
        written.setdefault(sorted_by(action, group), []).extend((group, output) for output in result.outputs)
    return [
        Rewritten(group.group_id, output.path, output.record_count, entry)
        for layout, outputs in written.items()
        for (group, output), entry in zip(outputs, _entries(table, layout, outputs), strict=True)
    ]


def _entries(table: SparkTable, layout: Layout | None, outputs: Sequence[tuple[FileGroup, OutputFile]]) -> list[Any]:
    entries = table.output_files([(group.partition, output) for group, output in outputs])
    return entries if layout is None else table.ordered_by(layout, entries)


def check_outputs(action: RewriteDataFiles, receipts: Sequence[Receipt], outputs: Sequence[Rewritten]) -> None:
    """The files to be committed are those of the receipts, as many as planned, each another one.

    A layout gives fewer files where fewer rows are left than that, since no file is without rows but a last one: what
    is missing then is empty, for the rows are all there. Raises :class:`ProofFailed`.
    """
    proved = {receipt.group_id: receipt.records for receipt in receipts}
    for group in action.groups:
        its = [output for output in outputs if output.group_id == group.group_id]
        found = sum(output.record_count for output in its)
        if found != proved.get(group.group_id):
            raise ProofFailed(
                f"group {group.group_id}: {', '.join(output.path for output in its) or 'its files'} are said to have "
                f"{found} rows, the proof has {proved.get(group.group_id)}"
            )
        some = group.executor is Executor.SHUFFLE or group.output_spec_id is not None
        least = 1 if some else min(group.output_files, max(found, 1))
        if not least <= len(its) <= group.output_files:
            raise ProofFailed(f"group {group.group_id} became {len(its)} files, and {group.output_files} were planned")
    if len({output.path for output in outputs}) != len(outputs):
        raise ProofFailed("two groups were written to the same file")
    if {output.group_id for output in outputs} - {group.group_id for group in action.groups}:
        raise ProofFailed("a file belongs to no group of the plan")


def proof_of(receipts: Sequence[Receipt]) -> str:
    """The proof for the snapshot summary: method, rows kept and deleted, and one digest over those of all groups."""
    digest = xxhash.xxh3_128()
    for receipt in sorted(receipts, key=lambda receipt: receipt.group_id):
        said = f"{receipt.group_id}:{receipt.method}:{receipt.output_digest}:"
        digest.update(f"{said}{receipt.records}:{receipt.deleted_records};".encode())
    methods = "+".join(sorted({receipt.method for receipt in receipts}))
    records = sum(receipt.records for receipt in receipts)
    deleted = sum(receipt.deleted_records for receipt in receipts)
    return f"{methods};groups={len(receipts)};records={records};deleted={deleted};digest={digest.hexdigest()}"
