"""Every implementation of the store ports, opened for a test; one more database is one more entry here."""

import sqlite3
from collections.abc import Sequence
from itertools import cycle

import pytest
from sqlalchemy import Engine, delete, event, insert, select, update

from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.actions.remove_files.orphans.sightings_port import Sightings
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.audit.port import AuditLog
from icewright.audit.sql import SqlAudit
from icewright.core.clock import Clock
from icewright.events.sources.cursors import SqlCursors
from icewright.events.sources.port import Cursors
from icewright.identity.port import IdentityStore
from icewright.identity.sql import SqlIdentities
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.port import MessageStore
from icewright.ownership.claims_port import ClaimStore
from icewright.ownership.claims_sql import SqlClaims
from icewright.policy.rules.port import PolicyStore
from icewright.policy.rules.sql import SqlPolicies
from icewright.ports.deletions import DeletionStore
from icewright.ports.store import TableStore, TaskStore
from icewright.ports.undo_records import UndoRecordStore
from icewright.retention.prunings_port import Prunings
from icewright.retention.prunings_sql import SqlPrunings
from icewright.server.cluster.servers_port import Servers
from icewright.server.cluster.servers_sql import SqlServers
from icewright.store.engine import open_store
from icewright.store.schema import SERVER_EPOCH, counters
from icewright.store.transactions import reading, writing
from icewright.store_admin.all_tables import metadata
from icewright.web.idempotent_answers_port import Answers
from icewright.web.idempotent_answers_sql import SqlAnswers
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.doubles.answers import MemoryAnswers
from tests.doubles.audit import MemoryAudit
from tests.doubles.claims import MemoryClaims
from tests.doubles.deletion_store import MemoryDeletionStore
from tests.doubles.event_source import MemoryCursors
from tests.doubles.identity import MemoryIdentities
from tests.doubles.kept import MemoryKept
from tests.doubles.message_store import MemoryMessages
from tests.doubles.names import MemoryNames
from tests.doubles.policies import MemoryPolicies
from tests.doubles.prunings import MemoryPrunings
from tests.doubles.servers import MemoryServers
from tests.doubles.sightings import MemorySightings
from tests.doubles.table_store import MemoryTableStore
from tests.doubles.task_store import MemoryTaskStore
from tests.lakes.stores import postgres_store, sqlite_store


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

    def kept(self) -> UndoRecordStore:
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


class SqlStores:
    """Stores over one database, of several servers in turn: what one has written, the next one sees from elsewhere."""

    def __init__(self, servers: Sequence[Engine], clock: Clock) -> None:
        self._clock = clock
        self._servers = cycle(servers)

    def tasks(self) -> TaskStore:
        return SqlTaskStore(next(self._servers), self._clock)

    def tables(self) -> TableStore:
        return SqlTableStore(next(self._servers), self._clock)

    def sightings(self) -> Sightings:
        return SqlSightings(next(self._servers), self._clock)

    def claims(self) -> ClaimStore:
        return SqlClaims(next(self._servers))

    def kept(self) -> UndoRecordStore:
        return SqlUndoRecordStore(next(self._servers))

    def policies(self) -> PolicyStore:
        return SqlPolicies(next(self._servers), self._clock)

    def deletions(self) -> DeletionStore:
        return SqlDeletionStore(next(self._servers), self._clock)

    def audit(self) -> AuditLog:
        return SqlAudit(next(self._servers), self._clock)

    def identities(self) -> IdentityStore:
        return SqlIdentities(next(self._servers), self._clock)

    def cursors(self) -> Cursors:
        return SqlCursors(next(self._servers))

    def answers(self) -> Answers:
        return SqlAnswers(next(self._servers), self._clock)

    def messages(self) -> MessageStore:
        return SqlMessages(next(self._servers), self._clock)

    def prunings(self) -> Prunings:
        return SqlPrunings(next(self._servers), self._clock)

    def servers(self) -> Servers:
        return SqlServers(next(self._servers), self._clock)

    def next_server(self) -> None:
        with writing(next(self._servers)) as connection:
            query = update(counters).where(counters.c.name == SERVER_EPOCH)
            connection.execute(query.values(value=counters.c.value + 1))


class _Shared:
    """A database and two servers of it for all tests in turn: connections and compiled statements are there already."""

    def __init__(self, url: str, config: pytest.Config) -> None:
        self.servers = open_store(url), open_store(url)
        for engine in self.servers:
            config.add_cleanup(engine.dispose)
            if engine.dialect.name == "sqlite":  # in a hurry, as PostgreSQL of the tests is
                event.listen(engine, "connect", _flush_nothing)
                engine.dispose()
        with reading(self.servers[0]) as connection:
            self._counters = [dict(row) for row in connection.execute(select(counters)).mappings()]

    def empty(self) -> None:
        """As a new store is. Deleting the few rows of a test takes a fraction of what TRUNCATE takes for 40 tables."""
        with writing(self.servers[0]) as connection:
            statements = [*_DELETING, _RESTARTING[connection.dialect.name]]
            if connection.dialect.name == "postgresql":  # which is far away, and takes them at once
                statements = ["; ".join(statements)]
            for statement in statements:
                connection.exec_driver_sql(statement)
            connection.execute(insert(counters), self._counters)


def _flush_nothing(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous = OFF")


_DELETING = [str(delete(table)) for table in reversed(metadata.sorted_tables)]
_RESTARTING = {
    "sqlite": "DELETE FROM sqlite_sequence",
    "postgresql": "SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'",
}
_SHARED: dict[str, _Shared] = {}


def sql_stores(implementation: str, request: pytest.FixtureRequest, clock: Clock) -> SqlStores:
    """Stores on SQLite or PostgreSQL with nothing in them, until somebody asks for the next ones."""
    shared = _SHARED.get(implementation)
    if shared is None:
        if implementation == "sqlite":
            factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
            url = sqlite_store(factory.mktemp("stores") / "icewright.db")
        else:
            url = postgres_store(request.getfixturevalue("postgres"))
        shared = _SHARED[implementation] = _Shared(url, request.config)
    shared.empty()
    return SqlStores(shared.servers, clock)


Stores = MemoryStores | SqlStores
IMPLEMENTATIONS = ("memory", "sqlite", "postgresql")


def stores_for(request: pytest.FixtureRequest, clock: Clock) -> Stores:
    """The stores of the implementation that the test is run for."""
    return MemoryStores(clock) if request.param == "memory" else sql_stores(request.param, request, clock)
