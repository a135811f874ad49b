"""What becomes of a task when an attempt of it has ended: by what was reported, and by what its table says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from icewright.core.codec import dumps
from icewright.core.errors import Cause, ServerUnavailable
from icewright.model.plans.plans import Reason
from icewright.model.work.jobs import (
    Cancelled,
    Committed,
    CommitUnknown,
    Conflicted,
    Failed,
    Result,
    TaskReport,
    report_of,
)
from icewright.model.work.tasks import Attempt, AttemptState, Outcome, Task, TaskState
from icewright.observation.access import REFUSED_CODES, AccessBook
from icewright.observation.executor_exclusions import (
    EXCLUSION_CODES,
    NOT_MERGED,
    ExecutorExclusions,
    has_another_executor,
)
from icewright.ports.store import Change, TaskStore
from icewright.work.tasks.causes import CAUSES_BY_CODE, end_of
from icewright.work.tasks.retry import End, GiveUp, PlanAgain, Retry, decide

BROKE_OFF: Final = "broke-off"
"""How an attempt ended that moved files, and told nothing any more."""
_ENDS: Final = frozenset({TaskState.FAILED, TaskState.CANCELLED, TaskState.SUPERSEDED})


class AttemptOutcomes:
    """Decides by the retry policy (:mod:`icewright.work.tasks.retry`), and keeps in mind what executors found."""

    def __init__(
        self, tasks: TaskStore, access: AccessBook, exclusions: ExecutorExclusions, chance: Callable[[], float]
    ) -> None:
        self._tasks, self._access, self._exclusions, self._chance = tasks, access, exclusions, chance

    def reported(self, task: Task, report: TaskReport) -> Change:
        """What a report makes of its task.

        Unless this was the first attempt, no task ends by a report alone: an earlier one, thought dead, may have been
        faster, and then the table has our task id.
        """
        self._note_exclusion(task, report)
        change = self._said(task, report)
        if task.attempt > 1 and change.state in _ENDS:
            return replace(change, state=TaskState.IN_DOUBT)
        return change

    def not_committed(self, task: Task, broken_off: str | None = None) -> Change:
        """What follows on a doubt when the table has no commit of the task: by how its present attempt ended.

        ``broken_off`` is how far a task came that commits nothing, since it moves files.
        """
        attempt = self._tasks.attempts(task.task_id)[-1]
        said = None if task.outcome is None else task.outcome.reason
        if attempt.state is AttemptState.CANCELLED and said is not None:
            return Change(task.task_id, task.version, TaskState.CANCELLED, Outcome(said))
        end, cause = _end_of_attempt(attempt, task)
        if attempt.state is not AttemptState.FAILED or said is None:
            was = "" if said is None else f" ({said.text})"
            nothing = "not-committed" if broken_off is None else BROKE_OFF
            code = nothing if said is None or said.code != ServerUnavailable.code else said.code
            if broken_off is None:
                said = Reason(code, f"no snapshot of the table carries this task{was}")
            else:
                said = Reason(code, f"try {task.attempt} of {task.attempts_max} broke off{was}: {broken_off}")
        return self.follow_up(task, end, Outcome(said, cause=cause))

    def follow_up(
        self,
        task: Task,
        end: End,
        outcome: Outcome,
        attempt_state: AttemptState | None = None,
        report_json: str | None = None,
    ) -> Change:
        """What follows an attempt that surely changed nothing: another try later, a new plan, or the end."""
        delay_ms = 0
        match decide(self._tries(task, outcome), task.attempts_max, end, jitter=self._chance()):
            case _ if task.cancel_requested:
                state = TaskState.CANCELLED
            case Retry(delay):
                state, delay_ms = TaskState.QUEUED, delay
            case PlanAgain():
                state = TaskState.SUPERSEDED
            case GiveUp():
                state = TaskState.FAILED
        return Change(task.task_id, task.version, state, outcome, attempt_state, report_json, delay_ms)

    def _tries(self, task: Task, outcome: Outcome) -> int:
        """How often it was tried, without what a person stopped, and without outages of the server.

        Neither says anything of the next try.
        """
        stopped = {one.attempt for one in self._tasks.attempts(task.task_id) if one.state is AttemptState.CANCELLED}
        away = {one.attempt for one in self._tasks.history(task.task_id) if one.reason.code == ServerUnavailable.code}
        if outcome.reason.code == ServerUnavailable.code:
            return task.attempt - len(stopped | away | {task.attempt})
        return max(1, task.attempt - len(stopped | away))

    def _said(self, task: Task, report: TaskReport) -> Change:
        text = dumps(report)

        def change(state: TaskState, reason: Reason, attempt: AttemptState, snapshot_id: int | None = None) -> Change:
            return Change(task.task_id, task.version, state, Outcome(reason, snapshot_id), attempt, text)

        match report.result:
            case Committed(snapshot_id):
                which = "" if snapshot_id is None else f" as snapshot {snapshot_id}"
                reason = Reason("committed", f"committed{which}, to be verified")
                return change(TaskState.COMMITTED, reason, AttemptState.COMMITTED, snapshot_id)
            case CommitUnknown(detail):
                outcome = Outcome(Reason("commit-unknown", detail), cause=Cause.UNKNOWN)
                state = AttemptState.UNKNOWN
                return Change(task.task_id, task.version, TaskState.IN_DOUBT, outcome, state, text)
            case Cancelled(detail) if task.cancel_requested:
                return change(TaskState.CANCELLED, Reason("cancelled", detail), AttemptState.CANCELLED)
            case Cancelled(detail):  # nobody wants the task gone: what it is in was stopped, and is resumed some time
                reason = Reason("stopped", f"stopped with all that it was halted with; it waits again: {detail}")
                return change(TaskState.QUEUED, reason, AttemptState.CANCELLED)
            case (Conflicted() | Failed()) as result:
                end, cause = _end_of_result(result, task, report)
                code = "conflict" if isinstance(result, Conflicted) else result.code
                attempt = AttemptState.CONFLICT if isinstance(result, Conflicted) else AttemptState.FAILED
                if code in REFUSED_CODES:
                    self._access.demote(task.table_id, result.detail, _optimizer_of(task))
                return self.follow_up(task, end, Outcome(Reason(code, result.detail), cause=cause), attempt, text)

    def _note_exclusion(self, task: Task, report: TaskReport) -> None:
        """Keep in mind what executors found the table's files to be, in some of the groups or in all."""
        found = {group.code: group.detail for group in reversed(report.left)}
        if isinstance(report.result, Failed):
            found.setdefault(report.result.code, report.result.detail)
        for code in sorted(EXCLUSION_CODES & found.keys()):
            self._exclusions.note(task.table_id, code, found[code])


