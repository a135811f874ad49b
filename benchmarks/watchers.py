"""Who looks after tables: icewright's own server, optimizer and upkeep, and a process that polls with PyIceberg.

Each is a process of its own over a catalog of its own, so that nobody pays for the other or for the generator.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks.lake import Mismatch
from benchmarks.many_tables import Commit, Pointers
from benchmarks.measure import ProcessTree
from icewright.api_client.client import Client
from icewright.core.codec import dumps
from icewright.core.errors import IcewrightError
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Json

_LOOK_INTERVAL_S: Final = 0.005
_WAIT_S: Final = 300.0
_START_S: Final = 60.0
_GRACE_S: Final = 20.0
_PAGE: Final = 100

_CONFIGURATION: Final = """\
[server]
state_dir = {state}
port = 0

[[catalogs]]
name = {name}
type = "sql"
uri = {uri}
warehouse = {warehouse}
"""


_OPTIMIZER: Final = """\
[server]
state_dir = {state}

[optimizer]
recycle_after_tasks = 1_000_000
{settings}
[[catalogs]]
name = {name}
type = "sql"
uri = {uri}
warehouse = {warehouse}
"""


class Server:
    """``icewright serve`` with its SQLite store, told of commits over HTTP as writers do."""

    def __init__(self, folder: Path, entry: CatalogEntry) -> None:
        self._folder, self._pointers = folder, Pointers(entry)
        self._state = folder / "state"
        self.configuration = configuration = folder / "icewright.toml"
        values = {"state": str(self._state), "name": entry.name, "uri": entry.uri, "warehouse": entry.warehouse}
        configuration.write_text(_CONFIGURATION.format(**{key: json.dumps(value) for key, value in values.items()}))
        self._process = _start(
            ["-m", "icewright", "--config", str(configuration), "serve"], folder / "serve.log", stdin=subprocess.DEVNULL
        )
        self.tree = ProcessTree(psutil.Process(self._process.pid))
        self.client = self._connect()

    def wait_for_tables(self, count: int) -> None:
        """Wait until so many tables were looked at. Raises :class:`Mismatch` when that stops going on."""
        known, since_s = -1, time.monotonic()
        while (found := self._ask("SELECT count(*) FROM tables WHERE plan_id IS NOT NULL")) < count:
            if found != known:
                known, since_s = found, time.monotonic()
            if time.monotonic() - since_s > _WAIT_S:
                raise Mismatch(f"{found} of {count} tables were looked at; {self._said()}")
            time.sleep(0.1)

    def replay(self, commits: Sequence[Commit], per_s: float) -> list[float]:
        """Commit, at an even pace, and wait until all is in the inventory and nothing waits in the inbox.

        Gives the seconds from each swap of a pointer to the commit's being in the inventory.
        """
        waiting: deque[_Waiting] = deque()
        lags_s: list[float] = []
        started_s = time.monotonic()
        with closing(self._open_store()) as store:
            for number, commit in enumerate(commits):
                due_s = started_s + number / per_s
                while time.monotonic() < due_s:
                    lags_s += _arrived(store, waiting)
                    time.sleep(min(_LOOK_INTERVAL_S, max(0.0, due_s - time.monotonic())))
                self._pointers.swap(commit)
                waiting.append(_Waiting(commit, time.monotonic()))
                self.client.notify(CommitEvent(commit.name, commit.snapshot_id))
            until_s = time.monotonic() + _WAIT_S
            while waiting or self._ask("SELECT count(*) FROM inbox WHERE done_at IS NULL"):
                if time.monotonic() > until_s:
                    raise Mismatch(f"{len(waiting)} commits never came into the inventory; {self._said()}")
                lags_s += _arrived(store, waiting)
                time.sleep(_LOOK_INTERVAL_S)
        return lags_s

    def tasks(self) -> dict[str, int]:
        """Tasks by state; states without any are left out."""
        with closing(self._open_store()) as store:
            return dict(store.execute("SELECT state, count(*) FROM tasks GROUP BY state"))

    def partitions(self, name: TableName) -> list[Json]:
        """See :func:`told_partitions`."""
        return told_partitions(self.client, name)

    def close(self) -> None:
        """End the process."""
        self._pointers.close()
        _end(self._process)

    def _ask(self, query: str) -> int:
        with closing(self._open_store()) as store:
            return int(store.execute(query).fetchone()[0])

    def _open_store(self) -> sqlite3.Connection:
        path = self._state / "icewright.db"
        return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)

    def _connect(self) -> Client:
        until_s = time.monotonic() + _START_S
        while time.monotonic() < until_s and self._process.poll() is None:
            try:
                found = json.loads((self._state / "server.json").read_text())
                client = Client(found["url"], found["token"])
                client.status()
            except (OSError, ValueError, IcewrightError):
                time.sleep(0.05)
            else:
                return client
        raise Mismatch(f"the server did not start; {self._said()}")

    def _said(self) -> str:
        return (self._folder / "serve.log").read_text(errors="replace")[-2000:]


def told_partitions(client: Client, name: TableName) -> list[Json]:
    """The inventory of a table, as a server tells it."""
    uuid = str(client.table(name)["uuid"])
    found: list[Json] = []
    cursor: str | None = None
    while True:
        page = client.partitions(uuid, name.catalog, limit=_PAGE, cursor=cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


class Optimizer:
    """``icewright optimizer`` for the server of the same folder, whose Spark is never started anew."""

    def __init__(self, folder: Path, entry: CatalogEntry, settings: Mapping[str, int]) -> None:
        self._folder = folder
        configuration = folder / "optimizer.toml"
        values = {
            "state": folder / "state",
            "name": entry.name,
            "uri": entry.uri,
            "warehouse": entry.warehouse,
        }
        configuration.write_text(
            _OPTIMIZER.format(
                **{key: json.dumps(str(value)) for key, value in values.items()},
                settings="".join(f"{key} = {value}\n" for key, value in settings.items()),
            )
        )
        self._process = _start(
            ["-m", "icewright", "--config", str(configuration), "optimizer"],
            folder / "optimizer.log",
            stdin=subprocess.DEVNULL,
        )
        self.tree = ProcessTree(psutil.Process(self._process.pid))

    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def said(self) -> str:
        """The end of its log."""
        return (self._folder / "optimizer.log").read_text(errors="replace")[-2000:]

    def close(self) -> None:
        """End the process."""
        _end(self._process)


class Poller:
    """PyIceberg in a process: loads a table and inspects it, whenever it is told that the table changed."""

    def __init__(self, folder: Path, entry: CatalogEntry) -> None:
        self._pointers = Pointers(entry)
        arguments = ["-m", "benchmarks.polling", entry.name, json.dumps(entry.pyiceberg_properties())]
        self._process = _start(arguments, folder / "polling.log", stdin=subprocess.PIPE)
        self.tree = ProcessTree(psutil.Process(self._process.pid))
        self._ask("ready", "")

    def inspect(self, how: str, commits: Sequence[Commit]) -> None:
        """Swap to each commit, and have its table inspected. ``how``: ``partitions``, ``files`` or ``load``."""
        for commit in commits:
            self._pointers.swap(commit)
            self._ask(how, commit.name.name)

    def close(self) -> None:
        """End the process."""
        self._pointers.close()
        _end(self._process)

    def _ask(self, how: str, table: str) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the process was started without pipes")
        stdin.write(f"{how} {table}\n".encode())
        stdin.flush()
        answer = stdout.readline()
        if not answer.startswith(b"ok"):
            raise Mismatch(f"PyIceberg could not inspect {table}: {answer!r}")


class UpkeepProcess:
    """icewright's upkeep without a server, in a process that is told what to do; see :mod:`benchmarks.upkeep`."""

    def __init__(self, folder: Path, entry: CatalogEntry) -> None:
        self._log = folder / "upkeep.log"
        arguments = ["-m", "benchmarks.upkeep", dumps(entry), str(folder)]
        self._process = _start(arguments, self._log, stdin=subprocess.PIPE)
        self.tree = ProcessTree(psutil.Process(self._process.pid))
        self.ask("ready")

    def ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        """Have something done; the answer. Raises :class:`Mismatch` when it was not done."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the process was started without pipes")
        stdin.write(json.dumps({"do": what, **arguments}).encode() + b"\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise Mismatch(f"the upkeep could not {what}; {self._log.read_text(errors='replace')[-2000:]}")
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """End the process."""
        _end(self._process)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A commit that is not in the inventory yet. ``since_s`` is the monotonic clock's."""

    commit: Commit
    since_s: float


def _arrived(store: sqlite3.Connection, waiting: deque[_Waiting]) -> list[float]:
    """Take out the commits that the store has, or a later one of the same table; how long each took, in seconds."""
    now_s, lags_s = time.monotonic(), []
    for _ in range(len(waiting)):
        item = waiting.popleft()
        row = store.execute(
            "SELECT snapshot_id FROM tables WHERE catalog = ? AND table_uuid = ?",
            (item.commit.name.catalog, item.commit.table_uuid),
        ).fetchone()
        if row is not None and row[0] is not None and row[0] >= item.commit.snapshot_id:
            lags_s.append(now_s - item.since_s)
        else:
            waiting.append(item)
    return lags_s


def _start(arguments: list[str], log: Path, *, stdin: int) -> subprocess.Popen[bytes]:
    with log.open("wb") as said:
        return subprocess.Popen(  # noqa: S603 - our own modules, as a list of arguments
            [sys.executable, *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE if stdin == subprocess.PIPE else said,
            stderr=said,
            env=dict(os.environ),
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
