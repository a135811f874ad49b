"""Ids that are the same in every run, for simulations and tests."""

from __future__ import annotations

import itertools
import threading


class SequentialIds:
    """``<prefix>-000001``, ``<prefix>-000002``, ...; one sequence for all prefixes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    def new(self, prefix: str) -> str:
        """The next id."""
        with self._lock:
            return f"{prefix}-{next(self._numbers):06d}"
