"""``rewrite_data_files`` on real Spark and real Iceberg: better tables, the same rows, and every way to be refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.table.snapshots import Operation
from pyiceberg.types import StringType
from pyspark.sql import SparkSession

from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import PART_LENGTH_MAX
from icewright.model.iceberg.tables import PROOF_KEY, TASK_ID_KEY
from icewright.model.work.jobs import Committed, Conflicted, Failed, TaskSpec
from icewright.model.work.tasks import TaskState
from tests.lakes.sqlite import BY_CITY, SCHEMA, append, make_lake, make_table, rows, writer
from tests.readers.duck import duckdb_with_iceberg
from tests.spark.loop import SparkLoop
from tests.spark.tables import contents, missing_files, reachable_paths, sql_name

pytestmark = pytest.mark.spark

CITIES = ("Bonn", "Ulm", "a b/c='%")
COMMITS = 5
"""As few as make small files worth merging."""


@pytest.fixture
def loop(spark: SparkSession, lake: CatalogEntry) -> SparkLoop:
    return SparkLoop(spark, lake)


def fill(entry: CatalogEntry, *, properties: dict[str, str] | None = None) -> None:
    table = make_table(entry, spec=BY_CITY, properties=properties)
    for number in range(COMMITS):
        append(table, range(number * 10, number * 10 + 6), CITIES)


def live_files(entry: CatalogEntry, path: tuple[str, str] = ("db", "events")) -> list[str]:
    return sorted(writer(entry).load_table(path).inspect.data_files()["file_path"].to_pylist())


@pytest.mark.parametrize("version", ["1", "2"])
def test_v4_s4_w11_w12_small_files_become_one_per_partition_with_the_same_rows_for_every_reader(
    loop: SparkLoop, lake: CatalogEntry, spark: SparkSession, version: str
) -> None:
    fill(lake, properties={"format-version": version})
    name = loop.name("db", "events")
    before = contents(spark, name)

    task = loop.rewrite(name)

    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert len(live_files(lake)) == len(CITIES)
    assert contents(spark, name) == before
    table = writer(lake).load_table("db.events")
    assert table.metadata.format_version == int(version)
    expected = Counter((number * 10 + i, CITIES[i % len(CITIES)]) for number in range(COMMITS) for i in range(6))
    assert Counter((row["id"], row["city"]) for row in table.scan().to_arrow().to_pylist()) == expected
    location = table.metadata_location.removeprefix("file://")
    connection = duckdb_with_iceberg()
    found = connection.sql(f"SELECT id, city FROM iceberg_scan('{location}')").fetchall()  # noqa: S608 - a test
    assert Counter(found) == expected

    # The commit is signed, and every reachable path exists.
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary[TASK_ID_KEY] == task.task_id
    assert snapshot.summary.operation is Operation.REPLACE
    assert snapshot.summary[PROOF_KEY]
    assert sum(path.endswith(".parquet") for path in reachable_paths(spark, name)) > 2 * len(CITIES)
    assert missing_files(spark, name) == []


def test_an_append_that_comes_first_is_kept(loop: SparkLoop, lake: CatalogEntry, spark: SparkSession) -> None:
    fill(lake)
    name = loop.name("db", "events")
    before = contents(spark, name)
    more = f"INSERT INTO {sql_name(name)} VALUES (1000, 'Bonn'), (1001, 'Ulm')"  # noqa: S608 - a test

    def insert() -> None:
        spark.sql(more)

    loop.before_commit = insert

    task = loop.rewrite(name)

    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert contents(spark, name) == before + Counter(["Row(id=1000, city='Bonn')", "Row(id=1001, city='Ulm')"])


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_delete_that_comes_first_stands(loop: SparkLoop, lake: CatalogEntry, spark: SparkSession, mode: str) -> None:
    fill(lake, properties={"format-version": "2", "write.delete.mode": mode})
    name = loop.name("db", "events")
    spec = loop.claim(name)
    after_delete: list[Counter[str]] = []

    def delete() -> None:
        spark.sql(f"DELETE FROM {sql_name(name)} WHERE id = 13")  # noqa: S608 - a test
        after_delete.append(contents(spark, name))

    loop.before_commit = delete
    report = loop.attempt(spec)

    assert isinstance(report.result, Committed), report.result
    assert [left.code for left in report.left] == ["conflict"]
    assert loop.verified(report).state is TaskState.SUCCEEDED
    assert contents(spark, name) == after_delete[0]
    assert sum(after_delete[0].values()) == COMMITS * 6 - 1


def test_w11_a_rewrite_that_comes_first_is_not_repeated(
    loop: SparkLoop, lake: CatalogEntry, spark: SparkSession
) -> None:
    fill(lake)
    name = loop.name("db", "events")
    before = contents(spark, name)
    spec = loop.claim(name)
    first = loop.attempt(spec)
    assert isinstance(first.result, Committed)

    second = loop.attempt(replace(spec, attempt=2))

    assert isinstance(second.result, Conflicted), second.result
    assert contents(spark, name) == before
    snapshots = writer(lake).load_table("db.events").metadata.snapshots
    assert [s.summary[TASK_ID_KEY] for s in snapshots if s.summary and s.summary[TASK_ID_KEY]] == [spec.task_id]


def test_deletes_at_the_planned_snapshot_are_refused_by_the_job_itself(
    loop: SparkLoop, lake: CatalogEntry, spark: SparkSession
) -> None:
    """The planner would have known of them; the job does not rely on it."""
    fill(lake, properties={"format-version": "2", "write.delete.mode": "merge-on-read"})
    name = loop.name("db", "events")
    spec = loop.claim(name)
    spark.sql(f"DELETE FROM {sql_name(name)} WHERE id = 13")  # noqa: S608 - a test
    before = contents(spark, name)
    current = writer(lake).load_table("db.events").current_snapshot()
    assert current is not None

    report = loop.attempt(replace(spec, action=replace(spec.rewrite, base_snapshot_id=current.snapshot_id)))

    assert isinstance(report.result, Conflicted), report.result
    assert "was planned with the delete files (none)" in report.result.detail
    assert contents(spark, name) == before


def _dropped_and_created_again(loop: SparkLoop, spec: TaskSpec) -> TaskSpec:
    catalog = writer(loop.entry)
    catalog.drop_table("db.events")
    fill(loop.entry)
    return spec


def _schema_changed(loop: SparkLoop, spec: TaskSpec) -> TaskSpec:
    with writer(loop.entry).load_table("db.events").update_schema() as update:
        update.add_column("later", StringType())
    return spec


def _another_base(_loop: SparkLoop, spec: TaskSpec) -> TaskSpec:
    return replace(spec, action=replace(spec.rewrite, base_snapshot_id=12345))


@pytest.mark.parametrize("change", [_dropped_and_created_again, _schema_changed, _another_base])
def test_a_table_that_is_not_the_planned_one_is_left_alone(
    loop: SparkLoop, lake: CatalogEntry, spark: SparkSession, change: Callable[[SparkLoop, TaskSpec], TaskSpec]
) -> None:
    fill(lake)
    name = loop.name("db", "events")
    spec = change(loop, loop.claim(name))
    before, snapshots = contents(spark, name), len(writer(lake).load_table("db.events").metadata.snapshots)

    report = loop.attempt(spec)

    assert isinstance(report.result, Conflicted), report.result
    assert contents(spark, name) == before
    assert len(writer(lake).load_table("db.events").metadata.snapshots) == snapshots


def test_a_group_with_an_input_that_is_not_what_was_planned_is_left(loop: SparkLoop, lake: CatalogEntry) -> None:
    fill(lake)
    name = loop.name("db", "events")
    spec = loop.claim(name)
    before = live_files(lake)
    group = spec.rewrite.groups[0]
    lying = replace(group, files=(replace(group.files[0], record_count=99), *group.files[1:]))

    report = loop.attempt(replace(spec, action=replace(spec.rewrite, groups=(lying, *spec.rewrite.groups[1:]))))

    assert isinstance(report.result, Committed), report.result
    assert [(left.group_id, left.code, left.retryable) for left in report.left] == [(0, "file-changed", False)]
    assert {file.path for file in group.files} <= set(before) & set(live_files(lake))


def test_a_lost_lease_commits_nothing(loop: SparkLoop, lake: CatalogEntry) -> None:
    fill(lake)
    name = loop.name("db", "events")
    spec = loop.claim(name)
    before = live_files(lake)

    def lose() -> None:
        loop.clock.ahead_ms += 10 * spec.lease_ms

    loop.before_commit = lose
    report = loop.attempt(spec)

    assert isinstance(report.result, Failed), report.result
    assert report.result.code == "lease-lost"
    assert live_files(lake) == before


def test_a_cancelled_task_commits_nothing(loop: SparkLoop, lake: CatalogEntry) -> None:
    fill(lake)
    spec = loop.claim(loop.name("db", "events"))
    before = live_files(lake)

    def cancel() -> None:
        loop.control.dispatcher.cancel(spec.task_id)

    loop.before_commit = cancel

    report = loop.attempt(spec)

    assert report.result.kind == "cancelled"
    assert loop.control.dispatcher.report(report).state is TaskState.CANCELLED
    assert live_files(lake) == before


ORDINARY_NAMES = ("1e5", "städte")
LONG_NAME = "n" * PART_LENGTH_MAX
HOSTILE_NAMES = ("with`tick", "with'quote", "with\nnewline", "ice🧊berg", "a.dot", "--drop", "with/*comment", LONG_NAME)


@pytest.mark.parametrize("table", [*ORDINARY_NAMES, *HOSTILE_NAMES], ids=lambda name: name[:20])
def test_hostile_names(loop: SparkLoop, lake: CatalogEntry, spark: SparkSession, table: str) -> None:
    make_table(lake)
    # Hadoop's own paths cannot hold a line break, so the table gets a plain location, as a careful owner's would.
    catalog = writer(lake)
    made = catalog.create_table(("db", table), SCHEMA, location=f"{lake.warehouse_uri}/hostile")
    for number in range(6):
        made.append(rows([number]))
    name = loop.name("db", table)
    before = contents(spark, name)

    task = loop.rewrite(name)

    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert contents(spark, name) == before
    assert len(live_files(lake, ("db", table))) == 1


def test_a_catalog_with_a_hyphen(spark: SparkSession, tmp_path: Path) -> None:
    entry = make_lake(tmp_path, "my-lake")
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    fill(entry)
    loop = SparkLoop(spark, entry)

    task = loop.rewrite(loop.name("db", "events"))

    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert len(live_files(entry)) == len(CITIES)


PARTITIONED_BY = [("city", None), ("city, truncate(10, id)", "DROP COLUMN city"), ("truncate(10, id), city", None)]


@pytest.mark.parametrize(("fields", "afterwards"), PARTITIONED_BY)
def test_a_v1_table_whose_partition_field_was_removed(
    loop: SparkLoop, lake: CatalogEntry, spark: SparkSession, fields: str, afterwards: str | None
) -> None:
    """In format version 1 the field stays in the spec, as ``void``, also when its column is dropped."""
    make_table(lake)  # for its namespace
    name = loop.name("db", "old")
    table = sql_name(name)
    made = f"CREATE TABLE {table} (id bigint, city string) USING iceberg PARTITIONED BY ({fields})"
    spark.sql(f"{made} TBLPROPERTIES ('format-version' = '1', 'write.distribution-mode' = 'none')")
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD city")
    spark.sql(f"INSERT INTO {table} SELECT 1, 'Bonn' FROM range(0, 6, 1, 6)")  # noqa: S608 - a test
    if afterwards is not None:
        spark.sql(f"ALTER TABLE {table} {afterwards}")
    before = contents(spark, name)

    task = loop.rewrite(name)

    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert contents(spark, name) == before
    # Iceberg's own table of files fails for such a spec, so the commit's summary is asked.
    summaries = spark.sql(f"SELECT summary FROM {table}.snapshots ORDER BY committed_at").collect()  # noqa: S608 - a test
    assert summaries[-1][0]["total-data-files"] == "1"


@pytest.mark.parametrize("values", ["[5]", '["Bonn","Ulm"]'])
def test_a_partition_that_iceberg_does_not_take_is_no_matter_for_another_try(
    loop: SparkLoop, lake: CatalogEntry, values: str
) -> None:
    """The planner refuses those that are known; the job does not rely on it."""
    fill(lake)
    spec = loop.claim(loop.name("db", "events"))
    before = live_files(lake)
    group = spec.rewrite.groups[0]
    odd = replace(group, partition=replace(group.partition, values=values))

    report = loop.attempt(replace(spec, action=replace(spec.rewrite, groups=(odd, *spec.rewrite.groups[1:]))))

    assert isinstance(report.result, Failed), report.result
    assert (report.result.code, report.result.retryable) == ("unsupported", False), report.result
    assert live_files(lake) == before
