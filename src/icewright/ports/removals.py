"""All ports through which files are looked for and removed, those of each catalog together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from icewright.domain.clock_notes import Uptime
from icewright.ports.deletions import DeletionStore
from icewright.ports.objects import Objects
from icewright.ports.quarantine import Quarantine
from icewright.ports.sightings import Sightings
from icewright.ports.spool import OpenSpool
from icewright.ports.table_files import TableFiles


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
    sightings: Sightings
    open_spool: OpenSpool
    catalogs: Mapping[str, CatalogFiles] = field(default_factory=dict)
    uptime: Callable[[], Uptime] | None = None
    """What the machine counts, by which jumps of the clock are found; None where nothing does."""
