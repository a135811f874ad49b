"""A whole lakehouse in memory: catalog, writers, queue, control plane; for tests, stories and the simulation."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.remove_files.removals_port import CatalogFiles, RemovalPorts
from icewright.actions.undo.second_tables_port import SecondTables
from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.catalogs.local_spool import open_disk_spool
from icewright.catalogs.port import Catalog
from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.maintenance.dispatch.dispatcher import DispatchLimits
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.events.events import Channel, CommitEvent
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import PartitionField, Snapshot, TableMetadata
from icewright.model.policy.policy import PolicyRule
from icewright.model.policy.resource_groups import ResourceGroup
from icewright.model.work.tasks import Task, TaskState
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.service import MessageDelivery
from icewright.ownership.model import Missing
from icewright.policy.rules.sql import SqlPolicies
from icewright.ports.carriers import Carrier
from icewright.ports.store import TableRecord, TableStore, TaskFilter, TaskStore
from icewright.server.cluster.share import ALL_TABLES
from icewright.server.control import ControlPlane, build_control_plane
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.store.table_store import SqlTableStore
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.deletion_store import MemoryDeletionStore
from tests.doubles.expiry import MemoryExpiry
from tests.doubles.ids import SequentialIds
from tests.doubles.lake import MemoryFile
from tests.doubles.objects import MemoryObjects, MemoryStorage
from tests.doubles.quarantine import MemoryQuarantine
from tests.doubles.removals import memory_files
from tests.doubles.rollback import MemoryRollbacks
from tests.doubles.second_tables import MemorySecondTables
from tests.doubles.table_files import MemoryTableFiles
from tests.doubles.table_store import MemoryTableStore
from tests.doubles.task_store import MemoryTaskStore
from tests.lakes.stores import new_store

KIB = 1024
MIB = 1024 * KIB
SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
LEASE_MS = 30 * SECOND_MS
NAME = TableName("lake", ("db",), "events")
AUTO = {"icewright.mode": "auto", "write.target-file-size-bytes": str(64 * MIB)}
ALL_AUTO = PolicyRule("lake", (), AUTO)
BONN, KYOTO = Partition(0, '["Bonn"]'), Partition(0, '["Kyoto"]')
HELD = CanonicalPath("file:///held")
"""The quarantine, where there is one."""
BY_CITY = (PartitionField(2, 1000, "city", "identity"),)


class ShiftedClock:
    """Somebody's clock, which differs from the true one by ``ahead_ms``."""

    def __init__(self, true: Clock) -> None:
        self._true = true
        self.ahead_ms = 0

    def now(self) -> Instant:
        """What it shows."""
        return self._true.now() + self.ahead_ms


def in_memory(clock: Clock) -> tuple[TableStore, TaskStore]:
    """Stores that are gone with the test."""
    tasks = MemoryTaskStore(clock)
    return cast("TableStore", MemoryTableStore(clock, tasks)), cast("TaskStore", tasks)


