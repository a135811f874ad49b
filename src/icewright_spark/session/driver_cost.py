"""What a job that runs in Spark's driver alone spends there, in Python and in the JVM, and what of it on its proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class DriverCost:
    """CPU of the thread that it is made in, from then on: of Python's, and of the JVM's that carries out its calls.

    Both are clocks of one thread, so that others that run beside it are not in it, and neither is what the JVM does for
    it in threads of its own: the garbage collector, the compiler, and Iceberg's and the file system's pools.
    """

    def __init__(self, jvm_ns: Callable[[], int], python_ns: Callable[[], int] = time.thread_time_ns) -> None:
        """``jvm_ns`` is the clock of the JVM's thread, as :func:`jvm_thread_clock` finds it."""
        self._jvm_ns, self._python_ns = jvm_ns, python_ns
        self._began_ns, self._started, self._proof_ns = time.perf_counter_ns(), self._now(), 0

    @property
    def wall_ms(self) -> int:
        """How long it has taken, so far."""
        return (time.perf_counter_ns() - self._began_ns) // 1_000_000

    @property
    def cpu_ms(self) -> int:
        """All of it, so far."""
        return self._since(self._started) // 1_000_000

    @property
    def python_ms(self) -> int:
        """What of it is Python's, which whoever measures the same thread has as well."""
        return (self._python_ns() - self._started[0]) // 1_000_000

    @property
    def proof_cpu_ms(self) -> int:
        """What of it was spent on proving."""
        return self._proof_ns // 1_000_000

    @contextmanager
    def proof(self) -> Iterator[None]:
        """What goes on in here is proof. What ends in an error is counted by nobody."""
        started = self._now()
        yield
        self._proof_ns += self._since(started)

    def _now(self) -> tuple[int, int]:
        return self._python_ns(), self._jvm_ns()

    def _since(self, started: tuple[int, int]) -> int:
        return sum(self._now()) - sum(started)


def jvm_thread_clock(jvm: Any) -> Callable[[], int]:
    """The CPU clock, in ns, of the JVM's thread that belongs to ours; it stands still where the JVM has none.

    A thread of Python's has one of its own in the JVM, as the session is built.
    """
    threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    if not threads.isCurrentThreadCpuTimeSupported():
        return lambda: 0
    return lambda: int(threads.getCurrentThreadCpuTime())
