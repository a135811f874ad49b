"""One attempt at a task, from its spec to its report: the only broad ``except`` of the Spark side stands here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, Protocol

import structlog
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from icewright.core.errors import (
    Conflict,
    IcewrightError,
    LeaseLost,
    NotFound,
    Unavailable,
)
from icewright.core.fault_points import Fault, fault
from icewright.model.work.jobs import (
    PROTOCOL_VERSION,
    Cancelled,
    Conflicted,
    Failed,
    GroupFigures,
    Result,
    TableCheck,
    TaskReport,
    TaskSpec,
)
from icewright_spark.actions.done import Done
from icewright_spark.actions.phase import Phase
from icewright_spark.iceberg.java_api import SparkTable, first_line
from icewright_spark.optimizer.action_types import Given, groups_in, run_job
from icewright_spark.optimizer.attempt_log import logs_here
from icewright_spark.optimizer.batch import BatchMember
from icewright_spark.optimizer.engine_failure import engine_failure
from icewright_spark.optimizer.lease import HeartbeatServer, LeaseRenewer
from icewright_spark.session.session import activate, cancel_job_group, jvm_exit_code

_log = structlog.get_logger("icewright.optimizer")

_TOLD_BY_A_WORD: Final = (Conflict, NotFound, LeaseLost)
"""Errors whose traces say nothing more: others were faster."""
_LOOKS_MAX: Final = 5
"""A writer may commit between our look and the server's; five disagreements in a row are no coincidence."""


class AttemptServer(HeartbeatServer, Protocol):
    """What an attempt asks of the server."""

    def sees_the_same(self, check: TableCheck) -> bool:
        """See :meth:`icewright_spark.reports.client.Server.sees_the_same`."""


class Attempt:
    """Runs one spec in this process's Spark session, with the lease kept all the while.

    ``claimed_s`` is when the task was asked for, by the monotonic clock. ``pool`` is the FAIR pool of its jobs: Spark
    keeps every pool that it has ever heard of, so that there must be few names. ``member`` is the attempt's place in a
    batch, None where it shares no Spark job. ``hash_key`` is that of the digests in queries, as far as it is known.
    """

    def __init__(
        self,
        spark: SparkSession,
        server: AttemptServer,
        spec: TaskSpec,
        *,
        claimed_s: float | None = None,
        pool: str = "icewright",
        member: BatchMember | None = None,
        hash_key: bytes | None = None,
    ) -> None:
        self._hash_key = hash_key
        self._spark, self._server, self._spec, self._pool, self._member = spark, server, spec, pool, member
        self._job_group = f"{spec.task_id}/{spec.attempt}"
        self._phase = Phase(groups_in(spec.action))
        log = next(iter(logs_here()), None)
        self.lease = LeaseRenewer(server, spec, self._phase.progress, self._stop, claimed_s=claimed_s, log=log)

    def run(self) -> TaskReport:
        """Carry the task out and say how it ended, whatever happens."""
        spec, started, cpu_started = self._spec, time.monotonic(), time.thread_time()
        self.lease.start()
        try:
            done = self._guarded()
        finally:
            self.lease.close()
        driver_cpu_ms = int((time.thread_time() - cpu_started) * 1000)
        return TaskReport(
            protocol_version=PROTOCOL_VERSION,
            task_id=spec.task_id,
            attempt=spec.attempt,
            fencing_token=spec.fencing_token,
            result=done.result,
            receipts=done.receipts,
            groups=done.figures,
            wall_ms=int((time.monotonic() - started) * 1000),
            cpu_ms=cpu_ms_of(driver_cpu_ms, done.figures, in_figures_ms=done.driver_cpu_ms),
            left=done.left,
            answer=done.answer,
        )

    def _guarded(self) -> Done:
        try:
            return self._carry_out()
        except Exception as error:  # noqa: BLE001 - the job's main: whatever Spark or Java throw ends in the report
            ended = jvm_exit_code(self._spark) if isinstance(error, Py4JNetworkError | OSError) else None
            if not (self.lease.cancelled or self.lease.lost or isinstance(error, _TOLD_BY_A_WORD)):
                _log.warning("what ended the attempt", exc_info=error)
            return Done(
                result_of(
                    error,
                    cancelled=self.lease.cancelled,
                    lost=self.lease.lost,
                    lost_code=self.lease.lost_code,
                    jvm_exit=ended,
                )
            )

    def _carry_out(self) -> Done:
        activate(self._spark)
        context = self._spark.sparkContext
        context.setJobGroup(self._job_group, f"icewright {self._spec.task_id}", interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", self._pool)
        table = SparkTable(self._spark, self._spec.table_name)
        self._check_same_table(table)
        fault(Fault.TABLE_CHECKED)
        return run_job(Given(self._spark, table, self._spec, self._phase, self.lease, self._member, self._hash_key))

    def _check_same_table(self, table: SparkTable) -> None:
        """Server and Spark must look at the same table through their two catalogs. Raises :class:`Conflict`."""
        for _ in range(_LOOKS_MAX):
            check = TableCheck(self._spec.table_id, table.metadata_location)
            if table.uuid != self._spec.table_id.uuid or self._server.sees_the_same(check):
                return  # another uuid is the job's business
            table.refresh()
        raise Conflict(
            f"Spark sees {self._spec.table_name} at {table.metadata_location}, the server sees it elsewhere: "
            "the two catalog configurations do not lead to the same table"
        )

    def _stop(self) -> None:
        """End what runs for this attempt alone, and what it may be about to start; leave what it shares."""
        if self._member is not None:
            self._member.leave()
        cancel_job_group(self._spark, self._job_group)


def cpu_ms_of(driver_cpu_ms: int, figures: Sequence[GroupFigures], *, in_figures_ms: int = 0) -> int:
    """CPU of an attempt: of its groups, and of its own thread what is not in their figures already."""
    return max(0, driver_cpu_ms - in_figures_ms) + sum(group.cpu_ms for group in figures)


def result_of(
    error: Exception,
    *,
    cancelled: bool,
    lost: str | None = None,
    lost_code: str = LeaseLost.code,
    jvm_exit: int | None = None,
) -> Result:
    """What an error before the commit means; the commit itself ends in a result of its own, not in an error.

    ``jvm_exit`` is the exit code of Spark's JVM, if it ended. A lost lease and a wish to cancel end Spark's jobs, whose
    error then says nothing of the reason.
    """
    match error:
        case _ if lost is not None:
            return Failed(lost_code, f"{lost} ({first_line(error)})", retryable=True)
        case _ if cancelled:
            return Cancelled(f"cancelled before the commit ({first_line(error)})")
        case LeaseLost():
            return Failed(error.code, error.message, retryable=True)
        case Conflict() | NotFound():
            return Conflicted(error.message)
        case IcewrightError():
            return Failed(error.code, error.message, retryable=isinstance(error, Unavailable))
        case _:
            return engine_failure(error, jvm_exit)
