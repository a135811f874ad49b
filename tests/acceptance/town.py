"""A town: servers behind a balancer, optimizers, and a database, any of which may be killed; and who watches them.

Nothing here asks icewright whether all is well. What was committed is kept by the writer; who worked on what is read
from the tables of the database, and what became of tables from their own metadata and bytes.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import psutil
import psycopg
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from sqlalchemy import make_url

from icewright.api_client.client import Client
from icewright.core.errors import IcewrightError, OutcomeUnknown, Unavailable
from icewright.core.servers import BUCKETS
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TASK_ID_KEY
from tests.e2e.processes import Processes, free_port
from tests.lakes.sqlite import SCHEMA, rows, writer
from tests.servers.balancer import Balancer
from tests.servers.java import jars_for_spark
from tests.servers.postgres import PASSWORD, MortalPostgres
from tests.servers.processes import HOST
from tests.servers.zookeeper import ZooKeeperServer

TOKEN = "token-of-the-town-" + "5" * 32
_ARMED = Path(__file__).parent / "short_of_memory"
KINDS = ("server", "optimizer", "database", "zookeeper")
HEARTBEAT_S, DEAD_S = 1, 4
"""Of the servers' sessions: one that is silent for longer loses its tables to the others."""
_PAUSED = 0.4
"""The share of what happens by chance that is a pause, for half to twice of what makes a server dead."""
ACTIVE = ("running", "in_doubt", "committed")
"""States in which a task may have an attempt at its table."""


@dataclass(frozen=True)
class Caps:
    """So many running tasks, and so many cores that they hold together."""

    tasks: int
    cores: int


@dataclass
class Machine(Processes):
    """One machine of the town: a folder, a configuration of its own, and one process."""

    settings: str = ""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.configuration.write_text(self.settings)


@dataclass
class Town:
    """``servers`` behind ``balancer`` over the store in ``database``; ``optimizers`` know the balancer alone."""

    database: MortalPostgres
    store_url: str
    balancer: Balancer
    servers: Sequence[Machine]
    optimizers: Sequence[Machine]
    zookeeper: ZooKeeperServer | None = None
    """What tells the servers of each other, unless the store does."""

    def client(self) -> Client:
        """As any user: by the balancer."""
        return Client(f"http://{HOST}:{self.balancer.port}", TOKEN)

    def said(self, *command: str) -> Any:
        """What a command says as JSON, run on the machine of an optimizer, which knows the balancer alone."""
        machine = self.optimizers[0]
        done = subprocess.run(  # noqa: S603 - our own command, as a list
            [sys.executable, "-m", "icewright", "--config", str(machine.configuration), *command],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **machine.environ},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def logs(self) -> str:
        """The ends of all logs."""
        found = [path for machine in (*self.servers, *self.optimizers) for path in sorted(machine.folder.glob("*.log"))]
        return "\n".join(f"--- {path}\n{path.read_text(errors='replace')[-3000:]}" for path in found)

    def left(self) -> list[str]:
        """Command lines and outputs of processes of the town that still run."""
        folders = [str(machine.folder) for machine in (*self.servers, *self.optimizers)]
        found = []
        for process in psutil.process_iter(["cmdline"]):
            words = " ".join(process.info["cmdline"] or ())
            with suppress(OSError):  # it has ended
                words += f" > {Path(f'/proc/{process.pid}/fd/1').readlink()}"
            if any(folder in words for folder in folders):
                found.append(words[:300])
        return found


def until(look: Callable[[], bool], what: str, town: Town, wait_s: float) -> None:
    """Wait until something holds that may be asked of the town while parts of it are away."""
    until_s = time.monotonic() + wait_s
    while time.monotonic() < until_s:
        try:
            if look():
                return
        except (IcewrightError, psycopg.OperationalError) as error:
            last = str(error)
        else:
            last = "not yet"
        time.sleep(0.2)
    raise AssertionError(f"waited {wait_s} s in vain: {what} ({last})\n{town.logs()}")


