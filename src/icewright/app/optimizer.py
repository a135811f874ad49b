"""Keeps an optimizer process running: starts it, hands it its settings, and starts it anew when it asks or dies.

The optimizer lives in a process of its own because a Spark session can only be renewed with its process, and because
a death by memory must not take the one who restarts it along.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from types import FrameType
from typing import Final

import structlog

from icewright.adapters.clock import SystemIds
from icewright.app.address import read_address
from icewright.config.model import Config
from icewright.config.secrets import resolve, resolve_entry
from icewright.domain.codec import dumps
from icewright.domain.errors import NotFound, Rejected
from icewright.domain.optimizers import RECYCLE_EXIT_CODE, OptimizerSettings

_log = structlog.get_logger("icewright.optimizer")

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
    """Run an optimizer until SIGTERM or SIGINT; the exit status is 0, or 2 when it cannot run as configured."""
    stop = threading.Event()
    child: list[subprocess.Popen[bytes]] = []

    def pass_on(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        for process in child:
            process.send_signal(signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    pause_s = 1.0
    while not stop.is_set():
        started_s = time.monotonic()
        try:
            child[:] = [start(settings_of(config, environ))]
        except NotFound as error:
            _log.warning("waiting for the server", detail=error.message)
            stop.wait(pause_s)
            continue
        code = child[0].wait()
        if stop.is_set() or code == 0:
            return 0
        if code == _WRONG_USE:
            return code
        if code == RECYCLE_EXIT_CODE:
            continue
        pause_s = 1.0 if time.monotonic() - started_s > _STEADY_S else min(_PAUSE_S_MAX, pause_s * 2)
        _log.error("optimizer died, starting it again", exit_code=code, pause_s=pause_s)
        stop.wait(pause_s)
    return 0


def start(settings: OptimizerSettings) -> subprocess.Popen[bytes]:
    """Start one optimizer process. Settings go through a pipe, so that no secret is in its arguments.

    It gets a session of its own, so that Ctrl-C at a terminal reaches only this process, which passes it on.
    """
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "icewright_spark"], stdin=subprocess.PIPE, stdout=_STDERR, start_new_session=True
        )
    except OSError as error:
        raise Rejected(f"the optimizer cannot be started: {error}") from error
    if process.stdin is not None:
        process.stdin.write(dumps(settings).encode())
        process.stdin.close()
    return process
