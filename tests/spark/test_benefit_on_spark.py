"""Queries in, layout out, benefit measured, on real Spark: what pays stays, and what does not is taken back.

One lake, three tables. The first gets the layout that its queries recommend. On the second a layout is forced that its
queries suffer from, which icewright notices and takes back. The third is left alone. Queries come from Spark's own
event log; a week later is the loop's clock, moved.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icewright.core.errors import InvalidMessage
from icewright.model.actions.actions import RewriteDataFiles
from icewright.model.actions.analyze_queries import AnalyzeQueriesRequest
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.iceberg.layouts import Curve, LayoutColumn, LayoutExpression
from icewright.model.iceberg.names import TableName
from icewright.model.queries.decisions import KeptRecommendation, RecommendationState
from icewright.model.queries.measurements import Effect, Measurement
from icewright.model.queries.queries import LiteralPolicy
from icewright.model.queries.recommendations import LayoutChange, Verdict
from icewright.model.work.tasks import TaskState
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.sources.spark_events import read_event_log
from tests.spark.loop import OPTIMIZER, SparkLoop
from tests.spark.tables import sorted_rows

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000
FILES, ROWS, USERS, QUERIES = 20, 2_000, 2_000, 22
LAYOUT = "icewright.layout"


class Engine:
    """Runs queries with Spark's event log on, and has icewright collect them as of the loop's clock."""

    def __init__(self, loop: SparkLoop, folder: Path) -> None:
        self._loop, self._folder, self._logs = loop, folder, 0

    def lookups(self, numbers: dict[TableName, int], seed: int) -> None:
        """So many queries of single users of each table."""
        spark = self._loop.spark
        context: Any = spark.sparkContext._jsc.sc()
        jvm: Any = spark._jvm
        self._logs += 1
        conf = context.getConf().set("spark.eventLog.compress", "true").set("spark.eventLog.rolling.enabled", "true")
        listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
            f"app{self._logs}",
            jvm.scala.Option.empty(),
            jvm.java.net.URI.create(self._folder.as_uri()),
            conf,
            context.hadoopConfiguration(),
        )
        listener.start()
        context.addSparkListener(listener)
        try:
            for name, queries in numbers.items():
                for number in range(queries):
                    user = (number * 37 + seed) % USERS
                    text = f"SELECT sum(amount) FROM {_sql(name)} WHERE user_id = {user}"  # noqa: S608 - ours
                    spark.sql(text).collect()
            context.listenerBus().waitUntilEmpty()
        finally:
            context.removeSparkListener(listener)
            listener.stop()
        refused: list[InvalidMessage] = []
        folder = self._folder / f"eventlog_v2_app{self._logs}"
        found = list(read_event_log(folder, LiteralRules(LiteralPolicy.KEEP), refused.append))
        assert refused == []
        assert len(found) == sum(numbers.values())
        ahead_ms = self._loop.clock.ahead_ms
        self._loop.send(replace(one, started_at=one.started_at + ahead_ms) for one in found)


def _sql(name: TableName) -> str:
    return ".".join((name.catalog, *name.path))


def table(loop: SparkLoop, short: str, *, sorted_by: str = "") -> TableName:
    """Files of one size; in each of which any user may be, or users one after the other."""
    name, spark = loop.name("db", short), loop.spark
    spark.sql(
        f"CREATE TABLE {_sql(name)} (user_id BIGINT, amount DOUBLE, note STRING) USING iceberg "
        "TBLPROPERTIES ('icewright.mode' = 'auto', 'write.target-file-size-bytes' = '110000', "
        "'icewright.analyze-queries.enabled' = 'false')"  # the test itself says when
    )
    made = spark.range(FILES * ROWS).selectExpr(
        f"CAST(pmod(xxhash64(id), {USERS}) AS BIGINT) AS user_id", "rand(1) AS amount", "sha2(string(id), 256) AS note"
    )
    spread = made.repartitionByRange(FILES, sorted_by) if sorted_by else made.repartition(FILES)
    spread.writeTo(_sql(name)).option("distribution-mode", "none").append()
    loop.control.maintainer.look(name)
    return name


def work(loop: SparkLoop) -> None:
    """All tasks that wait, as optimizers do them; each is verified."""
    while (spec := loop.control.dispatcher.claim(OPTIMIZER)) is not None:
        report = loop.attempt(spec)
        ended = loop.verified(report)
        assert ended.state is TaskState.SUCCEEDED, (ended.outcome, report.result)


def analyze(loop: SparkLoop, name: TableName) -> KeptRecommendation:
    plan = loop.control.maintainer.plan_asked(name, AnalyzeQueriesRequest())
    assert plan.actions, plan.reason
    task = loop.control.dispatcher.apply(plan.plan_id)
    work(loop)
    return next(one for one in loop.control.recommendations.store.list(limit=9) if one.task_id == task.task_id)


def later(loop: SparkLoop, days: float) -> None:
    loop.clock.ahead_ms += int(days * DAY_MS)


def test_what_pays_stays_and_what_does_not_is_taken_back(loop: SparkLoop, spark: SparkSession, tmp_path: Path) -> None:
    engine, control, store = Engine(loop, tmp_path), loop.control, loop.control.recommendations.store
    helped, forced, quiet = table(loop, "helped"), table(loop, "forced", sorted_by="user_id"), table(loop, "quiet")
    rows = {name: sorted_rows(spark, name) for name in (helped, forced, quiet)}
    untouched = loop.catalog.load(quiet)
    engine.lookups({helped: 2 * QUERIES, forced: QUERIES, quiet: QUERIES}, seed=1)
    later(loop, 7)

    # The first table: recommended, accepted, rewritten.
    recommended = analyze(loop, helped)
    said = recommended.recommendation
    assert (said.verdict, str(said.candidate)) == (Verdict.CHANGE, "sort(user_id)"), said.reason
    control.recommendations.accept(recommended.recommendation_id, "ann")
    # The second: its files are in the order that queries want; another one is forced.
    bad = LayoutChange(LayoutExpression(Curve.SORT, (LayoutColumn(("amount",)),)))
    forced_id = loop.catalog.load(forced).table_id
    wrong_id = store.keep(forced_id, "task-forced", loop.clock.now(), replace(said, table=forced, candidate=bad))
    control.recommendations.accept(wrong_id, "bob")
    assert loop.catalog.load(forced).properties[LAYOUT] == "sort(amount)"
    for name in (helped, forced):
        assert loop.rewrite(name).state is TaskState.SUCCEEDED
    assert control.recommendations.store.measurements.newest_of_table(forced_id) == {}

    # The next week: the same kind of queries.
    later(loop, 7)
    engine.lookups({helped: QUERIES, forced: QUERIES, quiet: QUERIES}, seed=1_000)
    by_id = {}
    for _ in range(2):
        later(loop, 1)
        control.ledger.keep_ledger()
        work(loop)
    for one in (recommended.recommendation_id, wrong_id):
        found = store.measurements.latest(one)
        assert found is not None
        by_id[one] = found
    good, worse = by_id[recommended.recommendation_id], by_id[wrong_id]

    assert_paid(good)
    assert_taken_back(loop, forced, worse)
    assert_added_up(loop, helped, forced, quiet)

    # The third was left alone, and no row of any has changed.
    assert loop.catalog.load(quiet) == untouched
    assert {name: sorted_rows(spark, name) for name in rows} == rows


def assert_paid(good: Measurement) -> None:
    """Predicted against measured: of queries that nobody knew when the layout was chosen."""
    assert good.effect is Effect.BETTER, good.reason
    assert good.planned.are_later
    assert good.planned.files_before > FILES - 1
    assert good.predicted is not None
    assert good.planned.change is not None
    assert good.predicted.low <= good.planned.change.mean <= good.predicted.high
    assert good.planned.queries == sum(row.weight for row in good.planned.rows) == QUERIES


def assert_taken_back(loop: SparkLoop, forced: TableName, worse: Measurement) -> None:
    """What reads more is noticed, said and taken back: properties, and no file."""
    control = loop.control
    assert worse.effect is Effect.WORSE, worse.reason
    assert worse.planned.change is not None
    assert worse.planned.change.low > 0.05
    assert control.recommendations.store.get(worse.recommendation_id).state is RecommendationState.REVERTED
    assert LAYOUT not in loop.catalog.load(forced).properties
    facts = control.tasks.feed.after(0, 1_000, FeedFilter(frozenset({FactKind.REGRESSED}))).told
    assert [fact.fact.table_name for fact in facts] == [forced]
    rewrites = [t.action for t in loop.tasks() if t.table_name == forced and isinstance(t.action, RewriteDataFiles)]
    assert [action.layout is not None for action in rewrites].count(True) == 1  # it is not put in order again
    record = control.tables.record(worse.table_id)
    assert record is not None
    assert any("was taken back" in line for line in control.explainer.why(record).says)


def assert_added_up(loop: SparkLoop, helped: TableName, forced: TableName, quiet: TableName) -> None:
    """The ledger by week: measured beside predicted, and what it cost."""
    control = loop.control
    of_helped, of_forced, of_quiet = (
        control.benefit.of_table(loop.catalog.load(name).table_id, name, 8) for name in (helped, forced, quiet)
    )
    # The measurement is in the week of the queries or, from a Saturday on, in the next one.
    (week,) = (one for one in of_helped.weeks if one.expected_bytes is not None)
    assert week.expected_bytes is not None
    assert week.compared_bytes is not None
    assert week.saved_bytes == week.expected_bytes - week.compared_bytes > 0
    assert week.predicted_bytes is not None
    assert 0 < week.predicted_bytes.low < week.predicted_bytes.mean <= week.expected_bytes
    assert of_helped.total.tasks == 3  # analyzed, rewritten, measured
    assert of_helped.total.cpu_ms > 0
    assert of_helped.total.written_bytes > 0
    assert of_helped.accepted[0].effect is Effect.BETTER
    assert of_forced.total.saved_bytes is not None
    assert of_forced.total.saved_bytes < 0
    assert of_forced.accepted[0].state is RecommendationState.REVERTED
    assert (of_quiet.accepted, of_quiet.total.tasks, of_quiet.total.saved_bytes) == ((), 0, None)
    fleet = control.benefit.of_fleet(8)
    assert fleet.total.saved_bytes == pytest.approx((of_helped.total.saved_bytes or 0) + of_forced.total.saved_bytes)
    assert {row.table: row.effect for row in fleet.tables}[str(forced)] is Effect.WORSE
