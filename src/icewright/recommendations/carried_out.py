"""Since when the files of a table lie as an accepted recommendation says: by the tasks that did it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind, Executor, RewriteFigures
from icewright.model.iceberg.tables import Operation, TableMetadata
from icewright.model.queries.decisions import KeptRecommendation
from icewright.model.queries.recommendations import LayoutChange
from icewright.model.work.tasks import ListedTask, TaskState
from icewright.plans.evidence.measures import committed_input_bytes
from icewright.plans.layouts import in_names, resolve_expression
from icewright.ports.store import TaskFilter, TaskStore

SHARE_MIN: Final = 0.5
"""Of the bytes that the table had, how much has to be rewritten before anything is judged: small partitions may never
reach the size from which they are put in order."""
TASKS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """Since when it is done, and the snapshot of the last task that did it, None where it is not known."""

    at: Instant
    snapshot_id: int | None


def carried_out(tasks: TaskStore, kept: KeptRecommendation, metadata: TableMetadata) -> CarriedOut | None:
    """When half of the table was rewritten since the acceptance, by the layout where it is one; None before that.

    None too where the table was rolled back to before it. What was rewritten by another layout since does not count:
    the files are that one's. Nor do stitched files: their row groups are as they were.
    """
    decision, said = kept.decision, kept.recommendation
    if decision is None:
        return None
    layout = None
    if isinstance(said.candidate, LayoutChange):
        resolved = resolve_expression(metadata, said.candidate.layout)
        if isinstance(resolved, Reason):
            return None
        layout = in_names(metadata, resolved)
    only = TaskFilter(frozenset({TaskState.SUCCEEDED}), kept.table_id, ActionKind.REWRITE_DATA_FILES)
    done = [task for task in tasks.listed(only, limit=TASKS_MAX) if task.created_at >= decision.at]
    done.sort(key=lambda task: (task.updated_at, task.task_id))
    if layout is not None:
        others = (number for number, task in enumerate(done, start=1) if _layout_of(task) not in (None, layout))
        done = [task for task in done[max(others, default=0) :] if _layout_of(task) == layout]
    rewritten = 0
    for task in done:
        rewritten += _rewritten_bytes(tasks, task)
        if rewritten >= SHARE_MIN * said.evidence.bytes:
            last = done[-1].outcome
            snapshot_id = None if last is None else last.snapshot_id
            ended = CarriedOut(task.updated_at, snapshot_id)
            return None if _is_rolled_back(ended, metadata) else ended
    return None


def rewritten_by_others(done: CarriedOut, metadata: TableMetadata) -> bool:
    """Whether somebody else has rewritten files since: what is measured then is also theirs."""
    for snapshot in metadata.ancestors():
        if snapshot.snapshot_id == done.snapshot_id:
            return False
        if snapshot.operation is Operation.REPLACE and snapshot.task_id is None and snapshot.committed_at >= done.at:
            return True
    return False


def _is_rolled_back(done: CarriedOut, metadata: TableMetadata) -> bool:
    """Whether the snapshot is there, and the table is not made from it; one that has expired says nothing."""
    if done.snapshot_id is None or metadata.snapshot(done.snapshot_id) is None:
        return False
    return all(snapshot.snapshot_id != done.snapshot_id for snapshot in metadata.ancestors())


def _rewritten_bytes(tasks: TaskStore, task: ListedTask) -> int:
    """Bytes of the files that a task has replaced, but for those that were stitched.

    The files of its action are read only where some of its groups are stitched and others are not.
    """
    stitched, figures = task.reason.figures.get("stitched_groups"), task.figures
    if isinstance(figures, RewriteFigures) and stitched == figures.groups:
        return 0
    copied: frozenset[int] = frozenset()
    if stitched != 0:
        groups = tasks.get(task.task_id).rewrite.groups
        copied = frozenset(group.group_id for group in groups if group.executor is Executor.STITCH)
    return committed_input_bytes(tasks.attempts(task.task_id), without=copied)


def _layout_of(task: ListedTask) -> str | None:
    prediction = task.rewrite_prediction
    return None if prediction is None else prediction.layout
