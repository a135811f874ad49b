"""Leaders that are stopped and not dead: another server leads within a lease, and the old one changes nothing more."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from pyiceberg.table import Table
from sqlalchemy import Engine, make_url

from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.actions.remove_files.adapters.local_quarantine import LocalQuarantine
from icewright.actions.remove_files.adapters.opened import CatalogObjects, CatalogQuarantine
from icewright.api_client.client import Client
from icewright.catalogs.storage.local import LocalObjects
from icewright.core.completeness import Complete
from icewright.core.errors import IcewrightError, StoreTaken
from icewright.core.servers import LEASES_WITHOUT_PROGRESS, Server
from icewright.core.system_clock import SystemClock
from icewright.model.actions.deletion import Candidate, Cause, DeletePlan, Held, IntentState, plan_deletes
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.objects import ListedObject
from icewright.server.cluster.leadership import Leadership
from icewright.server.cluster.servers_sql import SqlServers
from icewright.server.control import ControlPlane
from icewright.store.engine import open_store
from icewright.store.locks import LOCKS
from icewright.store.postgresql import WRITERS
from icewright.store.session_lock import PostgresLeaderElection
from icewright.store.transactions import require_lead
from tests.builders.deletions import DAY_MS, NAME, World
from tests.builders.lakehouse import Lakehouse
from tests.conftest import CAMPAIGN
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.e2e.processes import Processes, led_by, several_servers, wait_for
from tests.lakes.sqlite import append, make_lake, make_table, table_name
from tests.servers.postgres import PASSWORD, USER, PostgresServer
from tests.servers.s3 import S3Server
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

LEASE_MS = 20_000 if CAMPAIGN else 4_000
STOPPED_S = 150 if CAMPAIGN else 0
"""For how long a leader stands still at least, also once another one leads."""
MARGIN_S = 15.0
"""What this machine may take for a few requests and sessions, whatever else runs on it."""
FILES = 20


def said(figure: str) -> None:
    print(figure)  # noqa: T201 - what the campaign is for


@dataclass
class Cluster:
    """Two servers on one store; ``leader`` and ``follower`` change when the lead does."""

    database: str
    postgres: PostgresServer
    table: Table
    leader: Processes
    follower: Processes

    def swap(self) -> None:
        self.leader, self.follower = self.follower, self.leader

    def stop(self) -> None:
        self.leader.running["serve"].send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.leader.running["serve"].send_signal(signal.SIGCONT)

    def session(self) -> psycopg.Connection[Any]:
        url = make_url(self.database)
        return psycopg.connect(
            host=url.host, port=url.port, user=USER, password=PASSWORD, dbname=url.database, autocommit=True
        )

    def holder_of_writes(self) -> int | None:
        """The port of the session that holds the lock of all writers; None where none does."""
        query = (
            "SELECT client_port FROM pg_locks JOIN pg_stat_activity AS activity USING (pid) WHERE granted "
            "AND locktype = 'advisory' AND classid = %s AND objid = %s AND activity.datname = %s"
        )
        with self.session() as session:
            found = session.execute(query, [LOCKS, WRITERS, make_url(self.database).database]).fetchone()
        return None if found is None else int(found[0])

    def stop_inside_a_write(self) -> None:
        """The leader's next beat waits behind our lock of a table, with its own lock of all writers.

        Where it was another write of the leader, which ended before the leader stood still, it goes on once more.
        """
        mine = psutil.Process(self.leader.running["serve"].pid)
        while True:
            with self.session() as session, session.transaction():
                session.execute("LOCK TABLE servers IN ACCESS EXCLUSIVE MODE")
                port = wait_for(self.holder_of_writes, "a server writes", self.leader)
                if port in [one.laddr.port for one in mine.net_connections()]:
                    self.stop()
                    if self.holder_of_writes() == port:
                        return
                    self.go_on()
            time.sleep(0.2)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("paused")
    entry, url = make_lake(folder), postgres.new_database()
    table = make_table(entry)
    append(table, range(10))
    with several_servers(folder, entry, url, f"leader_lease_ms = {LEASE_MS}\n") as make:
        leader, follower = make("first"), make("second")
        leader.start("serve")
        with leader.client() as client:
            led_by(leader, client, client.url)
            wait_for(lambda: client.tables().items or None, "the table is seen", leader)
        follower.start("serve")
        with follower.client() as client:
            wait_for(lambda: len(client.status()["servers"]) == 2 or None, "both are there", follower)
        yield Cluster(url, postgres, table, leader, follower)
    postgres.drop(url)


def looks_at(client: Client, name: TableName, snapshot_id: int) -> bool | None:
    try:
        return client.table(name)["snapshot_id"] == str(snapshot_id) or None
    except IcewrightError:
        return None


def leaders_told(client: Client) -> int:
    return [one["kind"] for one in client.feed(limit=1_000).items].count("leader-changed")


def test_s3_a_stopped_leader_is_followed_within_a_lease_and_does_nothing_when_it_goes_on(cluster: Cluster) -> None:
    name = table_name(cluster.table)
    with cluster.follower.client() as client, cluster.leader.client() as stopped:
        changes = leaders_told(client)
        cluster.stop()
        stopped_s = time.monotonic()
        try:
            led_by(cluster.follower, client, client.url)
            took_s = time.monotonic() - stopped_s
            said(
                f"another server led {took_s:.1f} s after SIGSTOP of the leader, at a lease of {LEASE_MS / 1000:.0f} s"
            )
            assert took_s < LEASE_MS / 1000 + MARGIN_S
            snapshot_id = append(cluster.table, range(5))
            client.notify(CommitEvent(name, snapshot_id))
            wait_for(lambda: looks_at(client, name, snapshot_id), "the new leader looks", cluster.follower)
            time.sleep(max(0.0, STOPPED_S - (time.monotonic() - stopped_s)))
        finally:
            cluster.go_on()
        wait_for(lambda: "another server leads" in cluster.leader.log("serve") or None, "it notices", cluster.leader)
        led_by(cluster.leader, stopped, client.url)
        assert leaders_told(client) == changes + 1  # and it never led in between
        snapshot_id = append(cluster.table, range(5))
        stopped.notify(CommitEvent(name, snapshot_id))  # as a follower it takes what anybody tells it
        wait_for(lambda: looks_at(client, name, snapshot_id), "the new leader looks", cluster.follower)
    cluster.swap()


def test_s3_a_leader_stopped_inside_a_write_blocks_the_writes_of_others_for_half_a_lease_at_most(
    cluster: Cluster,
) -> None:
    name = table_name(cluster.table)

    def noticed() -> int:
        return cluster.leader.log("serve").count("another server leads")

    before = noticed()
    with cluster.follower.client() as client, cluster.leader.client() as stopped:
        cluster.stop_inside_a_write()
        begun_s = time.monotonic()
        try:
            assert cluster.holder_of_writes() is not None
            client.notify(CommitEvent(name, append(cluster.table, range(5))))
            took_s = time.monotonic() - begun_s
            said(f"a write of another server waited {took_s:.1f} s for a leader that was stopped inside a write")
            assert took_s < LEASE_MS / 2000 + MARGIN_S
            led_by(cluster.follower, client, client.url)
            assert time.monotonic() - begun_s < LEASE_MS / 1000 + MARGIN_S
        finally:
            cluster.go_on()
        led_by(cluster.leader, stopped, client.url)
        wait_for(lambda: noticed() > before or None, "it notices", cluster.leader)
    cluster.swap()


@contextmanager
def led_in_process(
    engine: Engine, name: str, build: Callable[[Engine], ControlPlane], lease_ms: int
) -> Iterator[Leadership]:
    """A server's part in the lead over a real store, without its web server."""
    election = PostgresLeaderElection(engine, lease_ms=lease_ms)
    own = Server(name, f"http://127.0.0.1:1/{name}", "0.1.0")

    def asked(_url: str, _question: object) -> Any:
        raise AssertionError

    servers = SqlServers(engine)
    with Leadership(
        election, lambda led, _: build(led), servers, own, ask=asked, poll_s=0.05, lease_ms=lease_ms
    ) as leadership:
        yield leadership
    election.close()


