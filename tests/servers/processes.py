"""A server as a process of its own that ends with the test process, however that ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

HOST = "127.0.0.1"
_START_S_MAX = 60.0
_END_S_MAX = 20.0
_POLL_S = 0.05
_LOG_BYTES_SHOWN = 4000
_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL") if sys.platform == "linux" else ()
"""Of util-linux. No code of ours runs in the child: what libraries do behind a fork may wait for threads for ever, as
fsspec does where a client of HDFS is remembered."""


class DidNotStart(Exception):
    """The server ended or was not ready in time; the message has the end of its log."""


def free_port() -> int:
    """A port of the loopback interface that nobody listens at."""
    with closing(socket.socket()) as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def accepts(port: int) -> bool:
    """Whether somebody listens at a port of the loopback interface."""
    with closing(socket.socket()) as client:
        client.settimeout(1.0)
        return client.connect_ex((HOST, port)) == 0


@contextmanager
def running(
    command: Sequence[str],
    *,
    log: Path,
    ready: Callable[[], bool],
    environ: Mapping[str, str] | None = None,
    user: str | None = None,
    end: signal.Signals = signal.SIGKILL,
) -> Iterator[subprocess.Popen[bytes]]:
    """The process while the block runs; entered once ``ready`` is. ``environ`` is added to this process's.

    ``user`` is whom it runs as, where this process may decide that. ``end`` is the signal that ends it: what it holds
    is thrown away in any case. Raises :class:`DidNotStart`.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - programs that the tests name
            [*_DIE_WITH_PARENT, *command],
            cwd=log.parent,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the tests, which then end it
            user=user,
            group=None if user is None else _group_of(user),
            extra_groups=None if user is None else (),
        )
    try:
        wait(process, ready, log)
        yield process
    finally:
        _end(process, end)


def _group_of(user: str) -> int:
    import pwd  # noqa: PLC0415 - not on every platform

    return pwd.getpwnam(user).pw_gid


def wait(process: subprocess.Popen[bytes], ready: Callable[[], bool], log: Path) -> None:
    """Wait until the process is ready. Raises :class:`DidNotStart`."""
    deadline_s = time.monotonic() + _START_S_MAX
    while not ready():
        if process.poll() is not None:
            raise DidNotStart(f"{process.args!r} ended with {process.returncode}: {_end_of(log)}")
        if time.monotonic() > deadline_s:
            raise DidNotStart(f"{process.args!r} is not ready after {_START_S_MAX} s: {_end_of(log)}")
        time.sleep(_POLL_S)


def _end_of(log: Path) -> str:
    return log.read_bytes()[-_LOG_BYTES_SHOWN:].decode(errors="replace")


def _end(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    process.send_signal(how)
    try:
        process.wait(_END_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
