"""The services that look for files and remove them, wired over the ports of each catalog."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from icewright.actions.remove_files.clock_watch import ClockWatch
from icewright.actions.remove_files.current_facts import PlaceOf
from icewright.actions.remove_files.deleter import Deleter
from icewright.actions.remove_files.expired_files import ExpiredDoors, ExpiredFilesPlanner
from icewright.actions.remove_files.orphans.foreign_metadata import MetadataUuids
from icewright.actions.remove_files.orphans.gone_tables import GoneTables, GoneUuids
from icewright.actions.remove_files.orphans.service import OrphanFinder
from icewright.actions.remove_files.removals_port import CatalogFiles, RemovalPorts
from icewright.actions.remove_files.service import OfGone, Remover, StorageClients
from icewright.core.completeness import Partial
from icewright.core.errors import NotFound
from icewright.feed.publisher import FeedPublisher
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.objects import prefix_of
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership.model import GoneUuid
from icewright.ownership.needed_files import NeedsOf, OtherTables, TableNeeds
from icewright.ownership.registry import Registry
from icewright.ports.snapshot_expiry import SnapshotExpiry
from icewright.ports.store import TableStore, TaskStore


def build_finders(
    ports: RemovalPorts, registry: Registry, watch: ClockWatch, tasks: TaskStore
) -> Mapping[str, OrphanFinder]:
    """What looks for orphan files, by catalog; files in quarantine are found by none."""
    uuids = MetadataUuids(_knows_tasks(tasks))
    held = tuple(sorted({prefix_of(root) for own in ports.catalogs.values() for root in own.quarantine.roots}))
    return {
        name: OrphanFinder(
            own.files,
            own.objects,
            ports.sightings,
            ports.open_spool,
            aliases=registry.aliases_of(name),
            uuids=uuids,
            quarantine=held,
            limits=registry.limits_of(name),
            graces_since=watch.graces_since,
            can_hold=own.quarantine.check,
        )
        for name, own in ports.catalogs.items()
    }


def _knows_tasks(tasks: TaskStore) -> Callable[[str, str], bool]:
    """Whether a task id, which a stranger may have written, is that of a task of the table with a uuid."""

    def is_task(task_id: str, uuid: str) -> bool:
        if not (task_id.isascii() and task_id.isprintable()):
            return False
        try:
            return tasks.head(task_id).table_id.uuid == uuid
        except NotFound:
            return False

    return is_task


def build_remover(
    ports: RemovalPorts,
    registry: Registry,
    tasks: TaskStore,
    tables: TableStore,
    expired: ExpiredFilesPlanner,
    pause: Callable[[int], None],
    tidings: FeedPublisher,
    watch: ClockWatch,
) -> Remover:
    """What removes files, of the catalogs that have a quarantine. For the thread that ``expired`` is for."""

    def name_of(table_id: TableId) -> TableName | None:
        record = tables.record(table_id)
        return None if record is None else record.name

    uuids = MetadataUuids(_knows_tasks(tasks))
    return Remover(
        {
            name: _hands(ports, own, registry, name, watch, uuids)
            for name, own in ports.catalogs.items()
            if own.quarantine.roots
        },
        ports.store,
        tasks,
        pause,
        name_of,
        expired.require_grace,
        tidings.came_back,
    )


def build_expired_doors(
    ports: RemovalPorts, registry: Registry, expiries: Mapping[str, SnapshotExpiry], tasks: TaskStore
) -> Mapping[str, ExpiredDoors]:
    """What is asked about files of expired snapshots, of the catalogs that have a quarantine."""
    uuids, declared = MetadataUuids(_knows_tasks(tasks)), GoneUuids(registry)

    def gone(table: TableMetadata) -> tuple[GoneUuid, ...]:
        if not any(name == table.name for name, _ in declared.declared()):
            return ()  # all catalogs would be asked for nothing
        known = declared.place_now(table)
        return () if isinstance(known, Partial) else known.value.gone

    return {
        name: ExpiredDoors(
            own.files,
            own.objects,
            expiries[name],
            TableNeeds(own.files, ports.open_spool, registry.aliases_of(name)),
            registry.aliases_of(name),
            uuids,
            registry.limits_of(name),
            gone,
            registry.elsewhere,
        )
        for name, own in ports.catalogs.items()
        if own.quarantine.roots and name in expiries
    }


def _hands(
    ports: RemovalPorts,
    own: CatalogFiles,
    registry: Registry,
    catalog: str,
    watch: ClockWatch,
    uuids: MetadataUuids,
) -> StorageClients:
    aliases = registry.aliases_of(catalog)
    needs = TableNeeds(own.files, ports.open_spool, aliases)
    readers = {
        name: TableNeeds(each.files, ports.open_spool, registry.aliases_of(name))
        for name, each in ports.catalogs.items()
    }
    others = OtherTables(registry.users_now, readers)
    declared = GoneUuids(registry)

    def deleter(asks: NeedsOf, place: PlaceOf) -> Deleter:
        since = watch.graces_since
        return Deleter(
            ports.store, own.objects, own.quarantine, asks, place, others, aliases=aliases, graces_since=since
        )

    gone = GoneTables(needs, registry.users_now, lambda uuid: registry.book().withdrawn(uuid))
    of_gone = OfGone(deleter(gone.needs, gone.place), gone)
    its_own = deleter(needs, lambda name: declared.place_of(name, own.files, own.objects, uuids))
    return StorageClients(its_own, needs, own.files, of_gone)


def sleep_ms(wait_ms: int) -> None:
    """Wait."""
    time.sleep(wait_ms / 1000)
