"""The resident optimizer: one Spark session, tasks pulled from the server, several at once.

It holds no state that matters. Killed at any point, its leases run out, and the server looks into the tables.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

import psutil
import structlog

from icewright import __version__
from icewright.core.errors import (
    InvalidMessage,
    LeaseLost,
    Rejected,
    ServerUnavailable,
    Unavailable,
    VersionMismatch,
)
from icewright.core.fault_points import Fault, fault
from icewright.core.outage_log import Outage
from icewright.core.traces import RESULT
from icewright.model.access.secrets_in_text import SecretsInText
from icewright.model.actions.actions import OPTIMIZER_ACTIONS, names_in, shareable_bytes
from icewright.model.plans.observation import WorkerAccess
from icewright.model.work.application_size import application_size
from icewright.model.work.jobs import (
    ANY_TASK,
    PROTOCOL_VERSION,
    ClaimRequest,
    Committed,
    Failed,
    OptimizerHello,
    SentReport,
    TaskReport,
    TaskSpec,
)
from icewright.model.work.optimizers import OptimizerSettings
from icewright.model.work.storage import ProbeReports, ProbeRequest
from icewright_spark.iceberg.java_api import first_line
from icewright_spark.optimizer.attempt_log import AttemptLog, kept_log, secrets_of
from icewright_spark.optimizer.batch import BatchMember
from icewright_spark.optimizer.engine import Engine
from icewright_spark.optimizer.telemetry import attempting

_log = structlog.get_logger("icewright.optimizer")

_HELLO_EVERY_S: Final = 10.0
_SERVER_AWAY_S_MAX: Final = 60.0
"""An idle optimizer whose server stays away asks to be started anew: the server may have another address by now."""
_PROBES_EVERY_S: Final = 2.0
_REPORT_PAUSE_S_MIN: Final = 0.2
_REPORT_PAUSE_S_MAX: Final = 15.0
_LEFT_LOGGED_MAX: Final = 10
_REPORT_FOR_S: Final = 600.0
"""How long a report is offered to a server that is away. Afterwards the server finds out from the table itself."""
_REPORT_WHEN_STOPPING_FOR_S: Final = 5.0


class TaskServer(Protocol):
    """Who hands out tasks; see :class:`icewright_spark.reports.client.Server`."""

    def hello(self, hello: OptimizerHello) -> None:
        """Introduce an optimizer."""

    def claim(self, optimizer_id: str, request: ClaimRequest) -> TaskSpec | None:
        """The next task of those that are asked for."""

    def report(self, report: SentReport) -> None:
        """Say how an attempt ended."""

    def probes(self, optimizer_id: str) -> tuple[ProbeRequest, ...]:
        """The tables whose storage is to be tried out."""

    def probed(self, optimizer_id: str, reports: ProbeReports) -> None:
        """Say what became of probes."""


class Optimizer:
    """Pulls tasks until it is stopped, or until it wants a fresh process (:attr:`wants_recycling`)."""

    def __init__(
        self,
        engine: Engine,
        server: TaskServer,
        settings: OptimizerSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        memory: Callable[[], int] | None = None,
    ) -> None:
        self._engine, self._server, self._settings = engine, server, settings
        self._clock, self._pause, self._memory = clock, pause, memory or memory_bytes
        self._secrets = secrets_of(settings)
        self._stopping = False
        self._worn_out = False
        # Not an Event: its lock may be held by the very code that a signal interrupts. A SimpleQueue is reentrant.
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._running: dict[int, list[threading.Thread]] = {}
        self._finished = 0
        self._taken = 0
        self._found_nothing = False
        self._said_hello_at_s = float("-inf")
        self._asked_for_probes_at_s = float("-inf")
        self._heard_at_s, self._outage = clock(), Outage()
        self.wants_recycling = False

    def stop(self) -> None:
        """Claim nothing more and let :meth:`run` return when the running tasks have ended. Safe in signal handlers."""
        self._stopping = True
        self._wake.put(None)

    def run(self) -> None:
        """Serve until stopped, or until what it was started for is done.

        Raises :class:`VersionMismatch` or :class:`InvalidMessage` when server and optimizer do not fit, and
        :class:`Unavailable` when Spark has ended.
        """
        pause_s = self._settings.poll_interval_ms / 1000
        try:
            while not (self._stopping or self.wants_recycling):
                if not self._turn():
                    if self._is_done():
                        return
                    self._rest(self._outage.pause_s(pause_s))
        finally:
            self._stopping = True
            for threads in self._running.values():
                for thread in threads:
                    thread.join()

    def _turn(self) -> bool:
        """One look around; whether a task was started."""
        if not self._engine.alive():
            raise Unavailable("Spark has ended, or has no executors any more; only a new process can have others")
        self._forget_ended()
        if self._should_recycle():
            # Claiming goes on nowhere else: with several slots there might never be a moment without a task.
            self.wants_recycling = not self._running
            return False
        try:
            started = self._claim_what_fits()
        except (VersionMismatch, InvalidMessage):
            raise
        except (Unavailable, Rejected) as error:
            # Refused: the server may have forgotten us, or be another one by now.
            failures = self._outage.failed(self._clock())
            if failures is not None:
                _log.warning("no tasks from the server", code=error.code, detail=error.message, failures=failures)
            self._said_hello_at_s = float("-inf")
            return False
        failures = self._outage.over()
        if failures:
            _log.info("the server answers again", failures=failures)
        self._heard_at_s = self._clock()
        return started

    def _is_done(self) -> bool:
        """Whether one that was started for some tasks has had them, or has found that there are none."""
        most = self._settings.tasks_max
        return most is not None and not self._running and (self._found_nothing or self._taken >= most)

    def _rest(self, pause_s: float) -> None:
        try:
            self._wake.get(timeout=pause_s)
        except queue.Empty:
            return

    def _forget_ended(self) -> None:
        alive = {slot: [thread for thread in its if thread.is_alive()] for slot, its in self._running.items()}
        self._finished += sum(len(its) - len(alive[slot]) for slot, its in self._running.items())
        self._running = {slot: its for slot, its in alive.items() if its}

    def _claim_what_fits(self) -> bool:
        if self._clock() - self._said_hello_at_s > _HELLO_EVERY_S:
            self._server.hello(self._hello())
            self._said_hello_at_s = self._clock()
        slot = next((slot for slot in range(self._settings.slots) if slot not in self._running), None)
        most = self._settings.tasks_max
        if slot is None or (most is not None and self._taken >= most):
            return False
        claimed_s = self._clock()
        spec = self._claim(ANY_TASK)
        if spec is None:
            self._found_nothing = not self._probe_what_is_wanted(slot)
            return not self._found_nothing
        self._taken += 1
        if self._may_share(spec):
            self._start_batch(slot, spec, claimed_s)
        else:
            self._start(slot, spec, claimed_s)
        return True

    def _claim(self, request: ClaimRequest) -> TaskSpec | None:
        spec = self._server.claim(self._settings.optimizer_id, request)
        if spec is not None and spec.protocol_version != PROTOCOL_VERSION:
            raise VersionMismatch(
                f"task {spec.task_id} is of version {spec.protocol_version} of the protocol, this optimizer speaks "
                f"{PROTOCOL_VERSION}",
                hint="run the same release of icewright on both sides",
            )
        if spec is not None and OPTIMIZER_ACTIONS.get(spec.action.kind) != spec.action_version:
            raise VersionMismatch(
                f"task {spec.task_id} says {spec.action.kind} in version {spec.action_version}, which this optimizer "
                "did not announce",
                hint="run the same release of icewright on both sides",
            )
        return spec

    def _may_share(self, spec: TaskSpec) -> bool:
        """Whether others may join the task in its Spark job.

        Not when it was tried before: what brings down the whole process would take the same neighbours along again.
        """
        size_bytes = shareable_bytes(spec.action)
        fits = size_bytes is not None and size_bytes <= self._settings.batch_bytes
        return fits and spec.attempt == 1 and self._settings.batch_tasks > 1

    def _start_batch(self, slot: int, first: TaskSpec, claimed_s: float) -> None:
        """Start the task, and all that may share its Spark job and are waiting now."""
        batch = self._engine.batch(f"batch of {first.task_id}/{first.attempt}", pool=_pool(slot))
        left_bytes, spec = self._settings.batch_bytes, first
        try:
            for left_tasks in reversed(range(self._settings.batch_tasks)):
                self._start(slot, spec, claimed_s, batch.member())
                left_bytes -= shareable_bytes(spec.action) or 0
                if self._stopping or not left_tasks:
                    return
                claimed_s = self._clock()
                more = self._claim(ClaimRequest(shareable_bytes_max=left_bytes))
                if more is None:
                    return
                spec = more
        finally:
            batch.close()

    def _start(self, slot: int, spec: TaskSpec, claimed_s: float, member: BatchMember | None = None) -> None:
        arguments = (spec, claimed_s, slot, member)
        # Not PySpark's own thread: that asks the JVM before its target runs, where nothing catches that it has ended. A
        # thread of any sort has one of the JVM's to itself (PYSPARK_PIN_THREAD).
        thread = threading.Thread(target=self._carry_out, args=arguments, name=f"task-{spec.task_id}")
        thread.start()
        self._running.setdefault(slot, []).append(thread)

    def _probe_what_is_wanted(self, slot: int) -> bool:
        """Find out for the server, when there is nothing else to do, which storages workers reach."""
        if self._clock() - self._asked_for_probes_at_s < _PROBES_EVERY_S:
            return False
        self._asked_for_probes_at_s = self._clock()
        requests = self._server.probes(self._settings.optimizer_id)
        if not requests:
            return False
        thread = threading.Thread(target=self._probe, args=(requests,), name=f"probes-{slot}")
        thread.start()
        self._running[slot] = [thread]
        return True

    def _probe(self, requests: tuple[ProbeRequest, ...]) -> None:
        try:
            reports = self._engine.probe(requests)
            self._server.probed(self._settings.optimizer_id, ProbeReports(tuple(reports)))
        except Exception as error:  # noqa: BLE001 - whatever Spark throws: nothing was learned, and the server asks again
            _log.warning("probes failed", tables=len(requests), detail=first_line(error))
            return
        refused = [str(report.table_name) for report in reports if report.access is WorkerAccess.REFUSED]
        _log.info("storages tried out", tables=len(reports), refused=refused)

    def _carry_out(self, spec: TaskSpec, claimed_s: float, slot: int, member: BatchMember | None) -> None:
        with kept_log() as log, attempting(spec) as span:
            fault(Fault.TASK_CLAIMED)
            _log.info("task started", action=spec.action.kind, names=names_in(spec.action))
            try:
                report = self._engine.attempt(spec, claimed_s=claimed_s, pool=_pool(slot), member=member)
            finally:
                if member is not None:
                    member.leave()
            report = _without_secrets(report, self._secrets)
            span.set_attribute(RESULT, report.result.kind)
            for left in report.left[:_LEFT_LOGGED_MAX]:
                _log.warning("group left", group=left.group_id, code=left.code, detail=left.detail)
            _log.info("task ended", **_end_of(report), wall_ms=report.wall_ms, cpu_ms=report.cpu_ms)
            fault(Fault.REPORT_READY)
            self._deliver(report, log)
            fault(Fault.REPORT_SENT)

    def _deliver(self, report: TaskReport, log: AttemptLog) -> None:
        """Offer the report until the server has it, or says that it needs it no more.

        A server that refuses it, or fails at it, is offered it without the log: that may be why. While nobody answers,
        each second offer is without: what lies between may let no log through.
        """
        first_s, pause_s = self._clock(), _REPORT_PAUSE_S_MIN
        lines, with_lines = log.unsent(), True
        while True:
            told = lines if with_lines else None
            try:
                self._server.report(SentReport.of(report, told))
            except LeaseLost as error:
                _log.warning("report not wanted any more", detail=error.message)
            except Rejected as error:
                if told is not None:
                    lines = None
                    continue
                _log.error("report refused", detail=error.message)
            except Unavailable as error:
                if not isinstance(error, ServerUnavailable):
                    lines = None
                with_lines = not with_lines
                offer_for_s = _REPORT_WHEN_STOPPING_FOR_S if self._stopping else _REPORT_FOR_S
                if self._clock() - first_s < offer_for_s:
                    self._pause(pause_s)
                    pause_s = min(_REPORT_PAUSE_S_MAX, pause_s * 2)
                    continue
                _log.error("report not delivered", detail=error.message)
            return

    def _should_recycle(self) -> bool:
        """Whether this process has served its time; once it has, it claims nothing more."""
        settings = self._settings
        if self._finished >= settings.recycle_after_tasks:
            self._worn_out = True
        elif self._finished and self._memory() > settings.recycle_memory_bytes:
            # Not before the first task: a limit below what Spark needs to start would be a circle of restarts.
            self._worn_out = True
        elif not self._running and self._clock() - self._heard_at_s > _SERVER_AWAY_S_MAX:
            self._worn_out = True
        return self._worn_out

    def _hello(self) -> OptimizerHello:
        size = application_size(self._settings, os.cpu_count() or 1)
        return OptimizerHello(
            protocol_version=PROTOCOL_VERSION,
            optimizer_id=self._settings.optimizer_id,
            version=__version__,
            resource_group=self._settings.resource_group,
            slots=self._settings.slots,
            catalogs=tuple(catalog.name for catalog in self._settings.catalogs),
            spark_version=self._engine.spark_version,
            iceberg_version=self._engine.iceberg_version,
            workers=self._engine.workers,
            cores=size.cores,
            memory_bytes=size.memory_bytes,
            is_resident=size.is_resident,
            queues=self._settings.queues,
            actions=OPTIMIZER_ACTIONS,
            application_id=self._engine.application_id,
            spark_ui_url=self._engine.spark_ui_url,
        )


def _without_secrets(report: TaskReport, secrets: SecretsInText) -> TaskReport:
    """The report without what its errors quote of secrets."""
    left = tuple(replace(one, detail=secrets.masked(one.detail)) for one in report.left)
    result = report.result
    if not isinstance(result, Committed):
        result = replace(result, detail=secrets.masked(result.detail))
    return replace(report, result=result, left=left)


def _end_of(report: TaskReport) -> dict[str, str]:
    """What the log says of how an attempt ended."""
    match report.result:
        case Committed() as result:
            return {"result": result.kind}
        case Failed(code, detail, _) as result:
            return {"result": result.kind, "code": code, "detail": detail}
        case result:
            return {"result": result.kind, "detail": result.detail}


def _pool(slot: int) -> str:
    return f"icewright-{slot}"


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
