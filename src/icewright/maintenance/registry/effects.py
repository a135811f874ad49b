"""Whether a task has taken effect: told by its table alone, whatever its attempts said or could not say.

A function for each kind of action; of the kinds see :mod:`icewright.maintenance.registry.planning`.
"""

from __future__ import annotations

from icewright.actions.compute_statistics.commit import computed
from icewright.actions.expire_snapshots.commit import left_of
from icewright.actions.rollback.plan import is_signed
from icewright.actions.undo.expiry_undo import is_undone
from icewright.model.actions.actions import Action
from icewright.model.actions.compute_statistics import ComputeStatistics
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.actions.rollback import Rollback
from icewright.model.actions.undo import UndoExpiry
from icewright.model.iceberg.tables import Snapshot, TableMetadata
from icewright.model.work.tasks import Task
from icewright.plans.action_types import Effect


def snapshot_effect(_action: Action, task: Task, metadata: TableMetadata) -> Effect | None:
    """Of an action that makes a snapshot, which carries the task's id."""
    snapshot = snapshot_made_by(task, metadata)
    if snapshot is None:
        return None
    text = f"the commit is in the table: snapshot {snapshot.snapshot_id}"
    return Effect(text, snapshot.snapshot_id, snapshot.attempt)


def expiry_effect(action: ExpireSnapshots, _task: Task, metadata: TableMetadata) -> Effect | None:
    """Of an expiry: all that was to go is gone."""
    return None if left_of(action, metadata) else Effect("none of the snapshots and refs is there any more")


def expiry_undo_effect(action: UndoExpiry, task: Task, metadata: TableMetadata) -> Effect | None:
    """Of its undo: all of it is back."""
    return Effect("it was put back") if is_undone(action, task.task_id, metadata) else None


def statistics_effect(action: ComputeStatistics, _task: Task, metadata: TableMetadata) -> Effect | None:
    """Of statistics: the metadata names them."""
    return None if computed(action, metadata) is None else Effect("the snapshot has these statistics")


def rollback_effect(_action: Rollback, task: Task, metadata: TableMetadata) -> Effect | None:
    """Of a rollback: the commit is signed."""
    return Effect("main was set") if is_signed(task.task_id, metadata) else None


def no_effect(_action: Action, _task: Task, _metadata: TableMetadata) -> None:
    """Of an action that commits nothing: the next attempt goes on where the last one stopped."""


def snapshot_made_by(task: Task, metadata: TableMetadata) -> Snapshot | None:
    """The snapshot that a task made, None without one.

    A table may hold several of one task: an attempt thought dead commits, its owner rolls that back, and the next
    attempt commits as well. The one that was reported counts if the task did make it, then the one of the present
    attempt, then the newest.
    """
    reported = metadata.snapshot(reported_snapshot(task))
    if reported is not None and reported.task_id == task.task_id:
        return reported
    return metadata.snapshot_of_task(task.task_id, task.attempt) or metadata.snapshot_of_task(task.task_id)


def reported_snapshot(task: Task) -> int | None:
    """The snapshot that the task's latest outcome speaks of."""
    return None if task.outcome is None else task.outcome.snapshot_id
