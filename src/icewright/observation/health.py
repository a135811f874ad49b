"""The health of a table: pure functions from what a look knows to seven scores, each with its reason and its action.

A score is the share of something that is as it should be, in whole hundredths rounded down. So 100 means that nothing
would raise it, and nothing is chosen here but the weights (:data:`HEALTH_WEIGHTS`): how many files are too many, how
old a snapshot may be and which order is asked for is the table's own policy. The same rows in more small files, with
more delete files, in more manifests or behind more old snapshots never score higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.inventory.snapshot_retention import retained_snapshots
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpiryRule
from icewright.model.iceberg.layouts import Layout
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan
from icewright.model.policy.policy import Mode, Policy
from icewright.model.queries.decisions import UNDECIDED, KeptRecommendation, RecommendationState
from icewright.model.queries.recommendations import Verdict
from icewright.model.queries.templates import WEEK_MS
from icewright.model.work.breaker import Thresholds, failures_in_a_row
from icewright.model.work.figures import (
    HEALTH_MAX,
    HEALTH_WEIGHTS,
    FiguresView,
    Grade,
    HealthAction,
    HealthChange,
    HealthPart,
    Listed,
    PartChange,
    PartHealth,
    SeriesPoint,
    TableHealth,
)
from icewright.model.work.tasks import TERMINAL_STATES, TaskHead
from icewright.observation.figures import figures_view, plan_summary
from icewright.plans.layouts import in_names, resolve

_FINE: Final = "fine"
_QUERIES: Final = "queries-open-files"
ANALYSIS_AGE_MS_MAX: Final = 8 * WEEK_MS
"""How long an analysis counts: as long as the window of queries that it reads."""
_TO_BE_DECIDED: Final = (*UNDECIDED, RecommendationState.ACCEPTING)


@dataclass(frozen=True, slots=True)
class HealthFigures:
    """What the health of a table is worked out from.

    ``layout`` is the order that is asked for in words, None where none is, and a reason where it cannot be had.
    ``ordered_bytes`` of the data are in it. ``unworthy_files`` of the avoidable ones are in partitions of which the
    trigger says that merging is not worth it: they count for nothing. ``plan`` says what the present plan would do,
    None where nothing is to do, and ``refused`` who refused it and why. ``analyzed`` is the newest recommendation made
    from the table's queries, where it is not too old. ``failures`` tasks of one kind failed since the last success of
    that kind; ``failures_max`` of them park it.
    """

    data_files: int
    size_bytes: int
    records: int
    small_files: int
    avoidable_files: int
    delete_files: int
    equality_delete_files: int
    deleted_records: int
    manifests: int
    avoidable_manifests: int
    snapshots: int
    expirable_snapshots: int
    layout: str | Reason | None
    ordered_bytes: int
    mode: Mode
    plan: Reason | None
    failures: int
    failures_max: int
    problem: Reason | None
    refused: Reason | None = None
    analyzed: KeptRecommendation | None = None
    unworthy_files: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    score: int
    reason: Reason
    action: HealthAction | None


def health_of(figures: HealthFigures) -> TableHealth:
    """The health that these figures come to."""
    found = {
        HealthPart.FILES: _files(figures),
        HealthPart.DELETES: _deletes(figures),
        HealthPart.METADATA: _metadata(figures),
        HealthPart.SNAPSHOTS: _snapshots(figures),
        HealthPart.LAYOUT: _layout(figures),
        HealthPart.UPKEEP: _upkeep(figures),
        HealthPart.FAILURES: _failures(figures.problem, figures.failures, figures.failures_max),
    }
    return _together(
        tuple(
            PartHealth(
                part, one.score, HEALTH_WEIGHTS[part], one.reason, one.action if one.score < HEALTH_MAX else None
            )
            for part, one in found.items()
        )
    )


def with_problem(health: TableHealth, problem: Reason) -> TableHealth:
    """The health of a table that cannot be looked after any more: the rest is as it was seen last."""
    failing = _failures(problem, 0, 1)
    return _together(
        tuple(
            replace(part, score=failing.score, reason=failing.reason, action=failing.action)
            if part.part is HealthPart.FAILURES
            else part
            for part in health.parts
        )
    )


def change_of(before: TableHealth | None, after: TableHealth, at: Instant) -> HealthChange | None:
    """What changed from one health to the next; None where neither the whole nor any part did."""
    if before is None:
        return None
    scores = {part.part: part.score for part in before.parts}
    moved = tuple(
        PartChange(part.part, scores[part.part], part.score)
        for part in after.parts
        if scores.get(part.part, part.score) != part.score
    )
    if not moved:
        return None
    shifted = {one.part for one in moved}
    way = "down" if after.score < before.score else "up" if after.score > before.score else "unchanged"
    how = f"{way} from {before.score} to {after.score}" if way != "unchanged" else f"unchanged at {after.score}"
    parts = ", ".join(f"{one.part} {one.before} -> {one.after}" for one in moved)
    of_queries = [one.reason.text for one in after.parts if one.part in shifted and one.reason.code == _QUERIES]
    return HealthChange(at, before.score, after.score, moved, "; ".join((f"{how}: {parts}", *of_queries)))


def listed(
    observation: Observation,
    plan: Plan,
    policy: Policy,
    tasks: Sequence[TaskHead] = (),
    *,
    problem: Reason | None = None,
    limits: Thresholds | None = None,
    before: Listed | None = None,
    refused: Reason | None = None,
    analyzed: KeptRecommendation | None = None,
    unworthy_files: int = 0,
) -> Listed:
    """What lists show of a table that was observed and planned; ``tasks`` are its latest, newest first.

    ``refused`` says who refused the plan that would wait for a person, ``analyzed`` is the newest recommendation, and
    ``unworthy_files`` how many files merging would take away where the trigger says that this is not worth it.
    """
    ours = (one.committed_at for one in observation.metadata.ancestors() if one.task_id is not None)
    figures = figures_view(observation.inventory.partitions, policy)
    ended = [task for task in tasks if task.state in TERMINAL_STATES]
    failures = failures_in_a_row(ended, limits or Thresholds())
    found = health_figures(observation, plan, policy, figures, failures, problem)
    is_young = analyzed is not None and observation.observed_at - analyzed.made_at <= ANALYSIS_AGE_MS_MAX
    found = replace(found, refused=refused, analyzed=analyzed if is_young else None, unworthy_files=unworthy_files)
    health = health_of(found)
    change = change_of(None if before is None else before.health, health, observation.observed_at)
    return Listed(
        policy.mode,
        figures,
        max(ours, default=None),
        plan_summary(plan),
        snapshots=len(observation.metadata.snapshots),
        health=health,
        health_change=change or (None if before is None else before.health_change),
        last_task_at=max((task.updated_at for task in ended), default=None),
        failures=failures,
        noted_at=None if before is None else before.noted_at,
    )


def listed_with_problem(listed: Listed | None, problem: Reason, at: Instant) -> Listed | None:
    """What lists show of a table from now on that could not be looked at."""
    if listed is None or listed.health is None:
        return listed
    health = with_problem(listed.health, problem)
    return replace(listed, health=health, health_change=change_of(listed.health, health, at) or listed.health_change)


def series_point(listed: Listed, at: Instant) -> SeriesPoint:
    """The point of a table's series that a look gives."""
    figures = listed.figures
    return SeriesPoint(
        at,
        figures.data_files,
        figures.size_bytes,
        figures.records,
        figures.small_files,
        figures.delete_files,
        listed.snapshots,
        None if listed.health is None else listed.health.score,
    )


