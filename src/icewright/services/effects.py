"""Whether a task has taken effect: told by its table alone, whatever its attempts said or could not say."""

from __future__ import annotations

from dataclasses import dataclass

from icewright.domain.actions import RewriteDataFiles, UndoExpireData
from icewright.domain.compute_statistics import ComputeStatistics
from icewright.domain.expire_data import ExpireData
from icewright.domain.expire_snapshots import ExpireSnapshots
from icewright.domain.plans import Reason
from icewright.domain.remove_dangling_deletes import RemoveDanglingDeletes
from icewright.domain.remove_expired_files import RemoveExpiredFiles
from icewright.domain.remove_orphan_files import RemoveOrphanFiles
from icewright.domain.restore_files import RestoreFiles
from icewright.domain.rewrite_manifests import RewriteManifests
from icewright.domain.rewrite_position_deletes import RewritePositionDeletes
from icewright.domain.rollback import Rollback
from icewright.domain.tables import Snapshot, TableMetadata
from icewright.domain.tasks import Task
from icewright.domain.undo import UndoExpiry
from icewright.planning.expiry_commit import left_of
from icewright.planning.expiry_undo import is_undone
from icewright.planning.rollback import is_signed
from icewright.planning.statistics_commit import computed


@dataclass(frozen=True, slots=True)
class Effect:
    """What a table has of a task. ``snapshot_id`` and ``attempt`` are None where the action makes no snapshot."""

    text: str
    snapshot_id: int | None = None
    attempt: int | None = None


def effect_of(task: Task, metadata: TableMetadata) -> Effect | None:  # noqa: PLR0911 - one case for each action
    """What the table has of a task, None where it has not taken effect. The table is the task's own."""
    match task.action:
        case (
            RewriteDataFiles()
            | RewriteManifests()
            | RemoveDanglingDeletes()
            | RewritePositionDeletes()
            | ExpireData()
            | UndoExpireData()
        ):
            snapshot = snapshot_made_by(task, metadata)
            if snapshot is None:
                return None
            text = f"the commit is in the table: snapshot {snapshot.snapshot_id}"
            return Effect(text, snapshot.snapshot_id, snapshot.attempt)
        case ExpireSnapshots() as action:
            return None if left_of(action, metadata) else Effect("none of the snapshots and refs is there any more")
        case UndoExpiry() as action:
            return Effect("it was put back") if is_undone(action, task.task_id, metadata) else None
        case ComputeStatistics() as action:
            return None if computed(action, metadata) is None else Effect("the snapshot has these statistics")
        case RemoveOrphanFiles() | RemoveExpiredFiles() | RestoreFiles():
            return None  # it commits nothing: the next attempt goes on where the last one stopped
        case Rollback():
            return Effect("main was set") if is_signed(task.task_id, metadata) else None


def done_by_others(task: Task) -> Reason | None:
    """Why nothing is left to do where the effect is there before anybody tried; None where it can be our own alone."""
    match task.action:
        case (
            RewriteDataFiles()
            | RewriteManifests()
            | RemoveDanglingDeletes()
            | RewritePositionDeletes()
            | ExpireData()
            | UndoExpireData()
            | Rollback()
        ):
            return None
        case RemoveOrphanFiles() | RemoveExpiredFiles() | RestoreFiles():
            return None
        case ExpireSnapshots():
            return Reason("gone-already", "somebody else removed all that was to expire")
        case UndoExpiry():
            return Reason("there-already", "somebody else put all of it back")
        case ComputeStatistics():
            return Reason("there-already", "somebody else computed all these statistics")


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
