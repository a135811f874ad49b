"""Every implementation of the store ports, opened for a test; one more database is one more entry here."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import text, update

from icewright.adapters.memory.answers import MemoryAnswers
from icewright.adapters.memory.audit import MemoryAudit
from icewright.adapters.memory.claims import MemoryClaims
from icewright.adapters.memory.deletion_store import MemoryDeletionStore
from icewright.adapters.memory.event_source import MemoryCursors
from icewright.adapters.memory.identity import MemoryIdentities
from icewright.adapters.memory.kept import MemoryKept
from icewright.adapters.memory.message_store import MemoryMessages
from icewright.adapters.memory.names import MemoryNames
from icewright.adapters.memory.policies import MemoryPolicies
from icewright.adapters.memory.prunings import MemoryPrunings
from icewright.adapters.memory.servers import MemoryServers
from icewright.adapters.memory.sightings import MemorySightings
from icewright.adapters.memory.table_store import MemoryTableStore
from icewright.adapters.memory.task_store import MemoryTaskStore
from icewright.adapters.sql.answers import SqlAnswers
from icewright.adapters.sql.audit import SqlAudit
from icewright.adapters.sql.claims import SqlClaims
from icewright.adapters.sql.cursors import SqlCursors
from icewright.adapters.sql.deletion_store import SqlDeletionStore
from icewright.adapters.sql.engine import open_store
from icewright.adapters.sql.identity import SqlIdentities
from icewright.adapters.sql.kept import SqlKept
from icewright.adapters.sql.message_store import SqlMessages
from icewright.adapters.sql.policies import SqlPolicies
from icewright.adapters.sql.prunings import SqlPrunings
from icewright.adapters.sql.schema import SERVER_EPOCH, counters, metadata
from icewright.adapters.sql.servers import SqlServers
from icewright.adapters.sql.sightings import SqlSightings
from icewright.adapters.sql.table_store import SqlTableStore
from icewright.adapters.sql.task_store import SqlTaskStore
from icewright.adapters.sql.transactions import writing
from icewright.ports.answers import Answers
from icewright.ports.audit import AuditLog
from icewright.ports.claims import ClaimStore
from icewright.ports.clock import Clock
from icewright.ports.deletions import DeletionStore
from icewright.ports.event_sources import Cursors
from icewright.ports.identity import IdentityStore
from icewright.ports.kept import KeptStore
from icewright.ports.notifications import MessageStore
from icewright.ports.policies import PolicyStore
from icewright.ports.prunings import Prunings
from icewright.ports.servers import Servers
from icewright.ports.sightings import Sightings
from icewright.ports.store import TableStore, TaskStore
from tests.lakes.stores import sqlite_store
from tests.servers.postgres import PostgresServer


class MemoryStores:
    """Stores that share one process's memory: opening them again gives the same ones."""

    def __init__(self, clock: Clock) -> None:
        self._audit = MemoryAudit(clock)
        names = MemoryNames()
        self._tasks = MemoryTaskStore(clock, self._audit, names)
        self._tables = MemoryTableStore(clock, self._tasks)
        self._sightings = MemorySightings(clock)
        self._claims = MemoryClaims()
        self._kept = MemoryKept()
        self._deletions = MemoryDeletionStore(clock, self._audit, names, self._tables)
        self._identities = MemoryIdentities(clock, self._audit)
        self._cursors = MemoryCursors()
        self._servers = MemoryServers(clock)
        self._policies = MemoryPolicies(clock, self._audit)
        self._answers = MemoryAnswers(clock)
        self._messages = MemoryMessages(clock)
        stores = (self._tasks, self._tables, self._kept, self._audit, self._messages, self._deletions, self._policies)
        self._prunings = MemoryPrunings(clock, *stores)

    def tasks(self) -> TaskStore:
        return self._tasks

    def tables(self) -> TableStore:
        return self._tables

    def sightings(self) -> Sightings:
        return self._sightings

    def claims(self) -> ClaimStore:
        return self._claims

    def kept(self) -> KeptStore:
        return self._kept

    def policies(self) -> PolicyStore:
        return self._policies

    def deletions(self) -> DeletionStore:
        return self._deletions

    def audit(self) -> AuditLog:
        return self._audit

    def identities(self) -> IdentityStore:
        return self._identities

    def cursors(self) -> Cursors:
        return self._cursors

    def answers(self) -> Answers:
        return self._answers

    def messages(self) -> MessageStore:
        return self._messages

    def prunings(self) -> Prunings:
        return self._prunings

    def servers(self) -> Servers:
        return self._servers

    def next_server(self) -> None:
        self._deletions.server += 1

    def close(self) -> None:
        pass