def health_figures(
    observation: Observation,
    plan: Plan,
    policy: Policy,
    figures: FiguresView,
    failures: int = 0,
    problem: Reason | None = None,
) -> HealthFigures:
    """The figures of a look at a table."""
    metadata, inventory = observation.metadata, observation.inventory
    layout = resolve(metadata, policy)
    key = layout.key if isinstance(layout, Layout) else None
    in_order = {snapshot_id for snapshot_id, run in inventory.runs.items() if run.layout == key}
    ordered = sum(
        run.size_bytes
        for partition in inventory.partitions
        for snapshot_id, run in partition.counts.runs.items()
        if snapshot_id in in_order
    )
    return HealthFigures(
        data_files=figures.data_files,
        size_bytes=figures.size_bytes,
        records=figures.records,
        small_files=figures.small_files,
        avoidable_files=figures.avoidable_files,
        delete_files=figures.delete_files,
        equality_delete_files=figures.equality_delete_files,
        deleted_records=figures.deleted_records,
        manifests=len(inventory.manifests),
        avoidable_manifests=_avoidable_manifests(observation, policy),
        snapshots=len(metadata.snapshots),
        expirable_snapshots=_expirable_snapshots(observation, policy),
        layout=in_names(metadata, layout) if isinstance(layout, Layout) else layout,
        ordered_bytes=ordered,
        mode=policy.mode,
        plan=None if plan.is_empty else plan.reason,
        failures=failures,
        failures_max=max(policy.breaker_conflicts, policy.breaker_failures),
        problem=problem,
    )


