"""Planning a rewrite of manifests: decide from the inventory (pure), check (pure, by other code), keep the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from icewright.actions.rewrite_manifests.check import manifest_violations
from icewright.actions.rewrite_manifests.due import in_danger, in_order
from icewright.actions.rewrite_manifests.plan import ManifestsDecision, plan_manifests
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.actions.rewrite_manifests import RewriteManifestsRequest
from icewright.model.iceberg.inventory import ManifestSummary
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan
from icewright.model.policy.policy import Policy
from icewright.plans.action_types import Planned, Planning, Rest
from icewright.plans.check_table import Wrong
from icewright.plans.due import Due
from icewright.plans.standalone_plan import keep_decided


def plan_asked(
    planner: Planning, observation: Observation, _asked: RewriteManifestsRequest, _holds: Sequence[Hold]
) -> Planned:
    """The plan that a person asks for. Raises ``PlanRejected``."""
    policy = planner.policy(observation.metadata)
    decision, summaries = _decide(planner, observation, policy)
    return Planned(_kept(planner, observation, policy, decision, summaries, asked=True), observation, policy)


def manifests_due(planner: Planning, observation: Observation, _rest: Rest) -> Due:
    """What is due by itself, of a table whose owner lets it. What is kept of it may raise ``PlanRejected``.

    Where the keys of the manifests tell that nothing is, the store is not asked.
    """
    metadata, policy = observation.metadata, planner.policy(observation.metadata)
    nothing = in_order(observation.inventory.manifests, policy)
    if nothing is not None:
        return Due(nothing)
    decision, summaries = _decide(planner, observation, policy)
    if decision.action is None or decision.prediction is None:
        return Due(decision.reason)
    current = metadata.current_snapshot
    return Due(
        decision.reason,
        lambda: _kept(planner, observation, policy, decision, summaries, asked=False),
        since=None if current is None else current.committed_at,
        in_danger=in_danger(decision.prediction),
    )


def _decide(
    planner: Planning, observation: Observation, policy: Policy
) -> tuple[ManifestsDecision, tuple[ManifestSummary, ...]]:
    summaries = tuple(planner.tables.manifest_summaries(observation.metadata.table_id))
    return plan_manifests(observation, policy, summaries, planner.clock.now()), summaries


def _kept(
    planner: Planning,
    observation: Observation,
    policy: Policy,
    decision: ManifestsDecision,
    summaries: tuple[ManifestSummary, ...],
    *,
    asked: bool,
) -> Plan:
    violations: Iterable[Wrong] = ()
    if decision.action is not None and decision.prediction is not None:
        violations = manifest_violations(decision.action, decision.prediction, observation, policy, summaries)
    return keep_decided(planner, observation.metadata, policy, decision, violations, asked=asked)
