"""The servers of a store in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from icewright.core.clock import Clock
from icewright.core.servers import SERVERS_KEPT_MS, SeenServer, Server


class MemoryServers:
    """A :class:`~icewright.server.cluster.servers_port.Servers` that is gone with the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[str, SeenServer] = {}

    def beat(self, server: Server) -> None:
        """See the port."""
        with self._lock:
            now = self._clock.now()
            before = self._seen.get(server.server_id)
            self._seen[server.server_id] = SeenServer(server, now if before is None else before.started_at, now, now)
            for server_id in [one for one, seen in self._seen.items() if seen.seen_at < now - SERVERS_KEPT_MS]:
                del self._seen[server_id]

    def leave(self, server_id: str) -> None:
        """See the port."""
        with self._lock:
            self._seen.pop(server_id, None)

    def present(self) -> Sequence[SeenServer]:
        """See the port."""
        with self._lock:
            now = self._clock.now()
            found = sorted(self._seen.values(), key=lambda seen: (seen.started_at, seen.server.server_id))
            return [replace(seen, now=now) for seen in found]
