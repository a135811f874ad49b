"""The servers of a store, in the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import Engine, delete, insert, select, update

from icewright.core.clock import Clock
from icewright.core.servers import SERVERS_KEPT_MS, SeenServer, Server
from icewright.store import transactions
from icewright.store.locks import Lock, LockKind
from icewright.store.servers_schema import servers
from icewright.store.transactions import reading, writing

_ALONE: Final = (Lock(LockKind.SERVERS),)


class SqlServers:
    """Who is there. Every method is one transaction; instants are by the store's own clock.

    What stands here gives nobody any right: who may lead, the store's lock and epoch say. Raises
    :class:`~icewright.core.errors.Unavailable` when the store does not answer.

    Time is the database's unless ``clock`` is given.
    """

    def __init__(
        self, engine: Engine, clock: Clock | None = None, *, cpu: Callable[[], float | None] = lambda: None
    ) -> None:
        """``cpu`` is what this server says of itself with each beat; see :class:`SeenServer`."""
        self._engine, self._clock, self._cpu = engine, clock, cpu

    def beat(self, server: Server) -> None:
        """A server is there, as it says now. Servers that were not heard of for a day are forgotten."""
        said = {"url": server.url, "version": server.version, "epoch": server.epoch, "cpu": self._cpu()}
        with writing(self._engine, _ALONE) as connection:
            now = transactions.now(connection, self._clock)
            known = update(servers).where(servers.c.server_id == server.server_id).values(**said, seen_at=now)
            if connection.execute(known).rowcount == 0:
                row = {"server_id": server.server_id, **said, "started_at": now, "seen_at": now}
                connection.execute(insert(servers).values(row))
            connection.execute(delete(servers).where(servers.c.seen_at < now - SERVERS_KEPT_MS))

    def leave(self, server_id: str) -> None:
        """A server ends in order. Harmless for one that is not known."""
        with writing(self._engine, _ALONE) as connection:
            connection.execute(delete(servers).where(servers.c.server_id == server_id))

    def present(self) -> Sequence[SeenServer]:
        """All servers that did not leave, in the order in which they came."""
        query = select(servers).order_by(servers.c.started_at, servers.c.server_id)
        with reading(self._engine) as connection:
            now = transactions.now(connection, self._clock)
            rows = connection.execute(query).mappings().all()
        return [
            SeenServer(
                Server(row["server_id"], row["url"], row["version"], row["epoch"]),
                row["started_at"],
                row["seen_at"],
                now,
                row["cpu"],
            )
            for row in rows
        ]
