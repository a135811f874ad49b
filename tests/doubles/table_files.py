"""The port of all files over the catalog in memory: every manifest that it has, and the metadata files of the log."""

from __future__ import annotations

from collections.abc import Iterator

from icewright.core.errors import Unreadable
from icewright.model.iceberg.files import FileContent
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import (
    FileClass,
    ListedFile,
    ListedManifest,
    ManifestListing,
    NamedFile,
    Roots,
)
from icewright.model.iceberg.tables import TableMetadata
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.lake import Entry, Manifest
from tests.doubles.tables import LIST_BYTES, METADATA_BYTES


class MemoryTableFiles:
    """The port over one catalog in memory. What is damaged there is unreadable here."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog

    def roots(self, name: TableName) -> Roots:
        """The table as it is now; it has no statistics."""
        metadata = self._catalog.load(name)
        named = (metadata.metadata_location, *(entry.location for entry in metadata.metadata_log))
        return Roots(metadata, tuple(NamedFile(path, FileClass.METADATA) for path in named))

    def size_bytes(self, table: TableMetadata, path: str) -> int:
        """As the storage lists it, where there is one; else as a manifest says, and all metadata weighs the same."""
        if self._catalog.storage is not None:
            stored = self._catalog.storage.objects.get(CanonicalPath(path))
            if stored is None:
                raise Unreadable(f"{path} is not there")
            return stored.listed.size_bytes
        self._catalog.check_readable(path)
        for snapshot in table.snapshots:
            for manifest in self._catalog.manifests_of(table, snapshot):
                for entry in manifest.entries:
                    if entry.file.path == path:
                        return entry.file.size_bytes
        return METADATA_BYTES

    def manifests(self, table: TableMetadata, path: str) -> ManifestListing:
        """All lines of a manifest list."""
        return ManifestListing(LIST_BYTES, tuple(_listed(manifest) for manifest in self._of_list(table, path)))

    def live_files(self, table: TableMetadata, manifest: ListedManifest) -> Iterator[ListedFile]:
        """The live entries of a manifest."""
        for snapshot in table.snapshots:
            for found in self._of_list(table, snapshot.manifest_list):
                if found.key.path == manifest.path:
                    self._catalog.check_readable(manifest.path)
                    yield from (_file(entry) for entry in found.live)
                    return
        raise Unreadable(f"{manifest.path} is not there")

    def _of_list(self, table: TableMetadata, path: str) -> tuple[Manifest, ...]:
        for snapshot in table.snapshots:
            if snapshot.manifest_list == path:
                return self._catalog.manifests_of(table, snapshot)
        raise Unreadable(f"{path} is not there")


def _listed(manifest: Manifest) -> ListedManifest:
    return ListedManifest(
        manifest.key.path, manifest.key.length_bytes, manifest.is_data, len(manifest.entries), len(manifest.live)
    )


def _file(entry: Entry) -> ListedFile:
    file = entry.file
    match file.content:
        case FileContent.DATA:
            file_class = FileClass.DATA
        case FileContent.EQUALITY_DELETES:
            file_class = FileClass.EQUALITY_DELETES
        case FileContent.POSITION_DELETES:
            file_class = FileClass.DELETION_VECTORS if file.is_deletion_vector else FileClass.POSITION_DELETES
    return ListedFile(file.path, file_class, file.size_bytes, entry.snapshot_id)
