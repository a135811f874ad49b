"""Plans to rewrite the manifests of real tables, and what tables hold beyond their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from icewright.actions.rewrite_manifests.check import manifest_violations
from icewright.actions.rewrite_manifests.evidence import manifests_changed, problem_of_manifests
from icewright.actions.rewrite_manifests.plan import ManifestsDecision, plan_manifests
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.system_clock import SystemClock
from icewright.model.actions.rewrite_manifests import RewriteManifests
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.inventory import ManifestSummary
from icewright.model.iceberg.names import TableName
from icewright.model.plans.observation import Observation
from icewright.model.work.jobs import Committed, TaskSpec
from icewright.observation.observer import Observer
from icewright.policy.effective import effective_policy
from icewright.work.store.table_store import SqlTableStore
from icewright_spark.actions.done import Done
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.rewrite_manifests import rewrite_manifests
from icewright_spark.iceberg.java_api import SparkTable
from tests.builders.specs import first_attempt
from tests.lakes.stores import new_store
from tests.spark.tables import sql_name

PILES_UP = {
    "commit.manifest-merge.enabled": "false",
    "commit.manifest.min-count-to-merge": "3",
}
"""Properties of a table whose manifests pile up, and are merged when there are three."""


@dataclass(frozen=True)
class ManifestLake:
    """A catalog as the server and as Spark see it."""

    spark: SparkSession
    entry: CatalogEntry

    def observe(self, name: TableName) -> tuple[Observation, list[ManifestSummary]]:
        clock = SystemClock()
        tables = SqlTableStore(new_store(), clock)
        observation = Observer({self.entry.name: PyIcebergCatalog(self.entry)}, tables, clock).observe(name)
        return observation, list(tables.manifest_summaries(observation.metadata.table_id))

    def decide(self, name: TableName) -> ManifestsDecision:
        """What would be done, which must hold before the checker."""
        observation, summaries = self.observe(name)
        policy = effective_policy(observation.metadata, ())
        decision = plan_manifests(observation, policy, summaries, observation.observed_at)
        if decision.action is not None and decision.prediction is not None:
            wrong = manifest_violations(decision.action, decision.prediction, observation, policy, summaries)
            assert list(wrong) == []
        return decision

    def plan(self, name: TableName, task_id: str = "task-1") -> TaskSpec:
        """The task of rewriting a table's manifests."""
        action = self.decide(name).action
        assert action is not None
        uuid = SparkTable(self.spark, name).uuid
        observation, _ = self.observe(name)
        assert observation.metadata.table_id.uuid == uuid
        return first_attempt(name, uuid, action, task_id)

    def carry_out(self, spec: TaskSpec, may_commit: Callable[[], None] = lambda: None) -> Done:
        """As an attempt does."""
        return rewrite_manifests(SparkTable(self.spark, spec.table_name), spec, action_of(spec), Phase(1), may_commit)

    def problem(self, spec: TaskSpec, made: Done) -> str | None:
        """What the verifier finds wrong with the commit."""
        assert isinstance(made.result, Committed)
        catalog = PyIcebergCatalog(self.entry)
        metadata = catalog.load(spec.table_name)
        snapshot = metadata.snapshot(made.result.snapshot_id)
        assert snapshot is not None
        parent = metadata.snapshot(snapshot.parent_id)
        assert parent is not None
        changed = manifests_changed(catalog, metadata, parent, snapshot, action_of(spec))
        return problem_of_manifests(action_of(spec), parent, snapshot, changed)

    def entries(self, name: TableName) -> Counter[str]:
        """The live entries of the current snapshot as Spark reads them, all their metrics among them."""
        columns = "snapshot_id, sequence_number, file_sequence_number, data_file"
        found = self.spark.sql(f"SELECT {columns} FROM {sql_name(name)}.entries WHERE status < 2")  # noqa: S608 - a test
        return Counter(str(row) for row in found.collect())

    def refs(self, name: TableName) -> set[tuple[Any, ...]]:
        """The refs of a table but for its main branch."""
        metadata = PyIcebergCatalog(self.entry).load(name)
        return {(ref.name, ref.kind, ref.snapshot_id) for ref in metadata.refs if ref.name != "main"}


def action_of(spec: TaskSpec) -> RewriteManifests:
    assert isinstance(spec.action, RewriteManifests)
    return spec.action


def with_action(spec: TaskSpec, **changes: Any) -> TaskSpec:
    return replace(spec, action=replace(action_of(spec), **changes))
