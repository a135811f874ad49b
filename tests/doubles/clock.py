"""A clock that stands still until it is told to move, for simulations and tests."""

from __future__ import annotations

import threading

from icewright.core.times import Instant


class ManualClock:
    """Starts at ``now`` and moves by :meth:`advance` alone. Safe to share among threads."""

    def __init__(self, now: Instant = 1_700_000_000_000) -> None:
        self._lock = threading.Lock()
        self._now = now

    def now(self) -> Instant:
        """Milliseconds since the Unix epoch, UTC."""
        with self._lock:
            return self._now

    def advance(self, delta_ms: int) -> Instant:
        """Move on by ``delta_ms`` and tell the new time."""
        with self._lock:
            self._now += delta_ms
            return self._now
