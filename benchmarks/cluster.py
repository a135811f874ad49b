"""Several real ``icewright serve`` processes over one PostgreSQL, and a look into their store that goes past them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import psutil
from sqlalchemy import Engine, func, make_url, select

from benchmarks.lake import Mismatch
from benchmarks.many_tables import ManyTables
from benchmarks.measure import ProcessTree
from icewright.api_client.client import Client
from icewright.core.errors import IcewrightError
from icewright.core.servers import BUCKETS, CLUSTER_DEAD_MS, CLUSTER_HEARTBEAT_MS
from icewright.events.schema import inbox
from icewright.model.iceberg.tables import Json
from icewright.store.engine import open_store
from icewright.store.schema import tables
from tests.e2e.processes import Processes, several_servers
from tests.servers.postgres import PostgresServer, find_programs, postgres_server

DEFAULT_HEARTBEATS_MS: Final = (CLUSTER_HEARTBEAT_MS, CLUSTER_DEAD_MS)
_POLL_S: Final = 0.1
_WAIT_S: Final = 1_200.0
_END_S: Final = 60.0
_MODE: Final = 'mode = "auto"'


@contextmanager
def lasting_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL that keeps what it answered. Raises ``RuntimeError`` where it is not installed."""
    programs = find_programs()
    if programs is None:
        raise RuntimeError("PostgreSQL's programs are not installed: scripts/install_programs.py says how")
    with postgres_server(programs, settings=("shared_buffers=128MB", "max_connections=300")) as server:
        yield server


class Cluster:
    """Servers over one store.

    ``heartbeats_ms`` are those of each server, and the silence that makes one dead; ``mode`` is that of the catalog.
    ``port`` is where servers find the database, where that is not its own.
    """

    def __init__(
        self,
        folder: Path,
        lake: ManyTables,
        server: PostgresServer,
        *,
        heartbeats_ms: tuple[int, int] = DEFAULT_HEARTBEATS_MS,
        mode: str = "auto",
        port: int | None = None,
    ) -> None:
        self._postgres, self._heartbeats_ms, self._mode = server, heartbeats_ms, mode
        self._stack, self.database = ExitStack(), server.new_database()
        self.engine: Engine = open_store(self.database)
        away = make_url(self.database).set(port=port or server.port).render_as_string(hide_password=False)
        making = several_servers(folder, lake.entry("icewright"), away, forked=False)
        self._make = self._stack.enter_context(making)
        self.machines: list[Processes] = []
        self._client: Client | None = None
        self.database_tree = ProcessTree(_postmaster(server.port))

    def close(self) -> None:
        """End all servers."""
        self._stack.close()
        self.engine.dispose()
        self._postgres.drop(self.database)

    def begin(self, count: int) -> None:
        """Start further servers, until there are so many."""
        heartbeat_ms, dead_ms = self._heartbeats_ms
        while len(self.machines) < count:
            made = self._make(f"server-{len(self.machines)}")
            text = made.configuration.read_text()
            if _MODE not in text:
                raise RuntimeError(f"the configuration of a server does not say {_MODE}")
            cluster = f"\n[cluster]\nheartbeat_ms = {heartbeat_ms}\ndead_ms = {dead_ms}\n"
            made.configuration.write_text(text.replace(_MODE, f'mode = "{self._mode}"') + cluster)
            made.start("serve")
            self.machines.append(made)

    def end(self, machine: Processes) -> None:
        """End a server as people do; it gives its buckets away."""
        server = machine.running.pop("serve")
        server.terminate()
        server.wait(_END_S)

    def client(self) -> Client:
        """Of the first server."""
        if self._client is None:
            self._client = self.machines[0].client()
        return self._client

    def await_shares(self, count: int) -> Json:
        """The cluster once so many servers have all buckets, as even as can be, and none is on its way."""

        def settled() -> Json | None:
            try:
                found = self.client().cluster()
            except IcewrightError:
                return None
            live = [one["buckets"] for one in found["servers"] if one["session"] is not None]
            moves = any(one["coming"] for one in found["servers"])
            even = len(live) == count and sum(live) == BUCKETS and not moves and max(live) - min(live) <= 1
            return found if even else None

        found: Json = await_answer(settled, f"{count} servers have all buckets")
        return found

    def known(self) -> int:
        """Tables that were looked at."""
        with self.engine.connect() as connection:
            return connection.execute(select(func.count()).where(tables.c.listed.is_not(None))).scalar_one()

    def waiting(self) -> int:
        """Events that are not done."""
        with self.engine.connect() as connection:
            return connection.execute(select(func.count()).where(inbox.c.done_at.is_(None))).scalar_one()

    def trees(self) -> list[ProcessTree]:
        """Of each server that runs."""
        return [ProcessTree(psutil.Process(one.running["serve"].pid)) for one in self.machines if one.running]

    def cpu_s(self) -> float:
        """Of all servers that run, and of the database."""
        return sum(tree.cpu_s() for tree in self.trees()) + self.database_tree.cpu_s()


def moved(before: Json, after: Json) -> int:
    """Buckets that have another server."""
    pairs = zip(before["buckets"], after["buckets"], strict=True)
    return sum(one["server_id"] != other["server_id"] for one, other in pairs)


def await_answer(look: Callable[[], Any], what: str) -> Any:
    """The first answer that is not empty. Raises :class:`Mismatch` where there is none for a long time."""
    until_s = time.monotonic() + _WAIT_S
    while time.monotonic() < until_s:
        found = look()
        if found:
            return found
        time.sleep(_POLL_S)
    raise Mismatch(f"waited {_WAIT_S:g} s in vain: {what}")


def _postmaster(port: int) -> psutil.Process:
    """The server's first process. Raises :class:`Mismatch` where there is none."""
    for process in psutil.process_iter(["name", "cmdline"]):
        words = process.info["cmdline"] or ()
        if process.info["name"] == "postgres" and "-p" in words and str(port) in words:
            return process
    raise Mismatch(f"no PostgreSQL listens at port {port}")
