"""The rules of a task's life as pure functions, so that every store follows the same ones.

Each function takes the task as it stands and returns what the store must write, in one transaction, if and only if
the task still has the version that was read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from icewright.core.errors import Conflict, LeaseLost, NotAllowed, OutOfMemory
from icewright.core.times import Instant
from icewright.model.plans.plans import Reason
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.admission import NOTHING, Holding, Lane, Urgency
from icewright.model.work.tasks import (
    TERMINAL_STATES,
    TRANSITIONS,
    Attempt,
    AttemptState,
    HistoryEntry,
    Lease,
    NewTask,
    Outcome,
    Progress,
    Task,
    TaskHead,
    TaskState,
)

LIVE_STATES = frozenset(TaskState) - TERMINAL_STATES
"""At most one task of a table and kind of action is in one of these, so a task can always be queued again."""

LEASED_STATES = frozenset({TaskState.RUNNING, TaskState.IN_DOUBT})
"""A task in doubt keeps the lease that it ran under: the evidence of who may have committed."""

SECOND_ACTIVE_TASK = "task {task_id} cannot be taken up again: another task of the same table is under way"
"""One beside which it may not run, by their slots (:data:`icewright.model.actions.traits.BESIDE`)."""
SECOND_LIVE_TASK = "task {task_id} cannot be taken up again: another task of the same table and kind waits or runs"


@dataclass(frozen=True, slots=True)
class Step:
    """A change to be written: the task as it now is, its new history row, and the attempt where that changed.

    ``before`` is the state that it had, None for a new task; ``ends_attempt`` tells the end of an attempt from what
    corrects how it ended.
    """

    task: Task
    entry: HistoryEntry
    attempt: Attempt | None = None
    before: TaskState | None = None
    ends_attempt: bool = False


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How the present attempt ended."""

    state: AttemptState
    report_json: str | None = None


def attempt_end(state: AttemptState | None, report_json: str | None) -> AttemptEnd | None:
    """The two as one value. Raises :class:`NotAllowed` for a report that ends nothing, which would be lost."""
    if state is None and report_json is not None:
        raise NotAllowed("a report must say how its attempt ended")
    return None if state is None else AttemptEnd(state, report_json)


def create(new: NewTask, now: Instant) -> Step:
    """A new waiting task."""
    task = Task(
        task_id=new.task_id,
        table_id=new.table_id,
        table_name=new.table_name,
        plan_id=new.plan_id,
        action=new.action,
        reason=new.reason,
        prediction=new.prediction,
        priority=new.priority,
        resource_group=new.resource_group,
        attempts_max=new.attempts_max,
        state=TaskState.QUEUED,
        version=1,
        attempt=0,
        created_at=now,
        updated_at=now,
        not_before_at=now + max(new.delay_ms, 0),
        lease=None,
        progress=None,
        cancel_requested=False,
        outcome=None,
        lane=new.lane,
    )
    return Step(task, _entry(task, new.reason))


def may_coalesce(task: TaskHead) -> bool:
    """Whether a newer candidate may take this task's place: it waits and was never tried, and nobody asked for it."""
    return task.state is TaskState.QUEUED and task.attempt == 0 and not task.was_asked_for


def coalesce(task: Task, new: NewTask, now: Instant) -> Step:
    """The waiting task with a newer action. Its id and age stay, the higher priority, and that it was expedited."""
    newer = replace(
        task,
        table_name=new.table_name,
        plan_id=new.plan_id,
        action=new.action,
        reason=new.reason,
        prediction=new.prediction,
        priority=max(task.priority, new.priority),
        resource_group=new.resource_group,
        attempts_max=new.attempts_max,
        lane=_expedited(new.lane) if task.lane.urgency is Urgency.EXPEDITED else new.lane,
        version=task.version + 1,
        updated_at=now,
    )
    return Step(newer, _entry(newer, new.reason), before=task.state)


def expedite(task: Task, reason: Reason, now: Instant) -> Step | None:
    """The waiting task before all others of its group; None where it is so already. Raises :class:`NotAllowed`."""
    if task.state is not TaskState.QUEUED:
        raise NotAllowed(f"task {task.task_id} is {task.state}, and only what waits can be expedited")
    if task.lane.urgency is Urgency.EXPEDITED:
        return None
    sooner = replace(task, lane=_expedited(task.lane), version=task.version + 1, updated_at=now)
    return Step(sooner, _entry(sooner, reason), before=task.state)


def _expedited(lane: Lane) -> Lane:
    return replace(lane, urgency=Urgency.EXPEDITED)


def claim(
    task: Task, *, optimizer_id: str, fencing_token: int, now: Instant, lease_ms: int, holding: Holding = NOTHING
) -> Step:
    """The waiting task, running under a new lease, with its next attempt."""
    number = task.attempt + 1
    running = replace(
        task,
        state=TaskState.RUNNING,
        version=task.version + 1,
        attempt=number,
        updated_at=now,
        lease=Lease(optimizer_id, fencing_token, now + lease_ms, holding),
        progress=None,
    )
    attempt = Attempt(task.task_id, number, optimizer_id, fencing_token, AttemptState.RUNNING, now, None, None, None)
    reason = Reason("claimed", f"try {number}, by {optimizer_id}", {"fencing_token": fencing_token})
    return Step(running, _entry(running, reason), attempt, before=task.state)


