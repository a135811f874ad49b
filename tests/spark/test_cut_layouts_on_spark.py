"""Cuts from queries on real Spark: recommended, accepted, carried out by Level 1 and 2, and judged by PyIceberg."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, GreaterThan, LessThan

from icewright.catalogs.pointers.properties import PyIcebergProperties
from icewright.core.system_clock import SystemClock
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.layouts import Level
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.predicates.comparisons import Literal, LiteralKind, Operator
from icewright.model.iceberg.predicates.cuts import Cut, CutTree, parse_cuts
from icewright.model.iceberg.tables import LAYOUT_KEY
from icewright.model.queries.queries import Filter
from icewright.model.queries.recommendations import LayoutChange, Recommendation
from icewright.model.work.tasks import Task, TaskState
from icewright.policy.settings import LAYOUT_CUTS_KEY, LEVEL_1_SIZE_KEY
from icewright.policy.settings import LAYOUT_KEY as LAYOUT_PROPERTY
from tests.builders.queries import query, read_of
from tests.lakes.sqlite import writer
from tests.spark.loop import SparkLoop
from tests.spark.tables import missing_files, sorted_rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

DAY_MS = 86_400_000
FILES, ROWS = 24, 1_300
QUERIES, LATER = 300, 100
AT_END = 1_000_000
OPERATORS = {Operator.EQ: EqualTo, Operator.GT: GreaterThan, Operator.LT: LessThan}
LOG = (
    f"CAST(pmod(xxhash64(id, 1), {AT_END}) AS BIGINT) AS at",
    "CAST(LEAST(10 * (pow(1 - pmod(xxhash64(id, 2), 1000000) / 1000000D, -1 / 1.2D) - 1), 100000) AS BIGINT) AS user",
    "CAST(IF(pmod(xxhash64(id, 3), 100) < 80, 0, pmod(xxhash64(id, 3), 5)) AS INT) AS status",
    "IF(id % 50 = 0, NULL, IF(id % 50 = 1, double('NaN'), exp(6 * pmod(xxhash64(id, 5), 1000000) / 1000000D))) AS size",
    "sha2(string(id), 256) AS note",
)
"""Few users and sizes have most rows, and most statuses are the same."""


def make(loop: SparkLoop, table: str, files: int = FILES) -> TableName:
    name = loop.name("db", table)
    loop.spark.sql(
        f"CREATE TABLE {name.catalog}.db.{table} (at BIGINT, user BIGINT, status INT, size DOUBLE, note STRING) "
        "USING iceberg TBLPROPERTIES ('icewright.mode' = 'auto', 'write.target-file-size-bytes' = '65536')"
    )
    write(loop, name, 0, files)
    return name


def write(loop: SparkLoop, name: TableName, first_file: int, files: int) -> None:
    """Rows as they come: any row may be in any of the new files, each of about the table's target size."""
    made = loop.spark.range(first_file * ROWS, (first_file + files) * ROWS).selectExpr(*LOG)
    made.repartition(files).writeTo(f"{name.catalog}.db.{name.name}").option("distribution-mode", "none").option(
        "target-file-size-bytes", 1 << 30
    ).append()


def asked(number: int, seed: int) -> list[tuple[Filter, ...]]:
    """What a team asks of its log: a time, and a user, a status or large sizes."""
    chance = random.Random(seed)  # noqa: S311 - which values are looked for
    found: list[tuple[Filter, ...]] = []
    for n in range(number):
        low = chance.randrange(400_000, 800_000)
        of_time = (one("at", Operator.GT, low), one("at", Operator.LT, low + 200_000))
        other = (
            one("user", Operator.EQ, chance.randrange(1, 200)),
            one("status", Operator.EQ, chance.randrange(1, 5)),
            one("size", Operator.GT, chance.randrange(100, 350)),
        )
        found.append((*of_time, other[n % 3]))
    return found


def one(column: str, operator: Operator, value: int) -> Filter:
    return Filter(column, operator, (Literal(LiteralKind.NUMBER, str(value)),))


