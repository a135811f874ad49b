"""What is shown of plans, and of the answer to "what is wrong with my table?"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icewright.approvals.service import waits_by_mode
from icewright.core.times import Instant
from icewright.maintenance.explain import explain
from icewright.maintenance.registry.planning import beyond_budget
from icewright.model.actions.actions import ActionFigures, ActionKind, Executor, FileGroup
from icewright.model.actions.remove_expired_files import RemoveExpiredFiles
from icewright.model.actions.remove_orphan_files import NO_QUARANTINE, REFUSALS, Doubt, RemoveOrphanFiles
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableName
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Migration, PartitionVerdict, Plan, Prediction, Reason, Verdict
from icewright.model.policy.policy import Mode, Policy
from icewright.model.work.figures import Listed, PlanSummary
from icewright.ports.store import WaitingPlan
from icewright.tables.views import figures_view


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


def plan_view(plan: Plan) -> PlanView:
    """The plan for display: everything but the names of the files."""
    groups: dict[Partition, list[FileGroup]] = {}
    for group in plan.groups:
        groups.setdefault(group.partition, []).append(group)
    return PlanView(
        plan_id=plan.plan_id,
        table=str(plan.table_name),
        catalog=plan.table_id.catalog,
        uuid=plan.table_id.uuid,
        snapshot_id=plan.snapshot_id,
        planned_at=plan.planned_at,
        mode=plan.mode,
        can_apply=not plan.is_empty,
        reason=plan.reason,
        explanation=explain(plan),
        rules=plan.rules,
        prediction=plan.prediction,
        verdict_counts={verdict.value: count for verdict, count in plan.verdict_counts.items()},
        verdicts=tuple(_verdict_view(item, groups.get(item.partition, ())) for item in plan.verdicts),
        actions=tuple(action.figures for action in plan.actions),
        executors={each.value: n for each in Executor if (n := sum(g.executor is each for g in plan.groups))},
        look_again_at=plan.look_again_at,
        migration=plan.migration,
        to_approve=beyond_budget(plan) or waits_by_mode(plan),
    )


def _verdict_view(item: PartitionVerdict, groups: Sequence[FileGroup]) -> VerdictView:
    return VerdictView(
        path=item.path,
        spec_id=item.partition.spec_id,
        values=item.partition.values,
        verdict=item.verdict,
        reason=item.reason,
        files_before=item.files_before,
        files_after=item.files_after,
        input_files=sum(len(group.files) for group in groups),
        input_bytes=sum(group.size_bytes for group in groups),
        executors=tuple(sorted({group.executor for group in groups})),
        delete_files=len({delete for group in groups for delete in group.delete_files}),
        wait_until=item.wait_until,
    )


def plan_summary(plan: Plan) -> PlanSummary:
    """A plan in one line."""
    after = None if plan.rewrite_prediction is None else plan.rewrite_prediction.data_files_after
    return PlanSummary(plan.plan_id, plan.planned_at, plan.reason, not plan.is_empty, after)


def listed(observation: Observation, plan: Plan, policy: Policy) -> Listed:
    """What lists show of a table that was observed and planned."""
    ours = (one.committed_at for one in observation.metadata.ancestors() if one.task_id is not None)
    figures = figures_view(observation.inventory.partitions, policy)
    return Listed(policy.mode, figures, max(ours, default=None), plan_summary(plan))
