"""What Spark's words mean for the queue: memory, disk, a killed worker, or just Spark."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from icewright.model.work.jobs import Failed
from icewright_spark.optimizer.attempt import result_of
from icewright_spark.optimizer.engine_failure import engine_failure
from icewright_spark.session.session import jvm_exit_code
from tests.cases import each_case

STAGE = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, "
    "most recent failure: Lost task 0.0 in stage 3.0 (TID 5) (127.0.0.1 executor driver): "
)


class Java:
    """A Java exception as py4j shows it."""

    def __init__(self, text: str, cause: Java | None = None) -> None:
        self._text, self._cause = text, cause

    def toString(self) -> str:  # noqa: N802 - Java's name
        return self._text

    def getCause(self) -> Java | None:  # noqa: N802 - Java's name
        return self._cause


class FromJava(Exception):
    """As Py4JJavaError and PySpark's own exceptions keep what Java threw."""

    def __init__(self, java: Java, kept_as: str) -> None:
        super().__init__("An error occurred while calling o123.save.")
        setattr(self, kept_as, java)


LOST = "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: "
SPARKS = "org.apache.spark.memory.SparkOutOfMemoryError: "


@each_case(
    "reason",
    [
        "java.lang.OutOfMemoryError: Java heap space\n\tat java.base/java.util.Arrays.copyOf(Arrays.java:3537)",
        "java.lang.OutOfMemoryError: GC overhead limit exceeded",
        f"{SPARKS}[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory, got 0. SQLSTATE: 53200",
        "org.apache.arrow.memory.OutOfMemoryException: Failure allocating buffer.",
        'Traceback (most recent call last):\n  File "read.py", line 1\nMemoryError',
        "pyarrow.lib.ArrowMemoryError: malloc of size 4294967296 failed",
        f"{LOST}The executor with id 1 exited with exit code 137(SIGKILL, possible container OOM).",
        f"{LOST}Container killed by YARN for exceeding physical memory limits. 5.5 GB of 5.5 GB physical memory used.",
        f"{LOST}Command exited with code 52",
        f"{LOST}Command exited with code 137",
    ],
)
def test_memory_that_ran_out_is_said(reason: str) -> None:
    for kept_as in ("java_exception", "_origin"):
        nested = Java("org.apache.spark.SparkException: Writing job aborted", Java(STAGE + reason))
        failed = engine_failure(FromJava(nested, kept_as))
        assert (failed.code, failed.retryable) == ("out-of-memory", True)
    assert engine_failure(RuntimeError(STAGE + reason)).code == "out-of-memory"


@each_case(
    "reason",
    [
        "java.io.IOException: No space left on device",
        f"{SPARKS}[SPILL_OUT_OF_MEMORY] Error while calling spill() on x : No space left on device",
        "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException: The DiskSpace quota of /t is exceeded",
    ],
)
def test_a_full_disk_is_said_though_memory_is_short_for_it(reason: str) -> None:
    assert engine_failure(RuntimeError(STAGE + reason)).code == "disk-full"


def test_a_worker_that_died_is_said() -> None:
    reason = (
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\nCaused by: java.io.EOFException"
    )
    assert engine_failure(RuntimeError(STAGE + reason)).code == "worker-died"


@each_case(
    "reason",
    [
        "java.lang.IllegalStateException: out of order",
        f"{LOST}Command exited with code 1",
        "java.io.IOException: 52 files at exit, code 1370",
    ],
)
def test_all_else_is_sparks_own(reason: str) -> None:
    assert engine_failure(RuntimeError(STAGE + reason)).code == "engine"


@each_case(("jvm_exit", "code"), [(52, "out-of-memory"), (-9, "out-of-memory"), (1, "engine"), (None, "engine")])
def test_a_jvm_that_is_gone_says_it_by_its_exit_code(jvm_exit: Any, code: str) -> None:
    result = result_of(Py4JNetworkError("Answer from Java side is empty"), cancelled=False, jvm_exit=jvm_exit)
    assert isinstance(result, Failed)
    assert result.code == code
    assert "Answer from Java side is empty" in result.detail


@each_case("jvm_exit", [None, 137])
@each_case("gone", [Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError()])
def test_a_jvm_that_dies_behind_its_exception_costs_no_report(gone: Exception, jvm_exit: int | None) -> None:
    class Dead(Java):
        def toString(self) -> str:  # noqa: N802 - Java's name
            raise gone

    class DeadToo(FromJava):
        def __str__(self) -> str:  # as py4j's own, which asks Java
            raise gone

    failed = result_of(DeadToo(Dead("never said"), "java_exception"), cancelled=False, jvm_exit=jvm_exit)
    assert isinstance(failed, Failed)
    assert failed.code == ("engine" if jvm_exit is None else "out-of-memory")
    assert "Spark's JVM has ended" in failed.detail
    assert failed.retryable


def test_the_detail_is_the_line_that_says_it() -> None:
    failed = engine_failure(RuntimeError(f"{STAGE}x\n\tat y\nCaused by: java.lang.OutOfMemoryError: Java heap space\n"))
    assert failed.detail.startswith("java.lang.OutOfMemoryError: Java heap space (")


@pytest.mark.parametrize(("ends", "code"), [("raise SystemExit(52)", 52), ("import time; time.sleep(60)", None)])
def test_the_exit_code_of_a_jvm_is_that_of_the_process_that_was_started(
    ends: str, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icewright_spark.session.session._JVM_END_S_MAX", 30.0 if code else 0.01)
    with subprocess.Popen([sys.executable, "-c", ends]) as process:  # noqa: S603 - our own words
        spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=process)))
        assert jvm_exit_code(spark) == code
        process.kill()
    elsewhere: Any = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace()))
    assert jvm_exit_code(elsewhere) is None