@contextmanager
def town(
    folder: Path,
    entry: CatalogEntry,
    database: MortalPostgres,
    *,
    servers: int,
    optimizers: int,
    environ: dict[str, str] | None = None,
    caps: Caps,
    loses: float = 0.0,
    short_of_memory: float = 0.0,
    zookeeper: ZooKeeperServer | None = None,
) -> Iterator[Town]:
    """A town whose processes run, and have ended when the block is left. ``environ`` is of all of them.

    ``caps`` are those of the resource group that all tasks are in.

    ``loses`` is the share of replies that are lost on their way, ``short_of_memory`` that of files for which workers
    have no memory.
    """
    store_url = database.server.new_database()
    ports = [free_port() for _ in range(servers)]
    secrets = {"TOWN_TOKEN": TOKEN, "TOWN_STORE": PASSWORD, "TOWN_CATALOG": entry.uri, **(environ or {})}
    armed = {"PYTHONPATH": os.pathsep.join([str(_ARMED), *sys.path]), "SHORT_OF_MEMORY": str(short_of_memory)}
    with Balancer(ports, loses=loses) as balancer:

        def machine(name: str, lines: Sequence[str], **more: str) -> Machine:
            return Machine(folder / name, entry, environ=secrets | more, settings="\n".join((*lines, *_catalog(entry))))

        found = Town(
            database,
            store_url,
            balancer,
            [
                machine(f"server-{n}", _server(folder / f"server-{n}", store_url, port, balancer.port, caps, zookeeper))
                for n, port in enumerate(ports)
            ],
            [
                machine(f"optimizer-{n}", _optimizer(folder / f"optimizer-{n}", balancer.port), **armed)
                for n in range(optimizers)
            ],
            zookeeper,
        )
        try:
            for each in found.servers:
                each.start("serve")
            with found.client() as client:
                until(lambda: bool(client.status()), "a server answers", found, 90.0)
            for each in found.optimizers:
                each.start("optimizer")
            yield found
        finally:
            for each in (*found.optimizers, *found.servers):
                each.end()


def _server(
    folder: Path, store_url: str, port: int, balancer: int, caps: Caps, zookeeper: ZooKeeperServer | None
) -> list[str]:
    without_password = make_url(store_url)._replace(drivername="postgresql", password=None).render_as_string()
    return [
        "[server]",
        f"state_dir = {json.dumps(str(folder / 'state'))}",
        f"port = {port}",
        f"store_url = {json.dumps(without_password)}",
        'store_password = "env:TOWN_STORE"',
        'token = "env:TOWN_TOKEN"',
        f'allowed_hosts = ["{HOST}:{balancer}"]',
        "lease_ms = 10000",
        "[groups.default]",
        f"tasks = {caps.tasks}",
        f"cores = {caps.cores}",
        "[cluster]",
        f"heartbeat_ms = {HEARTBEAT_S * 1000}",
        f"dead_ms = {DEAD_S * 1000}",
        *(() if zookeeper is None else _coordinator(zookeeper)),
    ]


def _coordinator(zookeeper: ZooKeeperServer) -> list[str]:
    return [
        'coordinator = "zookeeper"',
        f"zookeeper_hosts = {json.dumps(zookeeper.hosts)}",
        f"zookeeper_session_ms = {DEAD_S * 1000}",
    ]


def _optimizer(folder: Path, balancer: int) -> list[str]:
    return [
        "[server]",
        f"state_dir = {json.dumps(str(folder / 'state'))}",
        "[optimizer]",
        f'server_url = "http://{HOST}:{balancer}"',
        'server_token = "env:TOWN_TOKEN"',
        "poll_interval_ms = 200",
        f"jars = {json.dumps(jars_for_spark())}",
    ]


def _catalog(entry: CatalogEntry) -> list[str]:
    return [
        "[[catalogs]]",
        f'name = "{entry.name}"',
        f'type = "{entry.kind.value}"',
        'uri = "env:TOWN_CATALOG"',
        f"warehouse = {json.dumps(entry.warehouse)}",
        'mode = "auto"',
        "[catalogs.policy]",
        '"icewright.rewrite-data-files.min-input-files" = "2"',
    ]


