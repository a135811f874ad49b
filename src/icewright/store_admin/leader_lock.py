"""A server's election at its store: beside others on PostgreSQL, where one of them leads, and alone on SQLite.

And the store without any server, for whoever puts a backup in place. Why so: ``docs/decisions``, 0049.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from sqlalchemy import Engine

from icewright.core.errors import NotAllowed
from icewright.core.servers import LEADER_LEASE_MS
from icewright.store.engine import upgrade_store


class LeaderElection(Protocol):
    """How a server is there, and comes to lead."""

    def lead(self) -> Engine | None:
        """The engine to write by as the leader from now on; None while another server leads.

        Its writes are refused (:class:`~icewright.core.errors.StoreTaken`) as soon as another server leads. Raises
        ``Unavailable`` and ``OutcomeUnknown``: then it does not.
        """

    @property
    def epoch(self) -> int | None:
        """The epoch in which this server leads; None while it follows, and where there is none (SQLite)."""

    @property
    def backend(self) -> int:
        """The process of the database that serves the server's own connection; 0 where there is none (SQLite)."""

    def check(self) -> None:
        """Make sure that the server is still there, and still leads if it did; renew its lease.

        Raises :class:`~icewright.core.errors.StoreTaken` when another server leads in its place,
        ``StoreUnavailable`` while that cannot be told, and what taking the election raises when it
        was lost and cannot be had again.
        """

    def resign(self) -> None:
        """Lead no more: another server may."""


class SqliteLeaderElection:
    """The only election at a store on SQLite, whose lock the kernel keeps as long as the process lives."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.epoch: int | None = None
        self.backend = 0

    def lead(self) -> Engine | None:
        """See the protocol."""
        return self._engine

    def check(self) -> None:
        """See the protocol."""

    def resign(self) -> None:
        """See the protocol."""


@contextmanager
def open_leader_election(engine: Engine, lease_ms: int = LEADER_LEASE_MS) -> Iterator[LeaderElection]:
    """This process's election at a store, which is at the newest schema; it ends with the process, however that ends.

    Where it is one of several, it leads for ``lease_ms`` at a time.

    Raises :class:`NotAllowed` when another process holds a store on SQLite, or one on PostgreSQL that is to be
    upgraded, and what upgrading it raises: the servers that hold it may know its present schema alone.
    """
    if engine.dialect.name == "sqlite":
        with lock_store(engine) as own:
            yield SqliteLeaderElection(own)
        return
    from icewright.store.session_lock import PostgresLeaderElection  # noqa: PLC0415 - PostgreSQL's driver is an extra

    with closing(PostgresLeaderElection(engine, lease_ms=lease_ms)) as election:
        yield election


@contextmanager
def lock_store(engine: Engine) -> Iterator[Engine]:
    """Hold a store for this process alone, at the newest schema; gives the engine to write by.

    Raises :class:`NotAllowed` when another process holds it, and what upgrading it raises.
    """
    if engine.dialect.name == "sqlite":
        with lock_store_file(Path(str(engine.url.database))):
            upgrade_store(engine)
            yield engine
        return
    from icewright.store.session_lock import hold_exclusively  # noqa: PLC0415 - PostgreSQL's driver is an extra

    with hold_exclusively(engine) as own:
        yield own


@contextmanager
def lock_store_file(store: Path) -> Iterator[None]:
    """Hold the file of a store on SQLite, which need not be there. Raises :class:`NotAllowed` as :func:`lock_store`."""
    lock = store.with_name(f"{store.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotAllowed(
                f"another server holds the store {store}",
                hint="a store on SQLite has one server: stop it first, or set server.state_dir to another one; "
                "several servers share a store on PostgreSQL",
            ) from None
        yield
    finally:
        os.close(descriptor)
