"""Two servers, one store on PostgreSQL: the second is refused, takes over what was killed, and never shares."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from icewright.domain.catalogs import CatalogEntry
from tests.e2e.processes import Processes, wait_for
from tests.lakes.sqlite import append, make_lake, make_table
from tests.servers.postgres import PASSWORD, PASSWORD_IN_URLS, PostgresServer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

HELD = "another server holds the store"
TAKEN = "another server has taken the store over"


@pytest.fixture
def entry(tmp_path: Path) -> CatalogEntry:
    entry = make_lake(tmp_path)
    append(make_table(entry), range(100))
    return entry


@pytest.fixture
def machine(
    tmp_path: Path, entry: CatalogEntry, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Processes]]:
    """Another machine with a server, over the one lake and the one store."""
    url = postgres.new_database()
    monkeypatch.setenv("STORE_PASSWORD", PASSWORD)
    store_url = make_url(url).set(drivername="postgresql", password=None).render_as_string()
    settings = f'[server]\nstore_url = "{store_url}"\nstore_password = "env:STORE_PASSWORD"\n'
    machines: list[Processes] = []

    def make(name: str) -> Processes:
        folder = tmp_path / name
        folder.mkdir()
        made = Processes(folder, entry)
        made.configuration.write_text(made.configuration.read_text().replace("[server]\n", settings))
        machines.append(made)
        return made

    yield make
    for each in machines:
        each.end()
    postgres.drop(url)


def ended(processes: Processes) -> int:
    """The exit status of a server that ends by itself."""
    status = processes.running.pop("serve").wait(60)
    assert PASSWORD not in processes.log("serve")
    assert PASSWORD_IN_URLS not in processes.log("serve")
    return status


def test_a_second_server_is_refused_and_takes_over_what_was_killed(machine: Callable[[str], Processes]) -> None:
    first, second = machine("first"), machine("second")
    first.start("serve")
    with first.client() as client:
        wait_for(lambda: client.tables().items or None, "the table is seen", first)

    second.start("serve")
    assert ended(second) == 1
    assert HELD in second.log("serve")
    assert "one server per store" in second.log("serve")

    first.kill("serve")
    second.start("serve")
    with second.client() as client:
        assert len(client.tables().items) == 1


def test_a_server_whose_store_was_taken_over_ends(
    machine: Callable[[str], Processes], postgres: PostgresServer
) -> None:
    first, second = machine("first"), machine("second")
    first.start("serve")
    with first.client():
        pass
    # The first stands still, and the database forgets it; as when a machine is suspended.
    stopped = first.running["serve"]
    stopped.send_signal(signal.SIGSTOP)
    try:
        postgres.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'icewright'"
        )
        second.start("serve")
        with second.client():
            pass
    finally:
        stopped.send_signal(signal.SIGCONT)
    assert ended(first) == 1
    assert TAKEN in first.log("serve")
    with second.client() as client:
        client.status()
