"""What each server of a store has to do: its CPU as it says itself, its tables, and which of their looks are late."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, func, select

from icewright.core.clock import Clock
from icewright.core.servers import bucket_of_digest, server_of
from icewright.ports.store import AT_ONCE
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.server.cluster.servers_sql import SqlServers
from icewright.store import transactions
from icewright.store.schema import tables
from icewright.store.scope_filters import FIRST_DIGITS
from icewright.store.transactions import reading
from icewright.work.autotune.servers.decide import ServerLoad

WINDOW_S: Final = 60.0
"""Over how long CPU is averaged."""
LATE_MS: Final = 60_000
"""A look that is due for longer is late."""
_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


class CpuShare:
    """How much of the CPU that it can use this process has used lately.

    That is one core, since Python's threads take turns, or its part where its server has more ``processes`` than its
    container or the ``machine`` has cores; what libraries use beside Python may make it more than 1. Not safe for
    several threads.
    """

    def __init__(
        self,
        used_s: Callable[[], float] = time.process_time,
        now_s: Callable[[], float] = time.monotonic,
        quota: Path = _QUOTA,
        *,
        processes: int = 1,
        machine: int | None = os.cpu_count(),
    ) -> None:
        cores = min(_cores(quota), machine or 1)
        self._used_s, self._now_s, self._cores = used_s, now_s, min(1.0, cores / processes)
        self._seen = deque([(now_s(), used_s())])

    def share(self) -> float | None:
        """The mean since a minute ago or somewhat longer; None in the first minute."""
        now_s, used_s = self._now_s(), self._used_s()
        while len(self._seen) > 1 and now_s - self._seen[1][0] >= WINDOW_S:
            self._seen.popleft()
        since_s, before_s = self._seen[0]
        self._seen.append((now_s, used_s))
        return None if now_s - since_s < WINDOW_S else (used_s - before_s) / (now_s - since_s) / self._cores


def _cores(quota: Path) -> float:
    """The cores that a container of Linux gets; without a limit, endlessly many."""
    try:
        most, per = quota.read_text(encoding="ascii").split()
        return int(most) / int(per)
    except (OSError, ValueError, ZeroDivisionError):
        return float("inf")


class LoadOfServers:
    """Reads the load of all servers that are there, each with its further processes, as the server that leads."""

    def __init__(
        self, engine: Engine, servers: SqlServers, coordinator: SqlCoordinator, clock: Clock | None = None
    ) -> None:
        """Time is the database's unless ``clock`` is given."""
        self._engine, self._servers, self._coordinator, self._clock = engine, servers, coordinator, clock

    def now(self) -> Sequence[ServerLoad]:
        """The load of each, in the order in which they came. Raises :class:`~icewright.core.errors.Unavailable`."""
        assigned, late = self._coordinator.assigned(), self._late()
        names = {one.session: one.server_id for one in assigned.sessions}
        counts, behind = Counter[str](), Counter[str]()
        for bucket in assigned.buckets:
            session = bucket.session if bucket.target is None else bucket.target
            owner = None if session is None else names.get(session)
            if owner is not None:
                counts[server_of(owner)] += assigned.tables.get(bucket.bucket, 0)
                behind[server_of(owner)] += late[bucket.bucket]
        cpu: dict[str, list[float]] = {}
        for one in self._servers.present():
            if not one.is_silent:
                cpu.setdefault(server_of(one.server.server_id), []).extend([] if one.cpu is None else [one.cpu])
        return [
            ServerLoad(name, counts[name], sum(said) / len(said) if said else None, behind[name])
            for name, said in cpu.items()
        ]

    def _late(self) -> Counter[int]:
        """How many looks are late, by bucket; those that a person wishes do not count."""
        due, found = tables.c.next_look_at, Counter[int]()
        with reading(self._engine) as connection:
            since = transactions.now(connection, self._clock) - LATE_MS
            late = (tables.c.dropped_at.is_(None), due > AT_ONCE, due < since)
            query = select(FIRST_DIGITS, func.count()).where(*late).group_by(FIRST_DIGITS)
            for digits, number in connection.execute(query):
                found[bucket_of_digest(digits)] += number
        return found
