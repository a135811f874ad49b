"""How long icewright waits for its database before it says that the store does not answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from icewright.core.servers import LEADER_LEASE_MS


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in milliseconds. What takes longer raises ``StoreUnavailable``; the next round asks again."""

    lock_ms: int = 30_000
    """For another writer's transaction. All of ours are short; longer means that one hangs."""
    connect_ms: int = 10_000
    """For a connection. As all below: PostgreSQL alone, SQLite is a file."""
    statement_ms: int = 60_000
    """For one statement, by the server's own clock; it includes waiting for locks."""
    answer_ms: int = 75_000
    """For any answer, by our clock: a server that has stopped does not look at its own."""
    idle_ms: int = 60_000
    """For us, while a transaction is open."""
    write_ms: int = LEADER_LEASE_MS // 2
    """For us, and for one statement, in a transaction that has the lock of all writers: a client that was stopped keeps
    the others waiting for no longer. Upgrades and restores are alone, and have the limits above."""

    @classmethod
    def of_lease(cls, lease_ms: int) -> Self:
        """No lock of writers outlives half of the leader's lease, so that a leader can renew its own meanwhile."""
        return cls(write_ms=lease_ms // 2)
