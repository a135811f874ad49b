"""The loop around a real Spark session, in one process and without HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark import InheritableThread
from pyspark.sql import SparkSession
from sqlalchemy import Engine

from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.properties import PyIcebergProperties
from icewright.core.system_clock import SystemClock, SystemIds
from icewright.core.times import Instant
from icewright.maintenance.dispatch.dispatcher import DispatchLimits
from icewright.model.actions.actions import OPTIMIZER_ACTIONS
from icewright.model.actions.analyze_queries import AnalyzeQueriesRequest
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.plans.requests import PlanRequest
from icewright.model.policy.policy import PolicyRule
from icewright.model.queries.decisions import KeptRecommendation
from icewright.model.queries.queries import LiteralPolicy, QueryRecord
from icewright.model.work.jobs import (
    PROTOCOL_VERSION,
    Heartbeat,
    HeartbeatReply,
    OptimizerHello,
    TableCheck,
    TaskReport,
    TaskSpec,
)
from icewright.model.work.storage import ProbeReport, ProbeReports
from icewright.model.work.tasks import Task, TaskState
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.service import MessageDelivery
from icewright.ports.store import TableStore, TaskFilter
from icewright.queries.log_table import QueryLogTable
from icewright.queries.service import QueryLog
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.spool import QuerySpool
from icewright.queries.sql import SqlQuerySums
from icewright.recommendations.sql import SqlRecommendations
from icewright.server.control import build_control_plane
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from icewright.work.tasks.retry import CONFLICT_BASE_MS
from icewright_spark.optimizer.attempt import Attempt
from icewright_spark.optimizer.probe import probe
from tests.doubles.removals import removal_ports
from tests.lakes.stores import new_store
from tests.narrowing import not_none

OPTIMIZER = "optimizer-test"
AUTO = {"icewright.mode": "auto"}


class AheadClock:
    """The system's clock, set ahead: files that were written just now are old enough to be merged."""

    def __init__(self, ahead_ms: int = 120_000) -> None:
        self.ahead_ms = ahead_ms
        self._clock = SystemClock()

    def now(self) -> Instant:
        return self._clock.now() + self.ahead_ms


class DirectServer:
    """The server's answers without HTTP; ``before_commit`` runs when an attempt asks whether it may commit."""

    def __init__(self, loop: SparkLoop) -> None:
        self._loop = loop

    def heartbeat(self, task_id: str, heartbeat: Heartbeat) -> HeartbeatReply:
        if heartbeat.progress.phase == "committing":
            hook, self._loop.before_commit = self._loop.before_commit, lambda: None
            hook()
        return self._loop.control.dispatcher.heartbeat(task_id, heartbeat)

    def sees_the_same(self, check: TableCheck) -> bool:
        task = next(t for t in self._loop.tasks() if t.table_id == check.table_id)
        seen = self._loop.catalog.metadata_location(task.table_name)
        return seen == check.metadata_location


def query_log(
    entry: CatalogEntry, tables: TableStore, spool: QuerySpool, engine: Engine, clock: AheadClock
) -> QueryLog:
    """A query log with a table of its own in the catalog."""
    rules = LiteralRules(LiteralPolicy.KEEP)
    table = TableName(entry.name, ("icewright",), "queries")
    return QueryLog({entry.name}, tables, clock, spool, SqlQuerySums(engine), {}, rules, table)


