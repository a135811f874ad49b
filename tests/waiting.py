"""Wait for what happens elsewhere: in another thread, process or server."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(holds: Callable[[], object], within_s: float = 60.0) -> None:
    """Return as soon as that holds."""
    until_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until_s, f"waited {within_s:g} s in vain"
        time.sleep(0.005)