def _end_of_attempt(attempt: Attempt, task: Task) -> tuple[End, Cause]:
    """How an attempt ended, by its state, and by its report where it failed: as when that came in."""
    match attempt.state:
        case AttemptState.LOST:
            return End.LOST, Cause.LOST
        case AttemptState.UNKNOWN:
            return End.ABSENT, Cause.UNKNOWN
        case AttemptState.FAILED:
            report = report_of(attempt)
            result = None if report is None else report.result
            return _end_of_result(result, task, report) if isinstance(result, Failed) else (End.FINAL, Cause.DEFECT)
        case _:
            return End.CONFLICT, Cause.CONFLICT


def _end_of_result(result: Result, task: Task, report: TaskReport | None) -> tuple[End, Cause]:
    match result:
        case Failed(code, _, _) if code in REFUSED_CODES or _is_planned_otherwise(code, task, report):
            # Not the same again: what was planned relied on an access, or on files, that there are not.
            return End.CONFLICT, CAUSES_BY_CODE.get(code, Cause.DEFECT)
        case Failed(code, _, retryable):
            cause = CAUSES_BY_CODE.get(code, Cause.DEFECT)
            return end_of(cause, retryable=retryable), cause
        case _:
            return End.CONFLICT, Cause.CONFLICT


def _is_planned_otherwise(code: str, task: Task, report: TaskReport | None) -> bool:
    """Whether the next plan has another executor; for files that a merge refused, by the report of their groups."""
    if code in NOT_MERGED and (report is None or not report.left):
        return False
    return has_another_executor(code, task.action)


def _optimizer_of(task: Task) -> str:
    return "" if task.lease is None else task.lease.optimizer_id
