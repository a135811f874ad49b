"""Statistics computed on real Spark: what readers plan by is what the table has, and nothing else of it changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icewright.actions.compute_statistics.check import statistics_violations
from icewright.actions.compute_statistics.evidence import problem_of_commit
from icewright.actions.compute_statistics.plan import StatisticsDecision, decide_statistics
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import Conflict
from icewright.core.system_clock import SystemClock
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.compute_statistics import ComputeStatistics, ComputeStatisticsRequest
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.work.jobs import Committed, TaskSpec
from icewright.model.work.tasks import TaskState
from icewright.observation.observer import Observer
from icewright.policy.effective import effective_policy
from icewright.work.store.table_store import SqlTableStore
from icewright_spark.actions.compute_statistics import compute_statistics
from icewright_spark.actions.done import Done
from icewright_spark.actions.phase import Phase
from icewright_spark.iceberg import statistics_files
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.parquet.errors import ProofFailed
from tests.builders.specs import first_attempt
from tests.conftest import CAMPAIGN
from tests.lakes.sqlite import writer
from tests.lakes.stores import new_store
from tests.spark.beginnings import Beginnings, Write
from tests.spark.loop import OPTIMIZER, SparkLoop
from tests.spark.tables import contents, local, missing_files, sql_name

pytestmark = pytest.mark.spark

Make = Callable[..., TableName]
COLUMNS = "id BIGINT, city STRING, day DATE, amount DECIMAL(12, 2), weight DOUBLE, at TIMESTAMP"
DISTINCT = {"id": 6000, "city": 4, "day": 50, "amount": 700}
"""Of 6,000 rows; the ids are more than a sketch counts one by one."""
TYPES = {"id": 1, "city": 2, "day": 3, "amount": 4}


@dataclass(frozen=True)
class StatisticsLake:
    """A catalog as the server and as Spark see it."""

    spark: SparkSession
    entry: CatalogEntry

    def observe(self, name: TableName) -> Observation:
        clock = SystemClock()
        tables = SqlTableStore(new_store(), clock)
        return Observer({self.entry.name: PyIcebergCatalog(self.entry)}, tables, clock).observe(name)

    def metadata(self, name: TableName) -> TableMetadata:
        return PyIcebergCatalog(self.entry).load(name)

    def decide(self, name: TableName, snapshot_id: int | None = None) -> StatisticsDecision:
        """What would be done, which must hold before the checker."""
        observation = self.observe(name)
        policy = effective_policy(observation.metadata, ())
        decision = decide_statistics(observation, policy, None, snapshot_id)
        if decision.action is not None and decision.prediction is not None:
            assert list(statistics_violations(decision.action, decision.prediction, observation, policy)) == []
        return decision

    def plan(self, name: TableName, snapshot_id: int | None = None) -> TaskSpec:
        action = self.decide(name, snapshot_id).action
        assert action is not None
        return first_attempt(name, self.metadata(name).table_id.uuid, action)

    def carry_out(self, spec: TaskSpec, may_commit: Callable[[], None] = lambda: None) -> Done:
        """As an attempt does."""
        table = SparkTable(self.spark, spec.table_name)
        return compute_statistics(self.spark, table, spec, action_of(spec), Phase(1), may_commit)


def action_of(spec: TaskSpec) -> ComputeStatistics:
    assert isinstance(spec.action, ComputeStatistics)
    return spec.action


@pytest.fixture
def its_lake(spark: SparkSession, lake: CatalogEntry) -> StatisticsLake:
    return StatisticsLake(spark, lake)


@cache
def write(version: int) -> Write:
    """A table by city, with a file for each."""

    def written(spark: SparkSession, name: TableName) -> None:
        mode = "copy-on-write" if version == 1 else "merge-on-read"
        spark.sql(
            f"CREATE TABLE {sql_name(name)} ({COLUMNS}) USING iceberg PARTITIONED BY (city) "
            f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = '{mode}')"
        )
        insert(spark, name, 0, 6000)

    return written


@pytest.fixture
def make(lake: CatalogEntry, beginnings: Beginnings) -> Make:
    """A table of this format version, 2 unless told otherwise."""
    return lambda version=2: beginnings.table(lake, write(version))


def insert(spark: SparkSession, name: TableName, first: int, end: int) -> None:
    spark.sql(
        f"INSERT INTO {sql_name(name)} SELECT id, concat('city ', id % 4), date_add(DATE'2026-01-01', int(id % 50)), "  # noqa: S608 - a test
        f"CAST(id % 700 AS DECIMAL(12, 2)), id / 3, timestamp_seconds(id) FROM range({first}, {end}, 1, 1)"
    )


def untouched(metadata: TableMetadata) -> TableMetadata:
    """All of a table but what a commit of statistics changes."""
    return replace(
        metadata, metadata_location="", updated_at=0, metadata_log=(), statistics=(), partition_statistics=()
    )


def counts_of(lake: StatisticsLake, name: TableName) -> dict[int, int | None]:
    metadata = lake.metadata(name)
    (file,) = metadata.statistics
    return {blob.field_ids[0]: blob.ndv for blob in file.blobs}


@pytest.mark.parametrize("version", [1, 2, 3] if CAMPAIGN else [1, 3])
def test_readers_are_told_what_the_table_has_and_nothing_else_changes(
    its_lake: StatisticsLake, make: Make, version: int
) -> None:
    name = make(version)
    spark, table = its_lake.spark, sql_name(name)
    spark.sql(f"DELETE FROM {table} WHERE id IN (5, 6)")  # noqa: S608 - a test
    spark.sql(f"ALTER TABLE {table} CREATE TAG old")
    rows, before = contents(spark, name), its_lake.metadata(name)
    spec = its_lake.plan(name)
    assert {column.name: column.field_id for column in action_of(spec).columns} == TYPES

    made = its_lake.carry_out(spec)

    assert made.result == Committed(None)
    assert made.receipts[0].input_digest == made.receipts[0].output_digest
    after = its_lake.metadata(name)
    assert untouched(after) == untouched(before)
    assert contents(spark, name) == rows
    assert missing_files(spark, name) == []
    assert all(local(path).exists() for path in made.figures[0].output_paths)
    assert [after.statistics[0].path, after.partition_statistics[0].path] == list(made.figures[0].output_paths)
    assert "task-1" in after.statistics[0].path
    assert problem_of_commit(PyIcebergCatalog(its_lake.entry), after, action_of(spec)) is None
    exact = spark.table(table).selectExpr(*(f"count(DISTINCT {column})" for column in DISTINCT)).first()
    assert exact is not None
    for column, distinct in zip(DISTINCT, exact, strict=True):
        said = counts_of(its_lake, name)[TYPES[column]]
        assert said == pytest.approx(distinct, rel=0.1 if distinct > 4096 else 0), column
    assert its_lake.decide(name).action is None
    assert reported(spark, table) > 0
    assert writer(its_lake.entry).load_table(("db", "t")).scan().to_arrow().num_rows == rows.total()

    # Partitions go on from the statistics that there are, with what came and went since.
    insert(its_lake.spark, name, 6000, 6010)
    spark.sql(f"DELETE FROM {table} WHERE city = 'city 1'")  # noqa: S608 - a test
    again = its_lake.carry_out(its_lake.plan(name))
    assert again.result == Committed(None)
    assert len(its_lake.metadata(name).statistics) == len(its_lake.metadata(name).partition_statistics) == 2
    # An older snapshot has its columns by the names of then.
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN amount TO price")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN weight")
    older = its_lake.carry_out(its_lake.plan(name, before.snapshots[0].snapshot_id))
    assert older.result == Committed(None)
    assert older.receipts[0].input_digest == older.receipts[0].output_digest


def reported(spark: SparkSession, table: str) -> int:
    """How many columns Spark plans by with distinct values."""
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        plan: Any = spark.table(table)._jdf.queryExecution().optimizedPlan()
        return str(plan.stats().attributeStats().toString()).count("ColumnStat(Some(")
    finally:
        spark.conf.set("spark.sql.cbo.enabled", "false")


def test_figures_of_partitions_come_out_right_where_specs_evolved(its_lake: StatisticsLake, make: Make) -> None:
    """Iceberg 1.12 takes partitions of the new spec for one another when it goes on from earlier figures."""
    name = make()
    spark, table = its_lake.spark, sql_name(name)
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD city")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)")
    made = []
    for first in (6000, 6100):
        insert(its_lake.spark, name, first, first + 100)
        made.append(its_lake.carry_out(its_lake.plan(name)))
    assert [each.result for each in made] == [Committed(None)] * 2
    metadata = its_lake.metadata(name)
    current = metadata.snapshots[-1].snapshot_id
    listed = metadata.partition_statistics_of(current)
    assert listed is not None
    assert listed.path == made[1].figures[0].output_paths[1]
    left = local(listed.path)
    assert len(list(left.parent.glob(f"partition-stats-{current}-*.parquet"))) == 2  # one was wrong, and stays


class TestFaults:
    """What was not written as it was computed is caught before the commit."""

    @pytest.mark.parametrize("place", [40, -12])
    def test_a_sketch_or_its_footer_is_damaged(
        self, its_lake: StatisticsLake, make: Make, monkeypatch: pytest.MonkeyPatch, place: int
    ) -> None:
        name, content = make(), statistics_files._content
        spec, before = its_lake.plan(name), its_lake.metadata(name)

        def damaged(table: SparkTable, made: statistics_files.ComputedFile) -> bytes:
            read = bytearray(content(table, made))
            read[place] ^= 0x11
            return bytes(read)

        monkeypatch.setattr(statistics_files, "_content", damaged)
        with pytest.raises(ProofFailed):
            its_lake.carry_out(spec)
        assert its_lake.metadata(name) == before

    def test_totals_and_bounds_are_not_those_of_the_snapshot(self, its_lake: StatisticsLake, make: Make) -> None:
        name = make()
        spec, before = its_lake.plan(name), its_lake.metadata(name)
        action = action_of(spec)
        assert action.partition_totals is not None
        more = replace(action, partition_totals=replace(action.partition_totals, records=6001))
        other = replace(action, partition_totals=replace(action.partition_totals, digest="of others"))
        for wrong, said in (
            (more, "add up to"),
            (other, "add up to"),
            (replace(action, records=100), "6[0-9]{3} distinct values"),
        ):
            with pytest.raises(ProofFailed, match=said):
                its_lake.carry_out(replace(spec, action=wrong))
        assert its_lake.metadata(name) == before


class TestOthers:
    """Commits of others while the job runs."""

    def test_c1_an_append_is_no_conflict_and_other_statistics_are(self, its_lake: StatisticsLake, make: Make) -> None:
        name = make()
        spec = its_lake.plan(name)
        coming = [lambda: insert(its_lake.spark, name, 6000, 6010)]
        made = its_lake.carry_out(spec, lambda: coming.pop()() if coming else None)
        assert made.result == Committed(None)
        assert len(its_lake.metadata(name).snapshots) == 2
        with pytest.raises(Conflict, match="another client set statistics"):
            its_lake.carry_out(replace(spec, attempt=2))
        assert all(local(path).exists() for path in made.figures[0].output_paths)

    def test_e9_a_snapshot_that_expires_meanwhile_gets_none(self, its_lake: StatisticsLake) -> None:
        name = TableName(its_lake.entry.name, ("db",), "t")  # no beginning, since its files go
        its_lake.spark.sql(f"CREATE NAMESPACE {its_lake.entry.name}.db")
        write(2)(its_lake.spark, name)
        spec = its_lake.plan(name)
        insert(its_lake.spark, name, 6000, 6010)
        call = f"CALL {its_lake.entry.name}.system.expire_snapshots('db.t', TIMESTAMP '2100-01-01', 1)"

        def expire() -> None:
            its_lake.spark.sql(call)

        with pytest.raises(Conflict, match="expired meanwhile"):
            its_lake.carry_out(spec, expire)
        assert its_lake.metadata(name).statistics == ()


def test_it_is_done_by_itself_from_the_policy_to_the_verified_commit(
    spark: SparkSession, lake: CatalogEntry, make: Make
) -> None:
    of, loop = StatisticsLake(spark, lake), SparkLoop(spark, lake)
    name = make()
    spark.sql(
        f"ALTER TABLE {sql_name(name)} SET TBLPROPERTIES ('icewright.compute-statistics.enabled' = 'true', "
        "'icewright.compute-statistics.columns' = 'city, id')"
    )
    loop.control.maintainer.look(name)
    spec = loop.control.dispatcher.claim(OPTIMIZER)
    assert spec is not None
    task = loop.verified(loop.attempt(spec))
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert task.outcome is not None
    assert task.outcome.reason.code == "verified"
    assert counts_of(of, name) == {TYPES["city"]: 4, TYPES["id"]: pytest.approx(6000, rel=0.1)}
    assert loop.control.maintainer.look(name, plan_anew=True).upkeep.enqueued == ()


@pytest.mark.parametrize("faster", [ActionKind.COMPUTE_STATISTICS, ActionKind.REWRITE_DATA_FILES])
def test_a_rewrite_of_the_table_runs_at_once_and_both_succeed(
    spark: SparkSession, lake: CatalogEntry, make: Make, faster: ActionKind
) -> None:
    """One commits right before the commit of the other, which had read the table before."""
    of, loop = StatisticsLake(spark, lake), SparkLoop(spark, lake, lease_ms=600_000)  # a heartbeat waits for the other
    name = make()
    for number in range(1, 6):
        insert(spark, name, 6000 * number, 6000 * number + 100)
    rows = contents(spark, name)
    asked = ComputeStatisticsRequest(("city", "id"))
    loop.control.dispatcher.apply(loop.control.maintainer.plan_asked(name, asked).plan_id)
    found = [loop.claim(name), loop.control.dispatcher.claim(OPTIMIZER)]
    at_work = {ActionKind(spec.action.kind): spec for spec in found if spec is not None}
    assert set(at_work) == {ActionKind.COMPUTE_STATISTICS, ActionKind.REWRITE_DATA_FILES}
    first = at_work.pop(faster)
    ((_, second),) = at_work.items()

    def commit_first() -> None:
        loop.control.dispatcher.report(loop.attempt(first))

    loop.before_commit = commit_first
    loop.verified(loop.attempt(second))
    for task in loop.tasks():
        assert (task.state, task.attempt) == (TaskState.SUCCEEDED, 1), task.outcome
        assert task.outcome is not None
        assert task.outcome.reason.code == "verified", task.outcome
    assert contents(spark, name) == rows
    (statistics,) = of.metadata(name).statistics
    assert statistics.snapshot_id == first.action.figures.base_snapshot_id == second.action.figures.base_snapshot_id