class SqlStores:
    """Stores over one database: each call opens an engine of its own, as another process would."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self._clock = clock
        self._engines = [open_store(self.url)]

    def tasks(self) -> TaskStore:
        self._engines.append(open_store(self.url))
        return SqlTaskStore(self._engines[-1], self._clock)

    def tables(self) -> TableStore:
        self._engines.append(open_store(self.url))
        return SqlTableStore(self._engines[-1], self._clock)

    def sightings(self) -> Sightings:
        self._engines.append(open_store(self.url))
        return SqlSightings(self._engines[-1], self._clock)

    def claims(self) -> ClaimStore:
        self._engines.append(open_store(self.url))
        return SqlClaims(self._engines[-1])

    def kept(self) -> KeptStore:
        self._engines.append(open_store(self.url))
        return SqlKept(self._engines[-1])

    def policies(self) -> PolicyStore:
        self._engines.append(open_store(self.url))
        return SqlPolicies(self._engines[-1], self._clock)

    def deletions(self) -> DeletionStore:
        self._engines.append(open_store(self.url))
        return SqlDeletionStore(self._engines[-1], self._clock)

    def audit(self) -> AuditLog:
        self._engines.append(open_store(self.url))
        return SqlAudit(self._engines[-1], self._clock)

    def identities(self) -> IdentityStore:
        self._engines.append(open_store(self.url))
        return SqlIdentities(self._engines[-1], self._clock)

    def cursors(self) -> Cursors:
        self._engines.append(open_store(self.url))
        return SqlCursors(self._engines[-1])

    def answers(self) -> Answers:
        self._engines.append(open_store(self.url))
        return SqlAnswers(self._engines[-1], self._clock)

    def messages(self) -> MessageStore:
        self._engines.append(open_store(self.url))
        return SqlMessages(self._engines[-1], self._clock)

    def prunings(self) -> Prunings:
        self._engines.append(open_store(self.url))
        return SqlPrunings(self._engines[-1], self._clock)

    def servers(self) -> Servers:
        self._engines.append(open_store(self.url))
        return SqlServers(self._engines[-1], self._clock)

    def next_server(self) -> None:
        with writing(self._engines[0]) as connection:
            query = update(counters).where(counters.c.name == SERVER_EPOCH)
            connection.execute(query.values(value=counters.c.value + 1))

    def close(self) -> None:
        for engine in self._engines:
            engine.dispose()


@cache
def _migrated(postgres: PostgresServer) -> str:
    """A database for all tests in turn: emptying one is a tenth of the work of making one."""
    return postgres.new_database()


def emptied(postgres: PostgresServer) -> str:
    """The url of a store on PostgreSQL with nothing in it, until somebody asks for the next one."""
    url = _migrated(postgres)
    engine = open_store(url)
    with writing(engine) as connection:
        names = ", ".join(table.name for table in metadata.sorted_tables if table is not counters)
        connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY"))
        connection.execute(update(counters).values(value=0))
    engine.dispose()
    return url


def sqlite_stores(directory: Path, clock: Clock) -> SqlStores:
    return SqlStores(sqlite_store(directory / "state" / "icewright.db"), clock)


Stores = MemoryStores | SqlStores
IMPLEMENTATIONS = ("memory", "sqlite", "postgresql")


@contextmanager
def opened(request: pytest.FixtureRequest, directory: Path, clock: Clock) -> Iterator[Stores]:
    """The stores of the implementation that the test is run for."""
    stores: Stores
    match request.param:
        case "memory":
            stores = MemoryStores(clock)
        case "sqlite":
            stores = sqlite_stores(directory, clock)
        case _:
            stores = SqlStores(emptied(request.getfixturevalue("postgres")), clock)
    try:
        yield stores
    finally:
        stores.close()
