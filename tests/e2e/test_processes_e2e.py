"""A server with further processes: they share the tables, come back when they die, and end with it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import httpx2
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from icewright.api_client.client import Client
from icewright.core.errors import IcewrightError
from icewright.core.servers import BUCKETS, process_name, server_of
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.tables import Json
from tests.e2e.processes import Processes, several_servers, wait_for
from tests.lakes.sqlite import make_lake, make_table, table_name
from tests.servers.postgres import PostgresServer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

TABLES, PROCESSES, AFTERWARDS = 12, 3, 2
"""The server that comes after the one that is killed has fewer processes: to start one takes seconds of CPU."""


def parts(client: Client, processes: int = PROCESSES) -> dict[str, int] | None:
    """The buckets of each process, once each of so many has its share of all."""
    try:
        found = client.cluster()["servers"]
    except IcewrightError:
        return None
    held = {one["server_id"]: one["buckets"] for one in found if one["session"] is not None}
    is_settled = (
        len(held) == processes and sum(held.values()) == BUCKETS and max(held.values()) - min(held.values()) < 2
    )
    return held if is_settled else None


def looking(machine: Processes) -> list[psutil.Process]:
    """The further processes, without the one that the standard library starts for itself."""
    return [
        one for one in psutil.Process(machine.running["serve"].pid).children() if "spawn_main" in str(one.cmdline())
    ]


def looks(machine: Processes) -> float:
    """The looks that the server counts."""
    address = json.loads((machine.folder / "state" / "server.json").read_text())
    told = httpx2.get(f"{address['url']}/api/v1/metrics", headers={"Authorization": f"Bearer {address['token']}"})
    return sum(
        sample.value
        for family in text_string_to_metric_families(told.raise_for_status().text)
        for sample in family.samples
        if sample.name == "icewright_step_duration_seconds_count" and sample.labels["step"] == "look"
    )


def test_processes_share_the_tables_come_back_and_end_with_their_server(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url, entry = postgres.new_database(), make_lake(tmp_path)
    tables = [make_table(entry, ("db", f"t{number}")) for number in range(TABLES)]
    with several_servers(tmp_path, entry, url, f"processes = {PROCESSES}\n") as make:
        machine = make("only")
        machine.configuration.write_text(
            machine.configuration.read_text() + "\n[cluster]\nheartbeat_ms = 1000\ndead_ms = 4000\n"
        )
        machine.start("serve")
        with machine.client() as client:
            held = wait_for(lambda: parts(client), "three processes share", machine)
            (server,) = {server_of(name) for name in held}
            assert set(held) == {server, process_name(server, 1), process_name(server, 2)}
            assert [one["leads"] for one in client.cluster()["servers"]] == [True, False, False]
            wait_for(lambda: len(client.tables().items) == TABLES or None, "all are seen", machine)
            wanted = looks(machine) + TABLES
            for table in tables:
                client.notify(CommitEvent(table_name(table)))
            wait_for(lambda: looks(machine) >= wanted or None, "the server counts the looks of all", machine, 60)
            looking(machine)[0].kill()

            def replaced() -> Json | None:
                found = parts(client)
                return found if found is not None and process_name(server, 3) in found else None

            assert len(wait_for(replaced, "another is there in its place", machine)) == PROCESSES
            left = looking(machine)
            assert len(left) == PROCESSES - 1
        os.kill(machine.running.pop("serve").pid, signal.SIGKILL)
        assert psutil.wait_procs(left, timeout=60)[1] == []
        fewer = machine.configuration.read_text().replace(f"processes = {PROCESSES}\n", f"processes = {AFTERWARDS}\n")
        machine.configuration.write_text(fewer)
        machine.start("serve")
        with machine.client() as client:
            again = wait_for(lambda: parts(client, AFTERWARDS), "a new one has all buckets", machine)
            assert server not in {server_of(name) for name in again}
            left = looking(machine)
            assert len(left) == AFTERWARDS - 1
        running = machine.running["serve"]
        running.terminate()
        assert running.wait(60) == 0
        assert [one for one in left if one.is_running()] == []
    postgres.drop(url)
