"""The audit in memory: the plainest statement of the port."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

from icewright.audit.model import GENESIS, AuditEntry, Head, link, pruned
from icewright.audit.port import acting
from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.model.access.permissions import Act
from icewright.model.work.retention import RowKind


class MemoryAudit:
    """An :class:`~icewright.audit.port.AuditLog` that is gone with the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._start = GENESIS
        self._entries: list[AuditEntry] = []

    def append(self, act: Act) -> AuditEntry:
        """See the port."""
        with self._lock:
            entry = link(self.head(), self._clock.now(), acting(), act)
            self._entries.append(entry)
            return entry

    def extend(self, acts: Iterable[Act | None]) -> None:
        """Write several, for the other stores in memory; None is nothing to write."""
        with self._lock:
            for act in acts:
                if act is not None:
                    self.append(act)

    def entries(self, *, limit: int, after: int) -> Sequence[AuditEntry]:
        """See the port."""
        with self._lock:
            return [entry for entry in self._entries if entry.number > after][:limit]

    def latest(self, *, limit: int, before: int | None = None) -> Sequence[AuditEntry]:
        """See the port."""
        with self._lock:
            return [entry for entry in reversed(self._entries) if before is None or entry.number < before][:limit]

    def start(self) -> Head:
        """See the port."""
        with self._lock:
            return self._start

    def head(self) -> Head:
        """See the port."""
        with self._lock:
            return self._entries[-1].head if self._entries else self._start

    def prune(self, before: Instant, limit: int) -> int:
        """See the port."""
        with self._lock:
            count = next(
                (n for n, entry in enumerate(self._entries[:-1]) if entry.at >= before), len(self._entries) - 1
            )
            count = min(count, limit)
            if count <= 0:
                return 0
            self._start = self._entries[count - 1].head
            del self._entries[:count]
            self.append(pruned(self._start))
            return count

    def ages(self) -> Mapping[RowKind, Sequence[Instant]]:
        """When each entry was written."""
        with self._lock:
            return {RowKind.AUDIT: [entry.at for entry in self._entries]}