def require_lease(task: Task, fencing_token: int, now: Instant) -> Lease:
    """The lease of the running task that this token holds.

    Raises :class:`LeaseLost` also when the lease has run out and nobody noticed yet: a lease never comes back, or
    whoever found it expired would act on a task that is running again.
    """
    lease = task.lease
    if task.state is not TaskState.RUNNING or lease is None:
        raise LeaseLost(f"task {task.task_id} is {task.state}, not running")
    if lease.fencing_token != fencing_token:
        raise LeaseLost(f"task {task.task_id} runs under token {lease.fencing_token}, not {fencing_token}")
    if lease.expires_at <= now:
        raise LeaseLost(f"the lease of task {task.task_id} ran out {now - lease.expires_at} ms ago")
    return lease


def beat(task: Task, fencing_token: int, *, progress: Progress, now: Instant, lease_ms: int) -> Task:
    """The running task with a longer lease. Not a change of state: no version, no history. Raises ``LeaseLost``."""
    lease = require_lease(task, fencing_token, now)
    return replace(task, lease=replace(lease, expires_at=max(lease.expires_at, now + lease_ms)), progress=progress)


def change(
    task: Task,
    attempt: Attempt | None,
    *,
    state: TaskState,
    outcome: Outcome,
    end: AttemptEnd | None,
    delay_ms: int,
    now: Instant,
) -> Step:
    """The task in another state; ``attempt`` is its present one, None before the first. Raises :class:`NotAllowed`.

    One that ran out of memory and is to be tried again waits in the large queue.
    """
    _require_transition(task, state)
    ended = None if end is None else _ended(task, attempt, end, now)
    last = ended or attempt
    if state not in LEASED_STATES and last is not None and last.state is AttemptState.RUNNING:
        raise NotAllowed(f"task {task.task_id} cannot become {state} while its attempt {last.attempt} is not ended")
    queued = state is TaskState.QUEUED
    changed = replace(
        task,
        state=state,
        version=task.version + 1,
        updated_at=now,
        not_before_at=now + max(delay_ms, 0) if queued else task.not_before_at,
        lease=task.lease if state in LEASED_STATES else None,
        progress=None if queued else task.progress,
        cancel_requested=task.cancel_requested and not queued,
        outcome=outcome,
        lane=replace(task.lane, queue=Queue.LARGE) if queued and ran_out_of_memory(outcome) else task.lane,
    )
    ends = ended is not None and attempt is not None and attempt.ended_at is None
    return Step(changed, _entry(changed, outcome.reason), ended, task.state, ends)


def require_version(task: Task, version: int) -> None:
    """Raise ``Conflict`` where a change was meant for another version of the task."""
    if task.version != version:
        raise Conflict(f"task {task.task_id} has version {task.version}, not {version}")


def cancel(task: Task, reason: Reason, now: Instant) -> Step | None:
    """A waiting task cancelled, a running one asked to stop; None when it was asked before. Raises ``NotAllowed``."""
    if task.state is TaskState.COMMITTED or task.state in TERMINAL_STATES:
        raise NotAllowed(f"task {task.task_id} is {task.state} and cannot be cancelled")
    if task.cancel_requested:
        return None
    asked = replace(task, version=task.version + 1, updated_at=now, cancel_requested=True)
    if task.state is TaskState.QUEUED:
        asked = replace(asked, state=TaskState.CANCELLED, outcome=Outcome(reason))
    return Step(asked, _entry(asked, reason), before=task.state)


def _require_transition(task: Task, state: TaskState) -> None:
    if state not in TRANSITIONS[task.state]:
        raise NotAllowed(f"task {task.task_id} is {task.state} and cannot become {state}")
    if state is TaskState.RUNNING:
        raise NotAllowed(f"task {task.task_id} can only be started by a claim")
    if state is TaskState.QUEUED and task.cancel_requested and task.state not in TERMINAL_STATES:
        raise NotAllowed(f"task {task.task_id} is asked to stop and cannot be queued again")


def _ended(task: Task, attempt: Attempt | None, end: AttemptEnd, now: Instant) -> Attempt:
    """The attempt ended, or its end corrected: what was unknown may turn out to be committed."""
    if attempt is None or end.state is AttemptState.RUNNING:
        raise NotAllowed(f"task {task.task_id} has no attempt that could end as {end.state}")
    return replace(
        attempt,
        state=end.state,
        ended_at=now if attempt.ended_at is None else attempt.ended_at,
        report_json=attempt.report_json if end.report_json is None else end.report_json,
    )


def _entry(task: Task, reason: Reason) -> HistoryEntry:
    return HistoryEntry(task.task_id, task.version, task.state, task.attempt, task.updated_at, reason)


TASKS_LOOKED_AT: Final = 20
"""Beside as many as have to succeed: so many that ended otherwise may lie between them."""


def ran_out_of_memory(outcome: Outcome | None) -> bool:
    """Whether an attempt, or a task, came to nothing since a process at work got no more memory."""
    return outcome is not None and outcome.reason.code == OutOfMemory.code


def queue_after(latest: Iterable[TaskHead], successes: int) -> Queue:
    """In which queue the next task of a table and kind of action waits.

    ``latest`` are those before it, the newest first, as far back as they count; ``successes`` is how many have to
    succeed in the large queue, after the last one that ran out of memory, for the table to come back.
    """
    was_large, succeeded = False, 0
    for task in latest:
        if ran_out_of_memory(task.outcome):
            return Queue.LARGE
        if task.lane.queue is Queue.LARGE:
            was_large = True
            succeeded += task.state is TaskState.SUCCEEDED
            if succeeded >= successes:
                return Queue.NORMAL
        elif task.state is TaskState.SUCCEEDED:
            break
    return Queue.LARGE if was_large else Queue.NORMAL
