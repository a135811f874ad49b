"""The processes of the demo: a server, an optimizer and two writers, all of which end with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from icewright.demo.folder import DemoFolder

_WRITER: Final = Path(__file__).with_name("flights_writer.py")
_GRACE_S: Final = 20.0
_QUICK_JVM: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Options of JVMs that live for minutes: one quick compiler, and no threads that collect garbage."""


class Processes:
    """What runs, by name."""

    def __init__(self, folder: DemoFolder) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start_server(self, port: int) -> None:
        """Start the server."""
        self._start("server", ["-m", "icewright", "--config", str(self._folder.configuration), "serve"], port)

    def start_optimizer(self) -> None:
        """Start the optimizer; it waits for the server by itself."""
        self._start("optimizer", ["-m", "icewright", "--config", str(self._folder.configuration), "optimizer"])

    def start_writer(self, days: int) -> None:
        """Start the independent writer."""
        self._start("writer", [str(_WRITER), *self._where(), "--delays", "--days", str(days)])

    def start_spark_writer(self) -> None:
        """Start the writer that deletes rows, with a Spark session of its own."""
        self._start("spark-writer", ["-m", "icewright_spark.demo_writer", *self._where()])

    def is_started(self, name: str) -> bool:
        """Whether that process was started."""
        return name in self._running

    def exit_code(self, name: str) -> int | None:
        """The exit status of a process that has ended, None while it runs."""
        return self._running[name].poll()

    def end(self) -> None:
        """End everything: politely first, then for certain."""
        for process in self._running.values():
            if process.poll() is None:
                process.terminate()
        for process in self._running.values():
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _where(self) -> list[str]:
        entry = self._folder.entry
        return ["--catalog", entry.name, "--uri", entry.uri, "--warehouse", entry.warehouse_uri]

    def _start(self, name: str, arguments: list[str], port: int | None = None) -> None:
        environment = {"SPARK_SUBMIT_OPTS": _QUICK_JVM, **os.environ}
        if port is not None:
            environment["ICEWRIGHT_SERVER__PORT"] = str(port)
        with self._folder.log(name).open("wb") as log:
            self._running[name] = subprocess.Popen(  # noqa: S603 - our own modules, as a list of arguments
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # Ctrl-C reaches the demo alone, which then ends them in order
            )


@contextmanager
def processes_of(folder: DemoFolder) -> Iterator[Processes]:
    """Processes that have ended when the block is left, however it is left."""
    processes = Processes(folder)
    try:
        yield processes
    finally:
        processes.end()
