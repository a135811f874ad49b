"""Every kind of table over every catalog, what owners ask for, and a writer that never rests, by real processes.

One server with its store on PostgreSQL has all catalogs at once, and one optimizer does the work of all tests: each has
tables of its own. The short form, in CI, has every kind over one of the catalogs, and over each catalog some that are
merged and some that are staged; ``make acceptance`` has all over all.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Migration
from tests.acceptance import busy
from tests.acceptance.asked import MOVED, RULES, fill, planned
from tests.acceptance.house import (
    House,
    executors_of,
    house,
    live_files,
    missing_paths,
    rows_by_pyiceberg,
    rows_of,
    settled,
    tasks_in_table,
)
from tests.acceptance.kinds import KINDS, SHORT, Kind
from tests.contracts.lakes import empty
from tests.e2e.processes import wait_for
from tests.lakes.sqlite import append, make_lake, make_table, rows, table_name, with_tables, writer
from tests.servers.postgres import PASSWORD, USER, PostgresServer
from tests.servers.processes import HOST
from tests.servers.s3 import S3Server

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(3600)]

LONG = bool(os.environ.get("ICEWRIGHT_ACCEPTANCE"))
PLACED = dict.fromkeys(SHORT, KINDS) if LONG else SHORT
"""The kinds over each catalog."""


def test_the_short_form_has_each_kind_and_each_way_to_rewrite_over_each_catalog() -> None:
    triggers = {kind.name for kind in KINDS if kind.name.startswith("trigger_")}
    names = [kind.name for kinds in SHORT.values() for kind in kinds]
    assert sorted(names) == sorted({kind.name for kind in KINDS} - triggers)
    assert len(triggers) == 3
    for catalog, kinds in SHORT.items():
        assert {kind.executor for kind in kinds} >= {"merge", "staged"}
        assert catalog not in {kind.not_on for kind in kinds}


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Mapping[str, CatalogEntry]:
    """The catalogs of the kinds, and those of the other tests."""
    found = {catalog: entry_of(catalog, request, tmp_path_factory.mktemp(catalog)) for catalog in PLACED}
    return found | {name: make_lake(tmp_path_factory.mktemp(name), name) for name in (MOVED.catalog, busy.NAME.catalog)}


@pytest.fixture(scope="module")
def processes(
    tmp_path_factory: pytest.TempPathFactory, entries: Mapping[str, CatalogEntry], postgres: PostgresServer
) -> Iterator[House]:
    """A server and an optimizer that are about to be started: a Spark session costs more than its work."""
    database = postgres.new_database().rpartition("/")[2]
    store = {"store_url": f"postgresql://{USER}@{HOST}:{postgres.port}/{database}", "store_password": PASSWORD}
    with house(tmp_path_factory.mktemp("house"), [*entries.values()], **store) as found:
        yield found


def reached(spark: SparkSession, entry: CatalogEntry) -> None:
    """Have the tests' own session reach a catalog, with a namespace in it."""
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {entry.name}.db")


def started(processes: House) -> House:
    for command in ("serve", "optimizer"):
        if command not in processes.running:
            processes.start(command)
    return processes


def test_every_kind_over_every_catalog(
    spark: SparkSession, processes: House, entries: Mapping[str, CatalogEntry]
) -> None:
    """The first of this file with the processes: nobody looks at its tables before they are whole."""
    held = [(entries[catalog], kind) for catalog, kinds in PLACED.items() for kind in kinds if kind.not_on != catalog]
    assert processes.running == {}
    check(held, spark, processes)


def test_plans_are_made_by_the_trigger_that_is_asked_for_and_carried_out_as_applied(
    spark: SparkSession, processes: House, entries: Mapping[str, CatalogEntry]
) -> None:
    entry = entries[MOVED.catalog]
    reached(spark, entry)
    by_trigger = {trigger: TableName(entry.name, ("db",), trigger.replace("-", "_")) for trigger in RULES}
    for trigger, name in by_trigger.items():
        fill(entry, name, **{"icewright.trigger": trigger})
    fill(entry, MOVED)
    spark.sql(f"ALTER TABLE {MOVED} ADD PARTITION FIELD bucket(2, id)")
    names = [*by_trigger.values(), MOVED]
    before = {name: rows_by_pyiceberg(entry, name) for name in names}

    with started(processes).client() as client:
        for trigger, name in by_trigger.items():
            plan = planned(processes, client, name)
            assert [one["reason"]["code"] for one in plan["verdicts"]] == [RULES[trigger]], plan
            client.apply(plan["plan_id"])
        client.apply(planned(processes, client, MOVED, migrate=Migration.SPEC)["plan_id"])
        tasks = settled(processes, client, names)
    logs = processes.logs()

    for name in names:
        assert [task["state"] for task in tasks[str(name)]] == ["succeeded"], f"{tasks[str(name)]}\n{logs}"
        assert rows_by_pyiceberg(entry, name) == before[name]
        assert missing_paths(spark, name) == []
    assert [len(live_files(spark, str(name))) for name in by_trigger.values()] == [1] * len(RULES)
    specs = spark.sql(f"SELECT DISTINCT spec_id, partition.id_bucket_2 FROM {MOVED}.data_files").collect()  # noqa: S608 - a name of the tests
    assert sorted(tuple(row) for row in specs) == [(1, 0), (1, 1)]