class SparkLoop:
    """One lake under icewright's care, with the optimizer in this process."""

    def __init__(
        self, spark: SparkSession, entry: CatalogEntry, *, lease_ms: int = 30_000, spool: QuerySpool | None = None
    ) -> None:
        self.spark, self.entry = spark, entry
        self.catalog = PyIcebergCatalog(entry)
        self.clock = AheadClock()
        self.before_commit: Callable[[], None] = lambda: None
        store = new_store()
        tables = SqlTableStore(store, self.clock)
        self.control = build_control_plane(
            {entry.name: self.catalog},
            tables,
            SqlTaskStore(store, self.clock),
            self.clock,
            SystemIds(),
            removal_ports(store, self.clock),
            SqlUndoRecordStore(store),
            MessageDelivery(SqlMessages(store)),
            rules=[PolicyRule(entry.name, (), AUTO)],
            limits=DispatchLimits(lease_ms=lease_ms),
            queries=None if spool is None else query_log(entry, tables, spool, store, self.clock),
            recommendations=SqlRecommendations(store),
            decisions=SqlDecisions(store, self.clock),
            properties={entry.name: PyIcebergProperties(entry, SystemClock())},
        )
        self.control.dispatcher.hello(
            OptimizerHello(
                PROTOCOL_VERSION,
                OPTIMIZER,
                "test",
                "default",
                1,
                (entry.name,),
                spark.version,
                "1.12.0",
                actions=OPTIMIZER_ACTIONS,
            )
        )

    def name(self, *path: str) -> TableName:
        return TableName(self.entry.name, path[:-1], path[-1])

    def tasks(self) -> list[Task]:
        return list(self.control.tasks.tasks(TaskFilter(), limit=100))

    def probe(self) -> list[ProbeReport]:
        """Find out what the server wants to know of storages, as an idle optimizer does."""
        requests = self.control.dispatcher.probes(OPTIMIZER).requests
        found: list[ProbeReport] = []
        thread = InheritableThread(target=lambda: found.extend(probe(self.spark, requests)))
        thread.start()
        thread.join()
        self.control.dispatcher.probed(OPTIMIZER, ProbeReports(tuple(found)))
        self.control.loop.round()
        return found

    def claim(self, name: TableName) -> TaskSpec:
        """Plan the table and take its task, as an optimizer does."""
        spec = self.claim_if_any(name)
        if spec is None:  # after a conflict the next task waits, up to so long
            self.clock.ahead_ms += CONFLICT_BASE_MS
            spec = self.control.dispatcher.claim(OPTIMIZER)
        assert spec is not None, self.control.maintainer.look(name).plan.reason
        return spec

    def claim_asked(self, name: TableName, request: PlanRequest) -> TaskSpec:
        """Have planned what is asked for, and take its task."""
        plan = self.control.maintainer.plan_asked(name, request)
        assert plan.actions, plan.reason
        task = self.control.dispatcher.apply(plan.plan_id)
        spec = not_none(self.control.dispatcher.claim(OPTIMIZER))
        assert spec.task_id == task.task_id
        return spec

    def claim_if_any(self, name: TableName) -> TaskSpec | None:
        """Plan the table and take its task, if there is anything to do."""
        self.control.maintainer.look(name, plan_anew=True)
        spec = self.control.dispatcher.claim(OPTIMIZER)
        assert spec is None or spec.table_name == name
        return spec

    def attempt(self, spec: TaskSpec) -> TaskReport:
        """One attempt in a thread of its own, as the resident optimizer runs it: no session is active there yet."""
        reports: list[TaskReport] = []
        thread = InheritableThread(target=lambda: reports.append(Attempt(self.spark, DirectServer(self), spec).run()))
        thread.start()
        thread.join()
        return reports[0]

    def rewrite(self, name: TableName) -> Task:
        """Plan, carry out, report, verify; the task as it ended."""
        return self.verified(self.attempt(self.claim(name)))

    def verified(self, report: TaskReport) -> Task:
        """Have the server told of an attempt, and look into the table; the task as it ended."""
        self.control.dispatcher.report(report)
        self.control.loop.round()
        return self.control.tasks.get(report.task_id)

    def send(self, queries: Iterable[QueryRecord]) -> None:
        """What engines report, counted and in the table of queries."""
        log = self.control.queries
        log.take([log.named(one) for one in queries])
        while log.count():
            pass
        log.append_to(QueryLogTable(self.entry, not_none(log.table)))

    def analyze(self, name: TableName) -> KeptRecommendation:
        """Plan, carry out, report, verify; the recommendation."""
        report = self.attempt(self.claim_asked(name, AnalyzeQueriesRequest()))
        ended = self.verified(report)
        assert ended.state is TaskState.SUCCEEDED, (ended.outcome, report.result)
        return self.control.recommendations.store.list(limit=1)[0]
