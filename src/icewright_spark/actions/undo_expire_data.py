"""``undo_expire_data``: insert the rows of files that expired again, as new files, in one append.

Each group is read and written by Spark as a staged rewrite is, and proved as one: the multiset of the rows that are
read back from the new files is that of the rows read, with the deletes applied that this job and Iceberg's own planning
say apply to them. Nothing of the table is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icewright.core.errors import Conflict
from icewright.model.actions.actions import RewriteDataFiles, UndoExpireData
from icewright.model.work.jobs import Receipt, TaskSpec
from icewright_spark.actions.done import Done
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.planned_table import check_table
from icewright_spark.actions.rewrite_data_files import check_outputs, check_receipts, proof_of
from icewright_spark.executors.staged.inputs import damaged_input
from icewright_spark.executors.staged.rewrite import rewrite_group
from icewright_spark.iceberg.commits.commit import Rewritten
from icewright_spark.iceberg.commits.data_undo import check_unmoved, commit_data_undo
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.manifests import check_planned_files
from icewright_spark.iceberg.scan_tasks import planned_tasks


def undo_expire_data(
    spark: SparkSession,
    table: SparkTable,
    spec: TaskSpec,
    action: UndoExpireData,
    phase: Phase,
    may_commit: Callable[[], None],
) -> Done:
    """Carry out one attempt.

    Raises :class:`Conflict` when the table is not what was planned any more, or no row is left of what expired,
    :class:`Unsupported` for what Spark cannot read or write, and :class:`ProofFailed` when a group did not give back
    its rows; in all these cases nothing has been committed.
    """
    check_table(table, spec)
    check_unmoved(table, spec, action)
    source = RewriteDataFiles(action.base_snapshot_id, action.schema_id, action.groups, target_file_size_bytes=0)
    check_planned_files(table, source)
    tasks = planned_tasks(table, action.base_snapshot_id, action.groups)
    phase.name = "inserting"
    done = []
    for group in action.groups:
        try:
            done.append(rewrite_group(spark, table, spec, group, tasks[group.group_id], as_new=True))
        except (Py4JJavaError, PySparkException) as error:
            damage = damaged_input(table, group)
            if damage is None:
                raise
            raise damage from error
        phase.staged += 1
    receipts = tuple(result.receipt for result in done)
    outputs = [output for result in done for output in result.outputs]
    _check(source, receipts, outputs)
    phase.name = "committing"
    result = commit_data_undo(table, spec, action, outputs, proof=proof_of(receipts), may_commit=may_commit)
    phase.name = "done"
    return Done(result, receipts, tuple(each.figures for each in done))


def _check(source: RewriteDataFiles, receipts: Sequence[Receipt], outputs: Sequence[Rewritten]) -> None:
    """Every group is proved, and the files are those of the proofs; a group without rows has none."""
    check_receipts(source, receipts)
    with_rows = {receipt.group_id for receipt in receipts if receipt.records}
    check_outputs(source.only(with_rows), receipts, outputs)
    if not outputs:
        raise Conflict("no row is left of what expired: deletes had removed them all before")
