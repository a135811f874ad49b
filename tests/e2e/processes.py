"""Real processes, started, killed and started again as people and machines do it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil

from icewright.adapters.http.client import Client
from icewright.domain.catalogs import CatalogEntry
from icewright.domain.errors import IcewrightError

_CONFIGURATION = """\
[server]
state_dir = "{state}"
port = {port}
lease_ms = 4000

[optimizer]
master = "local[2]"
poll_interval_ms = 200

[[catalogs]]
name = "{name}"
type = "sql"
uri = "{uri}"
warehouse = "{warehouse}"
mode = "auto"
"""
WAIT_S = 240.0


@dataclass
class Processes:
    """The command line's own processes, started and killed as a person would."""

    folder: Path
    entry: CatalogEntry
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        text = _CONFIGURATION.format(
            state=self.folder / "state",
            port=free_port(),
            name=self.entry.name,
            uri=self.entry.uri,
            warehouse=self.entry.warehouse,
        )
        self.configuration.write_text(text)

    @property
    def configuration(self) -> Path:
        return self.folder / "icewright.toml"

    def start(self, command: str) -> None:
        log = (self.folder / f"{command}.log").open("ab")
        arguments = [sys.executable, "-m", "icewright", "--config", str(self.configuration), command]
        self.running[command] = subprocess.Popen(  # noqa: S603 - our own command, as a list
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **self.environ},
        )
        log.close()

    def log(self, command: str) -> str:
        return (self.folder / f"{command}.log").read_text(errors="replace")

    def kill(self, command: str) -> None:
        """SIGKILL to the process and to all below it, as a dying machine does."""
        process = self.running.pop(command)
        for victim in (*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)):
            victim.kill()
        process.wait()

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


def free_port() -> int:
    """A port that was free just now; the server must come back on the same one after it was killed."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


Answer = TypeVar("Answer")


def wait_for(look: Callable[[], Answer | None], what: str, processes: Processes, wait_s: float = WAIT_S) -> Answer:
    """The first answer of ``look`` that is not None."""
    until_s = time.monotonic() + wait_s
    while time.monotonic() < until_s:
        found = look()
        if found is not None:
            return found
        time.sleep(0.05)
    logs = "\n".join(f"--- {name}\n{processes.log(name)[-4000:]}" for name in processes.running)
    raise AssertionError(f"waited {wait_s} s in vain: {what}\n{logs}")
