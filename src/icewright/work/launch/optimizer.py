"""Keeps an optimizer process running: starts it, hands it its settings, and starts it anew when it asks or dies.

The optimizer lives in a process of its own because a Spark session can only be renewed with its process, and because
a death by memory must not take the one who restarts it along.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import Final

import structlog

from icewright.config.model import Config
from icewright.config.secrets import resolve, resolve_entry
from icewright.core.codec import dumps
from icewright.core.errors import InvalidConfiguration, NotFound, Unreadable
from icewright.core.fault_points import Fault, fault
from icewright.core.outage_log import Outage
from icewright.core.system_clock import SystemIds
from icewright.model.policy.resource_groups import Queue
from icewright.model.queries.queries import LiteralPolicy
from icewright.model.work.optimizers import LOG_FORMATS, RECYCLE_EXIT_CODE, DeployMode, LauncherKind, OptimizerSettings
from icewright.model.work.spark_conf import spark_settings
from icewright.terminal.address import QUERIES_KEY, lasting_secret, read_address
from icewright.terminal.logs import FORMAT_VARIABLE, LEVEL_VARIABLE
from icewright.work.launch.dynamic_allocation import with_dynamic_allocation
from icewright.work.launch.pods import settings_secret
from icewright.work.launch.port import Application, Launcher
from icewright.work.launch.resident import ResidentLauncher
from icewright.work.launch.spark_submit import SparkSubmitLauncher, spark_home
from icewright.work.launch.submission import SparkHome
from icewright.work.launch.submitter import Submitter

_log = structlog.get_logger("icewright.optimizer")

_PAUSE_S_MIN: Final = 1.0
_PAUSE_S_MAX: Final = 60.0
_STEADY_S: Final = 120.0
"""An optimizer that lived this long was not failing to start: its next restart is quick again."""
_WRONG_USE: Final = 2


def spark_conf_of(config: Config) -> dict[str, str]:
    """Spark's settings of the configuration, with the bounds of its resource group on a cluster."""
    optimizer = config.optimizer
    group = next((one for one in config.groups if one.name == optimizer.resource_group), None)
    return dict(with_dynamic_allocation(optimizer.master, optimizer.memory, optimizer.spark_conf, group))


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
        queues=tuple(Queue(name) for name in optimizer.queues),
        slots=optimizer.slots,
        batch_tasks=optimizer.batch_tasks,
        batch_bytes=optimizer.batch_bytes,
        master=optimizer.master,
        driver_memory=optimizer.memory,
        packages=optimizer.packages,
        jars=optimizer.jars,
        spark_conf=spark_conf_of(config),
        catalogs=tuple(resolve_entry(entry, environ) for entry in config.catalogs),
        poll_interval_ms=optimizer.poll_interval_ms,
        executors_wait_ms=optimizer.executors_wait_ms,
        recycle_after_tasks=optimizer.recycle_after_tasks,
        recycle_memory_bytes=optimizer.recycle_memory_bytes,
        deploy_mode=DeployMode(optimizer.deploy_mode),
        spark_conf_keys=optimizer.spark_conf_keys,
        archive=optimizer.archive,
        executor_python=optimizer.executor_python,
        log_format=environ.get(FORMAT_VARIABLE, LOG_FORMATS[0]),
        log_level=environ.get(LEVEL_VARIABLE, "info"),
        tasks_max=1 if optimizer.launcher == LauncherKind.SPARK_SUBMIT else None,
        queries_hash_key=hash_key_of(config, environ),
    )


def hash_key_of(config: Config, environ: Mapping[str, str]) -> str | None:
    """The key of the digests in queries: the one that is configured, or that of the server in the same state directory.

    None where it cannot be read here: the work goes on without it.
    """
    queries, state = config.queries, config.server.state_dir
    if queries.literals is not LiteralPolicy.HASH:
        return None
    try:
        if queries.hash_key is not None:
            return resolve(queries.hash_key, key="queries.hash_key", environ=environ)
        is_here = config.optimizer.server_url is None and (state / QUERIES_KEY).exists()
        return lasting_secret(state, QUERIES_KEY) if is_here else None
    except (InvalidConfiguration, Unreadable, OSError) as error:
        _log.warning("hashed values of queries are not compared", detail=str(error))
        return None


def run(config: Config, environ: Mapping[str, str] = os.environ, *, launcher: str | None = None) -> int:
    """Run optimizers until SIGTERM or SIGINT; the exit status is 0, or 2 when they cannot run as configured.

    A running task is waited for; a second SIGINT ends it where it is, and the server finds out how far it came.
    ``launcher`` stands over the configuration. Raises :class:`InvalidConfiguration`.
    """
    if launcher is not None:
        if launcher not in tuple(LauncherKind):
            raise InvalidConfiguration(f"--launcher: {launcher!r} is not allowed", hint=", ".join(LauncherKind))
        config = replace(config, optimizer=replace(config.optimizer, launcher=launcher))
    optimizer = config.optimizer

    def settings() -> OptimizerSettings:
        return settings_of(config, environ)

    if optimizer.launcher == LauncherKind.RESIDENT:
        return Supervisor(settings).run()
    home = SparkHome(spark_home(optimizer.spark_home), sys.executable)
    folder = config.server.state_dir / "applications"
    submitting = SparkSubmitLauncher(home, folder, environ, secret=optimizer.kubernetes_secret)
    return Submitter(settings, submitting, optimizer.applications).run()


def kubernetes_secret(config: Config, environ: Mapping[str, str], name: str) -> str:
    """The Secret that drivers in Kubernetes find their settings in; see :func:`settings_of` for what it raises.

    Raises :class:`InvalidConfiguration` for a configuration whose applications would not use it.
    """
    if name != config.optimizer.kubernetes_secret:
        raise InvalidConfiguration(f"optimizer.kubernetes_secret is not {name!r}", hint="drivers would not find it")
    optimizer = replace(config.optimizer, launcher=LauncherKind.SPARK_SUBMIT)
    settings = settings_of(replace(config, optimizer=optimizer), environ)
    spark_settings(settings)
    return settings_secret(name, dumps(settings))


class Supervisor:
    """One optimizer process after the other. ``settings`` is asked for each and raises ``NotFound`` without server."""

    def __init__(self, settings: Callable[[], OptimizerSettings], launcher: Launcher | None = None) -> None:
        self._settings, self._launcher = settings, launcher or ResidentLauncher()
        self._signals: list[int] = []
        # Not an Event: its lock may be held by the very code that a signal interrupts. A SimpleQueue is reentrant.
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._child: Application | None = None

    def run(self) -> int:
        """See :func:`run`; to be called in the main thread, where signals arrive."""
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        pause_s, outage = _PAUSE_S_MIN, Outage()
        while not self._signals:
            started_s = time.monotonic()
            try:
                self._child = self._launcher.start(self._settings())
            except NotFound as error:
                failures = outage.failed(time.monotonic())
                if failures is not None:
                    _log.warning("waiting for the server", detail=error.message, failures=failures)
                self._rest(outage.pause_s(_PAUSE_S_MIN))
                continue
            outage.over()
            if self._signals:  # the signal came before there was a child to pass it on to
                self._child.stop()
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
        if self._child is None:
            return
        if self._signals.count(signal.SIGINT) > 1:
            self._child.kill()
        else:
            self._child.stop()

    def _rest(self, pause_s: float) -> None:
        with suppress(queue.Empty):
            self._wake.get(timeout=pause_s)
