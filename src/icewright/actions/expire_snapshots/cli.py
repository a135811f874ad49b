"""What is shown of expiries of snapshots, and of taking them, or commits, back."""

from __future__ import annotations

from icewright.model.actions.expire_snapshots import ExpireSnapshotsPrediction
from icewright.model.actions.rollback import Commits, RollbackPrediction
from icewright.model.actions.undo import UNDO_WINDOW_MS, UndoExpiryPrediction
from icewright.model.work.tasks import TaskState
from icewright.plans.views import PlanView, TaskView
from icewright.terminal import figures as text


def expiry_pairs(said: ExpireSnapshotsPrediction, view: PlanView) -> list[tuple[str, str]]:
    """What an expiry would bring."""
    return [
        ("snapshots", f"{said.snapshots_before:,} -> {said.snapshots_after:,}"),
        ("refs removed", ", ".join(said.refs_removed)),
        ("undo", said.undo),
        *(("note", note.text) for note in view.rules if not note.code.startswith("kept-")),
    ]


def expiry_undo(said: ExpireSnapshotsPrediction, task: TaskView) -> str:
    """Whether and how it can be taken back, and until when."""
    if not said.can_be_undone or task.state is not TaskState.SUCCEEDED:
        return said.undo.replace("TASK_ID", task.task_id)
    until = text.instant(task.updated_at + UNDO_WINDOW_MS)
    beside = f"; as a second table, {said.second_table}" if said.second_table else ""
    return f"icewright undo {task.task_id}, until {until}, as long as all files are there{beside}"


def expiry_undo_pairs(said: UndoExpiryPrediction, view: PlanView) -> list[tuple[str, str]]:
    """What comes back."""
    if said.second is not None:
        rows = [
            ("second table", f"{said.second.name}, with {text.count(said.snapshots_after, 'snapshot')}"),
            ("from", said.second.metadata_location),
        ]
    else:
        rows = [("snapshots", f"{said.snapshots_before:,} -> {said.snapshots_after:,}")]
    return [
        *rows,
        ("refs back", ", ".join(said.refs_back)),
        ("until", text.instant(said.until)),
        *(("note", note.text) for note in view.rules),
    ]


def expiry_undo_work(said: UndoExpiryPrediction) -> str:
    """What is to be done, in a few words."""
    if said.second is not None:
        return f"{text.count(said.snapshots_after, 'snapshot')} in a second table, {said.second.name}"
    return f"{said.snapshots_before:,} snapshots become {said.snapshots_after:,} again"


def rollback_pairs(said: RollbackPrediction, view: PlanView) -> list[tuple[str, str]]:
    """Where ``main`` is set, and what is lost or comes back by that."""
    return [
        ("main at", text.instant(said.committed_at)),
        *(("back" if said.is_forward else "lost", _commits(each)) for each in said.commits),
        *(("but", note.text) for note in view.rules),
        ("undo", said.undo),
    ]


def _commits(said: Commits) -> str:
    """``3 commits (append) by spark, 1,200 rows added``."""
    rows = [(said.added_records, "added"), (said.deleted_records, "deleted")]
    counted = [f"{number:,} rows {did}" for number, did in rows if number]
    return ", ".join([f"{text.count(said.commits, 'commit')} ({said.operation}) by {said.writer}", *counted])
