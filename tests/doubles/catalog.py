"""A catalog in memory: tables with snapshots, manifests and files, but without bytes.

For tests, simulations and trying out. Whatever is built on the port can be shown right here over histories that no
real catalog would produce in reasonable time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from icewright.catalogs.port import TablePointers
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, TableReplaced, Unavailable, Unreadable
from icewright.core.times import Instant
from icewright.inventory.manifest_summary import ManifestSums
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Snapshot, SortField, TableMetadata
from tests.doubles.lake import Entry, Manifest, Status
from tests.doubles.objects import MemoryStorage
from tests.doubles.tables import MemoryTables


class MemoryCatalog(MemoryTables):
    """The ports of catalog and properties over tables in memory, whose writers' side it inherits.

    Safe for use by several threads.

    With a ``storage``, each commit puts its metadata files there, and what is taken away from there is unreadable.
    ``available = False`` makes every call of the port raise ``Unavailable``; :meth:`damage` makes one manifest,
    manifest list or metadata file unreadable.
    """

    def __init__(self, name: str, clock: Clock, storage: MemoryStorage | None = None) -> None:
        super().__init__(name, clock, storage)
        self.available = True
        self._damaged: set[str] = set()
        self.others: dict[TableName, Sequence[str]] = {}
        """Tables of other formats."""

    @property
    def takes_snapshots_back(self) -> bool:
        """It does."""
        return True

    def tables(self) -> Iterator[TableName]:
        """The names of all tables."""
        self._answer()
        with self._lock:
            return iter(tuple(self._uuids))

    @property
    def has_other_formats(self) -> bool:
        """As a test has it."""
        return bool(self.others)

    @property
    def lists_pointers(self) -> bool:
        """It does."""
        return True

    def pointers(self) -> TablePointers:
        """Where the pointers of all tables are."""
        self._answer()
        with self._lock:
            tables = {name: self._table(name).metadata.metadata_location for name in self._uuids}
            return TablePointers(tables, dict(self.others))

    def load(self, name: TableName) -> TableMetadata:
        """The table as it is now."""
        self._answer()
        metadata = replace(self._table(name).metadata, name=name)
        self.check_readable(metadata.metadata_location)
        return metadata

    def earlier(self, table: TableMetadata, metadata_location: str) -> TableMetadata:
        """The table as an earlier metadata file has it."""
        self._answer()
        self.check_readable(metadata_location)
        with self._lock:
            if metadata_location not in self._states:
                raise Unreadable(f"{metadata_location} is not there")
            return replace(self._states[metadata_location], name=table.name)

    def metadata_location(self, name: TableName) -> str:
        """Where the pointer is now; it changes with every change of the table."""
        self._answer()
        return self._table(name).metadata.metadata_location

    def manifests(self, table: TableMetadata, snapshot: Snapshot) -> Sequence[ManifestKey]:
        """The keys of all manifests of a snapshot."""
        return tuple(manifest.key for manifest in self.manifests_of(table, snapshot))

    def summarize(
        self,
        table: TableMetadata,
        snapshot: Snapshot,
        keys: Sequence[ManifestKey],
        runs: AbstractSet[int] = frozenset(),
    ) -> Iterator[ManifestSummary]:
        """Sum up some manifests, one after the other."""
        for manifest in self._chosen(table, snapshot, keys):
            yield _summarized(manifest, runs, table.location)

    def data_files(
        self,
        table: TableMetadata,
        snapshot: Snapshot,
        keys: Sequence[ManifestKey],
        partitions: frozenset[Partition],
        fields: Sequence[SortField] = (),
    ) -> Iterator[DataFile]:
        """The live data files of some partitions, their spans as their writers said, whatever fields are asked for."""
        for manifest in self._chosen(table, snapshot, keys):
            for entry in manifest.live:
                if manifest.is_data and entry.file.partition in partitions:
                    yield _data_file(entry, fields)

    def delete_files(
        self, table: TableMetadata, snapshot: Snapshot, keys: Sequence[ManifestKey], partitions: frozenset[Partition]
    ) -> Iterator[DeleteFile]:
        """The live delete files that may apply to some partitions."""
        unpartitioned = {spec.spec_id for spec in table.specs if spec.is_unpartitioned}
        for manifest in self._chosen(table, snapshot, keys):
            for entry in manifest.live:
                file = entry.file
                everywhere = file.content is FileContent.EQUALITY_DELETES and manifest.spec_id in unpartitioned
                if not manifest.is_data and (everywhere or file.partition in partitions):
                    yield _delete_file(entry)

    def first_written_at(self, table: TableMetadata, snapshot: Snapshot) -> Instant | None:
        """What the writer of the snapshot said, see :meth:`append`; None when it said nothing."""
        self._answer()
        return self._tables[table.table_id.uuid].first_written_at.get(snapshot.snapshot_id)

    def change(self, table: TableMetadata, changes: Mapping[str, str | None]) -> None:
        """The properties port."""
        self._answer()
        with self._lock:
            now = self._table(table.name).metadata
            if now.table_id != table.table_id:
                raise TableReplaced(f"{table.name} is another table now")
            if all(now.properties.get(key) == text for key, text in changes.items()):
                return
            for key in changes:
                if now.properties.get(key) != table.properties.get(key):
                    raise Conflict(f"somebody else has changed {key} of table {table.name}")
            properties = {**now.properties, **changes}
            self.replace_properties(table.name, {key: text for key, text in properties.items() if text is not None})

    def damage(self, path: str) -> None:
        """Make a manifest, manifest list or metadata file unreadable."""
        self._damaged.add(path)

    def _answer(self) -> None:
        if not self.available:
            raise Unavailable(f"catalog {self._name} does not answer")

    def check_readable(self, path: str) -> None:
        """Raise :class:`Unreadable` for what was damaged, or taken away."""
        if path in self._damaged:
            raise Unreadable(f"{path} is damaged")
        if self.storage is not None and path not in self.storage.objects:
            raise Unreadable(f"{path} is not there")

    def manifests_of(self, table: TableMetadata, snapshot: Snapshot) -> tuple[Manifest, ...]:
        """The manifests of a snapshot, entries and all."""
        self._answer()
        self.check_readable(snapshot.manifest_list)
        manifests = self._tables[table.table_id.uuid].manifests.get(snapshot.snapshot_id)
        if manifests is None:
            raise Unreadable(f"{snapshot.manifest_list} is not there")
        return manifests

    def _chosen(self, table: TableMetadata, snapshot: Snapshot, keys: Sequence[ManifestKey]) -> Iterator[Manifest]:
        by_key = {manifest.key: manifest for manifest in self.manifests_of(table, snapshot)}
        for key in keys:
            if key not in by_key:
                raise Conflict(f"manifest {key.path} does not belong to snapshot {snapshot.snapshot_id}")
            self._answer()
            self.check_readable(key.path)
            yield by_key[key]


def _data_file(entry: Entry, fields: Sequence[SortField]) -> DataFile:
    said = entry.file.spans
    return DataFile(
        path=entry.file.path,
        file_format=entry.file.file_format,
        partition=entry.file.partition,
        size_bytes=entry.file.size_bytes,
        record_count=entry.file.record_count,
        snapshot_id=entry.snapshot_id,
        data_sequence_number=entry.sequence_number,
        sort_key=entry.file.sort_key,
        first_row_id=entry.first_row_id,
        spans=tuple(said[place] if place < len(said) else None for place, _ in enumerate(fields)),
        row_groups=entry.file.row_groups,
    )


def _delete_file(entry: Entry) -> DeleteFile:
    file = entry.file
    return DeleteFile(
        path=file.path,
        content=file.content,
        file_format=file.file_format,
        partition=file.partition,
        size_bytes=file.size_bytes,
        record_count=file.record_count,
        snapshot_id=entry.snapshot_id,
        data_sequence_number=entry.sequence_number,
        referenced_data_file=file.referenced_data_file,
        content_offset=file.content_offset,
        content_size_bytes=file.content_size_bytes,
        path_lower=file.path_lower,
        path_upper=file.path_upper,
        equality_ids=file.equality_ids,
    )


def _summarized(manifest: Manifest, runs: AbstractSet[int], location: str) -> ManifestSummary:
    tally = ManifestSums(runs, location)
    for entry in manifest.entries:
        file = entry.file
        if entry.status is Status.DELETED:
            tally.removed(file.partition)
            continue
        tally.live_at(file.path)
        if file.content is FileContent.DATA:
            tally.data_file(
                file.partition,
                file_format=file.file_format,
                size_bytes=file.size_bytes,
                record_count=file.record_count,
                sequence_number=entry.sequence_number,
                snapshot_id=entry.snapshot_id,
            )
        else:
            tally.delete_file(
                file.partition, content=file.content, file_format=file.file_format, record_count=file.record_count
            )
    return tally.summary(manifest.key, FileContent.DATA if manifest.is_data else FileContent.POSITION_DELETES)