def leads(server: Leadership) -> bool:
    return server.led is not None


class HangingCatalog(MemoryCatalog):
    """Its first listing never ends until it is told to."""

    def __init__(self, house: Lakehouse) -> None:
        self.__dict__.update(house.catalog.__dict__)
        self.hangs, self.released = threading.Event(), threading.Event()

    def tables(self) -> Iterator[TableName]:
        self.hangs.set()
        self.released.wait(600)
        return iter(())


def test_s3_a_leader_whose_loop_hangs_in_a_catalog_gives_the_lead_away(postgres: PostgresServer) -> None:
    """Its other threads go on, and keep its session and its web server alive."""
    url, lease_ms = postgres.new_database(), 500
    limit_s = LEASES_WITHOUT_PROGRESS * lease_ms / 1000
    engine = open_store(url)
    hanging, well = Lakehouse(), Lakehouse()
    catalog = HangingCatalog(hanging)
    hanging.served["lake"] = catalog
    with ExitStack() as ending:
        ending.callback(postgres.drop, url)
        ending.callback(engine.dispose)
        first = ending.enter_context(led_in_process(engine, "server-1", lambda _: hanging.restart(), lease_ms))
        ending.callback(catalog.released.set)
        assert catalog.hangs.wait(30)
        begun_s = time.monotonic()
        time.sleep(limit_s + 2 * lease_ms / 1000)
        assert leads(first)  # no other server is there to go on
        second = ending.enter_context(led_in_process(engine, "server-2", lambda _: well.restart(), lease_ms))
        while not leads(second):
            assert time.monotonic() < begun_s + limit_s + 60
            time.sleep(0.02)
        said(f"another server led {time.monotonic() - begun_s:.1f} s after the loop hung, at most {limit_s:.1f} s")
        assert not leads(first)
        while not first.is_stuck:  # it does not lead again with a loop that hangs
            assert time.monotonic() < begun_s + 120
            time.sleep(0.05)
        assert leads(second)


