"""The service of a company: servers, optimizers and their database are killed, and every commit is followed by order.

The long form (``make acceptance``), once with ZooKeeper and once with the store as coordinator: three servers over one
PostgreSQL, behind a balancer; two optimizers on a Spark standalone cluster; 2,000 small tables with a writer that
commits to them for ten minutes, while one of all these is killed or paused every few seconds; besides, replies are lost
and workers run out of memory. The short form, in CI: two servers, one optimizer in local mode, a dozen tables, each
kind killed once, the leading server first, and one server paused for longer than makes it dead. And ``make campaign``,
B10: 10,000 tables, each of which has a task, and half an hour of all that. One of a thousand tasks may fail, or one.

What is asserted is read behind icewright's back (:mod:`tests.acceptance.town`): no table ever had two tasks at work, by
samples and by all attempts that there were; each table has exactly the rows that were
committed, in a file or two, and every path that is reachable is there; nothing runs any more that was started; the
chain of the audit verifies. And a stranger without a token gets nothing.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from benchmarks import b10
from benchmarks.results import save
from icewright.core.servers import STORE, ZOOKEEPER
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from tests.acceptance.town import (
    DEAD_S,
    TOKEN,
    Caps,
    Killer,
    Sampler,
    Town,
    Writer,
    check,
    ended,
    looked_at,
    overlapping,
    shared,
    town,
    unfinished,
    until,
)
from tests.lakes.sqlite import with_tables, writer
from tests.servers.postgres import MortalPostgres, PostgresServer, find_programs, mortal_postgres
from tests.servers.processes import HOST
from tests.servers.spark_cluster import spark_cluster
from tests.servers.zookeeper import zookeeper_server

CAMPAIGN = bool(os.environ.get("ICEWRIGHT_CAMPAIGN"))
LONG = CAMPAIGN or bool(os.environ.get("ICEWRIGHT_ACCEPTANCE"))
SERVERS, OPTIMIZERS, TABLES = (3, 2, 10_000 if CAMPAIGN else 2_000) if LONG else (2, 1, 12)
CHAOS_S, COMMIT_EVERY_S, CALM_S = (1800.0 if CAMPAIGN else 600.0, 0.25, 7200.0) if LONG else (20.0, 0.4, 400.0)
COORDINATORS = (ZOOKEEPER, STORE) if LONG and not CAMPAIGN else (STORE,)
FILES_MAX = 2
"""One, and one more: a file that holds most of the bytes is not written again for a single small one beside it."""
CAPS = Caps(tasks=24, cores=8) if LONG else Caps(tasks=8, cores=4)
"""Twice the cores that optimizers have: what those held that were killed counts until they have surely ended."""
LOSES, SHORT_OF_MEMORY = (0.005, 0.005) if LONG else (0.02, 0.02)
"""The share of replies that are lost, and of files for which a worker has no memory."""

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(14_400 if LONG else 900)]


@pytest.fixture
def database() -> Iterator[MortalPostgres]:
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (on Debian and Ubuntu: apt-get install postgresql)")
    with mortal_postgres(programs) as found:
        yield found


@pytest.fixture
def entry(tmp_path: Path, postgres: PostgresServer) -> Iterator[CatalogEntry]:
    """A catalog whose database is nobody's to kill: what is to be shown is icewright's."""
    url = postgres.new_database()
    yield with_tables(CatalogEntry("town", CatalogKind.SQL, url, str(tmp_path / "warehouse")))
    postgres.drop(url)


@pytest.mark.parametrize("coordinator", COORDINATORS)
def test_every_commit_is_followed_by_order_whatever_is_killed(
    tmp_path: Path, entry: CatalogEntry, database: MortalPostgres, coordinator: str
) -> None:
    names = [TableName("town", (f"db{number % 10}",), f"t{number}") for number in range(TABLES)]
    at_work = Writer(entry, names, random.Random(7))  # noqa: S311 - which table is next
    at_work.create()
    with ExitStack() as stack:
        environ = {"ICEWRIGHT_OPTIMIZER__MASTER": "local[2]"}
        if LONG:
            cluster = stack.enter_context(spark_cluster(_made(tmp_path / "cluster"), cores=4, memory="4g"))
            environ = {
                "ICEWRIGHT_OPTIMIZER__MASTER": cluster.master,
                "ICEWRIGHT_OPTIMIZER__SPARK_CONF": '{"spark.driver.host": "127.0.0.1", "spark.executor.cores": "1", '
                '"spark.executor.memory": "768m", "spark.cores.max": "2"}',
            }
        zookeeper = stack.enter_context(zookeeper_server(_made(tmp_path / "zk"))) if coordinator == ZOOKEEPER else None
        found = stack.enter_context(
            town(
                tmp_path / "town",
                entry,
                database,
                servers=SERVERS,
                optimizers=OPTIMIZERS,
                environ=environ,
                caps=CAPS,
                loses=LOSES,
                short_of_memory=SHORT_OF_MEMORY,
                zookeeper=zookeeper,
            )
        )
        sampler = stack.enter_context(Sampler(found, CAPS))
        killer = _chaos(found, at_work)
        calm_s = time.monotonic()
        until(lambda: _in_order(found, at_work), "every commit is followed by order", found, CALM_S)
        calm_s = time.monotonic() - calm_s
        until(lambda: shared(found), "each server has its share", found, CALM_S)
        found.balancer.loses = 0.0
        states = ended(found.store_url)
        assert overlapping(found.store_url) == []
        _check_audit(found)
        _check_stranger(found)
    catalog = writer(entry)
    checked = [check(catalog.load_table(name.path), at_work.committed[name]) for name in names]
    print(  # noqa: T201 - figures for whoever runs it
        f"{at_work.commits} commits, {at_work.told} of which were told; killed {killer.kills}, paused {killer.pauses}, "
        f"{found.balancer.lost} replies lost; all in order {calm_s:.0f} s after the last kill; tasks: {states}, "
        f"{sum(len(one.tasks) for one in checked)} of which committed; {sampler.samples} samples, in "
        f"{sampler.working} of which tasks ran, at most {sampler.most.tasks} of {CAPS.tasks} tasks and "
        f"{sampler.most.cores} of {CAPS.cores} cores; "
        f"{sum(one.orphans for one in checked)} files of killed attempts are left"
    )
    assert found.left() == []
    assert sampler.violations == []
    assert sampler.samples > 20
    assert sampler.working > 0
    assert sampler.most.cores > 0
    assert states["failed"] <= max(1, sum(states.values()) // 1000)
    assert {one.files for one in checked} <= set(range(1, FILES_MAX + 1))
    assert all(one.tasks for one in checked)
    if CAMPAIGN:
        save(b10.result(states, sum(killer.kills.values()), calm_s), Path(b10.__file__).parent / "results")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _chaos(at: Town, at_work: Writer) -> Killer:
    """The writer goes on, and meanwhile one after the other is killed; all are there again at the end."""
    killer = Killer(at, random.Random(11))  # noqa: S311 - who is next
    until_s = time.monotonic() + CHAOS_S
    with at.client() as client:
        writing = threading.Thread(target=at_work.go_on, args=(client, until_s, COMMIT_EVERY_S))
        writing.start()
        for kind in ("server", "database", "optimizer"):
            killer.kill(kind, 1.0, 0 if kind == "server" else None)
            time.sleep(2.0)
        killer.pause("server", 1.5 * DEAD_S, 0)
        while LONG and time.monotonic() < until_s:
            killer.by_chance()
            time.sleep(2.0)
        writing.join()
    assert at_work.ended_well
    return killer


def _in_order(at: Town, at_work: Writer) -> bool:
    """Nothing is left to do, each table was looked at as it is now, and its own metadata say that it is in order."""
    if unfinished(at.store_url):
        return False
    seen, catalog = looked_at(at.store_url), writer(at_work.entry)
    for name in at_work.names:
        table = catalog.load_table(name.path)
        snapshot = table.current_snapshot()
        if (
            snapshot is None
            or snapshot.summary is None
            or seen.get(str(table.metadata.table_uuid)) != snapshot.snapshot_id
        ):
            return False
        if int(snapshot.summary["total-data-files"] or 0) > FILES_MAX:
            return False
    return True


def _check_audit(at: Town) -> None:
    """As its user verifies it: each entry has the hash of the one before it, and there are some."""
    said = at.said("audit", "verify", "--json")
    assert said["broken_at"] is None
    assert said["entries"] > 0


def _check_stranger(at: Town) -> None:
    """Every route that there is, without a token: refused, but for whether it lives and where people log in."""
    url = f"http://{HOST}:{at.balancer.port}"
    with httpx2.Client(base_url=url) as client:
        routes = client.get("/api/v1/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"}).json()["paths"]
        answers = {
            (method, path): client.request(method.upper(), path).status_code
            for path, methods in routes.items()
            for method in methods
        }
    assert len(answers) > 50
    open_to_all = {route: status for route, status in answers.items() if status != 401}
    without_code = open_to_all.pop(("post", "/api/v1/sessions"))
    assert 400 <= without_code < 500
    assert open_to_all == {("get", "/api/v1/healthz"): 200}
