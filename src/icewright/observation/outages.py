"""Which catalogs are left alone because they do not answer, and when it is one table that fails and not its catalog.

A catalog that does not answer a look is left alone for a while. It may as well be that one name, and not the catalog:
a name that a stranger invented, or a table at which the catalog itself fails. What failed before, and what is
not known, is therefore asked for behind others, and where those were answered it fails alone.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Final

from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.model.iceberg.names import TableName

CATALOG_PAUSE_MS: Final = 15_000
"""How long a catalog that did not answer is left alone."""
STORAGE_AWAY_MAX: Final = 3
"""Tables of a catalog whose storage does not answer, none in between whose did, before the catalog is left alone."""
STORAGE_PAUSE_MS: Final = 60_000
"""How long a table is left alone whose storage, or whose name alone, did not answer."""
_SUSPECTS_MAX: Final = 10_000


class Outages:
    """What is known of catalogs that did not answer, by the memory of this process. Safe for several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        # By the wall clock, which may be set back: what was noted later than now was noted before that.
        self._paused_at: dict[str, Instant] = {}
        self._storage_away_for: defaultdict[str, set[TableName]] = defaultdict(set)
        """By catalog, the tables whose storage did not answer, since that of another one last did."""
        self._storage_answered: Counter[str] = Counter()
        """By catalog, how many looks its storage answered."""
        self._answered: set[str] = set()
        """Catalogs that answered something since they were last left alone."""
        self._suspects: set[TableName] = set()
        """Tables at whose last look the catalog did not answer."""
        self._doubted: set[str] = set()
        """Catalogs that one name failed at in this turn: no other doubtful one is tried in it."""

    def begin_turn(self) -> None:
        """A turn of the loop begins."""
        self._doubted.clear()

    def paused_until(self, catalog: str) -> Instant | None:
        """Until when a catalog is left alone because it did not answer; None when it is not."""
        paused_at, now = self._paused_at.get(catalog), self._clock.now()
        is_paused = paused_at is not None and paused_at <= now < paused_at + CATALOG_PAUSE_MS
        return None if paused_at is None or not is_paused else paused_at + CATALOG_PAUSE_MS

    def away(self, catalogs: Collection[str]) -> frozenset[str]:
        """Those that are left alone."""
        return frozenset(name for name in catalogs if self.paused_until(name) is not None)

    def pause(self, catalog: str) -> None:
        """Leave a catalog alone from now on."""
        with self._lock:
            self._paused_at[catalog] = self._clock.now()
            self._answered.discard(catalog)

    def answered(self, catalog: str) -> None:
        """A catalog answered."""
        with self._lock:
            self._answered.add(catalog)

    def seen(self, name: TableName) -> None:
        """A table was read: its catalog answers, and so does its storage."""
        with self._lock:
            self._answered.add(name.catalog)
            self._suspects.discard(name)
            self._storage_away_for.pop(name.catalog, None)
            self._storage_answered[name.catalog] += 1

    def storage_answered(self, catalog: str) -> int:
        """How many looks the storage of a catalog has answered so far."""
        return self._storage_answered[catalog]

    def answers(self, catalog: str) -> bool:
        """Whether it answered something since it was last left alone."""
        return catalog in self._answered

    def waits(self, name: TableName, *, doubtful: bool) -> bool:
        """Whether a look has to wait: for its catalog, or since another doubtful name failed in this turn."""
        is_doubtful = doubtful or name in self._suspects
        return self.paused_until(name.catalog) is not None or (is_doubtful and name.catalog in self._doubted)

    def fails_alone(self, name: TableName, *, doubtful: bool) -> bool:
        """The catalog did not answer for a table: whether that is the table's own trouble, since it answers others."""
        with self._lock:
            is_doubtful = doubtful or name in self._suspects
            if len(self._suspects) >= _SUSPECTS_MAX:
                self._suspects.clear()
            self._suspects.add(name)
            alone = is_doubtful and name.catalog in self._answered
            if alone:
                self._doubted.add(name.catalog)
            return alone

    def storage_fails(self, name: TableName, answered: int) -> bool:
        """The storage did not answer for a table: whether that is so of several in a row, and hence of all.

        ``answered`` is what :meth:`storage_answered` was as the look began. Where another look at the same time was
        answered since, it is not: the slowest looks end last, whatever was seen between them.
        """
        with self._lock:
            self._answered.add(name.catalog)
            if self._storage_answered[name.catalog] != answered:
                return False
            waiting = self._storage_away_for[name.catalog]
            waiting.add(name)
            if len(waiting) < STORAGE_AWAY_MAX:
                return False
            waiting.clear()
            return True
