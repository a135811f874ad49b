"""The whole loop on an object store: a worker proves that it gets in, then all is as on a disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import FileSelector
from pyspark.sql import SparkSession

from icewright.maintenance.explain import plan_view
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.plans.observation import WorkerAccess
from icewright.model.work.jobs import Failed
from icewright.model.work.tasks import TaskState
from icewright_spark.actions import rewrite_data_files as job
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.table_io import worker_storage
from icewright_spark.optimizer.probe import PROBE_NAME
from icewright_spark.parquet.errors import UnsupportedLocation
from icewright_spark.parquet.file_systems import honoured
from icewright_spark.parquet.storage import Storage
from icewright_spark.session.session import java_gateway
from tests.lakes.sqlite import BY_CITY, append, make_table, with_tables, writer
from tests.servers.processes import HOST
from tests.servers.refusing import refusing_server
from tests.servers.relay import Relay
from tests.servers.s3 import SECRET_KEY, S3Server
from tests.spark.loop import SparkLoop
from tests.spark.tables import contents, reachable_paths

pytestmark = pytest.mark.spark

CITIES = ("Bonn", "Ulm")
COMMITS = 5
"""As few as make small files worth merging."""
ROWS = COMMITS * 6


@pytest.fixture
def make_loop(s3: S3Server, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """Loops over fresh lakes on the object store; properties of a catalog may differ from one to the other."""

    def made(**properties: str) -> SparkLoop:
        name = f"s3lake{abs(hash((request.node.nodeid, tuple(properties.items()))))}"
        entry = CatalogEntry(
            name,
            CatalogKind.SQL,
            f"sqlite:///{tmp_path}/{name}.db",
            f"s3://{s3.new_bucket()}/wh",
            {**s3.file_io, **properties},
        )
        with_tables(entry)
        for key, value in entry.spark_properties().items():
            spark.conf.set(key, value)
        return SparkLoop(spark, entry)

    return made


@pytest.fixture(scope="session")
def later(s3: S3Server, spark: SparkSession) -> Iterator[Callable[[Callable[[], None]], None]]:
    """Begins a check that takes long and no CPU; it is waited for, and fails, behind the last test of this process.

    Both servers are there until then.
    """
    del s3, spark  # asked for so that they outlive it
    with ThreadPoolExecutor() as pool:
        begun: list[Future[None]] = []
        yield lambda check: begun.append(pool.submit(check))
        for future in begun:
            future.result()


def fill(entry: CatalogEntry, **properties: str) -> None:
    table = make_table(entry, spec=BY_CITY, properties=properties)
    for number in range(COMMITS):
        append(table, range(number * 10, number * 10 + 6), CITIES)


def arrow_rows(entry: CatalogEntry) -> Counter[str]:
    """The same as PyIceberg reads them."""
    found = writer(entry).load_table("db.events").scan().to_arrow().to_pylist()
    return Counter(f"Row(id={row['id']}, city={row['city']!r})" for row in found)


def missing_objects(s3: S3Server, spark: SparkSession, name: TableName) -> list[str]:
    """Reachable paths that are not there."""
    infos = s3.files().get_file_info([path.removeprefix("s3://") for path in reachable_paths(spark, name)])
    return [info.path for info in infos if not info.is_file]


def objects(s3: S3Server, entry: CatalogEntry) -> list[str]:
    bucket = entry.warehouse.removeprefix("s3://").partition("/")[0]
    return [info.path for info in s3.files().get_file_info(FileSelector(bucket, recursive=True)) if info.is_file]


def test_a_store_that_goes_away_loses_nothing(
    make_loop: Any, s3: S3Server, spark: SparkSession, later: Callable[[Callable[[], None]], None]
) -> None:
    """Right before the commit: nothing of it is sent, and the work is queued again.

    An attempt that begins meanwhile waits for one and a half minutes: Iceberg tries to read a table's metadata 21
    times, up to 5 s apart, and no setting tells it otherwise (``BaseMetastoreTableOperations``). So that one is waited
    for while the other tests run.
    """
    quick = {"s3.retry.num-retries": "1", "s3.retry.min-wait-ms": "10", "s3.retry.max-wait-ms": "20"}
    loop: SparkLoop = make_loop(**quick)
    relay = Relay(s3.port)
    spark.conf.set(f"spark.sql.catalog.{loop.entry.name}.s3.endpoint", f"http://{HOST}:{relay.port}")
    fill(loop.entry)
    name = loop.name("db", "events")
    before = arrow_rows(loop.entry)
    loop.control.maintainer.look(name)
    loop.probe()
    spec = loop.claim(name)
    loop.before_commit = relay.cut

    report = loop.attempt(spec)
    loop.control.dispatcher.report(report)
    loop.clock.ahead_ms += 120_000  # a commit that was under way may still arrive
    loop.control.loop.round()

    assert isinstance(report.result, Failed), report.result  # the manifest list was not written, so nothing was sent
    assert report.result.retryable
    assert TaskState.QUEUED in {task.state for task in loop.tasks()}
    assert arrow_rows(loop.entry) == before
    files = writer(loop.entry).load_table("db.events").inspect.all_files()["file_path"].to_pylist()
    assert all(info.is_file for info in s3.files().get_file_info([path.removeprefix("s3://") for path in files]))

    def begins_while_it_is_away() -> None:
        again = loop.attempt(replace(spec, attempt=2))
        assert isinstance(again.result, Failed), again.result
        assert again.result.retryable

    later(begins_while_it_is_away)


def test_from_commit_to_verified(make_loop: Any, s3: S3Server, spark: SparkSession) -> None:
    loop: SparkLoop = make_loop()
    fill(loop.entry)
    name = loop.name("db", "events")
    before = contents(spark, name)
    assert sum(before.values()) == ROWS

    plan = loop.control.maintainer.look(name).plan
    assert plan.is_empty
    assert "worker-access" in {verdict.reason.code for verdict in plan.verdicts} | {plan.reason.code}
    (report,) = loop.probe()
    assert (report.access, report.detail) == (WorkerAccess.PROVED, "")

    spec = loop.claim(name)
    assert {group.executor for group in spec.rewrite.groups} == {Executor.MERGE}
    task = loop.verified(loop.attempt(spec))
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert contents(spark, name) == before
    table = writer(loop.entry).load_table("db.events")
    assert len(table.inspect.data_files()) == len(CITIES)
    assert arrow_rows(loop.entry) == before
    assert missing_objects(s3, spark, name) == []
    probes = [path for path in objects(s3, loop.entry) if PROBE_NAME in path]
    assert len(probes) == 1
    assert loop.probe() == [], "what is known is not asked again"
    assert SECRET_KEY not in repr((spec, task, report, plan))


def test_probes_do_not_pile_up(make_loop: Any, s3: S3Server) -> None:
    loop: SparkLoop = make_loop()
    fill(loop.entry)
    loop.control.maintainer.look(loop.name("db", "events"))
    for _ in range(2):
        (report,) = loop.probe()
        assert report.access is WorkerAccess.PROVED
        loop.clock.ahead_ms += 48 * 3_600_000
        loop.control.maintainer.look(loop.name("db", "events"))
    assert len([path for path in objects(s3, loop.entry) if PROBE_NAME in path]) == 1


def test_what_arrow_cannot_honour_is_left_to_spark(make_loop: Any, s3: S3Server, spark: SparkSession) -> None:
    """Objects are to be tagged: Java does it, Arrow would not."""
    loop: SparkLoop = make_loop(**{"s3.write.tags.team": "lakehouse"})
    fill(loop.entry)
    name = loop.name("db", "events")
    before = contents(spark, name)
    loop.control.maintainer.look(name)
    (report,) = loop.probe()
    assert report.access is WorkerAccess.REFUSED
    assert "s3.write.tags.team" in report.detail

    plan = loop.control.maintainer.look(name).plan

    assert {group.executor for action in plan.rewrites for group in action.groups} == {Executor.STAGED}
    assert any("s3.write.tags.team" in line for line in plan_view(plan).explanation)
    with pytest.raises(UnsupportedLocation):
        worker_storage(spark, SparkTable(spark, name).java.io(), f"{loop.entry.warehouse}/db/events/data")

    task = loop.rewrite(name)

    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert contents(spark, name) == arrow_rows(loop.entry) == before
    assert missing_objects(s3, spark, name) == []
    assert len(writer(loop.entry).load_table("db.events").inspect.data_files()) == len(CITIES)


def test_workers_that_are_not_let_in_any_more_take_the_proof_back(
    make_loop: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop: SparkLoop = make_loop()
    fill(loop.entry)
    name = loop.name("db", "events")
    before = contents(spark, name)
    loop.control.maintainer.look(name)
    loop.probe()
    spec = loop.claim(name)

    with shut_door(monkeypatch):
        report = loop.attempt(spec)
    task = loop.control.dispatcher.report(report)

    assert isinstance(report.result, Failed), report.result
    assert (report.result.code, report.result.retryable) == ("storage-refused", True)
    assert SECRET_KEY not in report.result.detail
    assert task.state is TaskState.SUPERSEDED
    plan = loop.control.maintainer.look(name).plan
    assert {group.executor for action in plan.rewrites for group in action.groups} == {Executor.STAGED}
    assert contents(spark, name) == before


def test_workers_that_are_not_let_in_are_found_out_by_a_probe(make_loop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loop: SparkLoop = make_loop()
    fill(loop.entry)
    loop.control.maintainer.look(loop.name("db", "events"))
    with shut_door(monkeypatch):
        (report,) = loop.probe()
    assert report.access is WorkerAccess.REFUSED
    assert "ACCESS_DENIED" in report.detail
    assert SECRET_KEY not in report.detail


def test_java_must_see_what_the_workers_wrote(make_loop: Any, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that write to another store than Spark reads from would lose whatever they write."""
    loop: SparkLoop = make_loop()
    fill(loop.entry)
    other = s3.new_bucket()

    def elsewhere(one: Any) -> None:
        one.storage.put(f"s3://{other}/{PROBE_NAME}", one.content)

    loop.control.maintainer.look(loop.name("db", "events"))
    monkeypatch.setattr("icewright_spark.optimizer.probe.try_out", elsewhere)
    (report,) = loop.probe()
    assert report.access is WorkerAccess.REFUSED
    assert "Spark does not find" in report.detail


