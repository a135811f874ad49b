"""What a plan says, for people: the answer to "why is nothing happening to my table?" from the plan alone."""

from __future__ import annotations

from collections.abc import Sequence

from icewright.approvals.service import waits_by_mode
from icewright.core import wording
from icewright.maintenance.registry.planning import explain_prediction
from icewright.maintenance.registry.services import ACTION_TYPES
from icewright.model.actions.actions import Executor, FileGroup
from icewright.model.iceberg.files import Partition
from icewright.model.plans.plans import PartitionVerdict, Plan, Verdict
from icewright.model.policy.policy import MODE_KEY, Mode
from icewright.plans.action_types import beyond_budget
from icewright.plans.views import PlanView, VerdictView

_EXPLAINED_MAX = 10

_SAID = {
    Verdict.REWRITE: "to be rewritten",
    Verdict.WAIT: "to wait",
    Verdict.REFUSE: "that cannot be rewritten yet",
    Verdict.LEAVE: "to be left as they are",
}
# What a person asks about first: what is done, then what is kept from being done.
_ORDER = (Verdict.REWRITE, Verdict.WAIT, Verdict.REFUSE, Verdict.LEAVE)


def explain(plan: Plan) -> tuple[str, ...]:
    """The plan in sentences: what, who acts, how many partitions and why, by which rules, and when again."""
    lines = [f"{plan.table_name}: {plan.reason.text}."]
    if not plan.is_empty:
        lines.append(_who_acts(plan))
    lines.extend(explain_prediction(plan.prediction))
    counts = [f"{plan.verdict_counts[kind]:,} {_SAID[kind]}" for kind in _ORDER if plan.verdict_counts.get(kind)]
    if counts:
        lines.append(f"Partitions: {', '.join(counts)}.")
    lines.extend(_partitions(plan))
    lines.extend(f"{rule.text}." for rule in plan.rules)
    if plan.look_again_at is not None:
        lines.append(f"Looked at again at {wording.instant(plan.look_again_at)}, or with the next commit.")
    return tuple(lines)


def _who_acts(plan: Plan) -> str:
    if (plan.asked or plan.migration is not None) and plan.mode is not Mode.OBSERVE:
        return "It was asked for, and runs when a person applies it."
    match plan.mode:
        case Mode.OBSERVE:
            return f"It is not carried out: the table is only observed. Set {MODE_KEY} to approve or auto."
        case Mode.APPROVE:
            return "It waits for a person to approve it."
        case Mode.AUTO:
            return "It runs without approval."


def _partitions(plan: Plan) -> list[str]:
    verdicts = sorted(plan.verdicts, key=lambda item: _ORDER.index(item.verdict))
    groups = [[item] for item in verdicts]
    if len(groups) > _EXPLAINED_MAX:
        groups = wording.grouped(verdicts, lambda item: (item.verdict, item.reason.text))
    first = groups[:_EXPLAINED_MAX]
    lines = [
        f"- {wording.example(len(alike), alike[0].path)}: {alike[0].verdict.value}, "
        f"{'each: ' if len(alike) > 1 else ''}{alike[0].reason.text}"
        for alike in first
    ]
    more = sum(plan.verdict_counts.values()) - sum(map(len, first))
    if more > 0:
        lines.append(f"- and {wording.count(more, 'more partition')}")
    return lines


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
        to_approve=beyond_budget(ACTION_TYPES, plan) or waits_by_mode(plan),
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
