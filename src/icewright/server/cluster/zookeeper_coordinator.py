"""The coordinator of the store, to which ZooKeeper says which servers are there; see ``docs/decisions``, 0078.

Sessions, buckets and epochs are the store's: what ZooKeeper says wrongly moves buckets in vain, and nothing is written
by two servers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from sqlalchemy import Engine

from icewright.core.clock import Clock
from icewright.core.errors import CoordinatorUnavailable
from icewright.core.servers import CLUSTER_DEAD_MS, TABLES, ZOOKEEPER, CoordinatorLink, LinkState, SaidConfiguration
from icewright.core.times import Instant
from icewright.server.cluster.coordinator import Assigned, Session, SqlCoordinator
from icewright.server.cluster.zookeeper import ZooKeeper

EXPIRED: Final = "expired"
"""Its session with ZooKeeper has ended."""


class ZooKeeperCoordinator(SqlCoordinator):
    """A :class:`~icewright.server.cluster.port.Coordinator`. While ZooKeeper does not answer, nothing is assigned."""

    def __init__(
        self,
        engine: Engine,
        zookeeper: ZooKeeper,
        clock: Clock | None = None,
        *,
        dead_ms: int = CLUSTER_DEAD_MS,
        monotonic_s: Callable[[], float] = time.monotonic,
        said: SaidConfiguration | None = None,
        balance: str = TABLES,
    ) -> None:
        # By its root alone: the same servers of ZooKeeper may be called by several names.
        kind = f"{ZOOKEEPER} at {zookeeper.root}"
        super().__init__(engine, clock, dead_ms=dead_ms, monotonic_s=monotonic_s, said=said, kind=kind, balance=balance)
        self._zookeeper = zookeeper
        self._published: int | None = None

    @property
    def link(self) -> CoordinatorLink:
        """See the protocol."""
        return self._zookeeper.link

    def join(self, server_id: str, backend: int) -> int:
        """See the protocol. Raises :class:`~icewright.core.errors.CoordinatorUnavailable` as well.

        The server is there for ZooKeeper before it has a session, so that no leader takes it for dead meanwhile.
        """
        self._zookeeper.announce(server_id)
        return super().join(server_id, backend)

    def assign(self, engine: Engine, own: int | None = None, *, since: Instant | None = None) -> Mapping[str, int]:
        """See the protocol. Nothing is done while ZooKeeper does not answer."""
        if self._zookeeper.link.state is not LinkState.CONNECTED:
            return {}
        try:
            moved = super().assign(engine, own, since=since)
            self._publish()
        except CoordinatorUnavailable:  # which says so itself
            return {}
        return moved

    def _over(self, sessions: Iterable[Session], own: int | None) -> Mapping[int, str]:
        """See the base. Who is in the store was announced before it was, and is asked for after that was read.

        Behind an outage others may need longer than this server to be there again: they have as long as a session.
        """
        present = self._zookeeper.present()
        if self._zookeeper.steady_s <= self._zookeeper.session_s:
            return {}
        return {one.session: EXPIRED for one in sessions if one.server_id not in present and one.session != own}

    def _publish(self) -> None:
        if self.version() == self._published:
            return
        found = self.assigned()
        self._zookeeper.publish(_document(found))
        self._published = found.version


def _document(found: Assigned) -> bytes:
    names = {one.session: one.server_id for one in found.sessions}
    owners = {str(one.bucket): names.get(one.session or 0) for one in found.buckets}
    return json.dumps({"version": found.version, "buckets": owners}, separators=(",", ":")).encode()
