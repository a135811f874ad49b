"""When what is kept up of a table beside its files is due again.

Tables are looked at once an hour at least, and each look may find something due. So nothing sleeps until a time comes,
and after a restart nothing is due twice: the tasks themselves tell when it was last done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.undo import UNDO_WINDOW_MS
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.work.lifecycle import may_coalesce
from icewright.model.work.tasks import TERMINAL_STATES, TaskHead, TaskState

UPKEEP_PRIORITY: Final = -1
"""Behind all work on data files."""
DANGER_PRIORITY: Final = 1
"""Before all work on data files that nobody asked for."""
INTERVAL_MS: Final = 3_600_000
"""At most once an hour for each table and kind."""
_CAME_TO_NOTHING: Final = frozenset({TaskState.CANCELLED, TaskState.SUPERSEDED})


def pause(tasks: Iterable[TaskHead], now: Instant) -> Reason | None:
    """Why it is not done just now, by the latest tasks of its kind: one is under way, or was tried lately.

    One that waits, and was never tried, is planned anew after an hour: its place in the queue stays its own.
    """
    for task in tasks:
        if task.state not in TERMINAL_STATES and not may_coalesce(task):
            return Reason("upkeep-under-way", f"task {task.task_id} is under way")
        until = task.updated_at + INTERVAL_MS
        if now < until:
            waits = task.state not in TERMINAL_STATES
            text = f"task {task.task_id} {'waits for its turn' if waits else 'was the last less than an hour ago'}"
            return Reason("upkeep-lately", text, {"until": until})
    return None


def taken_back(undos: Iterable[TaskHead], now: Instant, rest_ms: int = UNDO_WINDOW_MS) -> Reason | None:
    """Why nothing expires by itself for a while: a person took an expiry back, or is about to.

    ``undos`` are the latest tasks that undo expiries. What they put back is as old as it was, so that the next expiry
    would take it at once; ``rest_ms`` is for how long it is left alone.
    """
    for task in undos:
        if task.state not in TERMINAL_STATES:
            return Reason("taken-back", f"task {task.task_id} takes an expiry back")
        until = task.updated_at + rest_ms
        if task.state is TaskState.SUCCEEDED and now < until:
            text = f"task {task.task_id} took an expiry back, and what came back stays for a week"
            return Reason("taken-back", text, {"until": until})
    return None


def person_wanted(tasks: Iterable[TaskHead], undos: Iterable[TaskHead]) -> Reason | None:
    """Why a person has to begin what expires by itself: nothing ever did, or it was taken back since.

    By the latest tasks of its kind, the last that succeeded among them, and of those that take such back. One that
    cannot be compared with the table before any more counts: harm fails. Both begin with the time, and are forgotten by
    their age: so with an undo everything that it may have undone is forgotten as well.
    """
    done = max((task.task_id for task in tasks if task.state is TaskState.SUCCEEDED), default=None)
    if done is None:
        return Reason("first-expiry", "icewright has never done this to the table: review the plan, and approve it")
    for task in undos:
        if task.task_id > done and task.state not in _CAME_TO_NOTHING:
            text = f"task {task.task_id} restored what was removed: review what would be removed now, and approve it"
            return Reason("taken-back", text)
    return None


def rolled_back(tasks: Iterable[TaskHead], metadata: TableMetadata) -> Reason | None:
    """Why a person has to begin what expires by itself: the last of its commits was rolled back, by whomever.

    Told for as long as the table still has that snapshot. Of data that would expire, its files tell after that.
    """
    lineage = {snapshot.snapshot_id for snapshot in metadata.ancestors()}
    for task in tasks:
        made = None if task.outcome is None else task.outcome.snapshot_id
        if task.state is not TaskState.SUCCEEDED or made is None:
            continue
        if made in lineage or metadata.snapshot(made) is None:
            return None
        text = f"snapshot {made} of task {task.task_id} was rolled back: review the new plan, and approve it"
        return Reason("taken-back", text)
    return None


def last_done(tasks: Iterable[TaskHead]) -> Instant | None:
    """When it was last done, by the latest tasks of its kind; None when it never was, as far as they go back."""
    return max((task.updated_at for task in tasks if task.state is TaskState.SUCCEEDED), default=None)
