"""What is shown of plans, of their tasks, and of the answer to "what is wrong with my table?"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icewright.core.times import Instant
from icewright.model.actions.actions import ActionFigures, ActionKind, Executor
from icewright.model.actions.remove_files import NO_QUARANTINE, REFUSALS, Doubt, RemoveExpiredFiles, RemoveOrphanFiles
from icewright.model.iceberg.names import TableName
from icewright.model.plans.approvals import REFUSED_MS, Refusal
from icewright.model.plans.plans import Migration, Plan, Prediction, Reason, Verdict
from icewright.model.policy.policy import Mode
from icewright.model.work.admission import Lane
from icewright.model.work.tasks import Lease, ListedTask, Outcome, Progress, Task, TaskState
from icewright.ports.store import WaitingPlan


@dataclass(frozen=True, slots=True)
class VerdictView:
    """What a plan says of one partition; ``input_files`` and ``input_bytes`` are what would be read of it.

    ``executors`` are those of its groups, ``delete_files`` those that are folded in; nothing where nothing is planned.
    """

    path: str
    spec_id: int
    values: str
    verdict: Verdict
    reason: Reason
    files_before: int
    files_after: int
    input_files: int
    input_bytes: int
    executors: tuple[Executor, ...]
    delete_files: int
    wait_until: Instant | None


@dataclass(frozen=True, slots=True)
class RefusalView:
    """Who refused which plan, when and why. ``asked_again_at`` is when another plan of its kind waits at the latest.

    One waits before that where the settings of the policy, or of work on data files the table's snapshot, are other
    ones than those that the plan was made from. ``table`` is as the table was called then.
    """

    plan_id: str
    table: str
    table_name: TableName
    catalog: str
    uuid: str
    kind: ActionKind
    refused_by: str
    refused_at: Instant
    why: str
    asked_again_at: Instant


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan. ``explanation`` says it in sentences; ``can_apply`` whether there is anything to apply.

    ``executors`` counts the groups of its action by what carries them out. ``migration`` is what a person asked for.
    """

    plan_id: str
    table: str
    catalog: str
    uuid: str
    snapshot_id: int | None
    planned_at: Instant
    mode: Mode
    can_apply: bool
    reason: Reason
    explanation: tuple[str, ...]
    rules: tuple[Reason, ...]
    prediction: Prediction | None
    verdict_counts: Mapping[str, int]
    verdicts: tuple[VerdictView, ...]
    actions: tuple[ActionFigures, ...]
    executors: Mapping[str, int]
    look_again_at: Instant | None
    migration: Migration | None = None
    to_approve: Reason | None = None
    """Why a person has to approve it."""
    refused: RefusalView | None = None
    """Who refused it and why, where one plan is asked for: it cannot be approved or applied."""
    waits: bool = False
    """Whether it waits for a person, where one plan is asked for."""

    @property
    def is_blocked(self) -> bool:
        """Whether no file can be removed at all, as long as something is in the way."""
        return self.reason.code in REFUSALS or any(rule.code == NO_QUARANTINE for rule in self.rules)


@dataclass(frozen=True, slots=True)
class PlannedFileView:
    """A file that a plan would remove, as it was listed, and since when nothing needs it."""

    path: str
    size_bytes: int
    modified_at: Instant | None
    first_seen_at: Instant
    doubt: Doubt | None = None
    """Why a person has to have seen it before it goes."""


def planned_files(plan: Plan, first: int, limit: int) -> tuple[Sequence[PlannedFileView], bool]:
    """Some of the files that a plan would remove, from the number ``first`` on, and whether there are more."""
    found: list[PlannedFileView] = []
    for action in plan.actions:
        match action:
            case RemoveOrphanFiles(files=files):
                doubtful_first = sorted(files, key=lambda file: file.doubt is None)
                found += [
                    PlannedFileView(one.path, one.size_bytes, one.modified_at, one.first_seen_at, one.doubt)
                    for one in doubtful_first
                ]
            case RemoveExpiredFiles(files=candidates):
                found += [
                    PlannedFileView(
                        str(one.object.path), one.object.size_bytes, one.object.modified_at, one.first_seen_at
                    )
                    for one in candidates
                ]
            case _:
                pass
    return found[first : first + limit], len(found) > first + limit


@dataclass(frozen=True, slots=True)
class WaitingView:
    """A plan that a person has to approve before anything happens, and since when and why it waits."""

    plan_id: str
    table: str
    table_name: TableName
    catalog: str
    uuid: str
    kind: ActionKind
    reason: Reason
    since: Instant


def waiting_view(waiting: WaitingPlan) -> WaitingView:
    """The waiting plan for display."""
    return WaitingView(
        plan_id=waiting.plan_id,
        table=str(waiting.table_name),
        table_name=waiting.table_name,
        catalog=waiting.table_id.catalog,
        uuid=waiting.table_id.uuid,
        kind=waiting.kind,
        reason=waiting.reason,
        since=waiting.since,
    )


def refusal_view(refusal: Refusal) -> RefusalView:
    """A refusal for display."""
    return RefusalView(
        plan_id=refusal.plan_id,
        table=str(refusal.table_name),
        table_name=refusal.table_name,
        catalog=refusal.table_id.catalog,
        uuid=refusal.table_id.uuid,
        kind=refusal.kind,
        refused_by=refusal.refused_by,
        refused_at=refusal.refused_at,
        why=refusal.why,
        asked_again_at=refusal.refused_at + REFUSED_MS,
    )


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as it stands. ``lease`` is there while it runs; ``outcome`` is that of the last attempt or change."""

    task_id: str
    table: str
    table_name: TableName
    catalog: str
    uuid: str
    plan_id: str
    state: TaskState
    action: ActionFigures
    reason: Reason
    prediction: Prediction
    priority: int
    resource_group: str
    lane: Lane
    attempt: int
    attempts_max: int
    created_at: Instant
    updated_at: Instant
    not_before_at: Instant
    lease: Lease | None
    progress: Progress | None
    cancel_requested: bool
    outcome: Outcome | None


def task_view(task: Task | ListedTask) -> TaskView:
    """The task for display."""
    return TaskView(
        task_id=task.task_id,
        table=str(task.table_name),
        table_name=task.table_name,
        catalog=task.table_id.catalog,
        uuid=task.table_id.uuid,
        plan_id=task.plan_id,
        state=task.state,
        action=task.figures,
        reason=task.reason,
        prediction=task.prediction,
        priority=task.priority,
        resource_group=task.resource_group,
        lane=task.lane,
        attempt=task.attempt,
        attempts_max=task.attempts_max,
        created_at=task.created_at,
        updated_at=task.updated_at,
        not_before_at=task.not_before_at,
        lease=task.lease,
        progress=task.progress,
        cancel_requested=task.cancel_requested,
        outcome=task.outcome,
    )