def test_credentials_that_a_catalog_vends_go_by_the_longest_prefix(make_loop: Any, spark: SparkSession) -> None:
    loop: SparkLoop = make_loop()
    jvm = java_gateway(spark)
    wide = {"s3.endpoint": "http://x", "s3.access-key-id": "wide", "s3.secret-access-key": "w"}
    io = jvm.org.apache.iceberg.aws.s3.S3FileIO()
    io.initialize(java_map(spark, {**wide, "rest.token": "t"}))
    vended = {"s3://b/": "bucket", "s3://b/wh/t": "table", "s3://b/wh/t2": "other"}
    credentials = jvm.java.util.ArrayList()
    for prefix, key in vended.items():
        config = {"s3.access-key-id": key, "s3.secret-access-key": "s", "s3.session-token": key}
        credentials.add(jvm.org.apache.iceberg.io.StorageCredential.create(prefix, java_map(spark, config)))
    io.setCredentials(credentials)

    found = {place: worker_storage(spark, io, place).io_properties for place in ("s3://b/wh/t/data", "s3://c/wh/t")}

    assert found["s3://b/wh/t/data"] == {
        "s3.endpoint": "http://x",
        "s3.access-key-id": "table",
        "s3.secret-access-key": "s",
        "s3.session-token": "table",
    }
    assert found["s3://c/wh/t"] == wide
    assert loop.entry.name


def java_map(spark: SparkSession, values: dict[str, str]) -> Any:
    made = java_gateway(spark).java.util.HashMap()
    for key, value in values.items():
        made.put(key, value)
    return made


@contextmanager
def shut_door(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers are sent to a store that lets nobody in; Spark itself is not."""
    with refusing_server() as address, monkeypatch.context() as patch:
        shut = {
            "s3.endpoint": address,
            "s3.access-key-id": "wrong",
            "s3.secret-access-key": SECRET_KEY,
            "s3.path-style-access": "true",
            "client.region": "us-east-1",
        }

        def shut_out(_spark: SparkSession, _io: Any, location: str) -> Storage:
            return Storage(honoured(shut, location))

        patch.setattr(job, "worker_storage", shut_out)
        patch.setattr("icewright_spark.optimizer.probe.worker_storage", shut_out)
        yield
