"""What the latest tasks of a table tell about its next one: how long work takes, and whose turn it is.

Estimates are for one core on a local disk. Optimizers have more cores, or slower storage, and do several things at
once; what tells is how long they needed for this very table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icewright.actions.rewrite_data_files.deadline_batching import is_tight
from icewright.inventory.row_removals import duration_ms
from icewright.model.plans.observation import TaskThroughput
from icewright.model.work.tasks import TaskHead, TaskState
from icewright.ports.store import TaskStore
from icewright.work.tasks.reports import report_of

TASKS_LOOKED_AT: Final = 3
"""Each costs reading a report, which is long."""

PACE_MIN, PACE_MAX = 1 / 16, 16.0
"""A pace beyond these is that of a machine that slept, or of a clock that jumped."""


def experience(tasks: TaskStore, latest: Sequence[TaskHead]) -> TaskThroughput:
    """What is told by ``latest``, a table's last tasks, newest first."""
    tried = next((head for head in latest if head.attempt > 0), None)
    return TaskThroughput(_pace(tasks, latest), tried is not None and is_tight(tried.reason))


def _pace(tasks: TaskStore, latest: Sequence[TaskHead]) -> float:
    """Milliseconds on the clock for each one that was expected; 1 where no task has succeeded yet."""
    expected_ms, took_ms = 0.0, 0
    done = [head for head in latest if head.state is TaskState.SUCCEEDED]
    for head in done[:TASKS_LOOKED_AT]:
        reports = [report_of(attempt) for attempt in tasks.attempts(head.task_id)]
        report = next((report for report in reversed(reports) if report is not None), None)
        estimate = None if head.rewrite_prediction is None else head.rewrite_prediction.estimate
        if report is not None and estimate is not None:
            expected_ms += duration_ms(estimate.cpu_ms, 1.0)
            took_ms += report.wall_ms
    return min(max(took_ms / expected_ms, PACE_MIN), PACE_MAX) if expected_ms else 1.0
