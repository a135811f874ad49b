"""What of the CPU of a group goes into its proof, as the worker counts it that does both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class ProofCost:
    """CPU spent on proving, added up. What ends in an error is counted by nobody."""

    def __init__(self) -> None:
        self._spent_ns = 0

    @property
    def cpu_ms(self) -> int:
        """So far."""
        return self._spent_ns // 1_000_000

    @contextmanager
    def of_process(self) -> Iterator[None]:
        """All threads of this process: where nothing but proving goes on, which libraries may do in threads."""
        with self._counted(time.process_time_ns):
            yield

    @contextmanager
    def of_thread(self) -> Iterator[None]:
        """This thread alone: where libraries read and write beside it."""
        with self._counted(time.thread_time_ns):
            yield

    @contextmanager
    def _counted(self, clock: Callable[[], int]) -> Iterator[None]:
        started_ns = clock()
        yield
        self._spent_ns += clock() - started_ns
