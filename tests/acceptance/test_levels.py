"""Levels 0, 1 and 2 on a table that goes on being written: nobody does anything, and lookups open few files.

The short form, in CI, has a fiftieth of TPC-H's scale factor 1; ``make acceptance`` has all of it in 400 commits.

On a slow machine more arrives while a level is at work. What is asked of lookups, rows, files read and the levels that
come does not depend on that. These do: each wait ends after ``PATIENCE_S``; a task whose lease of 4 s is lost three
times, since nobody beats so long, has failed; a DELETE may meet a rewrite 20 times in a row; and the bytes written are
predicted with more or less experience, by which tasks came before which: within 7 % where it was looked at, of 25 %.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from icewright.api_client.client import Client
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import LAYOUT_KEY, LEVEL_KEY, TASK_ID_KEY, Json
from icewright_spark.iceberg.java_api import first_line
from tests.acceptance import lineitem
from tests.acceptance.house import ENDED, WAIT_S, House, house, missing_paths
from tests.acceptance.lookups import check_at_rest, check_level_2, look_up
from tests.e2e.processes import wait_for
from tests.lakes.sqlite import make_lake, writer
from tests.lakes.tpch import tpch
from tests.readers.duck import duckdb_with_iceberg

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(7200)]

LONG = bool(os.environ.get("ICEWRIGHT_ACCEPTANCE"))
PATIENCE_S = 1800.0 if LONG else WAIT_S
SCALE = lineitem.LONG if LONG else lineitem.SHORT
LAYOUT = "sort(l_partkey)"
LOOKUPS = 50
MANY = 40
"""Files at the end, or a tenth of them would be hardly more than the two that neighbours share. Where the last Level 2
took all rows, the short form has some 60: 3.6 MB in files of 64 KiB."""
YOUNG_MS = 60_000
"""Files of other writers may be too young for Level 2 so long."""


def test_levels_play_out_by_themselves(spark: SparkSession, tmp_path: Path) -> None:
    entry = make_lake(tmp_path, "tpch")
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    rows = tpch(tmp_path, "lineitem", SCALE.factor)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS tpch.db")
    ordered, arrived = make_table(spark, "ordered", layout=LAYOUT), make_table(spark, "arrived", layout="none")
    with house(tmp_path, [entry]) as processes:
        processes.start("serve")
        processes.start("optimizer")
        write(spark, entry, rows)
        with processes.client() as client:
            tasks = settled(processes, client, [ordered, arrived])
            documents = [client.task(task["task_id"]) for task in tasks if task["state"] == "succeeded"]
        logs = processes.logs()
    ended = Counter(task["state"] for task in tasks)
    assert set(ended) <= {"succeeded", "superseded"}, f"{ended}\n{logs}"
    levels = levels_of(spark, ordered)
    assert set(levels) == {"level-0", "level-1", "level-2"}, f"{levels}\n{logs}"
    assert set(levels_of(spark, arrived)) == {"level-0"}
    check_rows(spark, entry, (ordered, arrived), lineitem.not_deleted(rows), tmp_path)
    check_lookups(entry, ordered, arrived, rows, tasks)
    check_predictions(documents)


def make_table(spark: SparkSession, name: str, layout: str) -> TableName:
    table = TableName("tpch", ("db",), name)
    properties = {**SCALE.properties, "icewright.layout": layout}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(f"CREATE TABLE {table} ({lineitem.COLUMNS}) USING iceberg TBLPROPERTIES ({listed})")
    return table


def write(spark: SparkSession, entry: CatalogEntry, rows: pa.Table) -> None:
    """Append to both tables slice by slice, and delete some of what was written every now and then.

    No faster than a Level 1 follows where one is due, or a Level 2 that does its work with its own: a job of days, told
    in minutes.
    """
    catalog, every, first, gathered, ordered = writer(entry), SCALE.commits // SCALE.deletes, 0, 0, 0
    for number, part in enumerate(lineitem.slices(rows, SCALE.commits), start=1):
        for name in ("ordered", "arrived"):
            table = catalog.load_table(f"db.{name}")
            table.append(part)
        gathered += added_bytes(table)
        if number == SCALE.before_level_0:
            await_levels(catalog, {"level-0"}, 1)
        elif gathered > 1.5 * SCALE.level_1_size_bytes:
            ordered, gathered = ordered + 1, 0
            await_levels(catalog, {"level-1", "level-2"}, ordered)
        if number % every == 0:
            # Lines of the last order may follow in the next slice.
            last = part["l_orderkey"][-1].as_py() - 1 if number < SCALE.commits else 1 << 62
            for name in ("ordered", "arrived"):
                delete(spark, f"tpch.db.{name}", lineitem.deletion(first, last))
            first = last + 1


def added_bytes(table: Table) -> int:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    return int(snapshot.summary["added-files-size"] or 0)


def await_levels(catalog: Catalog, levels: AbstractSet[str], due: int) -> None:
    """Wait until the table with a layout has had so many commits of these levels."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        snapshots = catalog.load_table("db.ordered").snapshots()
        had = Counter(one.summary[LEVEL_KEY] for one in snapshots if one.summary and one.summary[LEVEL_KEY])
        if sum(had[level] for level in levels) >= due:
            return
        time.sleep(0.5)
    pytest.fail(f"waited {PATIENCE_S} s in vain for {due} of {sorted(levels)}, there are {had}")


def settled(processes: House, client: Client, names: Sequence[TableName]) -> tuple[Json, ...]:
    """Wait until nothing is left to do for the tables, now or later; the tasks there were."""

    def look() -> tuple[Json, ...] | None:
        for name in names:
            table = client.table(name)
            plan = client.look_at_table(table["uuid"], table["catalog"])["plan"]
            if plan["actions"] or plan["look_again_at"] is not None:
                return None
        tasks = client.tasks(limit=1000).items
        return tasks if all(task["state"] in ENDED for task in tasks) else None

    return wait_for(look, "nothing is left to do", processes, PATIENCE_S)


