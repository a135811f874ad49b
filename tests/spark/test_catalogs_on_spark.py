"""One entry, two clients: a table of each kind of catalog is planned through PyIceberg and rewritten through Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hive_metastore.ttypes import UnlockRequest
from pyiceberg.catalog.hive import HiveCatalog
from pyspark.sql import SparkSession

from icewright.catalogs.pointers import hive_commits
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.properties import PyIcebergProperties
from icewright.core.errors import Conflict
from icewright.core.system_clock import SystemClock
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.work.jobs import Committed, CommitUnknown, Conflicted, Failed
from icewright.model.work.tasks import TaskState
from icewright.policy.settings import LAYOUT_KEY
from icewright_spark.iceberg.commits import commit
from icewright_spark.iceberg.java_api import SparkTable
from tests.contracts.lakes import empty
from tests.lakes.sqlite import append, make_lake, make_table, with_tables, writer
from tests.servers.hive import HiveMetastore
from tests.spark.loop import SparkLoop
from tests.spark.tables import contents

pytestmark = pytest.mark.spark

KINDS = ("postgresql", "rest", "hive")
PATH = ("db", "events")
APPENDS, ROWS_EACH = 6, 5


def entry_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> CatalogEntry:
    warehouse = str(folder / "warehouse")
    match kind:
        case "postgresql":
            url = request.getfixturevalue("postgres").new_database()
            return with_tables(CatalogEntry("on_postgresql", CatalogKind.SQL, url, warehouse))
        case "rest":
            server = request.getfixturevalue("rest_catalog")
            server.forget()
            return CatalogEntry("on_rest", CatalogKind.REST, server.uri, "")
        case _:
            entry = CatalogEntry("on_hive", CatalogKind.HIVE, request.getfixturevalue("metastore").uri, warehouse)
            empty(writer(entry))
            return entry


def tell(spark: SparkSession, entry: CatalogEntry) -> None:
    """Let the session know the catalog as an optimizer's does."""
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)


def fill(entry: CatalogEntry, **properties: str) -> None:
    table = make_table(entry, PATH, properties=properties)
    for number in range(APPENDS):
        append(table, range(number * 10, number * 10 + ROWS_EACH))


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_rewritten_from_commit_to_verified(
    spark: SparkSession, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    entry = entry_of(kind, request, tmp_path)
    tell(spark, entry)
    fill(entry)
    loop = SparkLoop(spark, entry)
    name = loop.name(*PATH)
    # What an owner said by the command line is what Spark finds, and goes on from.
    PyIcebergProperties(entry, SystemClock()).change(loop.catalog.load(name), {LAYOUT_KEY: "none"})
    seen, seen_by_spark = loop.catalog.load(name), SparkTable(spark, name)
    assert (seen_by_spark.uuid, seen_by_spark.metadata_location) == (seen.table_id.uuid, seen.metadata_location)
    before = contents(spark, name)
    task = loop.rewrite(name)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert contents(spark, name) == before
    assert len(before) == APPENDS * ROWS_EACH
    table = writer(entry).load_table(PATH)
    assert len(table.inspect.files()) == 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [
        number * 10 + row for number in range(APPENDS) for row in range(ROWS_EACH)
    ]
    assert loop.catalog.load(name).metadata_location == table.metadata_location
    assert table.properties[LAYOUT_KEY] == "none"


def test_l2_a_lock_of_the_metastore_is_waited_for_and_never_passed_by(
    spark: SparkSession, metastore: HiveMetastore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a client leaves behind that died during its commit."""
    monkeypatch.setattr(commit, "TRIES_MAX", 1)
    patience = {"hadoop.iceberg.hive.lock-timeout-ms": "1000", "hadoop.iceberg.hive.lock-check-max-wait-ms": "200"}
    entry = CatalogEntry("on_locked_hive", CatalogKind.HIVE, metastore.uri, str(tmp_path / "warehouse"), patience)
    catalog = writer(entry)
    assert isinstance(catalog, HiveCatalog)
    empty(catalog)
    tell(spark, entry)
    fill(entry, **{"commit.retry.num-retries": "0"})
    loop = SparkLoop(spark, entry)
    spec = loop.claim(loop.name(*PATH))
    before = loop.catalog.load(spec.table_name)
    with catalog._client as client:
        held = client.lock(catalog._create_lock_request(*PATH))
        report = loop.attempt(spec)
        assert isinstance(report.result, Conflicted | CommitUnknown), report.result
        monkeypatch.setattr(hive_commits, "_LOCK_TIMEOUT_S", 0.1)
        with pytest.raises(Conflict, match="gives out no lock"):
            PyIcebergProperties(entry, SystemClock()).change(before, {LAYOUT_KEY: "sort(id)"})
        assert loop.catalog.load(spec.table_name) == before
        client.unlock(UnlockRequest(lockid=held.lockid))
    assert isinstance(loop.attempt(replace(spec, attempt=2)).result, Committed)


def test_a_table_without_a_uuid_is_not_written_to(spark: SparkSession, lake: CatalogEntry) -> None:
    fill(lake, **{"format-version": "1"})
    loop = SparkLoop(spark, lake)
    spec = loop.claim(loop.name(*PATH))
    path = Path(loop.catalog.load(spec.table_name).metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    del metadata["table-uuid"]
    path.write_text(json.dumps(metadata))
    before = loop.catalog.load(spec.table_name)
    assert not before.has_uuid
    report = loop.attempt(replace(spec, table_id=before.table_id))
    assert isinstance(report.result, Conflicted | Failed), report.result
    assert loop.catalog.load(spec.table_name) == before


@pytest.fixture
def misled(spark: SparkSession, tmp_path: Path) -> Callable[[bool], SparkLoop]:
    """A loop whose optimizer was given another database under the catalog's name."""

    def made(same_table: bool) -> SparkLoop:  # noqa: FBT001 - a case
        name = f"misled{same_table}".lower()
        entry = make_lake(tmp_path, name)
        other = replace(entry, uri=f"sqlite:///{tmp_path}/{name}-other.db")
        with_tables(other)
        fill(entry)
        if same_table:
            writer(other).create_namespace("db")
            writer(other).register_table(PATH, writer(entry).load_table(PATH).metadata_location)
            append(writer(entry).load_table(PATH), [1000])
        else:
            fill(other)
        tell(spark, other)
        return SparkLoop(spark, entry)

    return made


def test_w12_an_optimizer_that_sees_the_table_elsewhere_refuses_it(
    spark: SparkSession, misled: Callable[[bool], SparkLoop]
) -> None:
    loop = misled(True)
    spec = loop.claim(loop.name(*PATH))
    before = loop.catalog.load(spec.table_name)
    report = loop.attempt(spec)
    assert isinstance(report.result, Conflicted)
    assert "the two catalog configurations do not lead to the same table" in report.result.detail
    assert before.metadata_location not in report.result.detail
    assert loop.catalog.load(spec.table_name) == before
    assert SparkTable(spark, spec.table_name).uuid == before.table_id.uuid


def test_an_optimizer_that_sees_another_table_of_that_name_refuses_it(
    spark: SparkSession, misled: Callable[[bool], SparkLoop]
) -> None:
    loop = misled(False)
    spec = loop.claim(loop.name(*PATH))
    report = loop.attempt(spec)
    assert isinstance(report.result, Conflicted)
    assert "is another table now" in report.result.detail
    other = SparkTable(spark, spec.table_name)
    assert other.uuid in report.result.detail
    assert other.uuid != PyIcebergCatalog(loop.entry).load(spec.table_name).table_id.uuid
