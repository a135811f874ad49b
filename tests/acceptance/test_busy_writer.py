"""Statements that remove rows without a pause beside rewrites, for half an hour. In CI: ``test_every_kind``."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icewright.model.iceberg.names import TableName
from icewright_spark.iceberg.java_api import first_line
from tests.acceptance.busy import COLUMNS, NAME, REGIONS, ROWS, settled
from tests.acceptance.house import house, missing_paths
from tests.adversary.intervals import wilson
from tests.e2e.processes import wait_for
from tests.lakes.sqlite import make_lake, writer

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(3600)]

REMOVING_S, REMOVERS = 1_500, 2
"""For so long statements remove rows one after the other, in so many sessions, of regions of their own."""
FAILED_MAX = 0.01
"""Of the statements, at the upper end of the interval."""


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
    spark.sql(f"CREATE TABLE {name} {COLUMNS} USING iceberg PARTITIONED BY (region) TBLPROPERTIES ({properties})")
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
            settled(processes, client, name)
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
