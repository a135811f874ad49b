"""Tasks and their attempts as the API shows them: everything but the long list of their files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from icewright.core.errors import Cause
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind, traits_of
from icewright.model.work.jobs import Failed, Result, report_of
from icewright.model.work.tasks import (
    Attempt,
    AttemptState,
    HistoryEntry,
    ListedTask,
    LogLine,
    LogLines,
    Progress,
)
from icewright.model.work.why import StartEstimate, Wait
from icewright.plans.evidence.measures import Measured, measured
from icewright.plans.views import TaskView, task_view
from icewright.ports.store import AttemptOfTask
from icewright.work.tasks.causes import CAUSES_BY_CODE


@dataclass(frozen=True, slots=True)
class ListedAttempt:
    """One try of a task, as lists show it.

    ``result`` is how it ended by its own word, null before its report and of one that never reported; the task says
    what became of the table. ``cause`` is why it came to nothing, by what should be done about it. ``attempt_at`` is
    where it is with its report, ``task_at`` where its task is.
    """

    task_id: str
    attempt: int
    state: AttemptState
    optimizer_id: str
    fencing_token: int
    started_at: Instant
    ended_at: Instant | None
    progress: Progress | None
    result: Result | None
    cause: Cause | None
    attempt_at: str
    task_at: str


@dataclass(frozen=True, slots=True)
class AttemptOfTaskView:
    """One try in a list of those of all tasks: when it began and ended, where, and of which task of which table.

    ``task_at`` is where its task is, and all that was reported of it.
    """

    task_id: str
    attempt: int
    state: AttemptState
    optimizer_id: str
    queued_at: Instant
    started_at: Instant
    ended_at: Instant | None
    table: str
    catalog: str
    uuid: str
    kind: ActionKind
    resource_group: str
    task_at: str


@dataclass(frozen=True, slots=True)
class AttemptDocument:
    """One try of a task with its report, as its optimizer sent it, and what it took and brought by that.

    ``report`` and ``measured`` are null before the report, and of a try that never reported.
    """

    attempt: ListedAttempt
    report: Any
    measured: Measured | None


@dataclass(frozen=True, slots=True)
class TaskDocument:
    """A task with all changes of its state, and all tries at it, oldest first; ``attempt_at`` of each has its report.

    ``measured`` is what the tries took and brought, to be put beside the task's prediction; null before a report.
    ``files_at`` is where the files that it removes are listed, page by page: there may be 50,000. Null of other tasks.
    ``waits`` is what a queued task waits for, and ``start`` about when it starts; null of all others.
    """

    task: TaskView
    history: tuple[HistoryEntry, ...]
    attempts: tuple[ListedAttempt, ...]
    measured: Measured | None
    files_at: str | None
    waits: tuple[Wait, ...] = ()
    start: StartEstimate | None = None


@dataclass(frozen=True, slots=True)
class AttemptLog:
    """The last lines that one try of a task logged, oldest first, and how many came before them.

    ``attempt`` and ``optimizer_id`` are null of a task that was not tried yet. An optimizer sends lines as it works;
    what the server carries out itself, and optimizers of earlier releases, send none.
    """

    task_id: str
    attempt: int | None
    optimizer_id: str | None
    left_out: int
    lines: tuple[LogLine, ...]


def task_document(
    task: ListedTask,
    history: Sequence[HistoryEntry],
    attempts: Sequence[Attempt],
    waits: Sequence[Wait] = (),
    start: StartEstimate | None = None,
) -> TaskDocument:
    """The task with all that happened to it."""
    views = tuple(listed_attempt(attempt) for attempt in attempts)
    removes = traits_of(task.figures.kind).removes_files
    files_at = f"/api/v1/plans/{task.plan_id}/files" if removes else None
    return TaskDocument(task_view(task), tuple(history), views, measured(attempts), files_at, tuple(waits), start)


def listed_attempt(attempt: Attempt) -> ListedAttempt:
    """The attempt for lists."""
    report, task_at = report_of(attempt), f"/api/v1/tasks/{attempt.task_id}"
    return ListedAttempt(
        task_id=attempt.task_id,
        attempt=attempt.attempt,
        state=attempt.state,
        optimizer_id=attempt.optimizer_id,
        fencing_token=attempt.fencing_token,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        progress=attempt.progress,
        result=None if report is None else report.result,
        cause=cause_of(attempt),
        attempt_at=f"{task_at}/attempts/{attempt.attempt}",
        task_at=task_at,
    )


def attempt_of_task_view(found: AttemptOfTask) -> AttemptOfTaskView:
    """The attempt for a list of those of many tasks."""
    attempt = found.attempt
    return AttemptOfTaskView(
        task_id=attempt.task_id,
        attempt=attempt.attempt,
        state=attempt.state,
        optimizer_id=attempt.optimizer_id,
        queued_at=found.queued_at,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        table=str(found.table_name),
        catalog=found.table_id.catalog,
        uuid=found.table_id.uuid,
        kind=found.kind,
        resource_group=found.resource_group,
        task_at=f"/api/v1/tasks/{attempt.task_id}",
    )


def attempt_document(attempt: Attempt) -> AttemptDocument:
    """The attempt with its report."""
    report = None if attempt.report_json is None else json.loads(attempt.report_json)
    return AttemptDocument(listed_attempt(attempt), report, measured([attempt]))


def attempt_log(task_id: str, attempt: Attempt | None, log: LogLines | None) -> AttemptLog:
    """The log of the attempt, as far as there is one."""
    number, optimizer_id = (None, None) if attempt is None else (attempt.attempt, attempt.optimizer_id)
    left_out, lines = (0, ()) if log is None else (log.left_out, log.lines)
    return AttemptLog(task_id, number, optimizer_id, left_out, lines)


def cause_of(attempt: Attempt) -> Cause | None:
    """Why an attempt came to nothing, by how it ended and what it reported; None of others."""
    match attempt.state:
        case AttemptState.RUNNING | AttemptState.COMMITTED | AttemptState.CANCELLED:
            return None
        case AttemptState.CONFLICT:
            return Cause.CONFLICT
        case AttemptState.UNKNOWN:
            return Cause.UNKNOWN
        case AttemptState.LOST:
            return Cause.LOST
        case AttemptState.FAILED:
            report = report_of(attempt)
            code = report.result.code if report is not None and isinstance(report.result, Failed) else ""
            return CAUSES_BY_CODE.get(code, Cause.DEFECT)
