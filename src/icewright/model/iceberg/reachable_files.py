"""Every file that a table's metadata names, in all its snapshots: what must never be taken for garbage.

The classes of files are a closed list (Iceberg table spec, v1 to v3). A file, or a field that may name one, that is in
none of them is not passed over: the answer is then :class:`~icewright.core.completeness.Partial`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from icewright.core.completeness import Gap
from icewright.core.times import Instant
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.tables import TableMetadata


class FileClass(StrEnum):
    """What a file is to a table."""

    DATA = "data"
    POSITION_DELETES = "position-deletes"
    EQUALITY_DELETES = "equality-deletes"
    DELETION_VECTORS = "deletion-vectors"
    """A Puffin file, which may hold the vectors of many data files."""
    MANIFEST = "manifest"
    MANIFEST_LIST = "manifest-list"
    STATISTICS = "statistics"
    """A Puffin file that the metadata names itself."""
    PARTITION_STATISTICS = "partition-statistics"
    METADATA = "metadata"
    """The metadata file, and those before it that its log still names."""
    VERSION_HINT = "version-hint"
    """What Hadoop catalogs find the metadata by; tables of other catalogs need not have one."""


_OF_V1: Final = frozenset(
    {
        FileClass.DATA,
        FileClass.MANIFEST,
        FileClass.MANIFEST_LIST,
        FileClass.STATISTICS,
        FileClass.PARTITION_STATISTICS,
        FileClass.METADATA,
        FileClass.VERSION_HINT,
    }
)
_OF_V2: Final = _OF_V1 | {FileClass.POSITION_DELETES, FileClass.EQUALITY_DELETES}
FILE_CLASSES: Final[Mapping[int, frozenset[FileClass]]] = {
    1: _OF_V1,
    2: _OF_V2,
    3: _OF_V2 | {FileClass.DELETION_VECTORS},
}
"""All that there may be, by format version."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that the metadata names itself, with the snapshot that it is about, None for the table's own."""

    path: str
    file_class: FileClass
    size_bytes: int | None = None
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class Roots:
    """Where everything that a table needs begins: one metadata file.

    ``embedded`` has the manifests of snapshots that list them in the metadata itself, as v1 may. ``gaps`` are what is
    in the metadata and nobody here knows.
    """

    metadata: TableMetadata
    files: tuple[NamedFile, ...]
    embedded: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedManifest:
    """A manifest as a manifest list has it; what the list does not say is None, and cannot be checked."""

    path: str
    length_bytes: int | None = None
    is_data: bool | None = None
    entries: int | None = None
    live_files: int | None = None
    added_snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class ManifestListing:
    """A manifest list as it was read."""

    size_bytes: int
    manifests: tuple[ListedManifest, ...]


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A live entry of a manifest. ``added_snapshot_id`` is None where nothing says which snapshot added the file."""

    path: str
    file_class: FileClass
    size_bytes: int
    added_snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class ReachableFile:
    """One file. ``kept_by`` has a bit for each keeper (:mod:`icewright.inventory.reference_bits`) that needs it.

    ``size_bytes`` is None where nothing that was read tells it. ``added_at`` is when the first snapshot was committed
    that added it, by its writer's clock; None for files that no manifest lists, and where that snapshot has expired.
    """

    path: CanonicalPath
    file_class: FileClass
    size_bytes: int | None
    kept_by: int
    added_at: Instant | None = None
