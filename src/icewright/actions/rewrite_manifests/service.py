"""Planning a rewrite of manifests: decide from the inventory (pure), check (pure, by other code), keep the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from icewright.actions.rewrite_manifests.check import manifest_violations
from icewright.actions.rewrite_manifests.due import in_danger, in_order
from icewright.actions.rewrite_manifests.plan import ManifestsDecision, plan_manifests
from icewright.core.clock import Clock, Ids
from icewright.model.iceberg.inventory import ManifestSummary
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan
from icewright.model.policy.policy import Policy
from icewright.plans.due import Due
from icewright.plans.repository import keep_plan
from icewright.plans.standalone_plan import build_standalone_plan
from icewright.ports.store import TableStore


class ManifestsPlanner:
    """Makes plans of rewriting manifests, and keeps them in the store."""

    def __init__(self, tables: TableStore, clock: Clock, ids: Ids, policy: Callable[[TableMetadata], Policy]) -> None:
        self._tables, self._clock, self._ids, self._policy = tables, clock, ids, policy

    def plan_asked(self, observation: Observation) -> tuple[Plan, Policy]:
        """The plan that a person asks for, and the policy that it goes by. Raises ``PlanRejected``."""
        policy = self._policy(observation.metadata)
        decision, summaries = self._decide(observation, policy)
        return self._kept(observation, policy, decision, summaries, asked=True), policy

    def due(self, observation: Observation) -> Due:
        """What is due by itself, of a table whose owner lets it. What is kept of it may raise ``PlanRejected``.

        Where the keys of the manifests tell that nothing is, the store is not asked.
        """
        metadata, policy = observation.metadata, self._policy(observation.metadata)
        nothing = in_order(observation.inventory.manifests, policy)
        if nothing is not None:
            return Due(nothing)
        decision, summaries = self._decide(observation, policy)
        if decision.action is None or decision.prediction is None:
            return Due(decision.reason)
        current = metadata.current_snapshot
        return Due(
            decision.reason,
            lambda: self._kept(observation, policy, decision, summaries, asked=False),
            since=None if current is None else current.committed_at,
            in_danger=in_danger(decision.prediction),
        )

    def _decide(
        self, observation: Observation, policy: Policy
    ) -> tuple[ManifestsDecision, tuple[ManifestSummary, ...]]:
        summaries = tuple(self._tables.manifest_summaries(observation.metadata.table_id))
        return plan_manifests(observation, policy, summaries, self._clock.now()), summaries

    def _kept(
        self,
        observation: Observation,
        policy: Policy,
        decision: ManifestsDecision,
        summaries: tuple[ManifestSummary, ...],
        *,
        asked: bool,
    ) -> Plan:
        """The plan of a decision, in the store; what is planned for the table's files stands beside it."""
        metadata = observation.metadata
        plan = build_standalone_plan(self._ids.new("plan"), metadata, policy, decision, self._clock.now(), asked=asked)
        violations: Iterable[tuple[str, str]] = ()
        if decision.action is not None and decision.prediction is not None:
            violations = manifest_violations(decision.action, decision.prediction, observation, policy, summaries)
        return keep_plan(self._tables, plan, violations)
