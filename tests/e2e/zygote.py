"""Starts icewright's commands by forking a process that has imported them: a start costs no import.

``python -m tests.e2e.zygote``. On standard input there is one request a line, as JSON, and on standard output an answer
to each: to a command to run (:class:`Start`), the id of its process; to the id of one that was started, its exit status
as ``subprocess.Popen`` has it, or null while it runs. What runs in the fork is ``python -m icewright``.

Where servers and supervisors die on order (``KILLS_FOLDER``), waits that only spread load in production (before a
restart, before another try, between two rounds) are cut short, and clocks go ahead of the machine's as the test says:
so files and sightings grow old, and no floor is lowered.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import runpy
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TypedDict

from icewright.core.extras import without_collection
from icewright.core.system_clock import SystemClock
from icewright.server.cluster import leadership
from icewright.server.http import app
from icewright.store import transactions
from icewright.work.launch import optimizer
from icewright.work.tasks import retry

_PR_SET_PDEATHSIG = 1
_IMPORTED_LATER = (
    "alembic.command",
    "anyio._backends._asyncio",
    "icewright.app.processes",
    "icewright.configuration.load",
    "icewright.server.server",
    "icewright.server.tracing",
    "icewright.work.optimizers.cli",
    "psycopg",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
)


class Start(TypedDict):
    """The words behind ``icewright``, the whole environment, and the file that standard output and error go to."""

    words: Sequence[str]
    environ: Mapping[str, str]
    log: str


def serve_forks() -> None:
    """Answer until standard input ends; whatever still runs then ends with this process."""
    with without_collection():
        for name in _IMPORTED_LATER:
            import_module(name)
        app._routes()  # of all servers: otherwise, with the imports, three quarters of the CPU of a start
    for line in sys.stdin:
        request = json.loads(line)
        if isinstance(request, int):
            pid, status = os.waitpid(request, os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                become(request)
                break
        print(json.dumps(answer), flush=True)  # noqa: T201 - the answer


def become(start: Start) -> None:
    """Be that command; this ends as the command line does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    log = os.open(start["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((null, log, log)):
        os.dup2(descriptor, number)
    os.environ.clear()
    os.environ.update(start["environ"])
    sys.argv[1:] = start["words"]
    if "KILLS_FOLDER" in os.environ:
        shorten_waits(Path(os.environ["KILLS_FOLDER"]))
    sys.path[:0] = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.modules.pop("sitecustomize", None)
    with suppress(ImportError):
        import_module("sitecustomize")  # as Python does when it starts
    runpy.run_module("icewright", run_name="__main__", alter_sys=True)


def shorten_waits(folder: Path) -> None:
    """Cut waits short, and have the clocks go by the file ``clock``."""
    retry.BACKOFF_BASE_MS = 500
    optimizer._PAUSE_S_MIN = optimizer._PAUSE_S_MAX = 0.1  # type: ignore[misc]  # constants, but for this process
    leadership.LOOP_PAUSE_S = 0.2  # type: ignore[misc]  # the same
    set_clocks_by(folder / "clock")


def set_clocks_by(file: Path) -> None:
    """Have the clocks of this process, its own and that of its store, go ahead by as many ms as a file says.

    It is looked at where it lies in memory, since a server asks for the time hundreds of times a second.
    """
    own, stores, counted = SystemClock.now, transactions.now, time.clock_gettime_ns
    with file.open("rb") as opened:
        said = mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ)

    def ahead_ms() -> int:
        return int(said[:])

    SystemClock.now = lambda self: own(self) + ahead_ms()  # type: ignore[method-assign]  # in this process alone
    transactions.now = lambda connection, clock=None: stores(connection, clock) + ahead_ms()
    time.clock_gettime_ns = lambda clock: counted(clock) + ahead_ms() * 1_000_000  # the machine was up all the time


if __name__ == "__main__":
    serve_forks()
