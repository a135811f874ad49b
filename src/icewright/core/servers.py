"""The servers of one store: which there are, where they are reached, which of them leads, and what they share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
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
PARALLEL_LOOKS: Final = 4
"""Tables that a process looks at at once, by default: four fifths of a first look are waiting where the store is 5 ms
away (``docs/decisions``, 0084)."""
RENEWALS_A_LEASE: Final = 4
LEASES_WITHOUT_PROGRESS: Final = 6
"""A loop that makes no progress for so many leases hangs, and its server gives the lead away: at 20 s after two
minutes, twice as long as any call to a catalog or a storage waits for its answer."""
CLUSTER_HEARTBEAT_MS: Final = 30_000
"""How often a server says that it looks at its tables, unless the configuration says otherwise."""
CLUSTER_HEARTBEAT_MS_MIN: Final = 500
CLUSTER_DEAD_MS: Final = 90_000
"""A server that did not say so for so long is dead for the others, unless the configuration says otherwise."""
STORE: Final = "store"
ZOOKEEPER: Final = "zookeeper"
"""The coordinators: what says which servers are there, and elects the one that leads."""
TABLES: Final = "tables"
FILES: Final = "files"
"""What the shares of servers are balanced by, in addition to the number of their buckets."""
ZOOKEEPER_ROOT: Final = "/icewright"
ZOOKEEPER_SESSION_MS: Final = 10_000
SERVERS_KEPT_MS: Final = 24 * 3_600_000
"""How long a server is remembered that was not heard of any more; one that ends in order is forgotten at once."""

BUCKETS: Final = 128
"""Some thirteen for each of ten servers, so that the fullest server has a tenth more than the mean; and one page of
the store."""
_DIGITS: Final = 2
"""Hexadecimal digits of a name's digest that say its bucket: 256 values, two of them for each bucket."""
_VALUES: Final = 16**_DIGITS // BUCKETS


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


_PROCESS: Final = "."


def process_name(server_id: str, number: int) -> str:
    """The name of a further process of a server."""
    return f"{server_id}{_PROCESS}{number}"


def server_of(name: str) -> str:
    """The server that a name is of: itself, or that of which it is a further process."""
    return name.partition(_PROCESS)[0]


@dataclass(frozen=True, slots=True)
class SeenServer:
    """A server, since when it is there, and when it was last heard of: both by the store's clock, as ``now`` is.

    ``cpu`` is the share of what it can use that it used in the last minute, None where it does not say so.
    """

    server: Server
    started_at: Instant
    seen_at: Instant
    now: Instant
    cpu: float | None = None

    @property
    def is_silent(self) -> bool:
        """Whether it was not heard of for so long that it may have died."""
        return self.now - self.seen_at > SILENT_MS


class LinkState(StrEnum):
    """How a server is connected with its coordinator."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """It does not answer, and may still know this server."""
    LOST = "lost"
    """It does not answer, or knows this server no more."""


@dataclass(frozen=True, slots=True)
class CoordinatorLink:
    """A server's connection with its coordinator, as it is ``since`` then by the server's own clock."""

    coordinator: str
    state: LinkState = LinkState.CONNECTED
    since: Instant | None = None


def leader_of(servers: Iterable[SeenServer]) -> SeenServer | None:
    """The server that leads, or that led last and never said that it does not any more."""
    led = [one for one in servers if one.server.epoch is not None]
    return max(led, key=lambda one: one.server.epoch or 0, default=None)


def nobody_leads() -> Unavailable:
    """What is said while no server leads."""
    return Unavailable("no server leads at this moment", hint="ask again: the next leader is there within seconds")


@dataclass(frozen=True, slots=True)
class SaidConfiguration:
    """What a server of a ``release`` says of its configuration: digests of its ``sections``, and of its ``catalogs``.

    That of a catalog, by its name, says where it is.
    """

    release: str
    sections: Mapping[str, str]
    catalogs: Mapping[str, str]

    def differs_in(self, other: SaidConfiguration) -> tuple[str, ...]:
        """The sections that differ. Releases are not compared: each may have sections and settings of its own."""
        if self.release != other.release:
            return ()
        return tuple(one for one in sorted(self.sections) if self.sections[one] != other.sections.get(one))


@dataclass(frozen=True, slots=True)
class TableShare:
    """The tables in ``buckets``, those among them that nobody has looked at yet."""

    buckets: frozenset[int]


def bucket_of_digest(digest: str) -> int:
    """The bucket of a table, by the digest of the name under which it is looked after."""
    return int(digest[:_DIGITS], 16) // _VALUES


def beginnings(buckets: Collection[int]) -> str:
    """How the digests of the names in these buckets begin, in order, with a space between."""
    return " ".join(f"{_VALUES * bucket + value:0{_DIGITS}x}" for bucket in sorted(buckets) for value in range(_VALUES))
