"""The ports of removing files in memory, for simulations and tests, and for whoever removes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from icewright.adapters.memory.audit import MemoryAudit
from icewright.adapters.memory.catalog import MemoryCatalog
from icewright.adapters.memory.deletion_store import MemoryDeletionStore
from icewright.adapters.memory.names import MemoryNames
from icewright.adapters.memory.objects import MemoryObjects, MemoryStorage
from icewright.adapters.memory.quarantine import MemoryQuarantine
from icewright.adapters.memory.sightings import MemorySightings
from icewright.adapters.memory.spool import open_memory_spool
from icewright.adapters.memory.table_files import MemoryTableFiles
from icewright.ports.clock import Clock
from icewright.ports.removals import CatalogFiles, RemovalPorts


def memory_removals(
    clock: Clock,
    catalogs: Mapping[str, CatalogFiles] | None = None,
    audit: MemoryAudit | None = None,
    names: MemoryNames | None = None,
) -> RemovalPorts:
    """Nothing is remembered beyond the process; without ``catalogs``, nothing is looked for anywhere."""
    return RemovalPorts(
        MemoryDeletionStore(clock, audit, names), MemorySightings(clock), open_memory_spool, dict(catalogs or {})
    )


def memory_files(catalog: MemoryCatalog, clock: Clock) -> CatalogFiles:
    """The files of a catalog in memory, on a storage without a quarantine: nothing is ever removed there."""
    storage = MemoryStorage(clock)
    return CatalogFiles(MemoryTableFiles(catalog), MemoryObjects(storage), MemoryQuarantine(storage, None))