def test_rewrites_and_a_writer_that_never_rests_do_not_get_in_each_others_way(
    spark: SparkSession, processes: House, entries: Mapping[str, CatalogEntry]
) -> None:
    """What rewrites cost a writer, and how much of their own work they lose (G19)."""
    entry = entries[busy.NAME.catalog]
    reached(spark, entry)
    busy.make(spark)
    at_work = busy.Writer(spark, random.Random(19))  # noqa: S311 - which rows are deleted
    with started(processes).client() as client:
        wait_for(lambda: client.status()["optimizers"] or None, "an optimizer is there", processes)
        live = at_work.run()
        documents = [client.task(task["task_id"]) for task in busy.settled(processes, client, busy.NAME)]
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
        assert wasted <= busy.WASTED_MAX * written
        assert at_work.outrun <= max(1, at_work.commits // 100)
    busy.check_rows(spark, entry, live)


def test_a_missing_path_of_any_kind_and_of_any_snapshot_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    entry = make_lake(tmp_path, "gaps")
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    table = make_table(entry, properties={"format-version": "2", "write.delete.mode": "merge-on-read"})
    append(table, range(10))
    spark.sql("DELETE FROM gaps.db.events WHERE id = 3")
    table.refresh().overwrite(rows([7]))  # so that the others are of older snapshots alone
    name = table_name(table)
    assert missing_paths(spark, name) == []
    paths = sorted(path for path in (tmp_path / "warehouse").rglob("*") if path.is_file() and path.suffix != ".crc")
    kinds = ("-deletes.parquet", ".parquet", "-m0.avro", "snap-", ".metadata.json")
    assert all(any(kind in path.name for path in paths) for kind in kinds)
    for path in paths:
        if table.metadata_location.endswith(path.name):
            continue  # without the current one there is no table
        away = path.rename(f"{path}.away")
        try:
            found = missing_paths(spark, name)
        except Py4JJavaError as error:  # what leads to others cannot be read
            found = [str(error.java_exception)]
        away.rename(path)
        assert any(path.name in each for each in found), path


def entry_of(catalog: str, request: pytest.FixtureRequest, folder: Path) -> CatalogEntry:
    """A catalog on a real server, without tables."""
    warehouse = str(folder / catalog)
    match catalog:
        case "sqlite":
            return make_lake(folder, catalog)
        case "postgresql":
            url = request.getfixturevalue("postgres").new_database()
            return with_tables(CatalogEntry(catalog, CatalogKind.SQL, url, warehouse))
        case "rest":
            server = request.getfixturevalue("rest_catalog")
            server.forget()
            return CatalogEntry(catalog, CatalogKind.REST, server.uri, "")
        case "hive":
            entry = CatalogEntry(catalog, CatalogKind.HIVE, request.getfixturevalue("metastore").uri, warehouse)
            empty(writer(entry))
            return entry
        case _:
            s3: S3Server = request.getfixturevalue("s3")
            where, uri = f"s3://{s3.new_bucket()}/warehouse", f"sqlite:///{folder}/s3.db"
            return with_tables(CatalogEntry(catalog, CatalogKind.SQL, uri, where, s3.file_io))


def check(held: list[tuple[CatalogEntry, Kind]], spark: SparkSession, processes: House) -> None:
    """Make a table of each kind in its catalog, let icewright work on them, and look behind its back."""
    tables = {TableName(entry.name, ("db",), kind.name): (entry, kind) for entry, kind in held}
    for entry in {entry.name: entry for entry, _ in held}.values():
        reached(spark, entry)
    for name, (_, kind) in tables.items():
        kind.make(spark, str(name))
    before = {name: rows_of(spark, str(name), lineage=kind.lineage) for name, (_, kind) in tables.items()}
    others = {
        name: rows_by_pyiceberg(entry, name) for name, (entry, kind) in tables.items() if "pyiceberg" in kind.read_by
    }
    with started(processes).client() as client:
        tasks = settled(processes, client, list(tables))
        executors = {task["task_id"]: executors_of(client, task) for each in tasks.values() for task in each}
    logs = processes.logs()
    for name, (entry, kind) in tables.items():
        said = f"{name}: {[(task['state'], task['outcome']) for task in tasks[str(name)]]}\n{logs}"
        assert {task["state"] for task in tasks[str(name)]} == {"succeeded"}, said
        assert {used for task in tasks[str(name)] for used in executors[task["task_id"]]} == {kind.executor}, said
        assert rows_of(spark, str(name), lineage=kind.lineage).rows == before[name].rows, said
        if name in others:
            assert rows_by_pyiceberg(entry, name) == others[name], said
        assert len(live_files(spark, str(name))) < before[name].files, said
        assert missing_paths(spark, name) == [], said
        assert set(tasks_in_table(spark, name)) == {task["task_id"] for task in tasks[str(name)]}, said
