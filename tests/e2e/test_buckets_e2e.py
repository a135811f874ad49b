"""Three servers share the looks; whichever is killed, the leader too, its tables are looked at by the others."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyiceberg.table import Table

from icewright.api_client.client import Client
from icewright.core.errors import IcewrightError
from icewright.core.servers import BUCKETS
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.tables import TASK_ID_KEY, Json
from tests.e2e.processes import Processes, several_servers, wait_for
from tests.lakes.sqlite import append, current_snapshot_id, make_lake, make_table, table_name
from tests.servers.balancer import Balancer
from tests.servers.postgres import PostgresServer
from tests.servers.processes import HOST

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(900)]

TABLES = 6
ROWS = 50
HEARTBEAT_MS, DEAD_MS = 1_000, 4_000
TERMINAL = {"succeeded", "failed", "cancelled", "superseded"}


def shares(client: Client, servers: int) -> Json | None:
    """The cluster, once so many servers have all buckets and none is on its way."""
    try:
        found = client.cluster()
    except IcewrightError:
        return None
    live = [one["buckets"] for one in found["servers"] if one["session"] is not None]
    is_settled = len(live) == servers and sum(live) == BUCKETS and not any(one["coming"] for one in found["servers"])
    return found if is_settled and max(live) - min(live) <= 1 else None


def commit(tables: Sequence[Table], client: Client, number: int) -> None:
    """A commit to each table, reported to one of the servers."""
    for table in tables:
        snapshot_id = append(table.refresh(), range(ROWS * number, ROWS * (number + 1)))
        client.notify(CommitEvent(table_name(table), snapshot_id))


def all_looked_at(client: Client, tables: Sequence[Table]) -> bool | None:
    """Whether the last look at each table saw its last commit, and nothing is left to be done."""
    try:
        seen = {str(table_name(table)): client.table(table_name(table))["snapshot_id"] for table in tables}
        tasks = client.tasks(limit=1_000).items
    except IcewrightError:
        return None
    wanted = {str(table_name(table)): str(current_snapshot_id(table.refresh())) for table in tables}
    return (seen == wanted and all(one["state"] in TERMINAL for one in tasks)) or None


def test_whichever_server_is_killed_every_commit_is_looked_at_and_each_task_succeeds_once(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url, entry = postgres.new_database(), make_lake(tmp_path)
    tables = [make_table(entry, ("db", f"t{number}")) for number in range(TABLES)]
    for number in range(8):
        for table in tables:
            append(table, range(ROWS * number, ROWS * (number + 1)))
    with several_servers(tmp_path, entry, url) as make:
        machines = [make(name) for name in ("first", "second", "third")]
        ports = [int(re.findall(r"port = (\d+)", one.configuration.read_text())[0]) for one in machines]
        with Balancer(ports) as balancer:
            for one in machines:
                settings = f'[server]\nallowed_hosts = ["{HOST}:{balancer.port}"]\n'
                remote = (
                    f'[optimizer]\nserver_url = "http://{HOST}:{balancer.port}"\nserver_token = "env:SHARED_TOKEN"\n'
                )
                text = one.configuration.read_text().replace("[server]\n", settings)
                cluster = f"\n[cluster]\nheartbeat_ms = {HEARTBEAT_MS}\ndead_ms = {DEAD_MS}\n"
                one.configuration.write_text(text.replace("[optimizer]\n", remote) + cluster)
            killed_and_started(machines, tables)
    postgres.drop(url)


def killed_and_started(machines: Sequence[Processes], tables: Sequence[Table]) -> None:
    first, second, third = machines
    first.start("serve")
    with first.client() as client:
        wait_for(lambda: len(client.tables().items) == TABLES or None, "all are seen", first)
        assert wait_for(lambda: shares(client, 1), "the only server has all", first)["servers"][0]["tables"] == TABLES
    second.start("serve")
    third.start("serve")
    with second.client() as client, third.client() as other:
        found = wait_for(lambda: shares(client, 3), "three share", first)
        assert sum(one["tables"] for one in found["servers"]) == TABLES
        assert [one["leads"] for one in found["servers"]] == [True, False, False]
        third.start("optimizer")
        commit(tables, other, 8)
        first.kill("serve")
        killed_at_s = time.monotonic()
        commit(tables, client, 9)
        found = wait_for(lambda: shares(client, 2), "two share", second)
        print(f"two had all buckets {time.monotonic() - killed_at_s:.1f} s after kill -9 of the leader")  # noqa: T201 - a figure
        moved = [one for one in found["buckets"] if one["moved_by"] in ("died", "silent")]
        assert len(moved) == 43, "what the dead one had, and nothing else"
        first.start("serve")
        wait_for(lambda: shares(client, 3), "it is back", first)
        commit(tables, other, 10)
        victim = (
            second if next(one for one in client.cluster()["servers"] if one["url"] == other.url)["leads"] else None
        )
        (victim or third).kill("serve")
        left = other if victim is second else client
        commit(tables, left, 11)
        wait_for(lambda: all_looked_at(left, tables), "every commit is looked at", first)
        tasks = left.tasks(limit=1_000).items
        assert [one["state"] for one in tasks if one["state"] not in ("succeeded", "superseded")] == []
        succeeded = Counter(one["table"] for one in tasks if one["state"] == "succeeded")
        assert set(succeeded) == {str(table_name(table)) for table in tables}
    done = {one["task_id"] for one in tasks if one["state"] == "succeeded"}
    for table in tables:
        own = [one for one in table.refresh().metadata.snapshots if one.summary and one.summary[TASK_ID_KEY]]
        commits = Counter(str(one.summary[TASK_ID_KEY]) for one in own if one.summary)
        assert set(commits) <= done
        assert set(commits.values()) == {1}, "each task committed once"
        ids = Counter(table.scan().to_arrow()["id"].to_pylist())
        assert ids == dict.fromkeys(range(12 * ROWS), 1)
