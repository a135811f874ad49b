"""The writers' side of the catalog in memory: tables by name, and everything that commits can do to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from threading import RLock
from typing import Any
from uuid import UUID

from icewright.actions.expire_snapshots.commit import trimmed
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, NotAllowed, NotFound, Rejected
from icewright.core.times import Instant
from icewright.model.iceberg.files import FileContent
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import (
    MAIN_BRANCH,
    Json,
    LoggedMetadata,
    Operation,
    PartitionField,
    PartitionSpec,
    PartitionStatisticsFile,
    RefKind,
    Schema,
    Snapshot,
    SortField,
    SortOrder,
    StatisticsFile,
    TableMetadata,
)
from tests.doubles.lake import Commit, Entry, MemoryFile, MemoryTable, committed, head, with_ref
from tests.doubles.objects import MemoryStorage

METADATA_BYTES, LIST_BYTES = 2000, 500
"""What a metadata file and a manifest list are said to weigh."""
_LOG_MAX = 100
"""Metadata files that the log names: Iceberg's default of ``write.metadata.previous-versions-max``."""

DEFAULT_FIELDS: tuple[Json, ...] = (
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "city", "required": False, "type": "string"},
)


class MemoryTables:
    """The tables of a catalog. Every state of a table is immutable; commits replace it, one at a time."""

    def __init__(self, name: str, clock: Clock, storage: MemoryStorage | None = None) -> None:
        self.storage = storage
        """Where metadata files are objects as any others; data files are their writers' to put there."""
        self._name = name
        self._clock = clock
        self._lock = RLock()
        self._uuids: dict[TableName, str] = {}
        self._tables: dict[str, MemoryTable] = {}
        """By uuid; tables that were registered a second time, by a key of their own."""
        self._states: dict[str, TableMetadata] = {}
        """Earlier states of tables, by their metadata files, as far as the logs name them."""
        self._numbers = 0

    @property
    def name(self) -> str:
        """The catalog's name."""
        return self._name

    def create(
        self,
        name: TableName,
        *,
        fields: Sequence[Json] = DEFAULT_FIELDS,
        partition_fields: Sequence[PartitionField] = (),
        sort_fields: Sequence[SortField] = (),
        properties: Mapping[str, str] | None = None,
        format_version: int = 2,
    ) -> TableId:
        """A new empty table. Raises :class:`Rejected` when the name is taken."""
        with self._lock:
            if name in self._uuids:
                raise Rejected(f"table {name} exists already")
            uuid = str(UUID(int=self._next()))
            location = f"file:///memory/{self._name}/{uuid}"  # as if local: tables elsewhere may not be planned
            metadata = TableMetadata(
                table_id=TableId(self._name, uuid),
                name=name,
                metadata_location=f"{location}/metadata/0.metadata.json",
                location=location,
                format_version=format_version,
                updated_at=self._clock.now(),
                current_snapshot_id=None,
                snapshots=(),
                refs=(),
                schemas=(Schema(0, tuple(fields)),),
                current_schema_id=0,
                specs=(PartitionSpec(0, tuple(partition_fields)),),
                default_spec_id=0,
                sort_order=SortOrder(1 if sort_fields else 0, tuple(sort_fields)),
                properties=dict(properties or {}),
            )
            self._uuids[name] = uuid
            self._tables[uuid] = MemoryTable(metadata, {}, {})
            self._put(self._tables[uuid], ())
            return metadata.table_id

    def drop(self, name: TableName) -> None:
        """Take the name away; metadata loaded before can still be read, as after a drop without purge."""
        with self._lock:
            self._table(name)
            del self._uuids[name]

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a table another name."""
        with self._lock:
            self._table(old)
            if new in self._uuids:
                raise Rejected(f"table {new} exists already")
            self._uuids[new] = self._uuids.pop(old)

    def register(self, name: TableName, metadata_location: str) -> None:
        """A second table from an earlier metadata file of another: one uuid, with two names.

        Raises :class:`Conflict` when the name is taken, and :class:`NotAllowed` when there is no such file.
        """
        with self._lock:
            if name in self._uuids:
                raise Conflict(f"table {name} exists already")
            metadata = self._states.get(metadata_location)
            if metadata is None:
                raise NotAllowed(f"{metadata_location} is not there")
            key = f"{metadata.table_id.uuid}, registered as {self._next()}"
            first = self._tables[metadata.table_id.uuid]
            self._uuids[name], self._tables[key] = key, replace(first, metadata=metadata)

    def append(
        self,
        name: TableName,
        files: Sequence[MemoryFile],
        *,
        branch: str = MAIN_BRANCH,
        merge_manifests: bool = False,
        first_written_at: Instant | None = None,
        summary: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """Add files. ``first_written_at`` is what the storage will say of them."""
        return self._commit(
            name,
            Operation.APPEND,
            add=tuple(files),
            branch=branch,
            merge_manifests=merge_manifests,
            first_written_at=first_written_at,
            summary=summary,
        )

    def overwrite(
        self,
        name: TableName,
        *,
        add: Sequence[MemoryFile],
        remove: Sequence[str],
        branch: str = MAIN_BRANCH,
        first_written_at: Instant | None = None,
    ) -> Snapshot:
        """Add files (delete files too) and remove others, by path. Raises :class:`Conflict` for one that is gone."""
        return self._commit(
            name,
            Operation.OVERWRITE,
            add=tuple(add),
            remove=frozenset(remove),
            branch=branch,
            first_written_at=first_written_at,
        )

    def delete(
        self,
        name: TableName,
        paths: Sequence[str],
        *,
        branch: str = MAIN_BRANCH,
        summary: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """Remove files. Raises :class:`Conflict` for one that is gone."""
        return self._commit(name, Operation.DELETE, remove=frozenset(paths), branch=branch, summary=summary)

    def commit_rewrite(
        self,
        name: TableName,
        *,
        base_snapshot_id: int,
        remove: Sequence[str],
        add: Sequence[MemoryFile],
        summary: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """Replace files by others of the same rows.

        Validated from the base as Iceberg's ``RewriteFiles`` does: raises :class:`Conflict` when an input is gone,
        when delete files were added since to a partition of the inputs, or when the base has expired or was rolled
        back.
        """
        with self._lock:
            table = self._table(name)
            base = table.metadata.snapshot(base_snapshot_id)
            if base is None:
                raise Conflict(f"snapshot {base_snapshot_id} of table {name} has expired")
            if base.snapshot_id not in {ancestor.snapshot_id for ancestor in table.metadata.ancestors()}:
                raise Conflict(f"snapshot {base_snapshot_id} of table {name} was rolled back")
            live = table.live_entries(table.metadata.current_snapshot_id)
            gone = frozenset(remove)
            partitions = {entry.file.partition for entry in live if entry.file.path in gone}
            if any(_deletes_since(base, entry) and entry.file.partition in partitions for entry in live):
                raise Conflict(f"rows of the rewritten files were deleted since snapshot {base_snapshot_id}")
            return self._commit(name, Operation.REPLACE, add=tuple(add), remove=gone, summary=summary)

    def rewrite_manifests(self, name: TableName, summary: Mapping[str, str] | None = None) -> Snapshot:
        """Write all live entries into one manifest per spec and content, with what the committer has to say."""
        return self._commit(name, Operation.REPLACE, merge_manifests=True, summary=summary)

    def set_ref(
        self,
        name: TableName,
        ref: str,
        snapshot_id: int,
        *,
        kind: RefKind = RefKind.BRANCH,
        max_ref_age_ms: int | None = None,
    ) -> None:
        """Create or move a branch or tag; moving ``main`` is a rollback."""

        def change(table: MemoryTable) -> MemoryTable:
            if table.metadata.snapshot(snapshot_id) is None:
                raise Rejected(f"no snapshot {snapshot_id}")
            metadata = replace(table.metadata, updated_at=self._clock.now())
            metadata = with_ref(metadata, ref, snapshot_id, kind)
            refs = tuple(replace(r, max_ref_age_ms=max_ref_age_ms) if r.name == ref else r for r in metadata.refs)
            return replace(table, metadata=replace(metadata, refs=refs))

        self._change(name, change)

    def drop_ref(self, name: TableName, ref: str) -> None:
        """Remove a branch or tag."""

        def change(table: MemoryTable) -> MemoryTable:
            refs = tuple(one for one in table.metadata.refs if one.name != ref)
            return replace(table, metadata=replace(table.metadata, refs=refs))

        self._change(name, change)

    def expire(self, name: TableName, snapshot_ids: Sequence[int]) -> None:
        """Remove snapshots from the metadata. Raises :class:`Rejected` for one that a ref is at."""
        gone = frozenset(snapshot_ids)

        def change(table: MemoryTable) -> MemoryTable:
            if any(ref.snapshot_id in gone for ref in table.metadata.refs):
                raise Rejected("a ref is at a snapshot to be expired")
            kept = tuple(s for s in table.metadata.snapshots if s.snapshot_id not in gone)
            log = tuple(trimmed(table.metadata.snapshot_log, lambda entry: entry.snapshot_id, gone))
            manifests = {key: value for key, value in table.manifests.items() if key not in gone}
            metadata = replace(table.metadata, snapshots=kept, snapshot_log=log)
            return replace(table, metadata=without_statistics(metadata, gone), manifests=manifests)

        self._change(name, change)

    def set_statistics(
        self, name: TableName, statistics: StatisticsFile | None, of_partitions: PartitionStatisticsFile | None = None
    ) -> None:
        """Set the statistics files of a snapshot, in one commit; those that it had are not listed any more."""

        def change(table: MemoryTable) -> MemoryTable:
            metadata = table.metadata
            if statistics is not None:
                others = [one for one in metadata.statistics if one.snapshot_id != statistics.snapshot_id]
                metadata = replace(metadata, statistics=(*others, statistics))
            if of_partitions is not None:
                rest = [one for one in metadata.partition_statistics if one.snapshot_id != of_partitions.snapshot_id]
                metadata = replace(metadata, partition_statistics=(*rest, of_partitions))
            return replace(table, metadata=metadata)

        self._change(name, change)

    def set_spec(self, name: TableName, partition_fields: Sequence[PartitionField]) -> int:
        """Evolve the partition spec; new files belong to the returned spec id, old ones stay where they are."""
        spec_id = 0

        def change(table: MemoryTable) -> MemoryTable:
            nonlocal spec_id
            spec_id = max(spec.spec_id for spec in table.metadata.specs) + 1
            specs = (*table.metadata.specs, PartitionSpec(spec_id, tuple(partition_fields)))
            return replace(table, metadata=replace(table.metadata, specs=specs, default_spec_id=spec_id))

        self._change(name, change)
        return spec_id

    def set_properties(self, name: TableName, updates: Mapping[str, str]) -> None:
        """Set table properties."""
        with self._lock:
            self.replace_properties(name, {**self._table(name).metadata.properties, **updates})

    def replace_properties(self, name: TableName, properties: Mapping[str, str]) -> None:
        """Put others in the place of all table properties."""
        self._change(name, lambda table: replace(table, metadata=replace(table.metadata, properties=properties)))

    def upgrade(self, name: TableName, format_version: int) -> None:
        """Raise the format version; data files get row ids with the next commit only."""

        def change(table: MemoryTable) -> MemoryTable:
            return replace(table, metadata=replace(table.metadata, format_version=format_version))

        self._change(name, change)

    def live_files(self, name: TableName, *, branch: str = MAIN_BRANCH) -> tuple[MemoryFile, ...]:
        """The files of a branch, as the writers gave them."""
        table = self._table(name)
        return tuple(entry.file for entry in table.live_entries(head(table.metadata, branch)))

    def swap(
        self, name: TableName, metadata_location: str, change: Callable[[MemoryTable], MemoryTable]
    ) -> tuple[MemoryTable, MemoryTable] | None:
        """Change a table if it is still at that metadata: before and after, None where somebody came first."""
        with self._lock:
            before = self._table(name)
            if before.metadata.metadata_location != metadata_location:
                return None
            self._change(name, change)
            return before, self._table(name)

    def _commit(self, name: TableName, operation: Operation, **what: Any) -> Snapshot:
        with self._lock:
            commit = Commit(snapshot_id=self._next(), at=self._clock.now(), operation=operation, **what)
            self._change(name, lambda table: committed(table, commit))
            return self._table(name).metadata.snapshots[-1]

    def _change(self, name: TableName, change: Callable[[MemoryTable], MemoryTable]) -> None:
        with self._lock:
            before = self._table(name)
            after = change(before)
            location = f"{after.metadata.location}/metadata/{self._next()}.metadata.json"
            metadata = replace(
                after.metadata,
                metadata_location=location,
                updated_at=self._clock.now(),
                metadata_log=_longer_log(before.metadata),
            )
            self._tables[self._uuids[name]] = replace(after, metadata=metadata)
            self._put(self._tables[self._uuids[name]], before.manifests)
            self._states[before.metadata.metadata_location] = before.metadata
            for entry in set(before.metadata.metadata_log) - set(metadata.metadata_log):
                self._states.pop(entry.location, None)

    def _put(self, table: MemoryTable, before: Collection[int]) -> None:
        """The metadata file, and the manifest lists and manifests of snapshots that were not there before."""
        if self.storage is None:
            return
        metadata = table.metadata
        said = json.dumps(
            {
                "format-version": metadata.format_version,
                "table-uuid": metadata.table_id.uuid,
                "last-updated-ms": metadata.updated_at,
                "current-snapshot-id": metadata.current_snapshot_id,
                "snapshots": [
                    {"snapshot-id": s.snapshot_id, "timestamp-ms": s.committed_at} for s in metadata.snapshots
                ],
                "metadata-log": [{"timestamp-ms": e.at, "metadata-file": e.location} for e in metadata.metadata_log],
            }
        )
        new = [one for one in metadata.snapshots if one.snapshot_id not in before]
        keys = [manifest.key for one in new for manifest in table.manifests[one.snapshot_id]]
        made = [key for key in keys if key.added_snapshot_id in {one.snapshot_id for one in new}]
        for path, content, size_bytes in (
            (metadata.metadata_location, said, METADATA_BYTES),
            *((one.manifest_list, one.manifest_list, LIST_BYTES) for one in new),
            *((key.path, key.path, key.length_bytes) for key in made),
        ):
            self.storage.write(CanonicalPath(path), content.encode(), size_bytes=size_bytes)

    def _next(self) -> int:
        with self._lock:
            self._numbers += 1
            return self._numbers

    def _table(self, name: TableName) -> MemoryTable:
        with self._lock:
            if name not in self._uuids:
                raise NotFound(f"no table {name} in catalog {self._name}")
            return self._tables[self._uuids[name]]


def _longer_log(before: TableMetadata) -> tuple[LoggedMetadata, ...]:
    log = (*before.metadata_log, LoggedMetadata(before.updated_at, before.metadata_location))
    return log[-_LOG_MAX:]


def without_statistics(metadata: TableMetadata, snapshot_ids: Collection[int]) -> TableMetadata:
    """The metadata without the statistics of these snapshots, which leave it with them."""
    return replace(
        metadata,
        statistics=tuple(one for one in metadata.statistics if one.snapshot_id not in snapshot_ids),
        partition_statistics=tuple(one for one in metadata.partition_statistics if one.snapshot_id not in snapshot_ids),
    )


def _deletes_since(base: Snapshot, entry: Entry) -> bool:
    return entry.file.content is not FileContent.DATA and entry.sequence_number > base.sequence_number
