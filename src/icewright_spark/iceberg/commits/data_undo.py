"""The commit of rows that are inserted again, through the one place that commits to Iceberg.

Iceberg validates nothing of an append. So what it rests on is checked by us against one snapshot, and Iceberg refuses
the commit when the table is at another one by then (``validateWith``; decision 0035). Then it is checked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from icewright.core.errors import Conflict
from icewright.model.actions.actions import UndoExpireData
from icewright.model.actions.expire_data import tag_of
from icewright.model.actions.undo import SOURCE_KEY, inserted_already
from icewright.model.iceberg.tables import UNDONE_KEY
from icewright.model.work.jobs import TaskSpec
from icewright_spark.iceberg.commits.commit import CommitResult, Rewritten, several_tries, sign
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.manifests import PartitionFiles


def commit_data_undo(
    table: SparkTable,
    spec: TaskSpec,
    action: UndoExpireData,
    outputs: Sequence[Rewritten],
    *,
    proof: str,
    may_commit: Callable[[], None],
) -> CommitResult:
    """Append the files, in a manifest of their own; every other one stays as it is.

    ``may_commit`` and the rest as in :func:`~.commit.commit_rewrite`. Raises as :func:`check_unmoved`.
    """
    format_version = table.format_version

    def prepare() -> Any:
        check_unmoved(table, spec, action)
        if table.format_version != format_version:
            raise Conflict(f"{spec.table_name} was upgraded to format version {table.format_version} meanwhile")
        # Iceberg would delete the manifests of a commit that was refused, and a catalog may refuse what it has done.
        operation = table.java.newFastAppend().deleteWith(table.deletes_nothing())
        operation = operation.validateWith(table.is_still_current())
        for output in outputs:
            operation.appendFile(output.data_file)
        sign(operation, spec, proof)
        operation.set(UNDONE_KEY, action.undone_task_id)
        return operation

    return several_tries(table, spec, prepare, may_commit, checks_all=True)


def check_unmoved(table: SparkTable, spec: TaskSpec, action: UndoExpireData) -> None:
    """What must hold of the table as it is loaded, or rows would be there twice, or be written otherwise than planned.

    Raises :class:`Conflict`.
    """
    made = table.snapshot_of_task(spec.task_id)
    if made is not None:
        raise Conflict(f"another attempt at {spec.task_id} has committed, as snapshot {made}")
    _check_history(table, action)
    _check_files_gone(table, action)
    if not table.has_snapshot(action.base_snapshot_id):
        raise Conflict(f"snapshot {action.base_snapshot_id}, right before the expiry, no longer exists")
    if table.schema_id != action.schema_id:
        raise Conflict(f"the schema changed from {action.schema_id} to {table.schema_id} since the plan was made")
    if table.spec_id != action.spec_id:
        raise Conflict(f"the partition spec changed from {action.spec_id} to {table.spec_id} since the plan was made")
    name = tag_of(action.undone_task_id)
    tag = table.java.refs().get(name)
    if tag is None or not tag.isTag() or int(tag.snapshotId()) != action.tagged_snapshot_id:
        raise Conflict(f"the tag {name}, which keeps the files, is missing or at another snapshot")


def _check_history(table: SparkTable, action: UndoExpireData) -> None:
    """The rows have expired, as far as ``main`` knows, and nobody inserted them since by such a commit."""

    def summary_of(snapshot_id: int) -> Mapping[str, str] | None:
        found = table.java.snapshot(snapshot_id)
        summary = None if found is None else found.summary()  # None in old tables of format version 1
        said = {} if summary is None else {key: summary.get(key) for key in (UNDONE_KEY, SOURCE_KEY)}
        return None if found is None else {key: value for key, value in said.items() if value is not None}

    snapshot = table.java.currentSnapshot()
    while snapshot is not None and snapshot.snapshotId() != action.expiry_snapshot_id:
        already = inserted_already(int(snapshot.snapshotId()), action.undone_task_id, summary_of)
        if already is not None:
            raise Conflict(already.text)
        parent_id = snapshot.parentId()
        snapshot = None if parent_id is None else table.java.snapshot(parent_id)
    if snapshot is None:
        raise Conflict(
            f"the table's history does not reach back to snapshot {action.expiry_snapshot_id} any more, which expired "
            "the rows: they may be there"
        )


def _check_files_gone(table: SparkTable, action: UndoExpireData) -> None:
    """None of the files is in the table, as it would be that somebody added again as it is."""
    paths = {file.path for group in action.groups for file in group.files}
    files = PartitionFiles(table, int(table.java.currentSnapshot().snapshotId()), action.partitions)
    there = files.data_files(paths)
    if there:
        more = f" (and {len(there) - 1} more)" if len(there) > 1 else ""
        raise Conflict(f"{min(there)}{more} is in the table: its rows would be there twice")
