"""Settings of the file format on real Spark: tried on a table's rows, accepted, and taken by the next rewrite."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from icewright.model.actions.analyze_queries import AnalyzeQueries
from icewright.model.iceberg.names import TableName, sql_name
from icewright.model.iceberg.writer_settings import WriterSettings
from icewright.model.queries.queries import Filter, Literal, LiteralKind, Operator, QueryRecord
from icewright.model.queries.recommendations import PropertiesChange, Verdict
from icewright.model.work.tasks import TaskState
from icewright_spark.actions import analyze_queries
from icewright_spark.trials.format_sample import FormatSample, Round, one_round
from icewright_spark.trials.recommend import Options
from tests.builders.queries import query, read_of
from tests.spark.loop import SparkLoop
from tests.spark.tables import missing_files, sorted_rows

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000
FILES, ROWS = 8, 10_000
CODEC = "write.parquet.compression-codec"


@pytest.fixture
def notes(loop: SparkLoop) -> TableName:
    """Small files of a column that compresses, and of one that does not, written with Snappy."""
    name = loop.name("db", "notes")
    spark, full = loop.spark, sql_name(name)
    spark.sql(
        f"CREATE TABLE {full} (id BIGINT, note STRING, noise BINARY) USING iceberg "
        f"TBLPROPERTIES ('icewright.mode' = 'auto', '{CODEC}' = 'snappy')"
    )
    words = ", ' ', ".join(f"'word', pmod(xxhash64(id, {seed}), 500)" for seed in range(8))
    made = spark.range(FILES * ROWS).selectExpr(
        "id", f"concat({words}) AS note", "unhex(substring(sha2(string(id), 256), 1, 32)) AS noise"
    )
    made.repartition(FILES).writeTo(full).option("distribution-mode", "none").append()
    return name


def scans(loop: SparkLoop, name: TableName, number: int) -> list[QueryRecord]:
    """Queries of two days that read the notes of all rows, by ranges that skip nothing."""
    now = loop.clock.now()
    found = []
    for place in range(number):
        wanted = Filter("id", Operator.GT_EQ, (Literal(LiteralKind.NUMBER, str(-place)),))
        read = replace(read_of(name, wanted), columns=("id", "note"))
        found.append(query(place, read, at=now - (number - place) * 2 * DAY_MS // number))
    return found


def steady(sample: FormatSample, settings: WriterSettings, columns: Collection[str]) -> Round:
    """Rows really written, with CPU seconds that say nothing: those of a busy machine would decide otherwise."""
    assert set(columns) == {"id", "note"}
    found = one_round(sample, settings, columns)
    assert found.write_s > 0
    assert (found.decode_s > 0).tolist() == [True, True, False]
    return replace(found, write_s=0.1, decode_s=np.where(found.decode_s > 0, 0.01, 0.0))


def codecs(spark: SparkSession, name: TableName) -> set[str]:
    """What the footers of the table's files say of their column chunks."""
    paths = [row[0] for row in spark.table(sql_name(name, "files")).select("file_path").collect()]
    found = set()
    for path in paths:
        metadata = pq.ParquetFile(path.removeprefix("file:")).metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        found |= {group.column(place).compression for group in groups for place in range(metadata.num_columns)}
    return found


def size_of(spark: SparkSession, name: TableName) -> int:
    row = spark.table(sql_name(name, "files")).selectExpr("sum(file_size_in_bytes)").first()
    assert row is not None
    return int(row[0])


def test_a_codec_is_recommended_accepted_and_taken_by_the_next_rewrite(
    loop: SparkLoop, notes: TableName, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyze_queries, "Options", partial(Options, measure=steady))
    before, control = sorted_rows(spark, notes), loop.control
    bytes_before, snapshot_id = size_of(spark, notes), loop.catalog.load(notes).current_snapshot_id
    assert codecs(spark, notes) == {"SNAPPY"}
    control.maintainer.look(notes)
    loop.send(scans(loop, notes, 1_000))
    kept = loop.analyze(notes)
    said = kept.recommendation
    assert said.verdict is Verdict.CHANGE, (said.reason, said.caveats)
    assert isinstance(said.candidate, PropertiesChange)
    assert said.candidate.properties[CODEC] == "zstd"
    assert said.chosen is not None
    assert said.chosen.written is not None
    assert said.chosen.written.sample_files == 4
    assert loop.catalog.load(notes).current_snapshot_id == snapshot_id  # it only read
    assert missing_files(spark, notes) == []
    control.recommendations.accept(kept.recommendation_id, "ann")
    assert said.candidate.properties.items() <= loop.catalog.load(notes).properties.items()
    task = loop.rewrite(notes)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert codecs(spark, notes) == {"ZSTD"}
    assert sorted_rows(spark, notes) == before
    assert missing_files(spark, notes) == []
    # The sample was written by the same code: the table became as much smaller as it did.
    share = said.chosen.written.bytes / said.chosen.written.bytes_now
    assert size_of(spark, notes) / bytes_before == pytest.approx(share, rel=0.15)
    control.maintainer.look(notes)
    again = loop.analyze(notes).recommendation
    tried = [trial.candidate for trial in again.trials if trial.written is not None]
    assert tried
    assert said.candidate not in tried  # it is there by now
    assert [task.state for task in loop.tasks() if isinstance(task.action, AnalyzeQueries)] == [TaskState.SUCCEEDED] * 2


def test_what_snapshots_say_that_they_added_may_be_anything(spark: SparkSession) -> None:
    """Any writer says it: what is no number counts for nothing, and two at one instant are no trouble."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    said = [("many", None), ("7", None), ("7", 1), (None, 2), ("9" * 30, 3)]
    rows = [(at, None if text is None else {"added-records": text}, parent) for text, parent in said]
    listed = spark.createDataFrame(rows, "committed_at timestamp, summary map<string, string>, parent_id bigint")
    session: Any = SimpleNamespace(table=lambda _name: listed)
    spec: Any = SimpleNamespace(table_name=TableName("lake", ("db",), "t"))
    action: Any = SimpleNamespace(records=7)
    assert analyze_queries._written_share(session, spec, action) == 2.0