@dataclass
class Writer:
    """A job that commits rows to tables, and knows what it has committed.

    It tells a server of four commits in five, once, and does not mind if nobody hears it.
    """

    entry: CatalogEntry
    names: Sequence[TableName]
    chance: random.Random
    commits: int = 0
    told: int = 0
    ended_well: bool = False
    committed: dict[TableName, set[int]] = field(default_factory=lambda: defaultdict(set))
    _tables: dict[TableName, Table] = field(default_factory=dict)

    def create(self) -> None:
        """All tables, with three small files each, none of which holds most of the bytes: so each has its task."""
        catalog = writer(self.entry)
        for namespace in {name.namespace for name in self.names}:
            catalog.create_namespace_if_not_exists(namespace)
        for name in self.names:
            self._tables[name] = catalog.create_table(name.path, SCHEMA)
            for _ in range(3):
                self.commit(name)

    def commit(self, name: TableName) -> None:
        """One small file more."""
        table, first = self._tables[name], sum(map(len, self.committed.values()))
        ids = range(first, first + 3)
        while True:
            try:
                table.append(rows(ids))
                break
            except CommitFailedException:
                table.refresh()
        self.committed[name] |= set(ids)
        self.commits += 1

    def go_on(self, client: Client, until_s: float, every_s: float) -> None:
        """Commit to tables by chance until an instant of the monotonic clock."""
        while time.monotonic() < until_s:
            name = self.chance.choice(self.names)
            self.commit(name)
            if self.chance.random() < 0.8:
                try:
                    client.notify(CommitEvent(name))
                    self.told += 1
                except (Unavailable, OutcomeUnknown):
                    pass  # nobody is there just now, or knows whether it was heard: the sweep finds it
            time.sleep(every_s)
        self.ended_well = True


class Killer:
    """Kills what it is told to, as a machine that loses power, and starts it again; or stops it for a while."""

    def __init__(self, at: Town, chance: random.Random) -> None:
        self._town, self._chance = at, chance
        self.kills, self.pauses = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)

    def by_chance(self) -> None:
        """Whatever it is this time, and whichever of the two."""
        kind = self._chance.choice(("server", *(kind for kind in KINDS if kind != "zookeeper" or self._town.zookeeper)))
        if self._chance.random() < _PAUSED:
            self.pause(kind, self._chance.uniform(DEAD_S / 2, 2 * DEAD_S))
        else:
            self.kill(kind, self._chance.random() * 3)

    def kill(self, kind: str, away_s: float, which: int | None = None) -> None:
        """One of a kind; it is away for some seconds."""
        self.kills[kind] += 1
        if kind == "database":
            self._town.database.kill()
            time.sleep(away_s)
            self._town.database.start()
            return
        if kind == "zookeeper":
            self._zookeeper.kill()
            time.sleep(away_s)
            self._zookeeper.start()
            return
        machine, command = self._one(kind, which)
        machine.kill(command)
        time.sleep(away_s)
        machine.start(command)

    def pause(self, kind: str, away_s: float, which: int | None = None) -> None:
        """One of a kind stops for some seconds; then it goes on as if they had not passed."""
        self.pauses[kind] += 1
        if kind == "database":
            self._town.database.pause(away_s)
            return
        if kind == "zookeeper":
            self._zookeeper.pause()
            time.sleep(away_s)
            self._zookeeper.go_on()
            return
        machine, command = self._one(kind, which)
        machine.pause(command, away_s)

    @property
    def _zookeeper(self) -> ZooKeeperServer:
        assert self._town.zookeeper is not None
        return self._town.zookeeper

    def _one(self, kind: str, which: int | None) -> tuple[Machine, str]:
        machines = self._town.servers if kind == "server" else self._town.optimizers
        machine = machines[self._chance.randrange(len(machines)) if which is None else which]
        return machine, "serve" if kind == "server" else "optimizer"


class Sampler:
    """Looks into the database again and again, past icewright: who works on what at this moment."""

    def __init__(self, at: Town, caps: Caps) -> None:
        self._url, self._caps = at.store_url, caps
        self._ends, self._thread = threading.Event(), threading.Thread(target=self._run)
        self.samples, self.working, self.away = 0, 0, 0
        self.most = Caps(0, 0)
        self.violations: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(0.2):
            try:
                with connected(self._url) as connection:
                    while not self._ends.wait(0.2):
                        self._sample(connection)
            except psycopg.OperationalError:
                self.away += 1  # it was killed

    def _sample(self, connection: psycopg.Connection) -> None:
        by_table = (
            "SELECT table_name, count(*) FROM tasks WHERE state = ANY(%s) GROUP BY catalog, table_uuid, table_name"
        )
        found = connection.execute(by_table, [list(ACTIVE)]).fetchall()
        self.violations += [f"{count} tasks at {name}" for name, count in found if count > 1]
        query = "SELECT count(*), coalesce(sum(held_cores), 0) FROM tasks WHERE state = 'running'"
        running, cores = connection.execute(query).fetchone() or (0, 0)
        self.most = Caps(max(self.most.tasks, running), max(self.most.cores, int(cores)))
        if running > self._caps.tasks or cores > self._caps.cores:
            self.violations.append(f"{running} tasks run and hold {cores} cores, but the caps are {self._caps}")
        self.samples += 1
        self.working += running > 0


