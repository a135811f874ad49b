"""Several servers, one store on PostgreSQL: one leads, any answers, and whichever is killed, work goes on."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from pyiceberg.table import Table
from sqlalchemy import make_url

from icewright.api_client.client import Client
from icewright.core.errors import Unavailable
from icewright.model.actions.actions import OPTIMIZER_ACTIONS
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.tables import Json
from icewright.model.work.jobs import PROTOCOL_VERSION, Failed, Heartbeat, OptimizerHello, TaskReport, TaskSpec
from icewright.model.work.tasks import Progress
from icewright_spark.reports.client import Server
from tests.e2e.processes import SHARED_TOKEN, Processes, led_by, several_servers, wait_for
from tests.lakes.sqlite import append, make_lake, make_table, table_name
from tests.servers.postgres import PASSWORD, PostgresServer, find_programs, mortal_postgres

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

BALANCER = "balancer.example"
HELLO = OptimizerHello(
    PROTOCOL_VERSION, "optimizer-1", "0.1.0", "default", 2, ("lake",), "4.1.4", "1.12.0", actions=OPTIMIZER_ACTIONS
)


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory) -> CatalogEntry:
    return make_lake(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def table(entry: CatalogEntry) -> Table:
    """A table that is worth a rewrite."""
    table = make_table(entry)
    for number in range(8):
        append(table, range(100 * number, 100 * number + 100))
    return table


@dataclass
class Pair:
    """Two servers on one store, over the one lake; they are exchanged when the lead is."""

    leader: Processes
    follower: Processes

    def swap(self) -> None:
        self.leader, self.follower = self.follower, self.leader


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, entry: CatalogEntry, table: Table, postgres: PostgresServer
) -> Iterator[Pair]:
    url, folder = postgres.new_database(), tmp_path_factory.mktemp("machines")
    with several_servers(folder, entry, url, f'allowed_hosts = ["{BALANCER}"]\n') as make:
        first, second = make("first"), make("second")
        first.start("serve")
        with first.client() as leader:
            led_by(first, leader, leader.url)
            name = str(table_name(table))
            wait_for(lambda: any(one["name"] == name for one in leader.tables().items) or None, "it is seen", first)
            second.start("serve")
            with second.client() as follower:
                status = led_by(second, follower, leader.url)
                assert sorted(one["url"] for one in status["servers"]) == sorted((leader.url, follower.url))
        yield Pair(first, second)
    postgres.drop(url)


def without_password(url: str) -> str:
    return make_url(url)._replace(drivername="postgresql", password=None).render_as_string()


def planned(client: Client, uuid: str) -> Json | None:
    """What a look came to; None where no server led at that moment, as clients are told while the lead changes."""
    try:
        return client.look_at_table(uuid, "lake")
    except Unavailable:
        return None


def claimed(server: Server, processes: Processes) -> TaskSpec:
    return wait_for(lambda: server.claim(HELLO.optimizer_id), "a task waits", processes)


def test_a_second_server_follows_and_goes_on_when_the_first_is_killed(pair: Pair, table: Table) -> None:
    first, second = pair.leader, pair.follower
    name = table_name(table)
    with second.client() as follower:
        # What lies in the store, the follower tells; what the loop knows, and what it plans, comes from the leader.
        known = follower.table(name)
        assert follower.look_at_table(known["uuid"], "lake")["plan"]["table"] == str(name)
        hosted = httpx2.get(f"{follower.url}/api/v1/healthz", headers={"Host": BALANCER}, trust_env=False)
        assert hosted.status_code == 200

        # An optimizer that talks to the follower keeps its lease, whoever leads.
        optimizer = Server(follower.url, SHARED_TOKEN)
        optimizer.hello(HELLO)
        spec = claimed(optimizer, second)
        beat = Heartbeat(spec.fencing_token, Progress("merging", 0, 1))
        optimizer.heartbeat(spec.task_id, beat)
        first.kill("serve")
        killed_at_s = time.monotonic()
        while True:
            optimizer.heartbeat(spec.task_id, beat)
            if any(one["leads"] and one["url"] == follower.url for one in follower.status()["servers"]):
                break
            assert time.monotonic() < killed_at_s + 120
            time.sleep(0.05)
        print(f"another server led {time.monotonic() - killed_at_s:.2f} s after kill -9 of the leader")  # noqa: T201 - a figure for the docs
        optimizer.heartbeat(spec.task_id, beat)
        failed = Failed("engine-failure", "as this test wants it", retryable=True)
        optimizer.report(
            TaskReport(PROTOCOL_VERSION, spec.task_id, spec.attempt, spec.fencing_token, failed, (), (), 1, 1)
        )
        optimizer.close()
        history = [one["state"] for one in follower.task(spec.task_id)["history"]]
        assert history[-2:] == ["running", "queued"]  # queued twice before: it was planned anew by hand

        # And what is committed now is seen now.
        snapshot_id = append(table, range(5))
        follower.notify(CommitEvent(name, snapshot_id))
        wait_for(
            lambda: follower.table(name)["snapshot_id"] == str(snapshot_id) or None, "the new leader looks", second
        )
        kinds = [one["kind"] for one in follower.feed(limit=1_000).items]
        assert kinds.count("leader-changed") == 2

        first.start("serve")
        with first.client() as back:
            led_by(first, back, follower.url)
            assert back.table(name)["snapshot_id"] == str(snapshot_id)
    pair.swap()


def test_i15_a_leader_that_was_halted_while_another_one_led_follows(
    pair: Pair, postgres: PostgresServer, table: Table
) -> None:
    """The last of this file with the two servers: it kills one of them."""
    first, second = pair.leader, pair.follower
    with first.client() as leader, second.client() as follower:
        # The first stands still, and the database forgets it; as when a machine is suspended.
        halted = first.running["serve"]
        halted.send_signal(signal.SIGSTOP)
        try:
            postgres.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE application_name = 'icewright' AND pid IN (SELECT pid FROM pg_locks "
                "WHERE locktype = 'advisory' AND objid = 2 AND granted)"
            )
            led_by(second, follower, follower.url)
        finally:
            halted.send_signal(signal.SIGCONT)
        led_by(first, leader, follower.url)
        wait_for(lambda: "another server leads" in first.log("serve") or None, "it finds out", first)
        assert halted.poll() is None
        uuid = leader.table(table_name(table))["uuid"]
        wait_for(lambda: planned(leader, uuid), "it passes on what is the leader's", first)
        second.kill("serve")
        led_by(first, leader, leader.url)


def test_a_server_that_starts_before_its_database_waits_for_it(
    tmp_path: Path, entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (on Debian and Ubuntu: apt-get install postgresql)")
    monkeypatch.setenv("STORE_PASSWORD", PASSWORD)
    with mortal_postgres(programs) as database:
        store_url = without_password(database.server.new_database())
        server = Processes(tmp_path, entry)
        settings = f'[server]\nstore_url = "{store_url}"\nstore_password = "env:STORE_PASSWORD"\n'
        server.configuration.write_text(server.configuration.read_text().replace("[server]\n", settings))
        database.kill()
        server.start("serve")
        try:
            wait_for(lambda: "waiting for the store" in server.log("serve") or None, "it says that it waits", server)
            assert server.running["serve"].poll() is None
            database.start()
            with server.client() as client:
                led_by(server, client, client.url)
        finally:
            server.end()
