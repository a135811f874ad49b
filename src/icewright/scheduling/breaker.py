"""The circuit breaker of a table: work that keeps failing or losing against its writers is parked for a day.

A commit that did not keep the rows is parked at once: whatever went wrong must not be repeated before a person looked.
"""

from __future__ import annotations

from collections.abc import Sequence

from icewright.domain.actions import ActionKind
from icewright.domain.plans import Reason
from icewright.domain.tables import Instant
from icewright.domain.tasks import TaskHead, TaskState

FAILURES_MAX = 5
"""So many tasks without a success in a row open the breaker."""
PARKED_MS = 24 * 60 * 60 * 1000

PARKED = "parked"
"""The code of a reason that says: nothing is queued for a table for a day."""

VERIFICATION_FAILED = "verification-failed"
"""The code of an outcome that says: committed, and the table is not what it was to become."""

UNVERIFIED = "unverified"
"""The code of an outcome that says: committed, and nobody can compare it with the table before any more."""

TRIES_CARRIED_OUT = "tries_carried_out"
"""The figure of an outcome that says how many tries did any work, where that is not the number of claims."""

_WASTED = frozenset({TaskState.FAILED, TaskState.SUPERSEDED})


def alarmed(latest: Sequence[TaskHead], now: Instant) -> Reason | None:
    """Why nothing at all is queued for a table: its last task of some kind harmed it. None when none did.

    ``latest`` are its last tasks of all kinds, newest first. What tasks of another kind did since makes nothing good.
    """
    counted = [task for task in latest if _counts(task)]
    newest = [next((task for task in counted if task.kind is kind), None) for kind in ActionKind]
    return next((reason for task in newest if task is not None and (reason := _alarm(task, now)) is not None), None)


def parked(latest: Sequence[TaskHead], now: Instant) -> Reason | None:
    """Why nothing more of one kind of action is queued for a table, None when the breaker is closed.

    ``latest`` are the table's last tasks of that kind, newest first, at least :data:`FAILURES_MAX` of them if there are
    so many. Tasks that ended before anybody worked on them cost nothing, and of those that cannot be verified nobody
    knows whether they came to nothing: neither kind counts.
    """
    ended = [task for task in latest if _counts(task)][:FAILURES_MAX]
    if not ended or now >= ended[0].updated_at + PARKED_MS:
        return None
    alarm = _alarm(ended[0], now)
    if alarm is not None:
        return alarm
    until = ended[0].updated_at + PARKED_MS
    last = None if ended[0].outcome is None else ended[0].outcome.reason
    if len(ended) < FAILURES_MAX or any(task.state not in _WASTED for task in ended):
        return None
    said = "" if last is None else f"; the last: {last.text}"
    text = f"the last {FAILURES_MAX} tasks of the table came to nothing, so it is left alone for a day{said}"
    return Reason(PARKED, text, {"until": until, "tasks": FAILURES_MAX})


def _alarm(task: TaskHead, now: Instant) -> Reason | None:
    """What is said of a task that did not leave the table as it should have, for a day."""
    last, until = None if task.outcome is None else task.outcome.reason, task.updated_at + PARKED_MS
    if task.state is not TaskState.FAILED or last is None or last.code != VERIFICATION_FAILED or now >= until:
        return None
    kept = "the rows" if task.kind is ActionKind.REWRITE_DATA_FILES else "the table as it should have"
    text = f"task {task.task_id} did not keep {kept}, so the table is left alone for a day: {last.text}"
    return Reason(PARKED, text, {"until": until, "tasks": 1})


def _counts(task: TaskHead) -> bool:
    said = None if task.outcome is None else task.outcome.reason
    if said is None or task.state not in _WASTED:
        return task.attempt > 0
    return said.code != UNVERIFIED and int(said.figures.get(TRIES_CARRIED_OUT, task.attempt)) > 0
