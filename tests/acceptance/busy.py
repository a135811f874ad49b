"""A writer that never rests, on real Spark: what rewrites cost it, and how much of their own work they lose (G19).

The writer commits every ten seconds, as SQL on Spark: it appends to all regions, and each fourth time deletes rows of
one of them. The goal is that at most 20 % of the bytes that are rewritten are in no commit, and that at most 1 % of the
writer's statements fail because of us; alone, it would fail with none. The short form, in CI, has two commits a second,
and shows that no row is lost; so few groups tell no rate.
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from icewright.api_client.client import Client
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Json
from icewright_spark.iceberg.java_api import first_line
from tests.acceptance.house import ENDED, House, missing_paths
from tests.e2e.processes import wait_for
from tests.lakes.sqlite import writer

LONG = bool(os.environ.get("ICEWRIGHT_ACCEPTANCE"))
COMMITS, EVERY_S, ROWS = (60, 10.0, 60_000) if LONG else (8, 0.5, 2_000)
REGIONS, DELETES_EVERY, WRITERS_GO_ON_S = 6, 4, 1.0
NAME = TableName("busy", ("db",), "events")
COLUMNS = "(id bigint, region int, text string)"
WASTED_MAX = 0.20


def make(spark: SparkSession) -> None:
    properties = "'write.delete.mode' = 'copy-on-write', 'icewright.rewrite-data-files.min-input-files' = '3'"
    spark.sql(f"CREATE TABLE {NAME} {COLUMNS} USING iceberg PARTITIONED BY (region) TBLPROPERTIES ({properties})")


@dataclass
class Writer:
    """A job that knows nothing of icewright; a statement that fails is run again, as anybody would."""

    spark: SparkSession
    chance: random.Random
    commits: int = 0
    outrun: int = 0
    ids: int = 0
    deleted: int = 0

    def run(self) -> set[int]:
        """All its commits, one after the other in their rhythm; the ids of the rows that are left."""
        live: set[int] = set()
        for number in range(COMMITS):
            due_at = time.monotonic() + EVERY_S
            if number % DELETES_EVERY == DELETES_EVERY - 1:
                region, rest = self.chance.randrange(REGIONS), self.chance.randrange(100)
                self._committed(f"DELETE FROM {NAME} WHERE region = {region} AND id % 100 = {rest}")  # noqa: S608 - numbers
                live = {one for one in live if one % REGIONS != region or one % 100 != rest}
            else:
                first, self.ids = self.ids, self.ids + ROWS
                made = f"SELECT id, CAST(id % {REGIONS} AS INT), uuid() FROM range({first}, {self.ids}, 1, 2)"  # noqa: S608 - the same
                self._committed(f"INSERT INTO {NAME} {made}")
                live |= set(range(first, self.ids))
            time.sleep(max(0.0, due_at - time.monotonic()))
        return live

    def _committed(self, statement: str) -> None:
        for _ in range(20):
            try:
                self.spark.sql(statement)
            except Exception as error:  # noqa: BLE001 - Spark raises several kinds
                said = first_line(error)
                assert "ound new" in said or "issing required files" in said or "ommit" in said, said
                self.outrun += 1
                time.sleep(WRITERS_GO_ON_S)
            else:
                self.commits += 1
                return
        pytest.fail(f"never came through: {statement}")


def settled(processes: House, client: Client, name: TableName) -> tuple[Json, ...]:
    """Wait until something was rewritten of a table and no task of it is under way any more; all there were."""

    def look() -> tuple[Json, ...] | None:
        tasks = tuple(task for task in client.tasks(limit=1000).items if task["table"] == str(name))
        states = {task["state"] for task in tasks}
        return tasks if "succeeded" in states and states <= ENDED else None

    return wait_for(look, "all tasks end", processes)


def check_rows(spark: SparkSession, entry: CatalogEntry, live: set[int]) -> None:
    """Spark and PyIceberg find exactly the rows that the writer left, and every path that is reachable is there."""
    by_pyiceberg = writer(entry).load_table(NAME.path).scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()
    by_spark = spark.table(str(NAME)).select("id").toArrow()["id"].to_pylist()
    for found in (by_pyiceberg, by_spark):
        assert len(found) == len(set(found))
        assert set(found) == live
    assert missing_paths(spark, NAME) == []
