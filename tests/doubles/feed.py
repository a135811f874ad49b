"""The feed of the queue in memory, for the simulation."""

from __future__ import annotations

import threading

from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.model.events.feed import Fact, FeedEntry, FeedFilter, FeedPage


class MemoryFeed:
    """A :class:`~icewright.ports.feed.Feed` that is gone with the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._told: list[tuple[FeedEntry, str | None]] = []
        self._last = self._forgotten = 0

    def tell(self, fact: Fact, key: str) -> bool:
        with self._lock:
            if any(other == key for _, other in self._told):
                return False
            self._append(fact, key)
            return True

    def append(self, fact: Fact) -> None:
        """Tell what became of a task, together with its change."""
        with self._lock:
            self._append(fact, None)

    def after(self, sequence: int, limit: int, only: FeedFilter) -> FeedPage:
        with self._lock:
            found = [one for one, _ in self._told if one.sequence > sequence and _asked(only, one.fact)][:limit]
            through = found[-1].sequence if len(found) == limit else max(self._last, sequence)
            return FeedPage(tuple(found), through)

    def last(self) -> int:
        with self._lock:
            return self._last

    def forgotten_through(self) -> int:
        with self._lock:
            return self._forgotten

    def forget(self, told_before: Instant, limit: int) -> int:
        with self._lock:
            old = [one for one, _ in self._told[:limit] if one.at < told_before]
            if old:
                self._forgotten = old[-1].sequence
                self._told = [kept for kept in self._told if kept[0].sequence > self._forgotten]
            return len(old)

    def _append(self, fact: Fact, key: str | None) -> None:
        self._last += 1
        self._told.append((FeedEntry(self._last, self._clock.now(), fact), key))


def _asked(only: FeedFilter, fact: Fact) -> bool:
    if only.kinds and fact.fact not in only.kinds:
        return False
    if not fact.parts:
        return True
    if only.within and not any(_covers(scope, fact.parts) for scope in only.within):
        return False
    return not only.under or any(fact.parts[: len(parts)] == parts for parts in only.under)


def _covers(scope: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    return parts == scope[:1] if len(scope) == len(parts) else parts[: len(scope)] == scope