def connected(url: str) -> psycopg.Connection:
    """A connection of one's own to the store."""
    return psycopg.connect(make_url(url).set(drivername="postgresql").render_as_string(False), autocommit=True)


def overlapping(url: str) -> list[str]:
    """Attempts at one table that were under way at the same time, by the store's clock, of all that ever were."""
    query = """
        SELECT a.task_id, b.task_id FROM attempts a JOIN tasks s ON s.task_id = a.task_id
        JOIN tasks t ON (t.catalog, t.table_uuid) = (s.catalog, s.table_uuid)
        JOIN attempts b ON b.task_id = t.task_id AND a.fencing_token < b.fencing_token
        WHERE a.ended_at IS NULL OR b.started_at < a.ended_at
    """
    with connected(url) as connection:
        return [f"{first} and {second}" for first, second in connection.execute(query).fetchall()]


def unfinished(url: str) -> int:
    """Tasks that have not ended, and events that no look has answered."""
    query = """
        SELECT (SELECT count(*) FROM tasks WHERE state NOT IN ('succeeded', 'failed', 'cancelled', 'superseded'))
             + (SELECT count(*) FROM inbox WHERE done_at IS NULL)
    """
    with connected(url) as connection:
        (found,) = connection.execute(query).fetchone() or (0,)
        return int(found)


def shared(at: Town) -> bool:
    """Whether each server has buckets, and all together have all, none of which is on its way."""
    with at.client() as client:
        found = client.cluster()
    live = [one["buckets"] for one in found["servers"] if one["session"] is not None]
    on_their_way = [one for one in found["servers"] if one["coming"]]
    return len(live) == len(at.servers) and sum(live) == BUCKETS and all(live) and not on_their_way


def ended(url: str) -> Counter[str]:
    """How many tasks ended in which state."""
    with connected(url) as connection:
        return Counter(dict(connection.execute("SELECT state, count(*) FROM tasks GROUP BY state").fetchall()))


def looked_at(url: str) -> dict[str, int]:
    """The snapshot of each table, by its uuid, that the last look has seen."""
    with connected(url) as connection:
        return dict(connection.execute("SELECT table_uuid, snapshot_id FROM tables").fetchall())


@dataclass(frozen=True)
class Checked:
    """What became of a table. ``orphans``: files in its place that its metadata do not name, of killed attempts."""

    files: int
    tasks: list[str]
    orphans: int


def check(table: Table, committed: set[int]) -> Checked:
    """Read every byte of a table: exactly the rows that were committed, and each path that is reachable is there."""
    found = table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()
    assert sorted(found) == sorted(committed), f"{table.name()}: {len(found)} rows, {len(committed)} were committed"
    reachable = _reachable(table)
    missing = [path for path in reachable if not Path(path).is_file()]
    assert not missing, f"{table.name()}: {missing}"
    there = {str(path) for path in Path(_path(table.location())).rglob("*") if path.is_file()}
    tasks = [s.summary[TASK_ID_KEY] or "" for s in table.metadata.snapshots if s.summary and s.summary[TASK_ID_KEY]]
    assert len(tasks) == len(set(tasks)), f"{table.name()}: a task has committed twice: {tasks}"
    return Checked(table.inspect.data_files().num_rows, tasks, len(there - reachable))


def _reachable(table: Table) -> set[str]:
    paths = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    for snapshot in table.metadata.snapshots:
        paths.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            paths.add(manifest.manifest_path)
            paths |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
    return {_path(path) for path in paths}


def _path(location: str) -> str:
    return urlsplit(location).path  # Java writes file:/, PyIceberg file:///
