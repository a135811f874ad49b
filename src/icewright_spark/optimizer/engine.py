"""What the optimizer needs of Spark: to know that it lives, and to carry out attempts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from icewright.core.errors import Unavailable
from icewright.model.work.jobs import PROTOCOL_VERSION, Failed, TaskReport, TaskSpec
from icewright.model.work.optimizers import WorkerEnvironment
from icewright.model.work.storage import ProbeReport, ProbeRequest
from icewright_spark.actions.groups import Job, Outcome, run_jobs
from icewright_spark.actions.phase import Phase
from icewright_spark.optimizer.attempt import Attempt, AttemptServer
from icewright_spark.optimizer.batch import Batch, BatchMember
from icewright_spark.optimizer.cluster_executors import Executors
from icewright_spark.optimizer.engine_failure import engine_failure
from icewright_spark.optimizer.environment import worker_environment
from icewright_spark.optimizer.probe import probe
from icewright_spark.optimizer.watchdog import Watchdog, end_this_process
from icewright_spark.session.session import cancel_job_group, iceberg_version


class Engine(Protocol):
    """Carries out attempts, several at once."""

    @property
    def spark_version(self) -> str:
        """The version of Spark."""

    @property
    def iceberg_version(self) -> str:
        """The version of Iceberg's runtime."""

    @property
    def workers(self) -> WorkerEnvironment | None:
        """What Python workers have, None where none could be asked."""

    @property
    def application_id(self) -> str:
        """What Spark calls the application."""

    @property
    def spark_ui_url(self) -> str | None:
        """The address of Spark's UI, None where it is off."""

    def alive(self) -> bool:
        """Whether attempts can be carried out at all; once it is not, it never is again."""

    def attempt(self, spec: TaskSpec, *, claimed_s: float, pool: str, member: BatchMember | None = None) -> TaskReport:
        """Carry out one attempt; see :class:`~icewright_spark.optimizer.attempt.Attempt`."""

    def batch(self, name: str, *, pool: str) -> Batch:
        """A batch of attempts; its name is used once."""

    def probe(self, requests: Sequence[ProbeRequest]) -> list[ProbeReport]:
        """Find out what workers can do; see :func:`icewright_spark.optimizer.probe.probe`."""


class SparkEngine:
    """The Spark session of this process; ``executors`` is None where it has none but itself.

    ``hash_key`` is that of the digests in queries, None where this optimizer has none.
    """

    def __init__(
        self,
        spark: SparkSession,
        server: AttemptServer,
        watchdog: Watchdog | None = None,
        executors: Executors | None = None,
        hash_key: bytes | None = None,
    ) -> None:
        """Raises as :func:`icewright_spark.optimizer.environment.worker_environment` does."""
        self._spark, self._server, self._watchdog = spark, server, watchdog or Watchdog(end_this_process)
        self._executors, self._hash_key = executors, hash_key
        self.spark_version = str(spark.version)
        self.iceberg_version = iceberg_version(spark)
        self.workers = worker_environment(spark)
        self.application_id, self.spark_ui_url = spark.sparkContext.applicationId, spark.sparkContext.uiWebUrl

    def alive(self) -> bool:
        """Whether the JVM answers, its context runs, and work may wait for executors.

        JVM and context do not come back within one process.
        """
        if self._executors is not None and self._executors.missing is not None:
            return False
        try:
            with self._watchdog.asking_jvm():
                return not self._spark.sparkContext._jsc.sc().isStopped()  # noqa: SLF001 - PySpark does not ask the JVM
        except (Py4JError, OSError):  # py4j passes on what the socket says
            return False

    def attempt(self, spec: TaskSpec, *, claimed_s: float, pool: str, member: BatchMember | None = None) -> TaskReport:
        """See :class:`Engine`."""
        attempt = Attempt(
            self._spark,
            self._server,
            spec,
            claimed_s=claimed_s,
            pool=pool,
            member=member,
            hash_key=self._hash_key,
        )
        with self._watchdog.watching(f"task {spec.task_id}", attempt.lease):
            return attempt.run()

    def batch(self, name: str, *, pool: str) -> Batch:
        """See :class:`Engine`."""
        return Batch(SharedSpark(self._spark, pool), name)

    def probe(self, requests: Sequence[ProbeRequest]) -> list[ProbeReport]:
        """See :class:`Engine`."""
        return probe(self._spark, requests)


class FailedEngine:
    """Stands in for a Spark that could not start: each attempt fails with the reason, and so the server learns it."""

    workers = None
    application_id, spark_ui_url = "", None

    def __init__(self, error: Unavailable, *, spark_version: str, iceberg_version: str) -> None:
        self.spark_version, self.iceberg_version = spark_version, iceberg_version
        cause = error.__cause__
        code = error.code if error.code != Unavailable.code or cause is None else engine_failure(cause).code
        self._failure = Failed(code, error.message, retryable=True)

    def alive(self) -> bool:
        """See :class:`Engine`."""
        return True

    def attempt(self, spec: TaskSpec, *, claimed_s: float, pool: str, member: BatchMember | None = None) -> TaskReport:  # noqa: ARG002 - the protocol's
        """See :class:`Engine`."""
        wall_ms = int((time.monotonic() - claimed_s) * 1000)
        return TaskReport(
            protocol_version=PROTOCOL_VERSION,
            task_id=spec.task_id,
            attempt=spec.attempt,
            fencing_token=spec.fencing_token,
            result=self._failure,
            receipts=(),
            groups=(),
            wall_ms=wall_ms,
            cpu_ms=0,
        )

    def batch(self, name: str, *, pool: str) -> Batch:  # noqa: ARG002 - the same
        """See :class:`Engine`; never asked, since a batch has at most one task."""
        raise Unavailable(self._failure.detail)

    def probe(self, requests: Sequence[ProbeRequest]) -> list[ProbeReport]:  # noqa: ARG002 - the same
        """See :class:`Engine`: nothing is learned."""
        raise Unavailable(self._failure.detail)


class SharedSpark:
    """Spark for a batch: its jobs are in job groups of their own, so that no attempt's end is theirs."""

    def __init__(self, spark: SparkSession, pool: str) -> None:
        self._spark, self._pool = spark, pool

    def together(self, name: str, jobs: Sequence[Sequence[Job]], phases: Sequence[Phase]) -> list[list[Outcome]]:
        """See :class:`~icewright_spark.optimizer.batch.SparkJobs`."""
        context = self._spark.sparkContext
        context.setJobGroup(name, f"icewright: {len(jobs)} tasks", interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", self._pool)
        return run_jobs(context, jobs, phases)

    def alone(self, jobs: Sequence[Job], phase: Phase) -> list[Outcome]:
        """See :class:`~icewright_spark.optimizer.batch.SparkJobs`."""
        return run_jobs(self._spark.sparkContext, [jobs], [phase])[0]

    def cancel(self, name: str) -> None:
        """See :class:`~icewright_spark.optimizer.batch.SparkJobs`."""
        cancel_job_group(self._spark, name)
