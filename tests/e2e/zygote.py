"""Starts servers and supervisors by forking a process that has imported them: a restart costs no import.

``python -m tests.e2e.zygote <configuration>``; on standard input one command a line, ``serve`` or ``optimizer``; on
standard output the pid of each. What runs in the fork is what the command line runs. Waits that only spread load in
production (before a restart, before another try, between two rounds) are cut short. Clocks go ahead of the machine's as
the test says: so files and sightings grow old, and no floor is lowered.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

from icewright.configuration.load import load_config
from icewright.core.system_clock import SystemClock
from icewright.server import server
from icewright.server.cluster import leadership
from icewright.server.http import app
from icewright.store import transactions
from icewright.work.launch import optimizer
from icewright.work.tasks import retry

_PR_SET_PDEATHSIG = 1


def main(configuration: Path) -> None:
    """Fork until standard input ends; whatever still runs then ends with this process."""
    retry.BACKOFF_BASE_MS = 500
    optimizer._PAUSE_S_MIN = optimizer._PAUSE_S_MAX = 0.1  # type: ignore[misc]  # constants, but for this process
    leadership.LOOP_PAUSE_S = 0.2  # type: ignore[misc]  # the same
    set_clocks_by(Path(os.environ["KILLS_FOLDER"]) / "clock")
    make_what_all_share()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    for line in sys.stdin:
        command = line.strip()
        pid = os.fork()
        if pid == 0:
            become(command, configuration)
        print(pid, flush=True)  # noqa: T201 - the answer


def make_what_all_share() -> None:
    """The routes of a server, and what it imports as it starts: otherwise three quarters of the CPU of each start."""
    app._routes()
    for name in ("alembic.command", "anyio._backends._asyncio", "uvicorn.loops.auto", "uvicorn.protocols.http.auto"):
        import_module(name)


def set_clocks_by(file: Path) -> None:
    """Have the clocks of whatever is forked, its own and that of its store, go ahead by as many ms as a file says."""
    own, stores, counted = SystemClock.now, transactions.now, time.clock_gettime_ns

    def ahead_ms() -> int:
        return int(file.read_text()) if file.exists() else 0

    SystemClock.now = lambda self: own(self) + ahead_ms()  # type: ignore[method-assign]  # in this process alone
    transactions.now = lambda connection, clock=None: stores(connection, clock) + ahead_ms()
    time.clock_gettime_ns = lambda clock: counted(clock) + ahead_ms() * 1_000_000  # the machine was up all the time


def become(command: str, configuration: Path) -> None:
    """Be that command until it ends; never returns."""
    code = 70
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        log = os.open(configuration.parent / f"{command}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        for number, descriptor in enumerate((null, log, log)):
            os.dup2(descriptor, number)
        config = load_config(configuration, os.environ, configuration.parent)
        if command == "serve":
            server.serve(config)
            code = 0
        else:
            code = optimizer.run(config)
    except BaseException as error:  # noqa: BLE001 - a fork must never go on as its parent
        print(f"{command} ended: {error!r}", file=sys.stderr)  # noqa: T201 - the log
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
