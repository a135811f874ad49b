"""What made Spark's work fail, told from what Spark, Java and Python say of it: so that the queue and people can act.

Spark raises one kind of exception for everything that goes wrong in an executor, and the reason is somewhere in its
text; where the JVM died, only its exit code tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from py4j.protocol import Py4JError

from icewright.core.errors import OutOfMemory
from icewright.model.work.jobs import Failed
from icewright_spark.iceberg.java_api import first_line, java_text
from icewright_spark.optimizer.cluster_executors import NoExecutors
from icewright_spark.parquet.errors import DISK_FULL, DiskFull

_CAUSES_MAX: Final = 20

_OUT_OF_MEMORY: Final = re.compile(
    r"java\.lang\.OutOfMemoryError|SparkOutOfMemoryError|OutOfMemoryException|GC overhead limit exceeded|"
    r"_OUT_OF_MEMORY\]|\[UNABLE_TO_ACQUIRE_MEMORY|\bMemoryError\b|ArrowMemoryError|Cannot allocate memory|OOMKilled|"
    r"possible container OOM|exceeding (?:physical |virtual )?memory limits|"
    r"exit(?:ed with)?(?: exit)? (?:code|status):? ?(?:52|137)\b"
)
"""Of the JVM, of Spark's own memory, of Python and Arrow; and how Kubernetes, YARN and Spark's own clusters say that an
executor was killed for it (137 is SIGKILL, 52 Spark's own exit code)."""
_NO_EXECUTORS: Final = re.compile(rf"\[{NoExecutors.code}\] (.+?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
"""What our own thread cancels jobs with; it quotes the cluster, which may speak of memory."""
_WORKER_DIED: Final = re.compile(r"Python worker exited unexpectedly")

_OF_MEMORY: Final = frozenset({52, 137, -9})
"""Exit codes of a JVM: Spark ends it itself, or the kernel does."""


def engine_failure(error: BaseException, jvm_exit: int | None = None) -> Failed:
    """The failure that an exception of Spark's means; ``jvm_exit`` is the exit code of a JVM that ended over it.

    Any of them may do better another time: with fewer neighbours, or when somebody has made room.
    """
    said = first_line(error)
    if jvm_exit in _OF_MEMORY:
        return Failed(OutOfMemory.code, f"Spark's JVM ended with exit code {jvm_exit} ({said})", retryable=True)
    texts = list(_texts(error))
    no_executors = next((found for text in texts if (found := _NO_EXECUTORS.search(text))), None)
    if no_executors is not None:
        return Failed(NoExecutors.code, no_executors[1], retryable=True)
    line = _line(DISK_FULL, texts)  # first: memory that cannot be spilled to a full disk is short as well
    if line is not None:
        return Failed(DiskFull.code, f"{line} ({said})", retryable=True)
    line = _line(_OUT_OF_MEMORY, texts)
    if line is not None:
        return Failed(OutOfMemory.code, f"{line} ({said})", retryable=True)
    line = _line(_WORKER_DIED, texts)
    if line is not None:
        return Failed(
            "worker-died",
            f"a Python worker of Spark's died, as when it is killed or gets no memory ({said})",
            retryable=True,
        )
    return Failed("engine", said, retryable=True)


def _texts(error: BaseException) -> Iterator[str]:
    """What an exception and its causes say, of Python and of Java."""
    yield java_text(lambda: error) or ""
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(_CAUSES_MAX):
        said = None if java is None else java_text(java.toString)
        if said is None:
            return
        yield said
        java = _cause(java)


def _cause(java: Any) -> Any:
    try:
        return java.getCause()
    except (Py4JError, OSError):  # the JVM went away between two questions
        return None


def _line(pattern: re.Pattern[str], texts: list[str]) -> str | None:
    """The first line that has it, without what stands around it."""
    for text in texts:
        for line in text.splitlines():
            if pattern.search(line):
                return line.strip().removeprefix("Caused by: ")
    return None
