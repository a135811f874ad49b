"""Queries in, layout out, on real Spark: what is recommended is accepted and carried out, and reads less."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from icewright.core.errors import Conflict
from icewright.model.actions.actions import ActionKind, RewriteDataFiles
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName, sql_name
from icewright.model.queries.decisions import RecommendationState
from icewright.model.queries.queries import LiteralKind, QueryRecord
from icewright.model.queries.recommendations import LayoutChange, LeaveAsIs, Recommendation, Verdict
from icewright.model.work.tasks import TaskState
from icewright_spark.actions import analyze_queries
from icewright_spark.trials.recommend import recommend
from icewright_spark.trials.sizes import MISSED, Sizes
from tests.builders.queries import equal, query, read_of
from tests.spark.beginnings import Beginnings
from tests.spark.loop import SparkLoop
from tests.spark.tables import missing_files, sorted_rows

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000
FILES, ROWS = 40, 2_000
USERS = 5_000


@pytest.fixture
def events(lake: CatalogEntry, beginnings: Beginnings) -> TableName:
    return beginnings.table(lake, write, "events")


def write(spark: SparkSession, name: TableName) -> None:
    """Files of one size, in each of which any user may be; large enough that opening one costs."""
    full = sql_name(name)
    spark.sql(
        f"CREATE TABLE {full} (user_id BIGINT, amount DOUBLE, note STRING) USING iceberg "
        "TBLPROPERTIES ('icewright.mode' = 'auto', 'write.target-file-size-bytes' = '65536')"
    )
    made = spark.range(FILES * ROWS).selectExpr(
        f"CAST(pmod(xxhash64(id), {USERS}) AS BIGINT) AS user_id", "rand(1) AS amount", "sha2(string(id), 256) AS note"
    )
    made.repartition(FILES).writeTo(full).option("distribution-mode", "none").append()


def lookups(loop: SparkLoop, name: TableName, column: str, number: int, seed: int = 1) -> list[QueryRecord]:
    """Queries of single values over four weeks, which open every file."""
    chance, now = random.Random(seed), loop.clock.now()  # noqa: S311 - which value is looked for
    found = []
    for n in range(number):
        wanted = equal(column, str(chance.randrange(USERS)), LiteralKind.NUMBER)
        found.append(query(n + 1_000 * seed, read_of(name, wanted), at=now - (number - n) * 28 * DAY_MS // number))
    return found


def opened(loop: SparkLoop, name: TableName) -> float:
    """How many files bounds leave for a lookup of one value, on the mean of some."""
    bounds = loop.spark.table(f"{name.catalog}.db.events.files").select("readable_metrics.user_id.*").collect()
    wanted = range(0, USERS, USERS // 50)
    return sum(1 for row in bounds for user in wanted if row.lower_bound <= user <= row.upper_bound) / len(wanted)


def test_a_layout_is_recommended_accepted_and_carried_out(
    loop: SparkLoop, events: TableName, spark: SparkSession
) -> None:
    before, control = sorted_rows(spark, events), loop.control
    snapshot_id = loop.catalog.load(events).current_snapshot_id
    control.maintainer.look(events)
    loop.send(lookups(loop, events, "user_id", 400))
    kept = loop.analyze(events)
    said = kept.recommendation
    assert said.verdict is Verdict.CHANGE, said.reason
    assert isinstance(said.candidate, LayoutChange)
    assert str(said.candidate) == "sort(user_id)"
    assert opened(loop, events) > FILES - 1
    assert said.chosen is not None
    assert said.chosen.test is not None
    assert loop.catalog.load(events).current_snapshot_id == snapshot_id  # it only read
    accepted = control.recommendations.accept(kept.recommendation_id, "ann")
    assert accepted.state is RecommendationState.ACCEPTED
    assert loop.catalog.load(events).properties["icewright.layout"] == "sort(user_id)"
    with pytest.raises(Conflict, match="accepted by ann"):
        control.recommendations.reject(kept.recommendation_id, "bob", "too late")
    task = loop.rewrite(events)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert isinstance(task.action, RewriteDataFiles)
    assert task.action.layout is not None
    assert sorted_rows(spark, events) == before
    assert missing_files(spark, events) == []
    assert said.chosen.test.files_opened_now > FILES - 1
    assert opened(loop, events) <= said.chosen.test.files_opened.high + 1


def test_sizes_are_predicted_from_rows_of_some_files_with_all_columns_that_count(
    loop: SparkLoop, events: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark, full = loop.spark, sql_name(events)
    spark.sql(f"ALTER TABLE {full} ADD COLUMNS (place STRUCT<city: STRING>, `odd.name` DATE)")
    given: list[Any] = []

    def recommended(*args: Any) -> Recommendation:
        given.extend(args)
        return recommend(*args)

    monkeypatch.setattr(analyze_queries, "recommend", recommended)
    loop.control.maintainer.look(events)
    loop.send(lookups(loop, events, "user_id", 400))
    said = loop.analyze(events).recommendation
    files, whole = given[2], given[4].whole
    assert whole.column_names == ["user_id", "amount", "note", "_file"]  # not the new ones, which take no room
    paths = pc.unique(whole["_file"]).to_pylist()
    assert len(paths) <= analyze_queries.WHOLE_FILES_MAX < files.num_rows
    assert len(paths) > analyze_queries.WHOLE_FILES_MAX / 2
    assert 0.9 < whole.num_rows / analyze_queries.WHOLE_ROWS < 1.1
    for path in paths[:3]:
        rows = pq.read_table(path.removeprefix("file:"), columns=["note"])["note"]
        places = pc.index_in(whole.filter(pc.equal(whole["_file"], path))["note"], rows).to_pylist()
        assert None not in places
        assert places == sorted(places)
    # Each user has 16 rows, which lie together then; amounts and notes are of no order.
    assert isinstance(said.candidate, LayoutChange)
    sizes, before = Sizes.of(whole, files), pc.sum(files["file_size_in_bytes"]).as_py()
    assert sizes is not None
    control = loop.control
    control.recommendations.accept(control.recommendations.store.list(limit=1)[0].recommendation_id, "ann")
    assert loop.rewrite(events).state is TaskState.SUCCEEDED
    row = spark.table(sql_name(events, "files")).agg(sql.sum("file_size_in_bytes")).first()
    assert row is not None
    predicted = sizes.ratio(said.candidate.layout, np.array([files.num_rows]), np.array([True]))
    assert predicted == pytest.approx(row[0] / before, rel=MISSED)


def test_where_nothing_helps_the_table_is_left_as_it_is(loop: SparkLoop, events: TableName) -> None:
    """Each query reads a column of chance by a range that is in every file, however rows are put."""
    loop.control.maintainer.look(events)
    now = loop.clock.now()
    queries = [
        query(n, read_of(events), at=now - (200 - n) * DAY_MS // 10)
        for n in range(200)  # no filter at all
    ]
    loop.send(queries)
    log = loop.control.queries.table
    assert log is not None
    rows = loop.spark.table(sql_name(log))
    broken = rows.limit(1).withColumn("query_id", sql.lit("broken")).withColumn("filters", sql.lit("[not json"))
    broken.writeTo(sql_name(log)).append()  # its owner may write to it
    kept = loop.analyze(events)
    assert kept.recommendation.evidence.unusable["unreadable-row"] == 1
    assert kept.recommendation.verdict is Verdict.LEAVE
    assert isinstance(kept.recommendation.candidate, LeaveAsIs)
    assert loop.control.recommendations.store.list(limit=9, only_open=True) == []
    kinds = [task.action.kind for task in loop.tasks()]
    assert ActionKind.ANALYZE_QUERIES in kinds
