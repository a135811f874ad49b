"""CPU that goes by when a test says so, and not otherwise."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest


class Spent:
    """The clocks of this process and of its threads, and how often each function was called that moves them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch, self._ns = patch, 0
        self.calls: Counter[str] = Counter()
        for name in ("process_time_ns", "thread_time_ns"):
            patch.setattr(time, name, lambda: self._ns)

    def by(self, owner: Any, name: str, cost_ms: int, *, static: bool = False) -> None:
        """From now on ``owner.name`` takes so long whenever it is called, and then does what it did."""
        real = getattr(owner, name)

        def costly(*args: Any, **more: Any) -> Any:
            self._ns += cost_ms * 1_000_000
            self.calls[name] += 1
            return real(*args, **more)

        self._patch.setattr(owner, name, staticmethod(costly) if static else costly)
