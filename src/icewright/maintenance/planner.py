"""Planning a table: observe, decide (pure), check (pure, by other code), keep the plan.

A plan that its checker does not accept is kept nowhere and carried out never.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from icewright.actions.rewrite_data_files import outcome
from icewright.actions.rewrite_data_files.candidates import asked_fields
from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.actions.rewrite_data_files.layouts.ordering import Levels
from icewright.actions.rewrite_data_files.migration import only_to_migrate, to_migrate
from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.actions.rewrite_data_files.triggers.triggers import (
    asks_for_rewrites,
    our_commits,
    rewritten_at,
)
from icewright.catalogs.port import Catalog
from icewright.core.clock import Clock, Ids
from icewright.core.errors import NotAllowed
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.actions.remove_files import RemoveOrphanFilesRequest
from icewright.model.actions.rewrite_data_files import RewriteDataFilesRequest
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, Partition
from icewright.model.iceberg.inventory import ManifestKey
from icewright.model.iceberg.layouts import Layout
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import SortField, TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Migration, Plan, Reason, Verdict
from icewright.model.policy.policy import Mode, Policy
from icewright.model.queries.templates import WEEK_MS, week_of
from icewright.observation.access import assumed
from icewright.observation.observer import Observer
from icewright.plans.action_types import Planned, QueryHistory
from icewright.plans.layouts import resolve
from icewright.plans.policy_digest import plan_digest
from icewright.plans.repository import keep_plan
from icewright.policy.effective import KNOWN_WEEKS, with_known_queries
from icewright.policy.missing_rules import rules
from icewright.policy.source import PolicySource
from icewright.ports.store import TableStore


class Planner:
    """Makes plans, and keeps them in the store.

    An action that is planned in its own folder takes what it needs of it: it is a
    :class:`~icewright.plans.action_types.Planning`.
    """

    def __init__(
        self,
        observer: Observer,
        tables: TableStore,
        clock: Clock,
        ids: Ids,
        policies: PolicySource,
        queries: QueryHistory | None = None,
    ) -> None:
        self._observer, self.tables, self.clock, self.ids = observer, tables, clock, ids
        self.queries, self.policies = queries, policies

    def policy(self, metadata: TableMetadata) -> Policy:
        """The effective policy of a table."""
        return self.policies.policy(metadata)

    def catalog(self, name: str) -> Catalog:
        """See :class:`~icewright.plans.action_types.Planning`."""
        return self._observer.catalog(name)

    def namesakes(self, metadata: TableMetadata) -> Collection[TableName]:
        """See :class:`~icewright.plans.action_types.Planning`."""
        return self._observer.namesakes(metadata.name, metadata.table_id.uuid)

    def plan(self, name: TableName) -> Planned:
        """Observe the table and say what should be done to it.

        Raises what :meth:`Observer.observe` raises, and ``PlanRejected``.
        """
        return self.plan_observed(self._observer.observe(name))

    def rewrite_asked(
        self, observation: Observation, asked: RewriteDataFilesRequest, _holds: Sequence[Hold]
    ) -> Planned:
        """What is to be migrated. Raises ``PlanRejected``."""
        return self._plan_rewrite(observation, asked.migrate)

    def orphans_asked(
        self, _observation: Observation, _asked: RemoveOrphanFilesRequest, _holds: Sequence[Hold]
    ) -> NoReturn:
        """Raises ``NotAllowed``: the server alone looks for them."""
        raise NotAllowed(
            "orphan files are looked for by the server alone, which remembers since when nothing needs them",
            hint="start `icewright serve`, then plan again",
        )

    def plan_observed(self, observation: Observation) -> Planned:
        """Say what should be done to a table that has just been observed. Raises ``PlanRejected``."""
        return self._plan_rewrite(observation, None)

    def _plan_rewrite(self, observation: Observation, migration: Migration | None) -> Planned:
        policy, now = self.policy(observation.metadata), self.clock.now()
        digest = plan_digest(ActionKind.REWRITE_DATA_FILES, policy)
        policy = self.with_queries(policy, observation.metadata, is_queried=observation.is_queried)
        policy = policy if migration is None else to_migrate(policy, migration)
        if policy.mode is Mode.OBSERVE:
            observation = assumed(observation)
        if asks_for_rewrites(observation, policy, now):
            observation = self._with_rewrites(observation, now)
        layout = resolve(observation.metadata, policy)
        levels = Levels.of(observation, policy, layout) if isinstance(layout, Layout) else None
        if migration is not None:
            levels = None if levels is None else replace(levels, due={})
        verdicts = shortlist(observation, policy, now, levels)
        if migration is not None:
            verdicts = only_to_migrate(verdicts, observation, policy, migration)
        wanted = frozenset(v.partition for v in verdicts if v.verdict is Verdict.REWRITE)
        known = self._known(observation, wanted)
        plan = plan_table(
            observation,
            policy,
            verdicts,
            self._data_files(observation, known, wanted, asked_fields(observation, policy, levels)),
            self._delete_files(observation, known, wanted),
            plan_id=self.ids.new("plan"),
            now=now,
            levels=levels,
            migration=migration,
        )
        plan = replace(plan, rules=rules(observation, policy, layout), settings_digest=digest)
        if isinstance(layout, Reason):
            plan = replace(plan, reason=outcome.unordered(plan.reason, layout))
        partitions = frozenset(group.partition for group in plan.groups)
        deletes = tuple(self._delete_files(observation, known, partitions))
        files = self._planned_files(plan, observation, known, partitions)
        violations = check_plan(
            plan, observation, policy, files, deletes, layout if isinstance(layout, Layout) else None
        )
        keep_plan(self.tables, plan, violations, is_present=migration is None)
        return Planned(plan, observation, policy)

    def with_queries(self, policy: Policy, metadata: TableMetadata, *, is_queried: bool = True) -> Policy:
        """The policy with what is known of the queries of a table, by week; ``is_queried``: some may be counted."""
        if self.queries is None or not is_queried:
            return policy
        now = self.clock.now()
        weeks = [week_of(now) - back * WEEK_MS for back in reversed(range(KNOWN_WEEKS))]
        counted = self.queries.weeks_of(metadata.table_id, weeks[0])
        return with_known_queries(policy, [counted.get(week, 0) for week in weeks], now - weeks[-2])

    def _with_rewrites(self, observation: Observation, now: Instant) -> Observation:
        """The observation with the time of our last rewrite of each partition."""
        metadata = observation.metadata
        commits = our_commits(metadata, observation.inventory.manifests, now)
        summaries = self.tables.manifest_summaries(metadata.table_id) if commits else ()
        return replace(observation, rewritten_at=rewritten_at(commits, summaries))

    def _planned_files(
        self, plan: Plan, observation: Observation, known: Sequence[_Known], partitions: frozenset[Partition]
    ) -> dict[str, DataFile]:
        """The files of a plan as the manifests describe them, read anew: the checker does not trust the planner."""
        planned = {file.path for group in plan.groups for file in group.files}
        return {file.path: file for file in self._data_files(observation, known, partitions) if file.path in planned}

    def live_files(self, observation: Observation, partitions: frozenset[Partition]) -> Iterator[DataFile]:
        """The data files of some partitions."""
        return self._data_files(observation, self._known(observation, partitions), partitions)

    def _data_files(
        self,
        observation: Observation,
        known: Sequence[_Known],
        partitions: frozenset[Partition],
        fields: Sequence[SortField] = (),
    ) -> Iterator[DataFile]:
        """The data files of some partitions, manifest by manifest."""
        metadata, snapshot = observation.metadata, observation.metadata.current_snapshot
        if not partitions or snapshot is None:
            return
        keys = _keys(known, FileContent.DATA, partitions)
        yield from self.catalog(metadata.name.catalog).data_files(metadata, snapshot, keys, partitions, fields)

    def _delete_files(
        self, observation: Observation, known: Sequence[_Known], partitions: frozenset[Partition]
    ) -> Iterator[DeleteFile]:
        """The delete files that may apply to some partitions, manifest by manifest."""
        metadata, snapshot = observation.metadata, observation.metadata.current_snapshot
        if not partitions or snapshot is None:
            return
        keys = _keys(known, FileContent.POSITION_DELETES, partitions | _unpartitioned(observation))
        if keys:
            yield from self.catalog(metadata.name.catalog).delete_files(metadata, snapshot, keys, partitions)

    def _known(self, observation: Observation, partitions: frozenset[Partition]) -> tuple[_Known, ...]:
        """The manifests that may speak of some partitions, read from the store once for planner and checker."""
        if not partitions:
            return ()
        wanted = partitions | _unpartitioned(observation)
        summaries = self.tables.manifest_summaries(observation.metadata.table_id, wanted)
        return tuple(_Known(s.key, s.content, frozenset(s.partitions)) for s in summaries)


@dataclass(frozen=True, slots=True)
class _Known:
    """Which partitions a manifest speaks of."""

    key: ManifestKey
    content: FileContent
    partitions: frozenset[Partition]


def _keys(known: Sequence[_Known], content: FileContent, partitions: frozenset[Partition]) -> list[ManifestKey]:
    return [m.key for m in known if m.content is content and not m.partitions.isdisjoint(partitions)]


def _unpartitioned(observation: Observation) -> frozenset[Partition]:
    """The partitions of specs without fields: deletes there may apply everywhere."""
    unpartitioned = {spec.spec_id for spec in observation.metadata.specs if spec.is_unpartitioned}
    return frozenset(s.partition for s in observation.inventory.partitions if s.partition.spec_id in unpartitioned)
