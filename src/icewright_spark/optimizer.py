"""The resident optimizer: one Spark session, tasks pulled from the server, several at once.

It holds no state that matters. Killed at any point, its leases run out, and the server looks into the tables.
"""

from __future__ import annotations

import threading
import time
from typing import Final

import psutil
import structlog
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from icewright import __version__
from icewright.domain.errors import LeaseLost, Rejected, Unavailable
from icewright.domain.jobs import PROTOCOL_VERSION, OptimizerHello, TaskReport, TaskSpec
from icewright.domain.optimizers import OptimizerSettings
from icewright_spark.attempt import Attempt
from icewright_spark.server import Server
from icewright_spark.session import iceberg_version

_log = structlog.get_logger("icewright.optimizer")

_HELLO_EVERY_S: Final = 10.0
_SERVER_AWAY_S_MAX: Final = 60.0
"""An idle optimizer whose server stays away asks to be started anew: the server may have another address by now."""
_REPORT_PAUSE_S_MAX: Final = 15.0
_REPORT_FOR_S: Final = 600.0
"""How long a report is offered to a server that is away. Afterwards the server finds out from the table itself."""


class Optimizer:
    """Pulls tasks until it is stopped, or until it wants a fresh process (:attr:`wants_recycling`)."""

    def __init__(self, spark: SparkSession, server: Server, settings: OptimizerSettings) -> None:
        self._spark, self._server, self._settings = spark, server, settings
        self._stop = threading.Event()
        self._running: dict[str, InheritableThread] = {}
        self._finished = 0
        self._said_hello_at_s = float("-inf")
        self._heard_at_s = time.monotonic()
        self.wants_recycling = False

    def stop(self) -> None:
        """Claim nothing more and let :meth:`run` return when the running tasks have ended."""
        self._stop.set()

    def run(self) -> None:
        """Serve until stopped. Raises :class:`VersionMismatch` when server and optimizer do not fit."""
        pause_s = self._settings.poll_interval_ms / 1000
        while not self._stop.is_set():
            try:
                claimed = self._claim_what_fits()
                self._heard_at_s = time.monotonic()
            except Unavailable as error:
                _log.warning("server away", detail=error.message)
                claimed = False
            if self._should_recycle():
                self.wants_recycling = True
                break
            if not claimed:
                self._stop.wait(pause_s)
        for thread in list(self._running.values()):
            thread.join()

    def _claim_what_fits(self) -> bool:
        self._running = {task: thread for task, thread in self._running.items() if thread.is_alive()}
        if time.monotonic() - self._said_hello_at_s > _HELLO_EVERY_S:
            self._server.hello(self._hello())
            self._said_hello_at_s = time.monotonic()
        if len(self._running) >= self._settings.slots:
            return False
        spec = self._server.claim(self._settings.optimizer_id)
        if spec is None:
            return False
        thread = InheritableThread(target=self._carry_out, args=(spec,), name=spec.task_id)
        self._running[spec.task_id] = thread
        thread.start()
        return True

    def _carry_out(self, spec: TaskSpec) -> None:
        log = _log.bind(task=spec.task_id, attempt=spec.attempt, table=str(spec.table_name))
        log.info("task started", groups=len(spec.action.groups), files=spec.action.input_files)
        report = Attempt(self._spark, self._server, spec).run()
        log.info("task ended", result=report.result.kind, wall_ms=report.wall_ms, cpu_ms=report.cpu_ms)
        self._deliver(report)
        self._finished += 1

    def _deliver(self, report: TaskReport) -> None:
        """Offer the report until the server has it, or says that it needs it no more."""
        give_up_at_s, pause_s = time.monotonic() + _REPORT_FOR_S, 0.2
        while True:
            try:
                self._server.report(report)
            except LeaseLost as error:
                _log.warning("report not wanted any more", task=report.task_id, detail=error.message)
            except Rejected as error:
                _log.error("report refused", task=report.task_id, detail=error.message)
            except Unavailable as error:
                if time.monotonic() < give_up_at_s:
                    time.sleep(pause_s)
                    pause_s = min(_REPORT_PAUSE_S_MAX, pause_s * 2)
                    continue
                _log.error("report not delivered", task=report.task_id, detail=error.message)
            return

    def _should_recycle(self) -> bool:
        settings = self._settings
        if any(thread.is_alive() for thread in self._running.values()):
            return False
        if time.monotonic() - self._heard_at_s > _SERVER_AWAY_S_MAX:
            return True
        return self._finished >= settings.recycle_after_tasks or memory_bytes() > settings.recycle_memory_bytes

    def _hello(self) -> OptimizerHello:
        return OptimizerHello(
            protocol_version=PROTOCOL_VERSION,
            optimizer_id=self._settings.optimizer_id,
            version=__version__,
            resource_group=self._settings.resource_group,
            slots=self._settings.slots,
            catalogs=tuple(catalog.name for catalog in self._settings.catalogs),
            spark_version=self._spark.version,
            iceberg_version=iceberg_version(self._spark),
        )


def memory_bytes() -> int:
    """Resident memory of this process and all below it: the JVM and the Python workers."""
    total = 0
    process = psutil.Process()
    for member in (process, *process.children(recursive=True)):
        try:
            total += int(member.memory_info().rss)
        except psutil.NoSuchProcess:
            continue  # it ended between the two calls
    return total
