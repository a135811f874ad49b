"""Level 0, 1 and 2 of one table by themselves, on real Spark: what is in order is told by the table alone."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icewright.model.actions.actions import Executor
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.files import UNPARTITIONED, DataFile, Partition
from icewright.model.iceberg.layouts import Level, runs_of
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import SortField
from icewright.model.work.tasks import TaskState
from tests.lakes import sqlite
from tests.spark.loop import SparkLoop

pytestmark = pytest.mark.spark

ROWS = 150
PROPERTIES = {
    "icewright.layout": "sort(id)",
    "icewright.level-1.size-bytes": "15000",
    "icewright.level-2.runs": "2",
    "icewright.rewrite-data-files.min-input-files": "3",
    "write.target-file-size-bytes": "16000",
}


def test_levels_play_out_by_themselves_and_files_end_up_in_order(spark: SparkSession, lake: CatalogEntry) -> None:
    loop, dice = SparkLoop(spark, lake), Random(5)  # noqa: S311 - rows to be repeated, no secret
    table = sqlite.make_table(lake, properties=PROPERTIES)
    name, written, levels = loop.name("db", "events"), Counter[tuple[int, str]](), list[Level]()
    for number in range(15):
        ids = [dice.randrange(1_000_000) for _ in range(ROWS)]
        city = [f"{dice.random()}" for _ in ids]
        table.append(pa.table({"id": ids, "city": city}, schema=sqlite.ARROW_SCHEMA))
        written.update(zip(ids, city, strict=True))
        while number % 3 == 2 and (spec := loop.claim_if_any(name)) is not None:
            task = loop.verified(loop.attempt(spec))
            assert task.state is TaskState.SUCCEEDED, task.outcome
            levels.append(spec.rewrite.level)
            loop.clock.ahead_ms += 120_000
        if Level.LEVEL_2 in levels:
            break
    assert levels == [Level.LEVEL_0, Level.LEVEL_1, Level.LEVEL_0, Level.LEVEL_1, Level.LEVEL_2]
    assert {group.executor for group in task.rewrite.groups} == {Executor.MERGE}  # both runs are in order already
    first, second = (f.span for f in sorted(files(loop, name), key=lambda f: f.span or ()))
    assert first is not None
    assert second is not None
    assert first[1] <= second[0]
    assert task.outcome is not None
    assert task.outcome.reason.figures["lookup_1_mean"] == 1.0  # as the bounds of the new files say
    assert {run_level(loop, name, file) for file in files(loop, name)} == {Level.LEVEL_2}
    assert Counter((row["id"], row["city"]) for row in spark.table(f"{lake.name}.db.events").collect()) == written


def files(loop: SparkLoop, name: TableName) -> list[DataFile]:
    """The live files, with their spans by the layout's column."""
    metadata = loop.catalog.load(name)
    snapshot, whole = metadata.current_snapshot, frozenset({Partition(0, UNPARTITIONED)})
    assert snapshot is not None
    lead = [SortField(1, "identity", "asc", "nulls-first")]
    return list(loop.catalog.data_files(metadata, snapshot, loop.catalog.manifests(metadata, snapshot), whole, lead))


def run_level(loop: SparkLoop, name: TableName, file: DataFile) -> Level | None:
    """The level of the run that a file belongs to."""
    run = runs_of(loop.catalog.load(name)).get(file.snapshot_id)
    return None if run is None else run.level
