"""Keeps an optimizer process running: starts it, hands it its settings, and starts it anew when it asks or dies.

The optimizer lives in a process of its own because a Spark session can only be renewed with its process, and because
a death by memory must not take the one who restarts it along.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import Final

import structlog

from icewright.adapters.clock import SystemIds
from icewright.app.address import read_address
from icewright.config.model import Config
from icewright.config.secrets import resolve, resolve_entry
from icewright.domain.codec import dumps
from icewright.domain.errors import NotFound, Rejected
from icewright.domain.faults import Fault, fault
from icewright.domain.optimizers import RECYCLE_EXIT_CODE, OptimizerSettings

_log = structlog.get_logger("icewright.optimizer")

COMMAND: Final = (sys.executable, "-m", "icewright_spark")
_PAUSE_S_MIN: Final = 1.0
_PAUSE_S_MAX: Final = 60.0
_STEADY_S: Final = 120.0
"""An optimizer that lived this long was not failing to start: its next restart is quick again."""
_WRONG_USE: Final = 2
_STDERR: Final = 2
"""Where logs go, those of Spark's own start included: standard output is for what a person asked for."""


def settings_of(config: Config, environ: Mapping[str, str]) -> OptimizerSettings:
    """What an optimizer process of this configuration is started with.

    Raises :class:`NotFound` when no server is known.
    """
    optimizer = config.optimizer
    if optimizer.server_url is not None:
        token = "" if optimizer.server_token is None else optimizer.server_token
        url, token = optimizer.server_url, resolve(token, key="optimizer.server_token", environ=environ)
    else:
        address = read_address(config.server.address_file)
        url, token = address.url, address.token
    return OptimizerSettings(
        server_url=url,
        token=token,
        optimizer_id=SystemIds().new("optimizer"),
        resource_group=optimizer.resource_group,
        slots=optimizer.slots,
        batch_tasks=optimizer.batch_tasks,
        batch_bytes=optimizer.batch_bytes,
        master=optimizer.master,
        driver_memory=optimizer.memory,
        packages=optimizer.packages,
        jars=optimizer.jars,
        spark_conf=dict(optimizer.spark_conf),
        catalogs=tuple(resolve_entry(entry, environ) for entry in config.catalogs),
        poll_interval_ms=optimizer.poll_interval_ms,
        recycle_after_tasks=optimizer.recycle_after_tasks,
        recycle_memory_bytes=optimizer.recycle_memory_bytes,
    )


def run(config: Config, environ: Mapping[str, str] = os.environ) -> int:
    """Run an optimizer until SIGTERM or SIGINT; the exit status is 0, or 2 when it cannot run as configured.

    A running task is waited for; a second SIGINT ends it where it is, and the server finds out how far it came.
    """
    return Supervisor(lambda: settings_of(config, environ)).run()


class Supervisor:
    """One optimizer process after the other. ``settings`` is asked for each and raises ``NotFound`` without server."""

    def __init__(self, settings: Callable[[], OptimizerSettings], command: Sequence[str] = COMMAND) -> None:
        self._settings, self._command = settings, command
        self._signals: list[int] = []
        # Not an Event: its lock may be held by the very code that a signal interrupts. A SimpleQueue is reentrant.
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._child: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """See :func:`run`; to be called in the main thread, where signals arrive."""
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        pause_s = _PAUSE_S_MIN
        while not self._signals:
            started_s = time.monotonic()
            try:
                self._child = start(self._settings(), self._command)
            except NotFound as error:
                _log.warning("waiting for the server", detail=error.message)
                self._rest(_PAUSE_S_MIN)
                continue
            if self._signals:  # the signal came before there was a child to pass it on to
                self._child.terminate()
            code = self._child.wait()
            fault(Fault.SUPERVISOR_BURIED)
            if self._signals or code == 0:
                return 0
            if code == _WRONG_USE:
                return code
            if code == RECYCLE_EXIT_CODE:
                continue
            steady = time.monotonic() - started_s > _STEADY_S
            _log.error("optimizer died, starting it again", exit_code=code, pause_s=_PAUSE_S_MIN if steady else pause_s)
            self._rest(_PAUSE_S_MIN if steady else pause_s)
            pause_s = _PAUSE_S_MIN if steady else min(_PAUSE_S_MAX, pause_s * 2)
        return 0

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)
        self._wake.put(None)
        if self._child is None or self._child.poll() is not None:
            return
        if self._signals.count(signal.SIGINT) > 1:
            os.killpg(self._child.pid, signal.SIGKILL)  # it leads the group of its JVM, too
        else:
            self._child.terminate()

    def _rest(self, pause_s: float) -> None:
        with suppress(queue.Empty):
            self._wake.get(timeout=pause_s)


def start(settings: OptimizerSettings, command: Sequence[str] = COMMAND) -> subprocess.Popen[bytes]:
    """Start one optimizer process. Settings go through a pipe, so that no secret is in its arguments.

    It gets a session of its own, so that Ctrl-C at a terminal reaches only this process, which passes it on.
    Raises :class:`Rejected` when there is no such program.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter, as a list
            [*command, str(os.getpid())], stdin=subprocess.PIPE, stdout=_STDERR, start_new_session=True
        )
    except OSError as error:
        raise Rejected(f"the optimizer cannot be started: {error}") from error
    fault(Fault.SUPERVISOR_STARTED)
    if process.stdin is not None:
        with suppress(BrokenPipeError), process.stdin as pipe:  # it has ended already: its exit status tells the rest
            pipe.write(dumps(settings).encode())
    return process
