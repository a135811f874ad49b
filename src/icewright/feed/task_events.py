"""What the feed says of a change of a task and of a refusal, as pure functions, so that every store tells the same.

At most one fact for each change: what did not keep its table is ``data-at-risk`` and not ``failed`` besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icewright.core.reasons import Reason
from icewright.model.events.feed import Fact, FactKind
from icewright.model.iceberg.names import TableName
from icewright.model.plans.approvals import Refusal
from icewright.model.work.breaker import UNVERIFIED, VERIFICATION_FAILED
from icewright.model.work.halts import Halt, HaltState, PartKind
from icewright.model.work.lifecycle import Step
from icewright.model.work.tasks import Task, TaskState

_KINDS: Final[Mapping[TaskState, FactKind]] = {
    TaskState.QUEUED: FactKind.QUEUED,
    TaskState.RUNNING: FactKind.STARTED,
    TaskState.SUCCEEDED: FactKind.SUCCEEDED,
    TaskState.FAILED: FactKind.FAILED,
    TaskState.SUPERSEDED: FactKind.SUPERSEDED,
    TaskState.CANCELLED: FactKind.CANCELLED,
}
"""Doubts and commits that are not verified yet are told of when they are decided."""

_AT_RISK: Final = frozenset({VERIFICATION_FAILED, UNVERIFIED})


def fact_of(before: TaskState | None, step: Step) -> Fact | None:
    """What is told of a step, from the state before it; None where the state is as it was, or not worth a fact."""
    task = step.task
    kind = _KINDS.get(task.state)
    if kind is None or task.state is before:
        return None
    if task.state is TaskState.FAILED and step.entry.reason.code in _AT_RISK:
        kind = FactKind.DATA_AT_RISK
    return _fact(kind, task, step)


def _fact(kind: FactKind, task: Task, step: Step) -> Fact:
    return Fact(
        fact=kind,
        catalog=task.table_id.catalog,
        reason=step.entry.reason,
        table_id=task.table_id,
        table_name=task.table_name,
        task_id=task.task_id,
        plan_id=task.plan_id,
        action=task.kind,
        attempt=task.attempt,
    )


def fact_of_refusal(refusal: Refusal) -> Fact:
    """What is told of a plan that a person refused."""
    return Fact(
        fact=FactKind.REFUSED,
        catalog=refusal.table_id.catalog,
        reason=refusal.reason(),
        table_id=refusal.table_id,
        table_name=refusal.table_name,
        plan_id=refusal.plan_id,
        action=refusal.kind,
    )


def fact_of_halt(halt: Halt) -> Fact:
    """What is told of a part of the queue that somebody has paused, drains or stopped."""
    return _fact_of_part(FactKind.PAUSED, halt, halt.reason())


def fact_of_resume(halt: Halt, by: str, why: str) -> Fact:
    """What is told of one that somebody, ``by`` name, lets go on."""
    text = f"{halt.part} is resumed, which {halt.by} had {_HAD[halt.state]}; by {by}" + (f": {why}" if why else "")
    return _fact_of_part(FactKind.RESUMED, halt, Reason("resumed", text, {"since": halt.since, "part": str(halt.part)}))


_HAD: Final = {HaltState.PAUSED: "paused", HaltState.DRAINING: "drained", HaltState.STOPPED: "stopped"}


def _fact_of_part(kind: FactKind, halt: Halt, reason: Reason) -> Fact:
    part = halt.part
    if part.table_id is not None:
        return Fact(kind, part.table_id.catalog, reason, part.table_id, TableName.parse(part.name))
    return Fact(kind, part.name if part.kind is PartKind.CATALOG else "", reason)
