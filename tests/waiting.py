"""Have things happen elsewhere, in another thread, process or server, and wait for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

A = TypeVar("A")

PATIENCE_S: Final = 30.0
"""So long a test waits for what should come at once: a store in which writers take turns would have it wait forever."""


def until(holds: Callable[[], object], within_s: float = 60.0) -> None:
    """Return as soon as that holds."""
    until_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until_s, f"waited {within_s:g} s in vain"
        time.sleep(0.005)


def at_once(calls: Sequence[Callable[[], A]]) -> list[A]:
    """What calls answer that begin at the same moment, each in a thread of its own; raises what one of them raises."""
    start = threading.Barrier(len(calls))

    def begun(call: Callable[[], A]) -> A:
        start.wait(PATIENCE_S)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [found.result(PATIENCE_S) for found in [pool.submit(begun, call) for call in calls]]
