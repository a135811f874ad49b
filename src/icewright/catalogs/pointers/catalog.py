"""The catalog port over PyIceberg's libraries: its catalogs, ``FileIO`` and the Avro decoder. Read-only.

Nothing is cached but the manifest lists that were read last, since one look at a table asks for the same several times.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from icewright.catalogs.metadata.manifests import (
    ADDED,
    DELETED,
    Entry,
    Manifest,
    ManifestReader,
    chosen,
    read_manifest_list,
)
from icewright.catalogs.metadata.metadata import parse_metadata
from icewright.catalogs.metadata.sort_keys import SortKeys, Spans, misstated
from icewright.catalogs.metadata.translated_errors import reading
from icewright.catalogs.pointers.pointers import Pointers, read_metadata
from icewright.catalogs.pointers.rest_pointers import RestPointers
from icewright.catalogs.pointers.sql_pointers import SqlPointers
from icewright.catalogs.port import TablePointers
from icewright.catalogs.storage.local import real_file, real_folder
from icewright.core.errors import InvalidLocation
from icewright.core.times import Instant
from icewright.inventory.manifest_summary import ManifestSums
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary
from icewright.model.iceberg.locations import Aliases
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import Snapshot, SortField, TableMetadata

FILES_LOOKED_AT = 5
_LISTS_KEPT = 100
"""Several looks at the same time ask each for those of some snapshots, again and again."""
_LIST_LENGTH_MAX = 10_000
"""Longer lists are not kept: some 500 bytes of memory per manifest."""
_MANIFESTS_KEPT = 4 * _LIST_LENGTH_MAX
"""Of all lists that are kept."""
_NANOS_PER_MS = 1_000_000
_PLAIN = Aliases()


class PyIcebergCatalog:
    """One catalog; safe for use by several threads at once. Nothing is asked before the first question.

    Files are opened with the catalog's settings, and with what a REST catalog says for the table: a table's own
    properties are its owner's input, and must not decide which code or credentials this process uses.
    """

    def __init__(self, entry: CatalogEntry, others: Iterable[CatalogEntry] = ()) -> None:
        """``others`` are further catalogs that are configured.

        Raises :class:`~icewright.core.errors.InvalidConfiguration` for an entry that cannot be used.
        """
        entry.check()
        self._entry = entry
        self._pointers = open_pointers(entry, others)
        self._lists: OrderedDict[tuple[TableId, int, str], tuple[Manifest, ...]] = OrderedDict()
        self._manifests_kept = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The catalog's name in the configuration."""
        return self._entry.name

    @property
    def takes_snapshots_back(self) -> bool:
        """Where clients write the metadata file themselves; a REST catalog refuses old snapshots."""
        return self._entry.kind is not CatalogKind.REST

    def tables(self) -> Iterator[TableName]:
        """The names of all tables."""
        return self._pointers.tables()

    def metadata_location(self, name: TableName) -> str:
        """Where the catalog's pointer is now: one question, no file read."""
        return self._pointers.metadata_location(name)

    @property
    def has_other_formats(self) -> bool:
        """A Hive Metastore has; all other catalogs have Iceberg tables alone."""
        return self._entry.kind is CatalogKind.HIVE

    @property
    def lists_pointers(self) -> bool:
        """All do but a REST catalog, whose protocol has no question for all."""
        return self._entry.kind is not CatalogKind.REST

    def pointers(self) -> TablePointers:
        """Where the pointers of all tables are now."""
        return self._pointers.all_shown()

    def load(self, name: TableName) -> TableMetadata:
        """The table as it is now."""
        pointed = self._pointers.load(name)
        with reading(f"metadata of table {name} in {pointed.metadata_location}"):
            return parse_metadata(pointed.metadata, name=name, metadata_location=pointed.metadata_location)

    def earlier(self, table: TableMetadata, metadata_location: str) -> TableMetadata:
        """The table as an earlier metadata file has it."""
        pointed = read_metadata(self._io(table.metadata_location), table.name, metadata_location)
        with reading(f"metadata of table {table.name} in {metadata_location}"):
            return parse_metadata(pointed.metadata, name=table.name, metadata_location=metadata_location)

    def manifests(self, table: TableMetadata, snapshot: Snapshot) -> Sequence[ManifestKey]:
        """The keys of all manifests of a snapshot."""
        return tuple(manifest.key for manifest in self._manifests(table, snapshot))

    def summarize(
        self,
        table: TableMetadata,
        snapshot: Snapshot,
        keys: Sequence[ManifestKey],
        runs: AbstractSet[int] = frozenset(),
    ) -> Iterator[ManifestSummary]:
        """Read some manifests, one after the other. Raises ``Conflict`` for one that the snapshot does not have."""
        if not keys:
            return
        reader = ManifestReader(self._io(table.metadata_location), table)
        for manifest in chosen(self._manifests(table, snapshot), keys, snapshot):
            yield _summary(manifest, reader.entries(manifest), runs, table.location)

    def data_files(
        self,
        table: TableMetadata,
        snapshot: Snapshot,
        keys: Sequence[ManifestKey],
        partitions: frozenset[Partition],
        fields: Sequence[SortField] = (),
    ) -> Iterator[DataFile]:
        """The live data files of some partitions. Delete manifests among the keys are passed over."""
        reader = ManifestReader(self._io(table.metadata_location), table)
        sort_keys, spans = SortKeys(table), Spans(table, fields)
        for manifest in chosen(self._manifests(table, snapshot), keys, snapshot):
            if not manifest.is_data:
                continue
            for entry in reader.file_entries(manifest, with_bounds=sort_keys.any or spans.any):
                if entry.status == DELETED or entry.partition not in partitions:
                    continue
                yield DataFile(
                    path=entry.path,
                    file_format=entry.file_format,
                    partition=entry.partition,
                    size_bytes=entry.size_bytes,
                    record_count=entry.record_count,
                    snapshot_id=entry.snapshot_id,
                    data_sequence_number=entry.sequence_number or 0,
                    sort_key=None if entry.bounds is None else sort_keys.key(entry.bounds),
                    first_row_id=entry.first_row_id,
                    spans=spans.unknown if entry.bounds is None else spans.spans(entry.bounds),
                    row_groups=entry.row_groups,
                    misstated="" if entry.bounds is None else misstated(table, entry.partition, entry.bounds),
                )

    def delete_files(
        self, table: TableMetadata, snapshot: Snapshot, keys: Sequence[ManifestKey], partitions: frozenset[Partition]
    ) -> Iterator[DeleteFile]:
        """The live delete files that may apply to some partitions. Data manifests among the keys are passed over."""
        reader = ManifestReader(self._io(table.metadata_location), table)
        unpartitioned = {spec.spec_id for spec in table.specs if spec.is_unpartitioned}
        for manifest in chosen(self._manifests(table, snapshot), keys, snapshot):
            if manifest.is_data:
                continue
            for entry in reader.delete_entries(manifest):
                everywhere = entry.content is FileContent.EQUALITY_DELETES and manifest.spec_id in unpartitioned
                if entry.status != DELETED and (everywhere or entry.partition in partitions):
                    yield _delete_file(entry)

    def first_written_at(self, table: TableMetadata, snapshot: Snapshot) -> Instant | None:
        """The earliest modification time among the first few files that the snapshot added."""
        io = self._io(table.metadata_location)
        if not isinstance(io, PyArrowFileIO):
            return None
        times: list[Instant] = []
        for path in self._some_added(io, table, snapshot):
            with reading(f"file {path}"):
                scheme, netloc, file_path = io.parse_location(path, io.properties)
                mtime_ns = io.fs_by_scheme(scheme, netloc).get_file_info(file_path).mtime_ns
            if mtime_ns is not None:
                times.append(mtime_ns // _NANOS_PER_MS)
        return min(times, default=None)

    def _some_added(self, io: FileIO, table: TableMetadata, snapshot: Snapshot) -> list[str]:
        reader = ManifestReader(io, table)
        paths: list[str] = []
        for manifest in self._manifests(table, snapshot):
            if manifest.key.added_snapshot_id != snapshot.snapshot_id:
                continue
            for entry in reader.entries(manifest):
                if entry.status == ADDED and entry.snapshot_id == snapshot.snapshot_id:
                    paths.append(entry.path)
                    if len(paths) == FILES_LOOKED_AT:
                        return paths
        return paths

    def _manifests(self, table: TableMetadata, snapshot: Snapshot) -> tuple[Manifest, ...]:
        """The manifest list of a snapshot, which never changes. By table as well, for paths have been reused."""
        key = (table.table_id, snapshot.snapshot_id, snapshot.manifest_list)
        with self._lock:
            kept = self._lists.get(key)
            if kept is not None:
                self._lists.move_to_end(key)
                return kept
        manifests = read_manifest_list(self._io(table.metadata_location), snapshot)
        if len(manifests) <= _LIST_LENGTH_MAX:
            with self._lock:
                self._manifests_kept += len(manifests) - len(self._lists.get(key, ()))
                self._lists[key] = manifests
                while len(self._lists) > _LISTS_KEPT or self._manifests_kept > _MANIFESTS_KEPT:
                    self._manifests_kept -= len(self._lists.popitem(last=False)[1])
        return manifests

    def _io(self, location: str) -> FileIO:
        return self._pointers.file_io(location)


def open_pointers(entry: CatalogEntry, others: Iterable[CatalogEntry] = ()) -> Pointers:
    """What asks a catalog of this kind where its tables are; ``others`` are further ones that are configured."""
    match entry.kind:
        case CatalogKind.SQL:
            return SqlPointers(entry, others)
        case CatalogKind.REST:
            return RestPointers(entry)
        case CatalogKind.HIVE:
            from icewright.catalogs.pointers.hive_pointers import (  # noqa: PLC0415 - it takes a second of CPU to load
                HivePointers,
            )

            return HivePointers(entry)


def _delete_file(entry: Entry) -> DeleteFile:
    details = entry.deletes
    return DeleteFile(
        path=entry.path,
        content=entry.content,
        file_format=entry.file_format,
        partition=entry.partition,
        size_bytes=entry.size_bytes,
        record_count=entry.record_count,
        snapshot_id=entry.snapshot_id,
        data_sequence_number=entry.sequence_number or 0,
        referenced_data_file=details.referenced_data_file,
        content_offset=details.content_offset,
        content_size_bytes=details.content_size_bytes,
        path_lower=details.path_lower,
        path_upper=details.path_upper,
        equality_ids=details.equality_ids,
    )


def _followed(folder: str) -> str | None:
    """Where a folder of this machine leads to by links; None where it goes by none, or is elsewhere."""
    try:
        place = _PLAIN.folder(folder)
    except InvalidLocation:
        return None
    real = real_folder(place)
    return None if real == place else real.rstrip("/")


def _summary(manifest: Manifest, entries: Iterator[Entry], runs: AbstractSet[int], location: str) -> ManifestSummary:
    tally, folders = ManifestSums(runs, location), set[str]()

    def needs(path: str) -> None:
        tally.live_at(path)
        folder = path.rpartition("/")[0]
        if folder not in folders:
            folders.add(folder)
            if (real := _followed(folder)) is not None:
                tally.live_at(f"{real}/")
        if (file := real_file(path)) is not None:
            tally.live_at(file)

    needs(manifest.key.path)  # which the snapshot needs as well, wherever its list and its files are
    for entry in entries:
        if entry.status == DELETED:
            tally.removed(entry.partition)
            continue
        needs(entry.path)
        if entry.content is FileContent.DATA:
            tally.data_file(
                entry.partition,
                file_format=entry.file_format,
                size_bytes=entry.size_bytes,
                record_count=entry.record_count,
                sequence_number=entry.sequence_number or 0,
                snapshot_id=entry.snapshot_id,
            )
        else:
            tally.delete_file(
                entry.partition, content=entry.content, file_format=entry.file_format, record_count=entry.record_count
            )
    return tally.summary(manifest.key, FileContent.DATA if manifest.is_data else FileContent.POSITION_DELETES)