class SlowQuarantine(LocalQuarantine):
    """A disk that gives a test the time to stop its process between two files."""

    def quarantine(self, run_id: str, expected: ListedObject) -> Held:
        held = super().quarantine(run_id, expected)
        time.sleep(0.02)
        return held


class OnDisk(World):
    """A table on this machine's disk, forty days later, whose removals are written down in a real store."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        super().__init__(ManualClock(), roots=(f"file://{folder}/t/",), table_bytes=10**12)
        self.folder = folder
        self.clock.advance(SystemClock().now() + 40 * DAY_MS - self.clock.now())
        self.objects: Any = LocalObjects(self.clock)
        self.quarantine = SlowQuarantine([CanonicalPath(f"file://{folder}/held")])
        self.store = SqlDeletionStore(engine, self.clock)

    def planned(self) -> DeletePlan:
        found = [one for one in self.objects.list(CanonicalPath(f"{self.roots[0]}")) if isinstance(one, ListedObject)]
        known = self.needs(NAME, [one.path for one in found])
        assert isinstance(known, Complete)
        candidates = [Candidate(one, self.clock.now() - 30 * DAY_MS) for one in found]
        return plan_deletes(
            known, Cause.ORPHAN, candidates, plan_id="plan-1", table_name=NAME, planned_at=self.clock.now()
        )


def remove_as_the_leader(url: str, folder: str) -> None:
    """A process that leads and removes files, without a thread that looks whether it still leads."""
    election = PostgresLeaderElection(engine := open_store(url), lease_ms=LEASE_MS)
    own = election.lead()
    assert own is not None
    world = OnDisk(Path(folder), own)
    deleter = world.deleter()
    deleter.begin(world.planned(), "run-1")
    (Path(folder) / "begun").touch()
    try:
        deleter.advance("run-1")
    except StoreTaken:
        (Path(folder) / "noticed").touch()
    finally:
        election.close()
        engine.dispose()


def test_s3_a_leader_stopped_between_two_files_moves_one_more_at_most(postgres: PostgresServer, tmp_path: Path) -> None:
    folder, url = tmp_path.resolve(), postgres.new_database()
    (folder / "held").mkdir()
    (folder / "t" / "data").mkdir(parents=True)
    for number in range(FILES):
        (folder / "t" / "data" / f"g{number}").write_bytes(b"garbage")
    engine = open_store(url)

    def moved() -> int:
        return sum(one.is_file() for one in (folder / "held").rglob("*"))

    child = multiprocessing.get_context("spawn").Process(target=remove_as_the_leader, args=(url, str(folder)))
    child.start()
    election = PostgresLeaderElection(engine, lease_ms=LEASE_MS)
    try:
        until(lambda: moved() >= 3, within_s=120)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGSTOP)
        stopped_s, before = time.monotonic(), moved()
        while (own := election.lead()) is None:
            assert time.monotonic() < stopped_s + LEASE_MS / 1000 + MARGIN_S
            time.sleep(0.05)
        took_s = time.monotonic() - stopped_s
        said(f"the lead was taken {took_s:.1f} s after SIGSTOP, when {before} of {FILES} files had moved")
        os.kill(child.pid, signal.SIGCONT)
        child.join(60)
        assert (folder / "noticed").exists()
        assert child.exitcode == 0
        assert moved() <= before + 1
        said(f"files moved by the leader of before behind that: {moved() - before}")
        # The next leader finds each file where it is, and loses none.
        world = OnDisk(folder, own)
        while not (batch := world.deleter().advance("run-1")).is_done:
            assert batch.waits is None or batch.waits.code == "resting"
            world.clock.advance(60_000)
        assert world.store.count_intents("run-1")[IntentState.QUARANTINED].files == FILES == moved()
    finally:
        child.kill()
        election.close()
        engine.dispose()
        postgres.drop(url)


def test_s3_a_leader_stopped_between_the_copy_and_the_delete_of_a_move_deletes_nothing(
    postgres: PostgresServer, s3: S3Server
) -> None:
    bucket, url = s3.new_bucket(), postgres.new_database()
    entry = CatalogEntry("lake", CatalogKind.SQL, "sqlite:////lake.db", f"s3://{bucket}/wh", s3.file_io)
    path, engine = CanonicalPath(f"s3://{bucket}/wh/t/data/g"), open_store(url)
    with s3.files().open_output_stream(path.removeprefix("s3://")) as stream:
        stream.write(b"needed again by then")
    objects, held = CatalogObjects(entry), CanonicalPath(f"s3://{bucket}/held")
    first, second = (PostgresLeaderElection(engine, lease_ms=1_000) for _ in range(2))
    led = first.lead()
    assert led is not None

    def stands_still() -> None:
        """Behind the copy; what is deleted before that is a trial of the quarantine's own."""
        if any(one.path.startswith(f"s3://{bucket}/held/run-1/") for one in objects.list(held)):
            until(lambda: second.lead() is not None, within_s=120)
            require_lead(led)

    quarantine = CatalogQuarantine(entry, [held], may_change=stands_still)
    (expected,) = objects.list(CanonicalPath(f"s3://{bucket}/wh/"))
    assert isinstance(expected, ListedObject)
    with pytest.raises(StoreTaken):
        quarantine.quarantine("run-1", expected)
    with s3.files().open_input_stream(path.removeprefix("s3://")) as stream:
        assert stream.read() == b"needed again by then"
    first.close()
    second.close()
    engine.dispose()
    postgres.drop(url)
