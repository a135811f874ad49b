"""Planning a table: observe, decide (pure), check (pure, by other code), keep the plan.

A plan that its checker does not accept is kept nowhere and carried out never.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icewright.domain.errors import IcewrightError
from icewright.domain.faults import Fault, fault
from icewright.domain.files import DataFile, FileContent, Partition
from icewright.domain.inventory import ManifestKey
from icewright.domain.names import TableName
from icewright.domain.observation import Observation
from icewright.domain.plans import Plan, Verdict
from icewright.domain.policy import Policy, PolicyRule
from icewright.domain.tables import TableMetadata
from icewright.planning.check_plan import check_plan
from icewright.planning.level0 import plan_level0
from icewright.planning.policy import effective_policy
from icewright.planning.shortlist import shortlist
from icewright.ports.clock import Clock, Ids
from icewright.ports.store import TableStore
from icewright.services.observer import Observer


class PlanRefused(IcewrightError):
    """The checker found the planner wrong: a defect of icewright. Nothing is done to the table."""

    code = "plan-refused"


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and what it was made from."""

    plan: Plan
    observation: Observation
    policy: Policy


class Planner:
    """Makes plans, and keeps them in the store."""

    def __init__(
        self, observer: Observer, tables: TableStore, clock: Clock, ids: Ids, rules: Sequence[PolicyRule]
    ) -> None:
        self._observer, self._tables, self._clock, self._ids = observer, tables, clock, ids
        self._rules = tuple(rules)

    def policy(self, metadata: TableMetadata) -> Policy:
        """The effective policy of a table."""
        return effective_policy(metadata, self._rules)

    def plan(self, name: TableName) -> Planned:
        """Observe the table and say what should be done to it.

        Raises what :meth:`Observer.observe` raises, and :class:`PlanRefused`.
        """
        return self.plan_observed(self._observer.observe(name))

    def plan_observed(self, observation: Observation) -> Planned:
        """Say what should be done to a table that has just been observed. Raises :class:`PlanRefused`."""
        policy, now = self.policy(observation.metadata), self._clock.now()
        verdicts = shortlist(observation, policy, now)
        wanted = frozenset(v.partition for v in verdicts if v.verdict is Verdict.REWRITE)
        files = self._small_files(observation, wanted, policy)
        plan = plan_level0(observation, policy, verdicts, files, plan_id=self._ids.new("plan"), now=now)
        violations = check_plan(plan, observation, policy, self._planned_files(plan, observation, policy))
        if violations:
            said = "; ".join(f"{violation.code}: {violation.text}" for violation in violations)
            raise PlanRefused(f"the plan for {observation.metadata.name} does not hold: {said}")
        fault(Fault.PLAN_BEFORE)
        self._tables.save_plan(plan)
        fault(Fault.PLAN_AFTER)
        return Planned(plan, observation, policy)

    def _planned_files(self, plan: Plan, observation: Observation, policy: Policy) -> dict[str, DataFile]:
        """The files of a plan as the manifests describe them, read anew: the checker does not trust the planner."""
        groups = [group for action in plan.actions for group in action.groups]
        planned = {file.path for group in groups for file in group.files}
        partitions = frozenset(group.partition for group in groups)
        return {file.path: file for file in self._small_files(observation, partitions, policy) if file.path in planned}

    def _small_files(
        self, observation: Observation, partitions: frozenset[Partition], policy: Policy
    ) -> Iterator[DataFile]:
        """The small files of some partitions, manifest by manifest."""
        metadata = observation.metadata
        snapshot = metadata.current_snapshot
        if not partitions or snapshot is None:
            return
        catalog = self._observer.catalog(metadata.name.catalog)
        keys: list[ManifestKey] = [
            summary.key
            for summary in self._tables.manifest_summaries(metadata.table_id, partitions)
            if summary.content is FileContent.DATA
        ]
        for file in catalog.data_files(metadata, snapshot, keys, partitions):
            if file.size_bytes < policy.small_file_size_bytes:
                yield file
