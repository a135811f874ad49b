"""Real processes, started, killed and started again as people and machines do it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil
from sqlalchemy import make_url

from icewright.api_client.client import Client
from icewright.core.errors import IcewrightError
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.tables import Json
from tests.e2e.forks import Forked
from tests.servers.java import jars_for_spark
from tests.servers.postgres import PASSWORD, PASSWORD_IN_URLS

_CONFIGURATION = """\
[server]
state_dir = "{state}"
port = {port}
lease_ms = 4000

[optimizer]
master = "local[2]"
poll_interval_ms = 200
jars = {jars}

[[catalogs]]
name = "{name}"
type = "sql"
uri = "{uri}"
warehouse = "{warehouse}"
mode = "auto"
"""
WAIT_S = 240.0
SHARED_TOKEN = "the-token-that-all-servers-of-this-test-share"  # noqa: S105 - not a secret


@dataclass
class Processes:
    """The command line's own processes, started and killed as a person would.

    Those that are ``forked`` (:mod:`tests.e2e.zygote`) cost no import, and have no words and environment that all see.
    """

    folder: Path
    entry: CatalogEntry
    running: dict[str, Forked | subprocess.Popen[bytes]] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    forked: bool = True

    def __post_init__(self) -> None:
        text = _CONFIGURATION.format(
            state=self.folder / "state",
            port=free_port(),
            jars=json.dumps(jars_for_spark()),
            name=self.entry.name,
            uri=self.entry.uri,
            warehouse=self.entry.warehouse,
        )
        self.configuration.write_text(text)

    @property
    def configuration(self) -> Path:
        return self.folder / "icewright.toml"

    def start(self, command: str) -> None:
        words, environ = ["--config", str(self.configuration), command], {**os.environ, **self.environ}
        log = self.folder / f"{command}.log"
        if self.forked:
            self.running[command] = Forked(words, environ, log)
            return
        with log.open("ab") as output:
            self.running[command] = subprocess.Popen(  # noqa: S603 - our own command, as a list
                [sys.executable, "-m", "icewright", *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environ,
            )

    def log(self, command: str) -> str:
        return (self.folder / f"{command}.log").read_text(errors="replace")

    def kill(self, command: str) -> None:
        """SIGKILL to the process and to all below it, as a dying machine does."""
        process = self.running.pop(command)
        for victim in (*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)):
            victim.kill()
        process.wait()

    def pause(self, command: str, away_s: float) -> None:
        """Stop the process and all below it for some seconds, as a machine does that swaps; then they go on."""
        process = psutil.Process(self.running[command].pid)
        paused = [*process.children(recursive=True), process]
        for each in paused:
            each.suspend()
        time.sleep(away_s)
        for each in paused:
            each.resume()

    def client(self) -> Client:
        """A client of the server as its address file says; waits until it answers."""
        path = self.folder / "state" / "server.json"

        def connected() -> Client | None:
            self.revive()
            try:
                found = json.loads(path.read_text())
                client = Client(found["url"], found["token"])
                client.status()
            except (OSError, ValueError, IcewrightError):
                return None
            return client

        return wait_for(connected, "the server answers", self)

    def revive(self) -> None:
        """Start again what is to run and does not: nothing here, where a death is not expected."""

    def end(self) -> None:
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise


def below(processes: Processes, command: str, name: str) -> list[psutil.Process]:
    """Processes of that name below one of ours; one that ends while it is looked at is not there."""
    found = []
    for process in psutil.Process(processes.running[command].pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.is_running() and process.name() == name:
                found.append(process)
    return found


@contextmanager
def several_servers(
    folder: Path, entry: CatalogEntry, store_url: str, settings: str = "", *, forked: bool = True
) -> Iterator[Callable[[str], Processes]]:
    """Makes further machines with a server, by their names, over one lake and one store; their servers end behind it.

    ``settings`` are lines of the configuration's section of the server. The store's password is that of the tests'
    PostgreSQL, and no log may have it.
    """
    url = make_url(store_url)._replace(drivername="postgresql", password=None).render_as_string()
    settings = (
        f'[server]\nstore_url = "{url}"\nstore_password = "env:STORE_PASSWORD"\ntoken = "env:SHARED_TOKEN"\n{settings}'
    )
    machines: list[Processes] = []

    ending = ExitStack()

    def make(name: str) -> Processes:
        (folder / name).mkdir()
        environ = {"STORE_PASSWORD": PASSWORD, "SHARED_TOKEN": SHARED_TOKEN}
        made = Processes(folder / name, entry, environ=environ, forked=forked)
        made.configuration.write_text(made.configuration.read_text().replace("[server]\n", settings))
        machines.append(made)
        ending.callback(made.end)
        return made

    with ending:
        yield make
    for each in machines:
        for secret in (PASSWORD, PASSWORD_IN_URLS, SHARED_TOKEN):
            assert secret not in each.log("serve")


def led_by(processes: Processes, client: Client, url: str) -> Json:
    """The status as ``client`` gets it, once the server at ``url`` leads."""

    def led() -> Json | None:
        try:
            status = client.status()
        except IcewrightError:
            return None
        leaders = [one["url"] for one in status["servers"] if one["leads"] and not one["is_silent"]]
        return status if leaders == [url] else None

    return wait_for(led, f"{url} leads", processes)


def free_port() -> int:
    """A port that was free just now; the server must come back on the same one after it was killed."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


Answer = TypeVar("Answer")


def wait_for(look: Callable[[], Answer | None], what: str, processes: Processes, wait_s: float = WAIT_S) -> Answer:
    """The first answer of ``look`` that is not None; looking takes a tenth of the time at most."""
    until_s = time.monotonic() + wait_s
    while (began_s := time.monotonic()) < until_s:
        found = look()
        if found is not None:
            return found
        time.sleep(min(max(0.05, 9 * (time.monotonic() - began_s)), 0.5))
    logs = "\n".join(f"--- {name}\n{processes.log(name)[-4000:]}" for name in processes.running)
    raise AssertionError(f"waited {wait_s} s in vain: {what}\n{logs}")
