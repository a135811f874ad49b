"""What a plan says, for people: the answer to "why is nothing happening to my table?" from the plan alone."""

from __future__ import annotations

from icewright.core import wording
from icewright.maintenance.registry.planning import explain_prediction
from icewright.model.plans.plans import Plan, Verdict
from icewright.model.policy.policy import Mode
from icewright.policy.settings import MODE_KEY

_PARTITIONS_EXPLAINED_MAX = 10

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
            return "It is carried out by itself."


def _partitions(plan: Plan) -> list[str]:
    verdicts = sorted(plan.verdicts, key=lambda item: _ORDER.index(item.verdict))
    first = verdicts[:_PARTITIONS_EXPLAINED_MAX]
    lines = [f"- {wording.place(item.path)}: {item.verdict.value}, {item.reason.text}" for item in first]
    more = sum(plan.verdict_counts.values()) - len(first)
    if more > 0:
        lines.append(f"- and {wording.count(more, 'more partition')}")
    return lines
