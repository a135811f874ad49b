"""Servers on ZooKeeper: the leader is killed, and ZooKeeper is; the tables of those that live are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyiceberg.table import Table

from icewright.api_client.client import Client
from icewright.core.errors import IcewrightError
from icewright.core.servers import BUCKETS, LinkState
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.tables import Json
from tests.e2e.processes import Processes, several_servers, wait_for
from tests.lakes.sqlite import append, make_lake, make_table, table_name
from tests.servers.postgres import PostgresServer
from tests.servers.zookeeper import PASSWORD, USER, ZooKeeperServer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

TABLES = 4
SETTINGS = """
[cluster]
coordinator = "zookeeper"
zookeeper_hosts = ["{host}"]
zookeeper_root = "{root}"
zookeeper_session_ms = 2000
zookeeper_user = "{user}"
zookeeper_password = "env:ZOOKEEPER_PASSWORD"
"""


def shared_by(client: Client, servers: int) -> Json | None:
    """The cluster, once so many servers have all buckets in equal parts, and one of them leads."""
    try:
        found = client.cluster()
    except IcewrightError:
        return None
    live = [one for one in found["servers"] if one["session"] is not None]
    held = [one["buckets"] for one in live]
    is_settled = held == [BUCKETS // servers] * servers and sum(one["leads"] for one in live) == 1
    return found if is_settled else None


def commit(tables: Sequence[Table], client: Client, number: int) -> dict[str, str]:
    """A commit to each table, told to a server; by tables."""
    found = {}
    for table in tables:
        snapshot_id = append(table.refresh(), [number])
        client.notify(CommitEvent(table_name(table), snapshot_id))
        found[str(table_name(table))] = str(snapshot_id)
    return found


def are_seen(client: Client, tables: Sequence[Table], commits: dict[str, str]) -> bool | None:
    try:
        seen = {str(table_name(one)): client.table(table_name(one))["snapshot_id"] for one in tables}
    except IcewrightError:
        return None
    return seen == commits or None


def test_the_leader_and_zookeeper_are_killed_and_every_commit_is_looked_at(
    tmp_path: Path, postgres: PostgresServer, zookeeper: ZooKeeperServer
) -> None:
    url, entry = postgres.new_database(), make_lake(tmp_path)
    tables = [make_table(entry, ("db", f"t{number}")) for number in range(TABLES)]
    settings = SETTINGS.format(host=zookeeper.hosts[0], root=zookeeper.new_root(), user=USER)
    with several_servers(tmp_path, entry, url) as make:
        first, second = make("first"), make("second")
        for one in (first, second):
            one.configuration.write_text(one.configuration.read_text() + settings)
            one.environ["ZOOKEEPER_PASSWORD"] = PASSWORD
        zookeeper.start()
        try:
            killed(first, second, zookeeper, tables)
        finally:
            zookeeper.start()
        assert PASSWORD not in first.log("serve") + second.log("serve")
    postgres.drop(url)


def killed(first: Processes, second: Processes, zookeeper: ZooKeeperServer, tables: Sequence[Table]) -> None:
    first.start("serve")
    with first.client() as client:
        wait_for(lambda: shared_by(client, 1), "the only server has all", first)
    second.start("serve")
    with first.client() as client, second.client() as other:
        before = wait_for(lambda: shared_by(other, 2), "two share", second)
        assert before["coordinator"]["coordinator"] == "zookeeper"
        assert [one["leads"] for one in before["servers"]] == [True, False]
        zookeeper.kill()
        wait_for(lambda: are_in(LinkState.LOST, client, other), "ZooKeeper is gone for both", first)
        commits = commit(tables, client, 1)
        wait_for(lambda: are_seen(other, tables, commits), "each keeps its tables", first)
        zookeeper.start()
        wait_for(lambda: are_in(LinkState.CONNECTED, client, other), "both are connected again", first)
        commits = commit(tables, other, 2)
        wait_for(lambda: are_seen(client, tables, commits), "all goes on", first)
        found = wait_for(lambda: shared_by(other, 2), "two share", second)
        assert found["version"] == before["version"], "nothing was assigned anew"
        leader, left = (first, other) if led_by_first(found, client) else (second, client)
        leader.kill("serve")
        commits = commit(tables, left, 3)
        wait_for(lambda: shared_by(left, 1), "the other one leads, and has all", second)
        wait_for(lambda: are_seen(left, tables, commits), "every commit is looked at", second)


def led_by_first(found: Json, client: Client) -> bool:
    return any(one["leads"] and one["url"] == client.url for one in found["servers"])


def are_in(state: LinkState, *clients: Client) -> bool | None:
    try:
        return all(one.cluster()["coordinator"]["state"] == state for one in clients) or None
    except IcewrightError:
        return None
