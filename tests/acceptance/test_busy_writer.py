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
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icewright.api_client.client import Client
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Json
from icewright_spark.iceberg.java_api import first_line
from tests.acceptance.house import ENDED, House, house, missing_paths
from tests.adversary.intervals import wilson
from tests.e2e.processes import wait_for
from tests.lakes.sqlite import make_lake, writer

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(3600)]

LONG = bool(os.environ.get("ICEWRIGHT_ACCEPTANCE"))
COMMITS, EVERY_S, ROWS = (60, 10.0, 60_000) if LONG else (8, 0.5, 2_000)
REGIONS, DELETES_EVERY, WRITERS_GO_ON_S = 6, 4, 1.0
NAME = TableName("busy", ("db",), "events")
WASTED_MAX = 0.20
REMOVING_S, REMOVERS = 1_500, 2
"""For so long statements remove rows one after the other, in so many sessions, of regions of their own."""
FAILED_MAX = 0.01
"""Of the statements, at the upper end of the interval."""


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


def test_rewrites_and_a_writer_that_never_rests_do_not_get_in_each_others_way(
    spark: SparkSession, tmp_path: Path
) -> None:
    entry = make_lake(tmp_path, NAME.catalog)
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    spark.sql(f"CREATE NAMESPACE {NAME.catalog}.db")
    properties = "'write.delete.mode' = 'copy-on-write', 'icewright.rewrite-data-files.min-input-files' = '3'"
    columns = "(id bigint, region int, text string)"
    spark.sql(f"CREATE TABLE {NAME} {columns} USING iceberg PARTITIONED BY (region) TBLPROPERTIES ({properties})")
    at_work = Writer(spark, random.Random(19))  # noqa: S311 - which rows are deleted
    with house(tmp_path, [entry]) as processes:
        processes.start("serve")
        processes.start("optimizer")
        with processes.client() as client:
            wait_for(lambda: client.status()["optimizers"] or None, "an optimizer is there", processes)
            live = at_work.run()
            documents = [client.task(task["task_id"]) for task in settled(processes, client)]
    states = Counter(document["task"]["state"] for document in documents)
    measured = [document["measured"] for document in documents if document["measured"] is not None]
    written, wasted = (sum(one[key] for one in measured) for key in ("written_bytes", "wasted_bytes"))
    conflicts = sum(one["groups_conflicted"] for one in measured)
    print(  # noqa: T201 - figures for whoever runs it
        f"{at_work.commits} commits, {at_work.outrun} of which failed first; {dict(states)}; "
        f"{wasted} of {written} bytes wasted, {conflicts} groups met another commit"
    )
    assert set(states) <= {"succeeded", "superseded"}
    if LONG:  # the short form is of a handful of groups
        assert wasted <= WASTED_MAX * written
        assert at_work.outrun <= max(1, at_work.commits // 100)
    check_rows(spark, entry, live)


@pytest.mark.campaign
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_statements_that_remove_rows_without_a_pause_beside_rewrites_at_default_settings(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    name = TableName(f"busy_{mode.replace('-', '_')}", NAME.namespace, NAME.name)
    entry = make_lake(tmp_path, name.catalog)
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    spark.sql(f"CREATE NAMESPACE {name.catalog}.db")
    properties = f"'write.delete.mode' = '{mode}', 'write.delete.isolation-level' = 'snapshot', "
    properties += "'commit.retry.num-retries' = '20'"  # so that no session is in another one's way
    columns = "(id bigint, region int, text string)"
    spark.sql(f"CREATE TABLE {name} {columns} USING iceberg PARTITIONED BY (region) TBLPROPERTIES ({properties})")
    ends_at = time.monotonic() + REMOVING_S

    def append() -> int:
        count = 0
        while time.monotonic() < ends_at:
            made = (
                f"SELECT id, CAST(id % {REGIONS} AS INT), uuid() FROM range({count * ROWS}, {(count + 1) * ROWS}, 1, 2)"  # noqa: S608 - numbers
            )
            spark.sql(f"INSERT INTO {name} {made}")
            count += 1
            time.sleep(5)
        return count * REGIONS * 2

    def remove(session: int) -> tuple[list[float], int]:
        chance, took_s, failed = random.Random(session), list[float](), 0  # noqa: S311 - which rows
        while time.monotonic() < ends_at:
            region = chance.randrange(session, REGIONS, REMOVERS)
            began = time.monotonic()
            try:
                spark.sql(f"DELETE FROM {name} WHERE region = {region} AND id % 1000 = {chance.randrange(1000)}")  # noqa: S608 - the same
            except Exception as error:  # noqa: BLE001 - Spark raises several kinds
                said = first_line(error)
                assert "issing" in said, said
                failed += 1
            took_s.append(time.monotonic() - began)
        return took_s, failed

    with house(tmp_path, [entry]) as processes:
        processes.start("serve")
        processes.start("optimizer")
        with processes.client() as client, ThreadPoolExecutor(REMOVERS + 1) as sessions:
            wait_for(lambda: client.status()["optimizers"] or None, "an optimizer is there", processes)
            appended = sessions.submit(append)
            removals = [one.result() for one in [sessions.submit(remove, number) for number in range(REMOVERS)]]
            settled(processes, client)
    took_s = sorted(one for its, _ in removals for one in its)
    failed = sum(its for _, its in removals)
    low, high = wilson(failed, len(took_s))
    ours = [one.summary for one in writer(entry).load_table(name.path).snapshots() if one.summary is not None]
    merged = sum(int(one["deleted-data-files"] or 0) for one in ours if one["icewright.task-id"])
    live = spark.table(f"{name}.files").count()
    print(  # noqa: T201 - figures for whoever runs it
        f"{mode}: {failed} of {len(took_s)} statements failed because of a rewrite ({low:.2%} to {high:.2%}); they "
        f"took {took_s[len(took_s) // 2]:.1f} s, at most {took_s[-1]:.1f} s; {appended.result()} files were appended, "
        f"{merged} merged, {live} are left"
    )
    assert high <= FAILED_MAX
    assert merged
    assert missing_paths(spark, name) == []


def settled(processes: House, client: Client) -> tuple[Json, ...]:
    """Wait until something was rewritten and no task is under way any more; all there were."""

    def look() -> tuple[Json, ...] | None:
        tasks = client.tasks(limit=1000).items
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
