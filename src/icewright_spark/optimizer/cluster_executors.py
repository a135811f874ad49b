"""Whether an application on a cluster has executors while work waits for them, and what the cluster says of it.

Spark waits for executors without a limit: where their memory is larger than a worker, where they die before they
register, where others have the whole cluster. A standalone master starts a dead executor again and again, and counts
from zero each time one of its processes starts. So a thread looks every second; where jobs have waited for too long and
no executor lives, it cancels them, and the application claims nothing more: another one may find the cluster better.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from icewright.core.errors import Unavailable
from icewright.model.work.optimizers import OptimizerSettings
from icewright_spark.iceberg.java_api import first_line
from icewright_spark.optimizer.attempt_log import logging_for, logs_of_all
from icewright_spark.session.session import java_gateway

_log = structlog.get_logger("icewright.optimizer")

_LOOK_S: Final = 1.0
_TELL_AFTER_S: Final = 20.0
"""When a wait is told in the log for the first time: Spark itself complains after 15 s."""
_HEARD_MAX: Final = 50
_WARNINGS_LOGGED_MAX: Final = 3
_WORKERS_LOGGED_MAX: Final = 5
_MASTER_ANSWERS_S_MAX: Final = 10
_ASKED: Final = ("spark.executor.memory", "spark.executor.cores", "spark.executor.instances", "spark.cores.max")
_STANDALONE: Final = "spark://"
_APPENDER: Final = "icewright-executors"
_LOGGERS: Final = {
    "org.apache.spark.deploy.client.StandaloneAppClient$ClientEndpoint": "INFO",  # how executors ended
    "org.apache.spark.scheduler.TaskSchedulerImpl": "WARN",
    "org.apache.spark.scheduler.cluster": "WARN",  # of each kind of cluster, Kubernetes and YARN too
}
_LINE: Final = re.compile(r"(INFO|WARN|ERROR|FATAL) (.+)")
_ENDED: Final = re.compile(r"Executor updated: \S+ is now (?:EXITED|FAILED|KILLED|LOST)(?: \((.*)\))?$")


_ODD: Final = (AttributeError, LookupError, TypeError, ValueError)
"""What comes of an answer that is not as this version of Spark has it: Spark lives."""
_UNTOLD: Final = (Py4JError, OSError, *_ODD)
"""Why something cannot be told in an explanation. Where Spark has ended, the next question ends the watch."""


class NoExecutors(Unavailable):
    """Work waited for executors of a cluster for as long as it may, and none lived."""

    code = "no-executors"


class Cluster(Protocol):
    """What is asked of Spark. Everything raises ``Py4JError`` or ``OSError`` where Spark has ended."""

    def executors(self) -> int:
        """How many executors have registered and live."""

    def jobs(self) -> Sequence[int]:
        """The jobs that run or wait."""

    def cancel(self, job: int, why: str) -> None:
        """Have a job fail."""

    def said(self) -> Sequence[str]:
        """What the cluster has said since this was asked last: lines of Spark's log with their level."""

    def resources(self) -> Sequence[str]:
        """What was asked for, and what the cluster has, as far as it says so."""


@dataclass(frozen=True, slots=True)
class _Heard:
    at_s: float
    level: str
    text: str


