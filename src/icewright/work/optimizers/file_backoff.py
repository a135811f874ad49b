"""Files of groups that failed by themselves: left out of plans for a while, longer each time.

A task whose other groups were committed has succeeded, and its table is planned anew at once. Without this the group
that cannot be read would be planned again with each task, for ever. Nothing is kept for it: the latest tasks of the
table, and what their attempts reported, say it all. A file that failed further back than these tasks is tried again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from icewright.core.times import Instant
from icewright.model.plans.observation import Observation
from icewright.model.work.jobs import GROUP_CONFLICT, report_of
from icewright.model.work.tasks import TaskHead, TaskState
from icewright.observation.executor_exclusions import files_not_merged, has_another_executor
from icewright.ports.store import TaskStore
from icewright.work.tasks.retry import put_off_ms


def with_failed_files(observation: Observation, tasks: TaskStore, latest: Sequence[TaskHead]) -> Observation:
    """The observation of a table whose ``latest`` rewrites these are, with what is known of files of failed groups.

    Which are to be left alone until when, and which another executor takes that can do what a merge cannot.
    """
    failures: Counter[str] = Counter()
    failed_at: dict[str, Instant] = {}
    not_merged: dict[str, str] = {}
    for head in filter(_may_have_failed, latest):
        reports = [report_of(attempt) for attempt in tasks.attempts(head.task_id)]
        report = next((report for report in reversed(reports) if report is not None), None)
        # Groups that met another commit, or have another executor next time, are planned again at once.
        left = [] if report is None else [one for one in report.left if one.code != GROUP_CONFLICT]
        if not left:
            continue
        action = tasks.get(head.task_id).rewrite
        not_merged |= files_not_merged((action, one) for one in left)
        failed = {one.group_id for one in left if not has_another_executor(one.code, action.only({one.group_id}))}
        for group in action.only(failed).groups:
            for file in group.files:
                failures[file.path] += 1
                failed_at[file.path] = max(head.updated_at, failed_at.get(file.path, 0))
    put_off = {path: failed_at[path] + put_off_ms(times) for path, times in failures.items()}
    return replace(observation, put_off=put_off, not_merged=not_merged)


def _may_have_failed(task: TaskHead) -> bool:
    """Whether a group of a task may have failed by itself; its reports, which are long, are asked only then."""
    if task.state is not TaskState.SUCCEEDED or task.outcome is None:
        return task.state in (TaskState.FAILED, TaskState.SUPERSEDED) and task.attempt > 0
    figures = task.outcome.reason.figures
    return figures.get("groups") != figures.get("groups_committed")
