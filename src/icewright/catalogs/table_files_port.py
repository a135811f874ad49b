"""The door to every file that a table's metadata names: snapshots, manifest lists, manifests. Read-only."""

from collections.abc import Iterator
from typing import Protocol

from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import ListedFile, ListedManifest, ManifestListing, Roots
from icewright.model.iceberg.tables import TableMetadata


class TableFiles(Protocol):
    """What the tables of one catalog are made of, down to the last entry.

    All methods raise ``StorageUnavailable`` or another ``Unavailable`` when catalog or storage
    do not answer; :class:`~icewright.core.errors.Unreadable` for a file that is missing, cut off or damaged, and
    :class:`~icewright.core.errors.Unsupported` for one with something in it that nobody here knows. Nothing is ever
    left out without one of these.
    """

    def roots(self, name: TableName) -> Roots:
        """The table as it is now, uncached, by the metadata file itself. Raises ``NotFound``."""

    def size_bytes(self, table: TableMetadata, path: str) -> int:
        """How long a file of the table is, without reading it."""

    def manifests(self, table: TableMetadata, path: str) -> ManifestListing:
        """All lines of a manifest list."""

    def live_files(self, table: TableMetadata, manifest: ListedManifest) -> Iterator[ListedFile]:
        """The entries of a manifest that are not marked as deleted, one after the other.

        An error may come after some of them. What the listing says of the manifest is checked.
        """
