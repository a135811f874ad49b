"""All ports through which files are looked for and removed, those of each catalog together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.remove_files.quarantine_port import Quarantine
from icewright.catalogs.local_spool import OpenSpool
from icewright.catalogs.objects import Objects
from icewright.catalogs.table_files_port import TableFiles
from icewright.core.clock import Uptime
from icewright.ports.deletions import DeletionStore


@dataclass(frozen=True, slots=True)
class CatalogFiles:
    """What one catalog's tables keep where; ``quarantine`` has no root where nothing is ever removed."""

    files: TableFiles
    objects: Objects
    quarantine: Quarantine


@dataclass(frozen=True, slots=True)
class RemovalPorts:
    """What is remembered of files that nothing needs, what was intended for them, and the files, by catalog."""

    store: DeletionStore
    sightings: SqlSightings
    open_spool: OpenSpool
    catalogs: Mapping[str, CatalogFiles] = field(default_factory=dict)
    uptime: Callable[[], Uptime] | None = None
    """What the machine counts, by which jumps of the clock are found; None where nothing does."""
