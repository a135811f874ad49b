"""The real clock and the real ids, and how long threads are waited for."""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from uuid import UUID

from icewright.core.clock import Clock, Uptime
from icewright.core.times import Instant

_PREFIX = re.compile(r"[0-9a-z][0-9a-z-]*\Z")
_COUNTER_BITS = 12
_RANDOM_BITS = 62
_VERSION = 7
_VARIANT = 0b10


class SystemClock:
    """The wall clock of this machine."""

    def now(self) -> Instant:
        """Milliseconds since the Unix epoch, UTC."""
        return time.time_ns() // 1_000_000


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_BITS = 62
_OWN_BOOT = secrets.randbits(_BOOT_BITS)


def system_uptime() -> Uptime:
    """How long this machine has been up, sleep included; where it does not tell, how long this process has counted."""
    try:
        boot = int(_BOOT_ID.read_text(encoding="ascii").replace("-", ""), 16) >> (128 - _BOOT_BITS)
        return Uptime(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000, boot)
    except (OSError, ValueError, AttributeError):  # no Linux
        return Uptime(time.monotonic_ns() // 1_000_000, _OWN_BOOT)


class SystemIds:
    """Ids that end in a UUID of version 7 (RFC 9562, section 5.7), with a counter (section 6.2, method 1).

    Within one process each id sorts behind the one before, also when the clock is set back; across processes they
    sort by millisecond.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._last = 0

    def new(self, prefix: str) -> str:
        """``<prefix>-<uuid>``. Raises ValueError for a prefix of other characters than ``[0-9a-z-]``."""
        if not _PREFIX.match(prefix):
            raise ValueError(f"not a prefix of an id: {prefix!r}")
        with self._lock:
            # Milliseconds and counter as one number: an overflowing counter carries into the next millisecond.
            self._last = max(self._last + 1, self._clock.now() << _COUNTER_BITS)
            tick = self._last
        milliseconds, counter = tick >> _COUNTER_BITS, tick & ((1 << _COUNTER_BITS) - 1)
        value = milliseconds << 80 | _VERSION << 76 | counter << 64 | _VARIANT << 62 | secrets.randbits(_RANDOM_BITS)
        return f"{prefix}-{UUID(int=value)}"


class Joined(Protocol):
    """What the standard library's threads have."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""


def join_all(threads: Iterable[Joined], within_s: float, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
    """Wait for ``threads`` that were told to end, for ``within_s`` seconds in all; what hangs is left behind."""
    until_s = monotonic_s() + within_s
    for thread in threads:
        thread.join(max(0.0, until_s - monotonic_s()))


@contextmanager
def running(threads: Sequence[threading.Thread], stop: threading.Event, end_s: float) -> Iterator[None]:
    """Run threads while the block runs; then ``stop`` says so to them, and :func:`join_all` waits for ``end_s``."""
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        join_all(threads, end_s)
