"""What a plan says, for people: the answer to "why is nothing happening to my table?" from the plan alone."""

from __future__ import annotations

from icewright.domain.compute_statistics import ComputeStatisticsPrediction
from icewright.domain.expire_data import ExpireDataPrediction
from icewright.domain.plans import Estimate, Plan, Verdict
from icewright.domain.policy import Mode
from icewright.domain.remove_dangling_deletes import RemoveDanglingDeletesPrediction
from icewright.domain.rewrite_manifests import RewriteManifestsPrediction
from icewright.domain.rewrite_position_deletes import RewritePositionDeletesPrediction
from icewright.planning import lookups, wording
from icewright.planning.settings import MODE_KEY

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
    if isinstance(plan.prediction, RewriteManifestsPrediction):
        before, after = plan.prediction.manifests_before, plan.prediction.manifests_after
        lines.append(f"The table would have {wording.count(after, 'manifest')} instead of {before:,}.")
    if isinstance(plan.prediction, RemoveDanglingDeletesPrediction | RewritePositionDeletesPrediction):
        listed = wording.count(plan.prediction.after.listed, "delete file")
        lines.append(f"The table would have {listed} instead of {plan.prediction.before.listed:,}.")
    if isinstance(plan.prediction, ComputeStatisticsPrediction):
        lines.append(f"What for: {plan.prediction.gain}.")
    if isinstance(plan.prediction, ExpireDataPrediction):
        left = plan.prediction.records_before - plan.prediction.records
        lines.append(
            f"The table would have {wording.count(left, 'row')} instead of {plan.prediction.records_before:,}."
        )
        lines.append(f"To be undone: {plan.prediction.undo}.")
    said = plan.rewrite_prediction
    if said is not None:
        other = said.data_files_after != said.data_files_before
        instead = f" instead of {said.data_files_before:,}" if other else " as before"
        lines.append(f"The table would have {wording.count(said.data_files_after, 'data file')}{instead}.")
        lines.extend(_estimated(said.estimate) if said.estimate is not None else ())
    counts = [f"{plan.verdict_counts[kind]:,} {_SAID[kind]}" for kind in _ORDER if plan.verdict_counts.get(kind)]
    if counts:
        lines.append(f"Partitions: {', '.join(counts)}.")
    lines.extend(_partitions(plan))
    lines.extend(f"{rule.text}." for rule in plan.rules)
    if plan.look_again_at is not None:
        lines.append(f"Looked at again at {wording.instant(plan.look_again_at)}, or with the next commit.")
    return tuple(lines)


def _estimated(guess: Estimate) -> list[str]:
    written = f"{wording.size(guess.output_bytes)} written, {guess.output_reason.text}"
    return [f"Estimated: {text}." for text in (written, *(lookups.said(one) for one in guess.lookups))]


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
