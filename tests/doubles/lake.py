"""Tables as immutable values, and what commits make of them: the rules of the Iceberg spec without any bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby

from icewright.core.errors import Conflict, Rejected
from icewright.core.times import Instant
from icewright.model.iceberg.files import FileContent, FileFormat, Partition, SortKey, Span
from icewright.model.iceberg.inventory import ManifestKey
from icewright.model.iceberg.tables import (
    MAIN_BRANCH,
    ROW_LINEAGE_SINCE,
    LoggedSnapshot,
    Operation,
    Ref,
    RefKind,
    Snapshot,
    TableMetadata,
)

_BYTES_PER_ENTRY = 100
_BYTES_PER_MANIFEST = 1000


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A data file or delete file that some writer made.

    The fields from ``referenced_data_file`` to ``equality_ids`` are those of
    :class:`~icewright.model.iceberg.files.DeleteFile`, for delete files alone. ``row_groups`` as in
    :class:`~.files.DataFile`. ``data_sequence_number`` is the one that the file is added with, None for
    that of its commit.
    """

    path: str
    partition: Partition
    size_bytes: int
    record_count: int
    file_format: FileFormat = FileFormat.PARQUET
    content: FileContent = FileContent.DATA
    sort_key: SortKey | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_bytes: int | None = None
    path_lower: str | None = None
    path_upper: str | None = None
    equality_ids: tuple[int, ...] = ()
    spans: tuple[Span | None, ...] = ()
    row_groups: int | None = None
    data_sequence_number: int | None = None

    @property
    def is_deletion_vector(self) -> bool:
        """Whether it is a deletion vector."""
        return self.content is FileContent.POSITION_DELETES and self.file_format is FileFormat.PUFFIN


class Status(Enum):
    """What a manifest says of a file: the spec's manifest entry status."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """A manifest entry with what it inherited.

    ``snapshot_id`` added (or deleted) the file; the data sequence number is 0 in v1. ``first_row_id`` is None before
    the first commit of format version 3.
    """

    status: Status
    file: MemoryFile
    snapshot_id: int
    sequence_number: int
    first_row_id: int | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest: entries of one spec, of data files or of delete files."""

    key: ManifestKey
    spec_id: int
    is_data: bool
    entries: tuple[Entry, ...]

    @property
    def live(self) -> tuple[Entry, ...]:
        """Entries of files that are in the table."""
        return tuple(entry for entry in self.entries if entry.status is not Status.DELETED)


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """One state of a table: its metadata, and the manifests of each of its snapshots."""

    metadata: TableMetadata
    manifests: Mapping[int, tuple[Manifest, ...]]
    first_written_at: Mapping[int, Instant]
    last_sequence_number: int = 0
    next_row_id: int = 0

    def live_entries(self, snapshot_id: int | None) -> tuple[Entry, ...]:
        """The live entries of a snapshot; none before the first."""
        manifests = () if snapshot_id is None else self.manifests[snapshot_id]
        return tuple(entry for manifest in manifests for entry in manifest.live)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit to be made: files to add and paths to remove, on a branch.

    Deletion vectors of removed files go with them, as with Iceberg's Java; position and equality deletes stay.
    ``merge_manifests`` writes all kept entries into one new manifest per spec and content.
    """

    snapshot_id: int
    at: Instant
    operation: Operation
    add: Sequence[MemoryFile] = ()
    remove: frozenset[str] = frozenset()
    summary: Mapping[str, str] | None = None
    branch: str = MAIN_BRANCH
    merge_manifests: bool = False
    first_written_at: Instant | None = None


def committed(table: MemoryTable, commit: Commit) -> MemoryTable:
    """The table after a commit. Raises :class:`Conflict` when a file to be removed is not in the branch."""
    metadata = table.metadata
    parent_id = head(metadata, commit.branch)
    before = () if parent_id is None else table.manifests[parent_id]
    live = table.live_entries(parent_id)
    vectors = {e.file.path for e in live if e.file.is_deletion_vector and e.file.referenced_data_file in commit.remove}
    commit = replace(commit, remove=commit.remove | vectors)
    gone = commit.remove - {entry.file.path for entry in live}
    if gone:
        raise Conflict(f"not in branch {commit.branch} any more: {', '.join(sorted(gone))}")
    number = 0 if metadata.format_version == 1 else table.last_sequence_number + 1
    manifests = _manifests(commit, before, number, f"{metadata.location}/metadata")
    next_row_id = table.next_row_id
    if metadata.format_version >= ROW_LINEAGE_SINCE:
        manifests, next_row_id = _with_row_ids(manifests, next_row_id)
    snapshot = Snapshot(
        snapshot_id=commit.snapshot_id,
        parent_id=parent_id,
        sequence_number=number,
        committed_at=commit.at,
        operation=commit.operation,
        manifest_list=f"{metadata.location}/metadata/snap-{commit.snapshot_id}.avro",
        schema_id=metadata.current_schema_id,
        summary=_summary(commit, live, manifests),
    )
    after = replace(metadata, updated_at=commit.at, snapshots=(*metadata.snapshots, snapshot))
    return replace(
        table,
        metadata=with_ref(after, commit.branch, commit.snapshot_id),
        manifests={**table.manifests, commit.snapshot_id: manifests},
        first_written_at={**table.first_written_at, commit.snapshot_id: commit.first_written_at}
        if commit.first_written_at is not None
        else table.first_written_at,
        last_sequence_number=max(table.last_sequence_number, number),
        next_row_id=next_row_id,
    )


def _with_row_ids(manifests: Sequence[Manifest], next_row_id: int) -> tuple[tuple[Manifest, ...], int]:
    """All live data files with row ids, old ones of an upgraded table too, and the next id (spec, "Row Lineage")."""
    assigned: list[Manifest] = []
    for manifest in manifests:
        entries: list[Entry] = []
        for entry in manifest.entries:
            new = manifest.is_data and entry.status is not Status.DELETED and entry.first_row_id is None
            entries.append(replace(entry, first_row_id=next_row_id) if new else entry)
            next_row_id += entry.file.record_count if new else 0
        assigned.append(replace(manifest, entries=tuple(entries)))
    return tuple(assigned), next_row_id


def head(metadata: TableMetadata, branch: str) -> int | None:
    """The snapshot that a branch is at, None before the first. Raises :class:`Rejected` for an unknown branch."""
    for ref in metadata.refs:
        if ref.name == branch and ref.kind is RefKind.BRANCH:
            return ref.snapshot_id
    if branch != MAIN_BRANCH:
        raise Rejected(f"no branch {branch!r}")
    return None


def with_ref(metadata: TableMetadata, name: str, snapshot_id: int, kind: RefKind = RefKind.BRANCH) -> TableMetadata:
    """The metadata with a ref set; setting ``main`` moves the table, as of when the metadata was last updated."""
    others = tuple(ref for ref in metadata.refs if ref.name != name)
    current = snapshot_id if name == MAIN_BRANCH else metadata.current_snapshot_id
    log = metadata.snapshot_log
    if current is not None and current != metadata.current_snapshot_id:
        log = (*log, LoggedSnapshot(metadata.updated_at, current))
    refs = sorted((*others, Ref(name, kind, snapshot_id)), key=lambda ref: ref.name)
    return replace(metadata, refs=tuple(refs), current_snapshot_id=current, snapshot_log=log)


def _manifests(commit: Commit, before: Sequence[Manifest], number: int, folder: str) -> tuple[Manifest, ...]:
    """New manifests for what is added, rewritten ones where something is removed, the others untouched.

    Manifests without a live entry are dropped, unless this commit wrote them: they say what it removed.
    """
    drafts: list[list[Entry]] = [_filtered(commit, manifest) for manifest in before if _touched(commit, manifest)]
    kept = [manifest for manifest in before if not _touched(commit, manifest) and manifest.live]
    drafts.append([Entry(Status.ADDED, file, commit.snapshot_id, _number(file, number)) for file in commit.add])
    if commit.merge_manifests:
        drafts = [[entry for draft in drafts for entry in draft]]
    written = [entries for draft in drafts for entries in _by_kind(draft)]
    return (
        *(_manifest(commit, f"{folder}/{commit.snapshot_id}-m{n}.avro", one) for n, one in enumerate(written)),
        *kept,
    )


def _number(file: MemoryFile, of_commit: int) -> int:
    return of_commit if file.data_sequence_number is None else file.data_sequence_number


def _touched(commit: Commit, manifest: Manifest) -> bool:
    return commit.merge_manifests or any(entry.file.path in commit.remove for entry in manifest.live)


def _filtered(commit: Commit, manifest: Manifest) -> list[Entry]:
    """A manifest's live entries as this commit carries them on: existing, or deleted by it."""
    return [
        replace(entry, status=Status.DELETED, snapshot_id=commit.snapshot_id)
        if entry.file.path in commit.remove
        else replace(entry, status=Status.EXISTING)
        for entry in manifest.live
    ]


