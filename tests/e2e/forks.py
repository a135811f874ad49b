"""Processes that are forked from one that has imported icewright; as those of ``subprocess`` to who ends them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

_POLL_S = 0.05


class Forked:
    """A command of icewright in a process of its own: the part of ``subprocess.Popen`` that tests use."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        log.touch(0o600)  # there at once, as that of subprocess is; the fork opens it in its own time
        self.pid = _asked({"words": words, "environ": dict(environ), "log": str(log)}) or 0
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        if self.returncode is None:
            self.returncode = _asked(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, once it has ended. Raises ``subprocess.TimeoutExpired``."""
        until_s = time.monotonic() + (timeout or float("inf"))
        while (code := self.poll()) is None:
            if time.monotonic() > until_s:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            time.sleep(_POLL_S)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """As long as it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)


_ASKING = threading.Lock()


@cache
def _zygote() -> subprocess.Popen[str]:
    """One for all tests of this process."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.zygote"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def end() -> None:
    """End what forks, and all that it has forked."""
    if _zygote.cache_info().currsize:
        _zygote().communicate(timeout=30)


def _asked(request: object) -> int | None:
    with _ASKING:
        zygote = _zygote()
        _pipe(zygote.stdin).write(f"{json.dumps(request)}\n")
        _pipe(zygote.stdin).flush()
        answer: int | None = json.loads(_pipe(zygote.stdout).readline())
        return answer


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
