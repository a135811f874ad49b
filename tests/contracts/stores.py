"""The stores on each kind of database, opened for a test; one more kind is one more entry here."""

from collections.abc import Sequence
from itertools import cycle
from typing import cast

import pytest
from sqlalchemy import Engine, update

from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.audit.sql import SqlAudit
from icewright.core.clock import Clock
from icewright.events.sources.cursors import SqlCursors
from icewright.identity.sql import SqlIdentities
from icewright.notifications.message_store import SqlMessages
from icewright.ownership.claims_sql import SqlClaims
from icewright.policy.rules.port import PolicyStore
from icewright.policy.rules.sql import SqlPolicies
from icewright.ports.deletions import DeletionStore
from icewright.ports.store import TableStore, TaskStore
from icewright.retention.prunings_sql import SqlPrunings
from icewright.server.cluster.servers_sql import SqlServers
from icewright.store.schema import SERVER_EPOCH, counters
from icewright.store.transactions import writing
from icewright.web.idempotent_answers_sql import SqlAnswers
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.doubles.deletion_store import MemoryDeletionStore
from tests.doubles.sightings import MemorySightings
from tests.lakes.stores import SharedStore, open_without_sync, postgres_store, sqlite_store


class Stores:
    """Stores over one database, of several servers in turn: what one has written, the next one sees from elsewhere."""

    def __init__(self, servers: Sequence[Engine], clock: Clock) -> None:
        self._clock = clock
        self.engine, self._servers = servers[0], cycle(servers)

    def tasks(self) -> TaskStore:
        return SqlTaskStore(next(self._servers), self._clock)

    def tables(self) -> TableStore:
        return SqlTableStore(next(self._servers), self._clock)

    def sightings(self) -> SqlSightings:
        return SqlSightings(next(self._servers), self._clock)

    def claims(self) -> SqlClaims:
        return SqlClaims(next(self._servers))

    def kept(self) -> SqlUndoRecordStore:
        return SqlUndoRecordStore(next(self._servers))

    def policies(self) -> PolicyStore:
        return SqlPolicies(next(self._servers), self._clock)

    def deletions(self) -> DeletionStore:
        return SqlDeletionStore(next(self._servers), self._clock)

    def audit(self) -> SqlAudit:
        return SqlAudit(next(self._servers), self._clock)

    def identities(self) -> SqlIdentities:
        return SqlIdentities(next(self._servers), self._clock)

    def cursors(self) -> SqlCursors:
        return SqlCursors(next(self._servers))

    def answers(self) -> SqlAnswers:
        return SqlAnswers(next(self._servers), self._clock)

    def messages(self) -> SqlMessages:
        return SqlMessages(next(self._servers), self._clock)

    def decisions(self) -> SqlDecisions:
        return SqlDecisions(next(self._servers), self._clock)

    def prunings(self) -> SqlPrunings:
        return SqlPrunings(next(self._servers), self._clock)

    def servers(self) -> SqlServers:
        return SqlServers(next(self._servers), self._clock)

    def next_server(self) -> None:
        with writing(next(self._servers)) as connection:
            query = update(counters).where(counters.c.name == SERVER_EPOCH)
            connection.execute(query.values(value=counters.c.value + 1))


class InMemory(Stores):
    """The stores that the seeded simulation has in place of a database, as far as there are any."""

    def __init__(self, clock: Clock) -> None:
        self._sightings, self._deletions = MemorySightings(clock), MemoryDeletionStore(clock)

    def sightings(self) -> SqlSightings:
        return cast(SqlSightings, self._sightings)

    def deletions(self) -> DeletionStore:
        return self._deletions

    def next_server(self) -> None:
        self._deletions.server += 1


class _Shared(SharedStore):
    """A database and two servers of it for all tests in turn: connections and compiled statements are there already."""

    def __init__(self, url: str, config: pytest.Config) -> None:
        super().__init__(url)
        self.servers = self.engine, open_without_sync(url)
        for engine in self.servers:
            config.add_cleanup(engine.dispose)


DATABASES = ("sqlite", "postgresql")
AND_IN_MEMORY = (*DATABASES, "memory")
"""For the contracts of stores that have a double."""
_SHARED: dict[str, _Shared] = {}


def stores_on(database: str, request: pytest.FixtureRequest, clock: Clock) -> Stores:
    """Stores on SQLite or PostgreSQL with nothing in them, until somebody asks for the next ones."""
    if database == "memory":
        return InMemory(clock)
    shared = _SHARED.get(database)
    if shared is None:
        if database == "sqlite":
            factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
            url = sqlite_store(factory.mktemp("stores") / "icewright.db")
        else:
            url = postgres_store(request.getfixturevalue("postgres"))
        shared = _SHARED[database] = _Shared(url, request.config)
    shared.empty()
    return Stores(shared.servers, clock)