def _by_kind(entries: Iterable[Entry]) -> list[tuple[Entry, ...]]:
    def kind(entry: Entry) -> tuple[int, bool]:
        return (entry.file.partition.spec_id, entry.file.content is FileContent.DATA)

    return [tuple(group) for _, group in groupby(sorted(entries, key=kind), key=kind)]


def _manifest(commit: Commit, path: str, entries: tuple[Entry, ...]) -> Manifest:
    first = entries[0].file
    length_bytes = _BYTES_PER_MANIFEST + _BYTES_PER_ENTRY * len(entries)
    key = ManifestKey(path, length_bytes, commit.snapshot_id)
    return Manifest(key, first.partition.spec_id, first.content is FileContent.DATA, entries)


def _summary(commit: Commit, live: Sequence[Entry], manifests: Sequence[Manifest]) -> Mapping[str, str]:
    """The counts that the spec names for snapshot summaries, and what the committer has to say."""
    removed = [entry.file for entry in live if entry.file.path in commit.remove and _is_data(entry.file)]
    added = [file for file in commit.add if _is_data(file)]
    kept = [entry.file for manifest in manifests for entry in manifest.live]
    total = [file for file in kept if _is_data(file)]
    counts = {
        "added-data-files": len(added),
        "deleted-data-files": len(removed),
        "added-records": sum(file.record_count for file in added),
        "deleted-records": sum(file.record_count for file in removed),
        "total-data-files": len(total),
        "total-delete-files": len(kept) - len(total),
        "total-records": sum(file.record_count for file in total),
        "total-files-size": sum(file.size_bytes for file in total),
    }
    named = {key: str(value) for key, value in counts.items()}
    return {"operation": commit.operation.value, **named, **(commit.summary or {})}


def _is_data(file: MemoryFile) -> bool:
    return file.content is FileContent.DATA