class Executors:
    """Looks at the executors in a thread of its own, from :meth:`start` on until it is closed or Spark ends."""

    def __init__(self, cluster: Cluster, wait_s_max: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster, self._wait_s_max, self._clock = cluster, wait_s_max, clock
        self._heard: deque[_Heard] = deque(maxlen=_HEARD_MAX)
        self._waiting_since_s: float | None = None
        self._is_told = False
        self._missing: str | None = None
        self._not_heard: str | None = None
        """Why what Spark logs could not be read last."""
        self._odd: str | None = None
        """What was odd when it was looked last, which is logged once."""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="executors", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._closed.set()

    @property
    def missing(self) -> str | None:
        """Why work waits no longer for executors, and what the cluster said; None while it may. It stays so."""
        return self._missing

    def look(self) -> None:
        """Look once. Raises as :class:`Cluster`."""
        self._listen()
        jobs = self._cluster.jobs()
        if self._missing is None:
            waited_s = self._waited_s(jobs)
            if waited_s < self._wait_s_max:
                self._tell(waited_s)
                return
            self._missing = self._explained()
            _log.error("no executors: jobs are cancelled, nothing more is claimed", detail=self._missing)
        for job in jobs:
            self._cluster.cancel(job, f"[{NoExecutors.code}] {self._missing}")

    def _waited_s(self, jobs: Sequence[int]) -> float:
        """For how long jobs have waited while no executor lived."""
        if not jobs or self._cluster.executors() > 0:
            self._waiting_since_s, self._is_told = None, False
            return 0.0
        if self._waiting_since_s is None:
            self._waiting_since_s = self._clock()
        return self._clock() - self._waiting_since_s

    def _tell(self, waited_s: float) -> None:
        if waited_s >= _TELL_AFTER_S and not self._is_told:
            self._is_told = True
            _log.warning("waiting for executors", at_most_s=self._wait_s_max, detail=self._explained())

    def _listen(self) -> None:
        try:
            lines, self._not_heard = self._cluster.said(), None
        except _UNTOLD as error:
            lines, self._not_heard = (), first_line(error)
        for line in lines:
            found = _LINE.match(line)
            if found is not None:
                self._heard.append(_Heard(self._clock(), found[1], found[2].strip()))

    def _explained(self) -> str:
        """On one line: it is a reason for cancelling Spark's jobs, and what people read."""
        # What ended the last executor was said before there was none.
        since_s = (self._waiting_since_s or 0.0) - self._wait_s_max
        heard = [one for one in self._heard if one.at_s >= since_s]
        ended = [found[1] or "it does not say why" for one in heard if (found := _ENDED.match(one.text))]
        warnings = list(dict.fromkeys(one.text for one in heard if one.level != "INFO"))
        parts = [f"no executor of this application lived while work waited for {self._wait_s_max:,.0f} s"]
        if warnings:
            parts.append("Spark says: " + " / ".join(warnings[-_WARNINGS_LOGGED_MAX:]))
        if ended:
            parts.append(f"{len(ended)} executors ended before they registered or since, the last: {ended[-1]}")
        if self._not_heard is not None:
            parts.append(f"what Spark logs of it cannot be read: {self._not_heard}")
        return " ".join("; ".join([*parts, *self._resources()]).split())

    def _resources(self) -> Sequence[str]:
        try:
            return self._cluster.resources()
        except _UNTOLD as error:
            return (f"it is not known what was asked for and what the cluster has: {first_line(error)}",)

    def _run(self) -> None:
        with logging_for(logs_of_all()):  # whatever runs has the same executors
            self._look_again_and_again()

    def _look_again_and_again(self) -> None:
        while not self._closed.wait(min(_LOOK_S, self._wait_s_max / 2)):
            try:
                self.look()
                self._odd = None
            except _ODD as error:
                if (odd := first_line(error)) != self._odd:
                    self._odd = odd
                    _log.warning("executors could not be looked at, and are again", detail=odd)
            except (Py4JError, OSError) as error:  # Spark has ended: whoever asks it next is told so
                if not self._closed.is_set():
                    _log.info("executors are not looked at any more", detail=first_line(error))
                return


def watched(spark: SparkSession, settings: OptimizerSettings) -> Executors | None:
    """A watch over the executors of this session that has begun to look; None in local mode, which has none."""
    if settings.master.startswith("local"):
        return None
    found = Executors(ClusterOfSpark(spark, settings.master), settings.executors_wait_ms / 1000)
    found.start()
    return found


class ClusterOfSpark:
    """The cluster of a session, by Spark's own classes; listens to what Spark logs of it from now on."""

    def __init__(self, spark: SparkSession, master: str) -> None:
        self._context, self._jvm, self._master = spark.sparkContext, java_gateway(spark), master
        self._spark = self._context._jsc.sc()  # noqa: SLF001 - PySpark's own API has none of what is asked below
        self._said = _listening(self._jvm)

    def executors(self) -> int:
        """See :class:`Cluster`."""
        return int(self._spark.getExecutorMemoryStatus().size()) - 1  # the driver is among them

    def jobs(self) -> Sequence[int]:
        """See :class:`Cluster`."""
        return [int(job) for job in self._spark.statusTracker().getActiveJobIds()]

    def cancel(self, job: int, why: str) -> None:
        """See :class:`Cluster`."""
        self._spark.cancelJob(job, why)

    def said(self) -> Sequence[str]:
        """See :class:`Cluster`."""
        buffer = self._said.getBuffer()
        length = int(buffer.length())
        if not length:
            return ()
        text = str(buffer.substring(0, length))
        buffer.delete(0, length)
        return text.splitlines()

    def resources(self) -> Sequence[str]:
        """See :class:`Cluster`; of a standalone cluster also what its workers have."""
        conf = self._context.getConf()
        asked = [f"{key}={value}" for key in _ASKED if (value := conf.get(key)) is not None]
        told = ", ".join(asked) or f"neither {_ASKED[0]} nor {_ASKED[1]}, so that Spark's defaults count"
        found = [f"the application asks for {told}"]
        if self._master.startswith(_STANDALONE):
            found += [self._workers(host) for host in self._master.removeprefix(_STANDALONE).split(",")]
        return found

    def _workers(self, host: str) -> str:
        """What a master says of its workers, or why it does not."""
        try:
            return self._said_by(host)
        except _UNTOLD as error:
            return f"the master at {host} does not say what it has: {first_line(error)}"

    def _said_by(self, host: str) -> str:
        deploy, rpc = self._jvm.org.apache.spark.deploy, self._jvm.org.apache.spark.rpc
        address = rpc.RpcAddress.fromSparkURL(f"{_STANDALONE}{host}")
        question = getattr(getattr(deploy, "DeployMessages$RequestMasterState$"), "MODULE$")
        answer = self._jvm.java.lang.Class.forName(f"{deploy._fqn}.DeployMessages$MasterStateResponse")  # noqa: SLF001 - py4j's name of it
        seconds = self._jvm.java.util.concurrent.TimeUnit.SECONDS
        within = self._jvm.scala.concurrent.duration.FiniteDuration(_MASTER_ANSWERS_S_MAX, seconds)
        said = (
            self._spark.env()
            .rpcEnv()
            .setupEndpointRef(address, "Master")
            .askSync(question, rpc.RpcTimeout(within, "icewright"), self._jvm.scala.reflect.ClassTag.apply(answer))
        )
        status, workers = str(said.status().toString()), list(said.workers())
        if status != "ALIVE":
            return f"the master at {host} is {status}"
        alive = [
            f"{one.host()} with {one.cores()} cores ({one.coresFree()} free) and {one.memory()} MiB "
            f"({one.memoryFree()} MiB free)"
            for one in workers
            if str(one.state().toString()) == "ALIVE"
        ]
        more = ", ..." if len(alive) > _WORKERS_LOGGED_MAX else ""
        named = f": {', '.join(alive[:_WORKERS_LOGGED_MAX])}{more}" if alive else ""
        return f"the master at {host} has {len(alive)} live workers{named}"


def _listening(jvm: Any) -> Any:
    """A Java ``StringWriter`` that gets what these classes of Spark log; their errors are on the console as before."""
    log4j = jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    configuration = context.getConfiguration()
    said = jvm.java.io.StringWriter()
    layout = log4j.core.layout.PatternLayout.newBuilder().withPattern("%p %m%ex{none}%n").build()
    appender = log4j.core.appender.WriterAppender.createAppender(layout, None, said, _APPENDER, False, False)
    appender.start()
    console = list(configuration.getRootLogger().getAppenders().values())
    for name, level_name in _LOGGERS.items():
        logger = log4j.core.config.LoggerConfig(name, log4j.Level.valueOf(level_name), False)
        logger.addAppender(appender, log4j.Level.valueOf(level_name), None)
        for one in console:
            logger.addAppender(one, log4j.Level.ERROR, None)
        configuration.addLogger(name, logger)
    context.updateLoggers()
    return said