class Lakehouse:
    """One catalog named ``lake`` (more by ``others``), and a control plane that :meth:`restart` replaces.

    ``clock`` is the true time. The clocks of the server, of the store and of the writers run with it unless shifted.
    """

    def __init__(
        self,
        *,
        rules: Sequence[PolicyRule] = (ALL_AUTO,),
        others: Sequence[str] = (),
        seed: int = 0,
        stores: Callable[[Clock], tuple[TableStore, TaskStore]] | None = None,
        has_files: bool = False,
        groups: Sequence[ResourceGroup] = (),
        has_policies: bool = True,
        parallel_looks: int = 1,
    ) -> None:
        """``has_files``: all files of the catalog ``lake`` are objects on a storage with a quarantine.

        ``has_policies``: policies can be applied, so that each look asks the store for them.
        """
        self.clock = ManualClock()
        self.server_clock, self.store_clock, self.writers_clock = (ShiftedClock(self.clock) for _ in range(3))
        self.storage_clock = ShiftedClock(self.clock)
        self.storage = MemoryStorage(self.storage_clock) if has_files else None
        self.ids = SequentialIds()
        self.chance = random.Random(seed)  # noqa: S311 - spreads retries in tests
        self.tables: TableStore
        self.tasks: TaskStore
        self.tables, self.tasks = (stores or in_memory)(self.store_clock)
        self.catalog = MemoryCatalog("lake", self.writers_clock, self.storage)
        self.catalogs: dict[str, MemoryCatalog] = {"lake": self.catalog}
        self.catalogs.update({name: MemoryCatalog(name, self.writers_clock) for name in others})
        self.served: dict[str, Catalog] = dict(self.catalogs)
        """The catalogs as the server has them."""
        self.rules, self.groups = tuple(rules), tuple(groups)
        self.carriers: dict[ActionKind, Carrier] = {}
        self.expiries = {name: MemoryExpiry(catalog) for name, catalog in self.catalogs.items()}
        self.rollbacks = {name: MemoryRollbacks(catalog, self.writers_clock) for name, catalog in self.catalogs.items()}
        self.seconds: dict[str, SecondTables] = {
            name: MemorySecondTables(catalog) for name, catalog in self.catalogs.items()
        }
        # As in a server, all is in one database, unless the stores are in memory.
        store = self.tables._engine if isinstance(self.tables, SqlTableStore) else new_store()
        self.kept, self.decisions = SqlUndoRecordStore(store), SqlDecisions(store, self.store_clock)
        self.delivery = MessageDelivery(SqlMessages(store, self.store_clock))
        self.policies = SqlPolicies(store, self.store_clock)
        self.has_policies = has_policies
        files = {name: memory_files(catalog, self.store_clock) for name, catalog in self.catalogs.items()}
        if self.storage is not None:
            objects, quarantine = MemoryObjects(self.storage), MemoryQuarantine(self.storage, HELD)
            files["lake"] = CatalogFiles(MemoryTableFiles(self.catalog), objects, quarantine)
        deletions, sightings = MemoryDeletionStore(self.store_clock), SqlSightings(store, self.store_clock)
        self.removals = RemovalPorts(deletions, sightings, open_disk_spool, files)
        self._files = 0
        self.part, self.parallel_looks = ALL_TABLES, parallel_looks
        self.elsewhere: Sequence[Missing] = ()
        """Catalogs that other servers alone have."""
        self.control = self.restart()

    def restart(self, *, without: frozenset[str] = frozenset()) -> ControlPlane:
        """A new server process over the same stores, perhaps with fewer catalogs configured."""
        catalogs = {k: v for k, v in self.served.items() if k not in without}
        limits = DispatchLimits(lease_ms=LEASE_MS, attempts_max=3, chance=self.chance.random)
        self.control = build_control_plane(
            catalogs,
            self.tables,
            self.tasks,
            self.server_clock,
            self.ids,
            self.removals,
            self.kept,
            self.delivery,
            rules=self.rules,
            groups=self.groups,
            policies=self.policies if self.has_policies else None,
            limits=limits,
            carriers=self.carriers,
            expiries=self.expiries,
            pause=self.pass_time,
            rollbacks=self.rollbacks,
            seconds=self.seconds,
            part=self.part,
            parallel_looks=self.parallel_looks,
            decisions=self.decisions,
            elsewhere=lambda: self.elsewhere,
        )
        return self.control

    def create(
        self, name: TableName = NAME, properties: Mapping[str, str] | None = None, *, format_version: int = 2
    ) -> TableId:
        """A table partitioned by city."""
        return self.catalogs[name.catalog].create(
            name, partition_fields=BY_CITY, properties=properties, format_version=format_version
        )

    def files(
        self, count: int, partition: Partition = BONN, size_bytes: int = MIB, records: int = 10
    ) -> list[MemoryFile]:
        """New files that nobody has committed yet."""
        first, self._files = self._files, self._files + count
        return [
            MemoryFile(f"f{number:05d}.parquet", partition, size_bytes, records)
            for number in range(first, first + count)
        ]

    def put(self, *files: MemoryFile) -> None:
        """The files are written, where files are objects at all."""
        if self.storage is not None:
            for file in files:
                content = f"rows of {file.path}".encode()
                self.storage.write(CanonicalPath(file.path), content, size_bytes=file.size_bytes)

    def append(self, count: int = 1, partition: Partition = BONN, name: TableName = NAME) -> Snapshot:
        """A writer appends small files of ten rows each."""
        return self.catalogs[name.catalog].append(name, self.files(count, partition))

    def notify(self, snapshot: Snapshot, name: TableName = NAME) -> bool:
        """Somebody reports a commit."""
        return bool(self.control.intake.take([CommitEvent(name, snapshot.snapshot_id)], Channel.HTTP))

    def ready_table(
        self, name: TableName = NAME, properties: Mapping[str, str] | None = None, *, format_version: int = 2
    ) -> TableId:
        """A table with eight small files that are old enough to be merged."""
        table_id = self.create(name, properties, format_version=format_version)
        for _ in range(2):
            self.append(4, name=name)
            self.pass_time(10 * MINUTE_MS)
        return table_id

    def with_ready_table(self, properties: Mapping[str, str] | None = None) -> Lakehouse:
        """Itself with such a table."""
        self.ready_table(properties=properties)
        return self

    def carry_out_nothing(self) -> None:
        """Restart as a server that lets no snapshots expire and rolls nothing back."""
        self.expiries.clear()
        self.rollbacks.clear()
        self.restart()

    def let_expire_once(self, name: TableName = NAME) -> Task:
        """A person has a snapshot of a table expire: from then on it goes by itself, where its owner lets it."""
        for _ in range(2):
            self.append(1, name=name)
            self.pass_time(SECOND_MS)
        plan = self.control.maintainer.plan_asked(name, ExpireSnapshotsRequest("PT0S", 1))
        task = self.control.dispatcher.apply(plan.plan_id)
        self.rounds(2)
        assert self.tasks.get(task.task_id).state is TaskState.SUCCEEDED
        return task

    def approve_all(self, approved_by: str = "Ada") -> list[Task]:
        """A person lets everything go that waits."""
        waiting = self.tables.waiting(limit=100)
        return [self.control.dispatcher.approve(one.plan_id, approved_by) for one in waiting]

    def pass_time(self, delta_ms: int) -> None:
        """Nothing happens for a while."""
        self.clock.advance(delta_ms)

    def rounds(self, count: int, every_ms: int = SECOND_MS) -> None:
        """Rounds of the loop, with time in between."""
        for _ in range(count):
            self.control.loop.round()
            self.clock.advance(every_ms)

    def with_five_snapshots(self) -> Lakehouse:
        """Itself with a table of five snapshots, an hour apart, that was looked at."""
        self.create()
        for _ in range(5):
            self.pass_time(HOUR_MS)
            self.append(1)
        self.control.loop.round()
        return self

    def metadata(self, name: TableName = NAME) -> TableMetadata:
        """The table as its catalog has it."""
        return self.catalogs[name.catalog].load(name)

    def metadata_of(self, name: TableName) -> TableMetadata:
        """The table as it is, also while the catalog is away."""
        catalog = self.catalogs[name.catalog]
        available, catalog.available = catalog.available, True
        try:
            return catalog.load(name)
        finally:
            catalog.available = available

    def record(self, name: TableName = NAME) -> TableRecord:
        """What the store knows of a table that is not dropped."""
        record = self.tables.record_by_name(name)
        assert record is not None
        return record

    def all_tasks(self) -> list[Task]:
        """All tasks, oldest first."""
        return list(reversed(self.tasks.tasks(TaskFilter(), limit=10_000)))

    def only_task(self) -> Task:
        """The only task there is."""
        (task,) = self.all_tasks()
        return task
