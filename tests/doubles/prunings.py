"""How much of the past is in memory, and what was removed of it: the plainest statement of the port."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.model.work.retention import Pruned, RowKind, Rows


class Aged(Protocol):
    """A store in memory that has rows of the past."""

    def ages(self) -> Mapping[RowKind, Sequence[Instant]]:
        """Of when its rows are."""
        ...


class MemoryPrunings:
    """A :class:`~icewright.retention.prunings_port.Prunings` over stores that are gone with the process."""

    def __init__(self, clock: Clock, *stores: Aged) -> None:
        self._clock, self._stores = clock, stores
        self._lock = threading.Lock()
        self._pruned: dict[RowKind, Pruned] = {}

    def rows(self) -> Mapping[RowKind, Rows]:
        """See the port."""
        found = dict.fromkeys(RowKind, Rows())
        for store in self._stores:
            for kind, ages in store.ages().items():
                found[kind] = Rows(len(ages), min(ages, default=None))
        return found

    def note(self, removed: Mapping[RowKind, int], left: Mapping[RowKind, Rows]) -> None:
        """See the port."""
        now = self._clock.now()
        with self._lock:
            for kind, count in removed.items():
                was = self._pruned.get(kind, Pruned(now, 0, Rows()))
                self._pruned[kind] = Pruned(now, was.removed + count, left.get(kind, was.left))

    def pruned(self) -> Mapping[RowKind, Pruned]:
        """See the port."""
        with self._lock:
            return dict(self._pruned)
