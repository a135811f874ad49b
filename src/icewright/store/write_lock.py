"""Writers of one process take turns, in the order in which they came.

SQLite lets one transaction write at a time and has the others sleep and try again, for longer each time: whoever has
just come may be faster than one that has waited for seconds. So callers wait here, and one at a time asks SQLite.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from icewright.core.errors import StoreUnavailable


class WriteLock:
    """A lock that is handed from one waiting thread to the next. One that has it and asks again waits for itself."""

    def __init__(self, wait_ms: int) -> None:
        """``wait_ms`` is how long somebody waits at most."""
        self._wait_ms = wait_ms
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for one's turn, and have it. Raises :class:`~icewright.core.errors.StoreUnavailable` after too long."""
        self._take()
        try:
            yield
        finally:
            self._pass_on()

    @property
    def waiting(self) -> int:
        """How many wait at this moment."""
        with self._guard:
            return len(self._waiting)

    def _take(self) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            called = threading.Event()
            self._waiting.append(called)
        if called.wait(self._wait_ms / 1000):
            return
        with self._guard:
            if not called.is_set():
                self._waiting.remove(called)
                raise StoreUnavailable(
                    f"the store does not answer: another writer has its lock for over {self._wait_ms} ms"
                )

    def _pass_on(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False
