"""What the optimizer needs of Spark: to know that it lives, and to carry out attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from icewright.domain.jobs import TaskReport, TaskSpec
from icewright.domain.optimizers import WorkerEnvironment
from icewright.domain.storage import ProbeReport, ProbeRequest
from icewright_spark.attempt import Attempt, AttemptServer
from icewright_spark.batch import Batch, Seat
from icewright_spark.environment import worker_environment
from icewright_spark.jobs.groups import Job, Outcome, run_jobs
from icewright_spark.jobs.phase import Phase
from icewright_spark.probe import probe
from icewright_spark.session import cancel_job_group, iceberg_version
from icewright_spark.watchdog import Watchdog, end_this_process


class Engine(Protocol):
    """Carries out attempts, several at once."""

    @property
    def spark_version(self) -> str:
        """The version of Spark."""

    @property
    def iceberg_version(self) -> str:
        """The version of Iceberg's runtime."""

    @property
    def workers(self) -> WorkerEnvironment:
        """What Python workers have."""

    def alive(self) -> bool:
        """Whether attempts can be carried out at all; once it is not, it never is again."""

    def attempt(self, spec: TaskSpec, *, claimed_s: float, pool: str, seat: Seat | None = None) -> TaskReport:
        """Carry out one attempt; see :class:`~icewright_spark.attempt.Attempt`."""

    def batch(self, name: str, *, pool: str) -> Batch:
        """A batch of attempts; its name is used once."""

    def probe(self, requests: Sequence[ProbeRequest]) -> list[ProbeReport]:
        """Find out what workers can do; see :func:`icewright_spark.probe.probe`."""


class SparkEngine:
    """The Spark session of this process."""

    def __init__(self, spark: SparkSession, server: AttemptServer, watchdog: Watchdog | None = None) -> None:
        """Raises as :func:`icewright_spark.environment.worker_environment` does."""
        self._spark, self._server, self._watchdog = spark, server, watchdog or Watchdog(end_this_process)
        self.spark_version = str(spark.version)
        self.iceberg_version = iceberg_version(spark)
        self.workers = worker_environment(spark)

    def alive(self) -> bool:
        """Whether the JVM answers and its context runs: neither comes back within one process."""
        try:
            with self._watchdog.asking_jvm():
                return not self._spark.sparkContext._jsc.sc().isStopped()  # noqa: SLF001 - PySpark does not ask the JVM
        except (Py4JError, OSError):  # py4j passes on what the socket says
            return False

    def attempt(self, spec: TaskSpec, *, claimed_s: float, pool: str, seat: Seat | None = None) -> TaskReport:
        """See :class:`Engine`."""
        attempt = Attempt(self._spark, self._server, spec, claimed_s=claimed_s, pool=pool, seat=seat)
        with self._watchdog.watching(f"task {spec.task_id}", attempt.lease):
            return attempt.run()

    def batch(self, name: str, *, pool: str) -> Batch:
        """See :class:`Engine`."""
        return Batch(SharedSpark(self._spark, pool), name)

    def probe(self, requests: Sequence[ProbeRequest]) -> list[ProbeReport]:
        """See :class:`Engine`."""
        return probe(self._spark, requests)


class SharedSpark:
    """Spark for a batch: its jobs are in job groups of their own, so that no attempt's end is theirs."""

    def __init__(self, spark: SparkSession, pool: str) -> None:
        self._spark, self._pool = spark, pool

    def together(self, name: str, jobs: Sequence[Sequence[Job]], phases: Sequence[Phase]) -> list[list[Outcome]]:
        """See :class:`~icewright_spark.batch.SparkJobs`."""
        context = self._spark.sparkContext
        context.setJobGroup(name, f"icewright: {len(jobs)} tasks", interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", self._pool)
        return run_jobs(context, jobs, phases)

    def alone(self, jobs: Sequence[Job], phase: Phase) -> list[Outcome]:
        """See :class:`~icewright_spark.batch.SparkJobs`."""
        return run_jobs(self._spark.sparkContext, [jobs], [phase])[0]

    def cancel(self, name: str) -> None:
        """See :class:`~icewright_spark.batch.SparkJobs`."""
        cancel_job_group(self._spark, name)