def delete(spark: SparkSession, table: str, condition: str) -> None:
    """A rewrite that commits first can make a DELETE fail, as Iceberg says; then it is run again, as anybody would."""
    for _ in range(20):
        try:
            spark.sql(f"DELETE FROM {table} WHERE {condition}")  # noqa: S608 - a name of the tests
        except Exception as error:  # noqa: BLE001 - Spark raises several kinds
            said = first_line(error)
            assert "ound new" in said or "issing required files" in said or "ommit" in said, said
            time.sleep(1)
        else:
            return
    pytest.fail(f"a DELETE on {table} never came through")


def levels_of(spark: SparkSession, table: TableName) -> Counter[str]:
    summaries = spark.sql(f"SELECT summary FROM {table}.snapshots WHERE operation = 'replace'").collect()  # noqa: S608 - a name of the tests
    return Counter(row[0][LEVEL_KEY] for row in summaries)


def check_rows(
    spark: SparkSession, entry: CatalogEntry, tables: tuple[TableName, ...], expected: pa.Table, folder: Path
) -> None:
    """Spark, PyIceberg and DuckDB agree on every row, and every path that is reachable is there."""
    schema = expected.schema
    wanted = lineitem.by_key(expected, schema)
    duck = duckdb_with_iceberg()
    for name in tables:
        table = writer(entry).load_table(name.path)
        assert lineitem.by_key(table.scan().to_arrow(), schema).equals(wanted)
        copy = folder / f"{name.name}-by-spark"  # in files: all rows at once are too many for its driver
        spark.table(str(name)).write.parquet(str(copy))
        assert lineitem.by_key(pq.read_table(copy), schema).equals(wanted)
        scan = "SELECT * FROM iceberg_scan(?)"
        found = duck.execute(scan, [table.metadata_location]).fetch_arrow_table()
        assert lineitem.by_key(found, schema).equals(wanted)
        assert missing_paths(spark, name) == []


def check_lookups(
    entry: CatalogEntry, ordered: TableName, arrived: TableName, rows: pa.Table, tasks: Sequence[Json]
) -> None:
    """A lookup opens a tenth of the files that it opens where Level 0 alone was at work, were they as many.

    So it is of the files that each Level 2 made, and it took all that there was when it was planned, but for files of
    the last minute, which may be too young. Those that arrived while it was at work are as many as the machine is slow,
    and are counted apart; so are, at the end, those that are too little for a Level 1.
    """
    parts = random.Random(1).sample(rows["l_partkey"].to_pylist(), LOOKUPS)  # noqa: S311 - a choice of lookups
    tables = {name: writer(entry).load_table(name.path) for name in (ordered, arrived)}
    snapshots = tables[ordered].snapshots()
    said = {one.snapshot_id: one.summary.additional_properties for one in snapshots if one.summary}
    in_order = {snapshot_id for snapshot_id, summary in said.items() if LAYOUT_KEY in summary}
    based_on = {task["task_id"]: task["action"]["base_snapshot_id"] for task in tasks}
    committed_at = {one.snapshot_id: one.timestamp_ms for one in snapshots}
    alone, now = (look_up(tables[name], "l_partkey", parts) for name in (arrived, ordered))
    for snapshot_id in (one for one, summary in said.items() if summary.get(LEVEL_KEY) == "level-2"):
        then = look_up(tables[ordered], "l_partkey", parts, snapshot_id)
        print(f"opened after Level 2: {then}, of its own files {then.added_by({snapshot_id})}")  # noqa: T201 - figures for whoever runs it
        old_at = committed_at[based_on[said[snapshot_id][TASK_ID_KEY]]] - YOUNG_MS
        before = {one for one, at in committed_at.items() if at <= old_at} | in_order - {snapshot_id}
        check_level_2(then, snapshot_id, before, alone)
    print(f"at the end: {now}, of those in order {now.added_by(in_order)}; Level 0 alone: {alone}")  # noqa: T201 - the same
    assert len(now.files) >= MANY, now
    check_at_rest(now, in_order, SCALE.level_1_size_bytes, SCALE.level_2_runs, alone)


def check_predictions(documents: Sequence[Json]) -> None:
    """What was said beforehand is what it took: files, rows and bytes read within 10 %, bytes written within 25 %.

    The short form's files are of 15 to 20 KB, a quarter of which is what every Parquet file has once.
    """
    said, took = Counter[str](), Counter[str]()
    for document in documents:
        prediction, measured = document["task"]["prediction"], document["measured"]
        if measured is None or measured["groups_conflicted"] or measured["groups_failed"]:
            continue  # what was not reported, or is not in the table, was not measured either
        for key in ("input_files", "output_files", "input_bytes"):
            assert within(prediction[key], measured[key], 0.1), (key, document)
        assert within(prediction["records"], measured["records"] + measured["deleted_records"], 0.1), document
        said.update(output_bytes=prediction["estimate"]["output_bytes"], cpu_ms=prediction["estimate"]["cpu_ms"])
        took.update(output_bytes=measured["output_bytes"], cpu_ms=measured["cpu_ms"])
    print(f"predicted: {dict(said)}; measured: {dict(took)}, in {len(documents)} tasks")  # noqa: T201 - the same
    assert within(said["output_bytes"], took["output_bytes"], 0.25), (said, took)


def within(said: int, took: int, share: float) -> bool:
    return abs(said - took) <= share * took