def _avoidable_manifests(observation: Observation, policy: Policy) -> int:
    """How many manifests there are beyond those that have room for all entries, once there are enough to merge."""
    manifests = observation.inventory.manifests
    if len(manifests) < policy.manifest_min_count:
        return 0
    needed = -(-sum(key.length_bytes for key in manifests) // policy.manifest_target_size_bytes)
    return max(0, len(manifests) - max(1, needed))


def _expirable_snapshots(observation: Observation, policy: Policy) -> int:
    """How many snapshots are older than the table's policy asks to keep; none where they may not expire."""
    metadata = observation.metadata
    if not metadata.collects_garbage:
        return 0
    rule = ExpiryRule(policy.max_snapshot_age_ms, policy.min_snapshots_to_keep)
    return len(metadata.snapshots) - len(retained_snapshots(metadata, rule, observation.observed_at))


def _together(parts: tuple[PartHealth, ...]) -> TableHealth:
    score = sum(part.score * part.weight for part in parts) // HEALTH_MAX
    return TableHealth(score, Grade.of(score), parts)


def _share(bad: int, of: int) -> int:
    """What is left of 100 where so many of so many are not as they should be."""
    return HEALTH_MAX if of <= 0 or bad <= 0 else HEALTH_MAX * max(0, of - bad) // of


def _files(figures: HealthFigures) -> _Found:
    # What is not worth it counts on neither side: more of it must not make the rest look fewer.
    unworthy = min(figures.unworthy_files, figures.avoidable_files)
    avoidable = figures.avoidable_files - unworthy
    score = _share(avoidable, figures.data_files - unworthy)
    numbers = {"avoidable": avoidable, "small": figures.small_files, "files": figures.data_files}
    if unworthy:
        numbers["not_worth_it"] = unworthy
    if score == HEALTH_MAX and unworthy:
        text = f"merging takes up to {wording.count(unworthy, 'small file')} away, which is not worth it: "
        return _Found(score, Reason(_FINE, text + "readers would save less than it costs", numbers), None)
    if score == HEALTH_MAX:
        text = "no small files are left to merge" if figures.data_files else "the table has no data files"
        return _Found(score, Reason(_FINE, text, numbers), None)
    text = f"{figures.small_files:,} of {wording.count(figures.data_files, 'data file')} are small; "
    text += f"merging takes up to {avoidable:,} away"
    text += f", and {unworthy:,} more that are not worth it" if unworthy else ""
    merge = HealthAction(ActionKind.REWRITE_DATA_FILES, "Merge the small files")
    return _Found(score, Reason("small-files", text, numbers), merge)


def _deletes(figures: HealthFigures) -> _Found:
    # Beside the files that stay: small files that can be merged do not make deletes any rarer.
    staying = max(1, figures.data_files - figures.avoidable_files)
    by_files = _share(figures.delete_files, figures.delete_files + staying)
    score = min(by_files, _share(figures.deleted_records, figures.records))
    numbers = {
        "delete_files": figures.delete_files,
        "equality_delete_files": figures.equality_delete_files,
        "deleted_records": figures.deleted_records,
        "records": figures.records,
    }
    if score == HEALTH_MAX:
        return _Found(score, Reason(_FINE, "readers apply no delete files", numbers), None)
    text = f"readers apply {wording.count(figures.delete_files, 'delete file')} with {figures.deleted_records:,} "
    text += f"deletes to {wording.count(figures.data_files, 'data file')}"
    apply = HealthAction(ActionKind.REWRITE_DATA_FILES, "Rewrite the data files that have deletes")
    return _Found(score, Reason("delete-files", text, numbers), apply)


def _metadata(figures: HealthFigures) -> _Found:
    score = _share(figures.avoidable_manifests, figures.manifests)
    numbers = {"manifests": figures.manifests, "avoidable": figures.avoidable_manifests}
    if score == HEALTH_MAX:
        return _Found(
            score, Reason(_FINE, f"{wording.count(figures.manifests, 'manifest')}: few enough", numbers), None
        )
    text = f"{figures.avoidable_manifests:,} of {wording.count(figures.manifests, 'manifest')} can be merged away"
    rewrite = HealthAction(ActionKind.REWRITE_MANIFESTS, "Rewrite the manifests")
    return _Found(score, Reason("many-manifests", text, numbers), rewrite)


def _snapshots(figures: HealthFigures) -> _Found:
    score = _share(figures.expirable_snapshots, figures.snapshots)
    numbers = {"snapshots": figures.snapshots, "expirable": figures.expirable_snapshots}
    if score == HEALTH_MAX:
        text = f"{wording.count(figures.snapshots, 'snapshot')}: none older than the policy keeps"
        return _Found(score, Reason(_FINE, text, numbers), None)
    text = (
        f"{figures.expirable_snapshots:,} of {wording.count(figures.snapshots, 'snapshot')} are older than the policy "
    )
    expire = HealthAction(ActionKind.EXPIRE_SNAPSHOTS, "Expire the old snapshots")
    return _Found(score, Reason("old-snapshots", text + "keeps", numbers), expire)


def _layout(figures: HealthFigures) -> _Found:
    """By what frequent queries open, where a recommendation says it and is not decided; else by bytes in order."""
    found, analyzed = _ordered(figures), figures.analyzed
    frequent = None if analyzed is None else analyzed.recommendation.frequent
    if analyzed is None or frequent is None or analyzed.state is RecommendationState.REPLACED:
        return found
    now, then = frequent.files_opened_now, frequent.files_opened
    subject = wording.count(frequent.queries, "most frequent query", "most frequent queries")
    text = f"the {subject} open {now:,.0f} files"
    numbers = {"queries": frequent.queries, "opened": round(now), "needed": round(then), "at": analyzed.made_at}
    is_open = analyzed.state in _TO_BE_DECIDED and analyzed.recommendation.verdict is Verdict.CHANGE
    if is_open and 0 <= then < now:
        said = f"{text}; {then:,.0f} would do with {analyzed.recommendation.candidate}"
        accept = HealthAction(None, f"`icewright recommendations accept {analyzed.recommendation_id}`")
        return _Found(min(found.score, int(HEALTH_MAX * then / now)), Reason(_QUERIES, said, numbers), accept)
    if found.score == HEALTH_MAX and analyzed.recommendation.verdict is Verdict.LEAVE:
        return replace(found, reason=Reason(_FINE, f"{text}; nothing that was tried is worth its cost", numbers))
    return found


def _ordered(figures: HealthFigures) -> _Found:
    wanted, numbers = figures.layout, {"ordered_bytes": figures.ordered_bytes, "bytes": figures.size_bytes}
    if wanted is None:
        return _Found(HEALTH_MAX, Reason(_FINE, "no order of rows is asked for", numbers), None)
    if isinstance(wanted, Reason):
        return _Found(0, wanted, HealthAction(None, "Correct the layout that the policy asks for"))
    score = _share(figures.size_bytes - figures.ordered_bytes, figures.size_bytes)
    if score == HEALTH_MAX:
        return _Found(score, Reason(_FINE, f"all data are in the order {wanted}", numbers), None)
    text = f"{wording.size(figures.ordered_bytes)} of {wording.size(figures.size_bytes)} are in the order {wanted}"
    sort = HealthAction(ActionKind.REWRITE_DATA_FILES, f"Rewrite the data in the order {wanted}")
    return _Found(score, Reason("not-in-order", text, numbers), sort)


def _upkeep(figures: HealthFigures) -> _Found:
    if figures.plan is None:
        return _Found(HEALTH_MAX, Reason(_FINE, "nothing is planned: there is nothing to do"), None)
    if figures.mode is Mode.AUTO:
        return _Found(HEALTH_MAX, Reason(_FINE, "icewright carries out the plan"), None)
    if figures.mode is Mode.APPROVE and figures.refused is not None:
        ask_again = HealthAction(None, "Change the policy, or review the plan that follows the next commit")
        return _Found(HEALTH_MAX // 2, figures.refused, ask_again)
    if figures.mode is Mode.APPROVE:
        text = f"a plan waits for a person: {figures.plan.text}"
        return _Found(HEALTH_MAX // 2, Reason("waits-for-approval", text), HealthAction(None, "Approve the plan"))
    text = f"in mode {figures.mode} the plan is not carried out: {figures.plan.text}"
    apply = HealthAction(None, "Apply the plan, or set icewright.mode to auto")
    return _Found(0, Reason("not-looked-after", text), apply)


def _failures(problem: Reason | None, failures: int, failures_max: int) -> _Found:
    if problem is not None:
        return _Found(0, problem, HealthAction(None, "Find out why, by `icewright why`; then look at the table again"))
    score = _share(failures, failures_max)
    numbers = {"failures": failures, "parked_after": failures_max}
    if score == HEALTH_MAX:
        return _Found(score, Reason(_FINE, "no kind of task has failed since its last success", numbers), None)
    text = f"{wording.count(failures, 'task')} of one kind failed since the last success of that kind"
    text += f"; {failures_max:,} park that kind of work"
    return _Found(score, Reason("failed-tasks", text, numbers), HealthAction(None, "Look into the failed tasks"))
