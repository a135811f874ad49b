"""The ports of removing files over a store, with files in memory or without any."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Engine

from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.remove_files.removals_port import CatalogFiles, RemovalPorts
from icewright.catalogs.local_spool import open_disk_spool
from icewright.core.clock import Clock
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.objects import MemoryObjects, MemoryStorage
from tests.doubles.quarantine import MemoryQuarantine
from tests.doubles.table_files import MemoryTableFiles


def removal_ports(engine: Engine, clock: Clock, catalogs: Mapping[str, CatalogFiles] | None = None) -> RemovalPorts:
    """Without ``catalogs``, nothing is looked for anywhere."""
    store, sightings = SqlDeletionStore(engine, clock), SqlSightings(engine, clock)
    return RemovalPorts(store, sightings, open_disk_spool, dict(catalogs or {}))


def memory_files(catalog: MemoryCatalog, clock: Clock) -> CatalogFiles:
    """The files of a catalog in memory, on a storage without a quarantine: nothing is ever removed there."""
    storage = MemoryStorage(clock)
    return CatalogFiles(MemoryTableFiles(catalog), MemoryObjects(storage), MemoryQuarantine(storage, None))
