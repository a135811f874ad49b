"""Every kind of table, over every catalog, by real processes: files and deletes folded away, every row kept.

One server with its store on PostgreSQL has all catalogs at once. The short form, in CI, has every kind over one of the
catalogs, and over each catalog some that are merged and some that are staged; ``make acceptance`` has all over all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from tests.acceptance.house import (
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
from tests.lakes.sqlite import append, make_lake, make_table, rows, table_name, with_tables, writer
from tests.servers.postgres import PASSWORD, USER, PostgresServer
from tests.servers.processes import HOST
from tests.servers.s3 import S3Server

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(1800)]

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


def test_every_kind_over_every_catalog(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    postgres: PostgresServer = request.getfixturevalue("postgres")
    held: list[tuple[CatalogEntry, Kind]] = []
    for catalog, kinds in PLACED.items():
        entry = entry_of(catalog, request, tmp_path)
        held += [(entry, kind) for kind in kinds if kind.not_on != catalog]
    database = postgres.new_database().rpartition("/")[2]
    store = {"store_url": f"postgresql://{USER}@{HOST}:{postgres.port}/{database}", "store_password": PASSWORD}
    check(held, spark, tmp_path, store)


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


def check(held: list[tuple[CatalogEntry, Kind]], spark: SparkSession, folder: Path, store: Mapping[str, str]) -> None:
    """Make a table of each kind in its catalog, let icewright work on them, and look behind its back."""
    tables = {TableName(entry.name, ("db",), kind.name): (entry, kind) for entry, kind in held}
    entries = [*{entry.name: entry for entry, _ in held}.values()]
    for entry in entries:
        for key, value in entry.spark_properties().items():
            spark.conf.set(key, value)
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {entry.name}.db")
    for name, (_, kind) in tables.items():
        kind.make(spark, str(name))
    before = {name: rows_of(spark, str(name), lineage=kind.lineage) for name, (_, kind) in tables.items()}
    others = {
        name: rows_by_pyiceberg(entry, name) for name, (entry, kind) in tables.items() if "pyiceberg" in kind.read_by
    }
    with house(folder, entries, **store) as processes:
        processes.start("serve")
        processes.start("optimizer")
        with processes.client() as client:
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
