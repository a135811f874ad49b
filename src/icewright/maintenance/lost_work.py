"""Whether what became of a plan makes it worth another task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icewright.core.errors import Cause
from icewright.core.times import Instant
from icewright.model.plans.plans import Plan
from icewright.model.work.tasks import TERMINAL_STATES, TaskHead, TaskState
from icewright.work.tasks.retry import BACKOFF_MAX_MS

_HEALING: Final = frozenset({Cause.AWAY, Cause.OUT_OF_MEMORY, Cause.UNREADABLE, Cause.LOST})
"""Why a task failed, where the same may do well some time later although nobody commits anything."""


def work_is_lost(plan: Plan, latest: Sequence[TaskHead], now: Instant) -> bool:
    """Whether nothing became of the plan and it is worth another task.

    It was never queued, or its task was superseded, or failed by something that heals without a commit, some time ago.
    """
    if any(task.state not in TERMINAL_STATES for task in latest):
        return False
    own = next((task for task in latest if task.plan_id == plan.plan_id), None)
    return own is None or own.state is TaskState.SUPERSEDED or _may_have_healed(own, now)


def _may_have_healed(task: TaskHead, now: Instant) -> bool:
    """Whether a task failed because of what is not the table's: a disk, a storage, memory. The breaker counts on."""
    cause = None if task.outcome is None else task.outcome.cause
    return task.state is TaskState.FAILED and cause in _HEALING and now >= task.updated_at + BACKOFF_MAX_MS
