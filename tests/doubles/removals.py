"""The ports of removing files in memory, for simulations and tests, and for whoever removes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from icewright.actions.remove_files.removals_port import CatalogFiles, RemovalPorts
from icewright.core.clock import Clock
from tests.doubles.audit import MemoryAudit
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.deletion_store import MemoryDeletionStore
from tests.doubles.names import MemoryNames
from tests.doubles.objects import MemoryObjects, MemoryStorage
from tests.doubles.quarantine import MemoryQuarantine
from tests.doubles.sightings import MemorySightings
from tests.doubles.spool import open_memory_spool
from tests.doubles.table_files import MemoryTableFiles


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
