"""The servers of one store: which there are, where they are reached, and which of them leads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from icewright.core.errors import Unavailable
from icewright.core.times import Instant

BEAT_MS: Final = 5_000
"""How often a server says that it is there."""
SILENT_MS: Final = 4 * BEAT_MS
"""A server that was not heard of for so long is silent: it has died, or the store does not answer it."""
LEADER_LEASE_MS: Final = 20_000
"""How long the leader leads without a renewal, unless the configuration says otherwise."""
LEADER_LEASE_MS_MIN: Final = 4_000
RENEWALS_A_LEASE: Final = 4
LEASES_WITHOUT_PROGRESS: Final = 6
"""A loop that makes no progress for so many leases hangs, and its server gives the lead away: at 20 s after two
minutes, twice as long as any call to a catalog or a storage waits for its answer."""
SERVERS_KEPT_MS: Final = 24 * 3_600_000
"""How long a server is remembered that was not heard of any more; one that ends in order is forgotten at once."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server as it says of itself.

    ``url`` is where the other servers of the store reach it. ``epoch`` is that in which it leads, None for one that
    follows.
    """

    server_id: str
    url: str
    version: str
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class SeenServer:
    """A server, since when it is there, and when it was last heard of: both by the store's clock, as ``now`` is."""

    server: Server
    started_at: Instant
    seen_at: Instant
    now: Instant

    @property
    def is_silent(self) -> bool:
        """Whether it was not heard of for so long that it may have died."""
        return self.now - self.seen_at > SILENT_MS


def leader_of(servers: Iterable[SeenServer]) -> SeenServer | None:
    """The server that leads, or that led last and never said that it does not any more."""
    led = [one for one in servers if one.server.epoch is not None]
    return max(led, key=lambda one: one.server.epoch or 0, default=None)


def nobody_leads() -> Unavailable:
    """What is said while no server leads."""
    return Unavailable("no server leads at this moment", hint="ask again: the next leader is there within seconds")
