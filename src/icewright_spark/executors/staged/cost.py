"""What Spark's executors spent on something, as Spark itself counts it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from icewright_spark.session.session import java_array, java_gateway


@dataclass(slots=True)
class Cost:
    """CPU time of the executors' JVM: of the threads that run Spark's tasks, not of their Python workers."""

    cpu_ms: int = 0


@contextmanager
def executors(spark: SparkSession, tag: str) -> Iterator[Cost]:
    """What the jobs of this thread cost until the block ends; known behind it. ``tag`` must be used once only.

    A figure, no more: where Spark has forgotten a stage or its bookkeeping is late, it is too low.
    """
    context, cost = spark.sparkContext, Cost()
    context.addJobTag(tag)
    try:
        yield cost
    finally:
        context.removeJobTag(tag)
    cost.cpu_ms = _cpu_ns(spark, tag) // 1_000_000


def _cpu_ns(spark: SparkSession, tag: str) -> int:
    jvm, core = java_gateway(spark), spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark shows no metrics
    try:
        core.listenerBus().waitUntilEmpty()
    except Py4JJavaError:  # a timeout: others keep the bus busy
        return 0
    tracker, store, total = spark.sparkContext.statusTracker(), core.statusStore(), 0
    for job in core.statusTracker().getJobIdsForTag(tag):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            attempts = store.stageData(stage, False, jvm.java.util.ArrayList(), False, java_array(spark, jvm.double, 0))
            total += sum(int(attempts.apply(position).executorCpuTime()) for position in range(attempts.size()))
    return total