def analyzed(loop: SparkLoop, name: TableName, queries: Sequence[tuple[Filter, ...]]) -> tuple[str, Recommendation]:
    """The queries of four weeks are reported, counted and analyzed."""
    now = loop.clock.now()
    loop.control.maintainer.look(name)
    loop.send(
        query(n, read_of(name, *filters), at=now - (len(queries) - n) * 28 * DAY_MS // len(queries))
        for n, filters in enumerate(queries)
    )
    kept = loop.analyze(name)
    return kept.recommendation_id, kept.recommendation


def read_by(loop: SparkLoop, name: TableName, queries: Sequence[tuple[Filter, ...]]) -> tuple[float, float]:
    """Files and bytes that PyIceberg plans for a query, by the bounds in the manifests; the mean."""
    table = writer(loop.entry).load_table((*name.namespace, name.name))
    files = size = 0
    for filters in queries:
        expression: BooleanExpression = AlwaysTrue()
        for item in filters:
            (literal,) = item.literals
            expression = And(expression, OPERATORS[item.operator](item.column, int(literal.text)))
        planned = [task.file for task in table.scan(row_filter=expression).plan_files()]
        files, size = files + len(planned), size + sum(file.file_size_in_bytes for file in planned)
    return files / len(queries), size / len(queries)


def put_in_order(loop: SparkLoop, name: TableName, level: Level) -> Task:
    """One task of a level, by which rows stay the same."""
    before = sorted_rows(loop.spark, name)
    task = loop.rewrite(name)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert task.rewrite.level is level
    assert {group.executor for group in task.rewrite.groups} == {Executor.SHUFFLE}
    assert sorted_rows(loop.spark, name) == before
    assert missing_files(loop.spark, name) == []
    return task


def said_of_files(loop: SparkLoop, name: TableName) -> Mapping[str, str]:
    snapshot = loop.catalog.load(name).current_snapshot
    assert snapshot is not None
    return snapshot.summary


def test_cuts_are_recommended_carried_out_and_read_less_than_hilbert_later(loop: SparkLoop) -> None:
    events, later = make(loop, "events"), asked(LATER, 2)
    recommendation_id, said = analyzed(loop, events, asked(QUERIES, 1))
    assert isinstance(said.candidate, LayoutChange), said.reason
    tree = said.candidate.layout.cuts
    assert tree is not None, [str(trial.candidate) for trial in said.trials]
    assert said.chosen is not None
    predicted = said.chosen.test
    assert predicted is not None
    loop.control.recommendations.accept(recommendation_id, "ann")
    properties = loop.catalog.load(events).properties
    assert (properties[LAYOUT_PROPERTY], parse_cuts(properties[LAYOUT_CUTS_KEY])) == (f"cuts({tree.id})", tree)

    put_in_order(loop, events, Level.LEVEL_1)

    assert said_of_files(loop, events)[LAYOUT_KEY] == f"cuts({tree.id})"
    files, size = read_by(loop, events, later)
    table = writer(loop.entry).load_table(("db", "events"))
    written = [one_task.file for one_task in table.scan().plan_files()]
    total = sum(file.file_size_in_bytes for file in written)
    assert len(written) == pytest.approx(FILES, abs=2)
    # The files that were written have the bounds that were predicted: later queries read what they should.
    share = predicted.bytes_read.mean / said.evidence.bytes
    assert size / total == pytest.approx(share, rel=0.2), (size / total, share)
    mean = total / len(written)
    assert all(0.3 * mean < file.file_size_in_bytes < 2.3 * mean for file in written)

    curve = next(str(trial.candidate) for trial in said.trials if str(trial.candidate).startswith("hilbert"))
    by_curve = read_under_curve(loop, curve, properties[LEVEL_1_SIZE_KEY], events, later)
    assert size < 0.9 * by_curve[1]
    assert files < by_curve[0]


def read_under_curve(
    loop: SparkLoop, curve: str, level_1_size: str, events: TableName, later: Sequence[tuple[Filter, ...]]
) -> tuple[float, float]:
    """What the same queries read of a table of the same rows under a curve, in as many files."""
    other = make(loop, "others")
    changes = {LAYOUT_PROPERTY: curve, LEVEL_1_SIZE_KEY: level_1_size}
    settings = ", ".join(f"'{key}' = '{value}'" for key, value in changes.items())
    loop.spark.sql(f"ALTER TABLE {other.catalog}.db.others SET TBLPROPERTIES ({settings})")
    put_in_order(loop, other, Level.LEVEL_1)
    assert sorted_rows(loop.spark, other) == sorted_rows(loop.spark, events)
    assert len(paths(loop, "others")) == len(paths(loop, "events"))
    return read_by(loop, other, later)


def paths(loop: SparkLoop, table: str) -> set[str]:
    return {task.file.file_path for task in writer(loop.entry).load_table(("db", table)).scan().plan_files()}


def test_later_files_become_a_run_and_runs_become_one_until_a_column_is_gone(loop: SparkLoop) -> None:
    events = make(loop, "events", FILES // 2)
    cuts = (below(0, 3), below(1, 100), None, None, below(1, 50), None, None)
    tree = CutTree((("user",), ("size",)), cuts)
    changes = {
        LAYOUT_PROPERTY: f"cuts({tree.id})",
        LAYOUT_CUTS_KEY: tree.text,
        LEVEL_1_SIZE_KEY: "100000",
        "icewright.level-2.runs": "2",
    }
    PyIcebergProperties(loop.entry, SystemClock()).change(loop.catalog.load(events), changes)
    put_in_order(loop, events, Level.LEVEL_1)
    ordered = paths(loop, "events")
    write(loop, events, FILES // 2, FILES // 4)
    loop.clock.ahead_ms += 120_000
    put_in_order(loop, events, Level.LEVEL_1)
    assert ordered < paths(loop, "events")
    loop.clock.ahead_ms += 120_000
    put_in_order(loop, events, Level.LEVEL_2)
    assert not ordered & paths(loop, "events")
    assert said_of_files(loop, events)[LAYOUT_KEY] == f"cuts({tree.id})"
    bounds = loop.spark.table(f"{events.catalog}.db.events.files").select("readable_metrics.user.*").collect()
    assert all(row.upper_bound < 3 or row.lower_bound >= 3 for row in bounds)

    loop.spark.sql(f"ALTER TABLE {events.catalog}.db.events DROP COLUMN size")
    loop.clock.ahead_ms += 120_000
    assert loop.claim_if_any(events) is None
    plan = loop.control.maintainer.look(events, plan_anew=True).plan
    assert not plan.actions
    assert plan.reason.figures["layout_obstacle"] == "layout-column-missing"


def below(column: int, value: int) -> Cut:
    return Cut(column, Operator.LT, Literal(LiteralKind.NUMBER, str(value)))
