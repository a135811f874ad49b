"""Writers that are in the store at the same time, held where a test wants them; nothing goes by time but its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

import pytest
from sqlalchemy import Connection, Engine, event, text

from icewright.store.transactions import WRITES, reading
from tests.waiting import PATIENCE_S, at_once

_WAITERS: Final = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


class _Open:
    """Transactions that write and wait for each other at a point: how many were there at once."""

    def __init__(self, engine: Engine, point: str, count: int) -> None:
        self.most, self._open, self._guard = 0, 0, threading.Lock()
        self._barrier = threading.Barrier(count)
        self._engine, self._point = engine, point
        event.listen(engine, point, self._reached)

    def end(self) -> None:
        event.remove(self._engine, self._point, self._reached)

    def _reached(self, connection: Connection) -> None:
        if connection.get_execution_options().get(WRITES):
            with self._guard:
                self._open += 1
                self.most = max(self.most, self._open)
            self._barrier.wait(PATIENCE_S)
            with self._guard:
                self._open -= 1


def most_at_once(engine: Engine, calls: Sequence[Callable[[], object]], point: str = "commit") -> int:
    """How many transactions of these calls, each of which has one that writes, are at a point at the same time.

    ``point`` is "commit", where all that a transaction locks is locked, or "begin", behind what it locks first.
    """
    there = _Open(engine, point, len(calls))
    try:
        at_once(calls)
    finally:
        there.end()
    return there.most


class Waiting:
    """Another thread that does something, and is told whether it waits for a lock of the database or is done."""

    def __init__(self, engine: Engine, found: Future[object]) -> None:
        self._engine, self._found = engine, found

    def waits(self) -> bool:
        """Whether it came to wait; False where it is done."""
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            if self._found.done():
                return False
            with reading(self._engine) as connection:
                if connection.scalar(_WAITERS):
                    return True
        pytest.fail("it neither waits nor ends")

    def answer(self) -> object:
        """What it answers, or raises what it raised."""
        return self._found.result(PATIENCE_S)


@contextmanager
def meanwhile(engine: Engine, call: Callable[[], object]) -> Iterator[Waiting]:
    """Do something in another thread, which is over behind the block."""
    with ThreadPoolExecutor(1) as pool:
        yield Waiting(engine, pool.submit(call))
