"""Every file that a table needs, in any of its snapshots: one pass over its metadata, each manifest read once.

One unreadable file is a gap and stops nothing: what is known is still of use to people. Storage that does not answer
stops everything. In neither case is there a complete answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from icewright.catalogs.local_spool import DiskSpool, OpenSpool
from icewright.catalogs.table_files_port import TableFiles
from icewright.core.completeness import Gap, Gaps, Known
from icewright.core.errors import InvalidLocation, Unreadable, Unsupported
from icewright.core.times import Instant
from icewright.inventory.footprint import distinct
from icewright.inventory.reference_bits import ReferenceBits
from icewright.model.iceberg.locations import Aliases, is_ambiguous
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import (
    FILE_CLASSES,
    FileClass,
    ListedManifest,
    NamedFile,
    ReachableFile,
    Roots,
)
from icewright.model.iceberg.tables import Snapshot, TableMetadata
from icewright.model.plans.plans import Reason

SIZES_ASKED_MAX: Final = 250
"""Metadata files whose size is asked for, one question each; Iceberg keeps 100 in its log if not told otherwise."""
_LONG_MAX: Final = (1 << 63) - 1
"""The specification's sizes and instants are longs; JSON has no such limit."""
_ENTRIES_GUESSED: Final = 1000
"""Of a manifest whose list does not say how many it has."""


@dataclass(slots=True)
class LiveCounts:
    """Live entries, as a listing says or as they were counted."""

    data_files: int = 0
    delete_files: int = 0

    def count(self, file_class: FileClass) -> None:
        """One more entry."""
        if file_class is FileClass.DATA:
            self.data_files += 1
        else:
            self.delete_files += 1

    def __add__(self, other: LiveCounts) -> LiveCounts:
        return LiveCounts(self.data_files + other.data_files, self.delete_files + other.delete_files)


def listed_counts(manifest: ListedManifest) -> LiveCounts | None:
    """What a listing says of one manifest; None where it does not."""
    if manifest.live_files is None or manifest.is_data is None:
        return None
    return LiveCounts(manifest.live_files, 0) if manifest.is_data else LiveCounts(0, manifest.live_files)


def missing_files(snapshot: Snapshot, counts: Iterable[LiveCounts]) -> Reason | None:
    """Why the manifests that these counts are of may not be all of a snapshot; None when they are."""
    found = sum(counts, LiveCounts())
    for words, key, files in (
        ("data files", "total-data-files", found.data_files),
        ("delete files", "total-delete-files", found.delete_files),
    ):
        expected = snapshot.number(key)
        if expected is None:
            return Reason("unverified-listing", f"snapshot {snapshot.snapshot_id} does not say how many {words} it has")
        if files < expected:
            return Reason(
                "too-few-files",
                f"snapshot {snapshot.snapshot_id} has {expected} {words}, and its manifests {files}",
                {"files": files, "files_expected": expected},
            )
    return None


class Step(StrEnum):
    """What is being read."""

    LISTS = "manifest lists"
    MANIFESTS = "manifests"


class Progress(Protocol):
    """Somebody who is told how far it is."""

    def __call__(self, step: Step, done: int, total: int) -> None:
        """``done`` of ``total`` files of this step are read."""


@dataclass(frozen=True, slots=True)
class Reachable:
    """The files of a table as of one metadata file, with what keeps each. Good as long as its spool is open."""

    metadata: TableMetadata
    references: ReferenceBits
    spool: DiskSpool

    def files(self) -> Iterator[ReachableFile]:
        """Each file once, part by part; to be iterated as often as needed."""
        for part in self.spool.parts():
            yield from distinct(mention for mention in part if isinstance(mention, ReachableFile))


@contextmanager
def reachable(
    files: TableFiles,
    name: TableName,
    references_of: Callable[[TableMetadata], ReferenceBits],
    open_spool: OpenSpool,
    *,
    aliases: Aliases,
    progress: Progress,
) -> Iterator[Known[Reachable]]:
    """All files of a table, complete or not, for as long as the context lasts.

    Raises what :meth:`TableFiles.roots` raises, and ``Unavailable`` when catalog or storage stop answering.
    """
    roots = files.roots(name)
    references = references_of(roots.metadata)
    walk = _Walk(files, roots, references, aliases, progress)
    manifests = walk.manifests()
    expected = len(walk.named) + sum(
        _ENTRIES_GUESSED if one.live_files is None else one.live_files for one in manifests
    )
    with open_spool(expected + len(manifests)) as spool:
        walk.spool(spool, manifests)
        yield walk.gaps.judge(Reachable(roots.metadata, references, spool))


class _Walk:
    """One pass. What is at hand at a time: all manifests' lines without what is in them, and one manifest."""

    def __init__(
        self, files: TableFiles, roots: Roots, references: ReferenceBits, aliases: Aliases, progress: Progress
    ) -> None:
        self.gaps = Gaps()
        self.named = list(roots.files)
        self._files, self._roots, self._references = files, roots, references
        self._aliases, self._progress = aliases, progress
        self._known = FILE_CLASSES[roots.metadata.format_version]
        self._uncounted: list[tuple[Snapshot, Sequence[ListedManifest]]] = []
        """Snapshots of which only the entries of their manifests tell how many files they have."""
        self._counted: dict[ListedManifest, LiveCounts] = {}
        self._committed_at: dict[int | None, Instant] = {
            snapshot.snapshot_id: snapshot.committed_at
            for snapshot in roots.metadata.snapshots
            if abs(snapshot.committed_at) <= _LONG_MAX
        }
        for gap in roots.gaps:
            self.gaps.add(gap)

    def manifests(self) -> dict[ListedManifest, int]:
        """All manifests of all snapshots, with what keeps them."""
        found: dict[ListedManifest, int] = {}
        table = self._roots.metadata
        ids = {snapshot.snapshot_id for snapshot in table.snapshots}
        for ref in table.refs:
            if ref.snapshot_id not in ids:
                text = f"it is at snapshot {ref.snapshot_id}, which no longer exists"
                self._gap(ref.name, Reason("missing-snapshot", text))
        for number, snapshot in enumerate(table.snapshots, start=1):
            kept_by = self._references.of(snapshot.snapshot_id)
            for manifest in self._listed(snapshot):
                found[manifest] = found.get(manifest, 0) | kept_by
            self._progress(Step.LISTS, number, len(table.snapshots))
        return found

    def spool(self, spool: DiskSpool, manifests: Mapping[ListedManifest, int]) -> None:
        """Put everything into the spool."""
        asked = 0
        for named in self.named:
            size_bytes = named.size_bytes
            if named.file_class is FileClass.METADATA and size_bytes is None and asked < SIZES_ASKED_MAX:
                size_bytes, asked = self._size_bytes(named.path), asked + 1
            self._add(spool, named.path, named.file_class, size_bytes, self._references.of(named.snapshot_id))
        for number, (manifest, kept_by) in enumerate(manifests.items(), start=1):
            self._add(spool, manifest.path, FileClass.MANIFEST, manifest.length_bytes, kept_by)
            counts = LiveCounts()
            with self._reading(manifest.path):
                for file in self._files.live_files(self._roots.metadata, manifest):
                    added_at = self._committed_at.get(file.added_snapshot_id)
                    self._add(spool, file.path, file.file_class, file.size_bytes, kept_by, added_at)
                    counts.count(file.file_class)
            if listed_counts(manifest) is None:
                self._counted[manifest] = counts
            self._progress(Step.MANIFESTS, number, len(manifests))
        for snapshot, listed in self._uncounted:
            self._check(snapshot, [listed_counts(manifest) or self._counted[manifest] for manifest in listed])

    def _listed(self, snapshot: Snapshot) -> Sequence[ListedManifest]:
        """The manifests of one snapshot; its manifest list is noted down."""
        embedded = self._roots.embedded.get(snapshot.snapshot_id)
        if embedded is not None:
            manifests: Sequence[ListedManifest] | None = tuple(ListedManifest(path) for path in embedded)
        elif snapshot.manifest_list:
            manifests = self._of_list(snapshot)
        else:
            what = f"snapshot {snapshot.snapshot_id}"
            self._gap(what, Reason("no-manifest-list", "it says nothing of its manifests"))
            return ()
        if manifests is None:
            return ()
        counts = [listed_counts(manifest) for manifest in manifests]
        if None in counts:
            self._uncounted.append((snapshot, manifests))
        else:
            self._check(snapshot, [count for count in counts if count is not None])
        return manifests

    def _size_bytes(self, path: str) -> int | None:
        """The size of a metadata file. One that is gone is still named, and a file without a size hides nothing."""
        try:
            return self._files.size_bytes(self._roots.metadata, path)
        except (Unreadable, Unsupported):
            return None

    def _of_list(self, snapshot: Snapshot) -> Sequence[ListedManifest] | None:
        """What a manifest list has; None when it cannot be read. It is a file of the table either way."""
        listing = None
        with self._reading(snapshot.manifest_list):
            listing = self._files.manifests(self._roots.metadata, snapshot.manifest_list)
        size_bytes = None if listing is None else listing.size_bytes
        self.named.append(NamedFile(snapshot.manifest_list, FileClass.MANIFEST_LIST, size_bytes, snapshot.snapshot_id))
        return None if listing is None else listing.manifests

    def _check(self, snapshot: Snapshot, counts: Sequence[LiveCounts]) -> None:
        reason = missing_files(snapshot, counts)
        if reason is not None:
            self._gap(snapshot.manifest_list or f"snapshot {snapshot.snapshot_id}", reason)

    def _add(
        self,
        spool: DiskSpool,
        location: str,
        file_class: FileClass,
        size_bytes: int | None,
        kept_by: int,
        added_at: Instant | None = None,
    ) -> None:
        """One file, under its canonical path.

        A location that has none, or more than one, is a gap. So is a size that no file has.
        """
        if file_class not in self._known:
            version = self._roots.metadata.format_version
            said = f"format version {version} has no {file_class.value}"
            self._gap(location, Reason("unknown-class", said))
        try:
            path, ambiguous = self._aliases.canonical(location), is_ambiguous(location)
        except InvalidLocation as error:
            self._gap(location, Reason(error.code, error.message))
            return
        if ambiguous:
            said = "a file system may know this file by another path as well"
            self._gap(location, Reason("ambiguous-location", said))
        if size_bytes is not None and not 0 <= size_bytes <= _LONG_MAX:
            self._gap(location, Reason("impossible-size", "no file can have as many bytes as are said of it"))
            size_bytes = None
        spool.add(ReachableFile(path, file_class, size_bytes, kept_by, added_at))

    @contextmanager
    def _reading(self, path: str) -> Iterator[None]:
        """Around what is read of one file: what is wrong with it is a gap, and the rest is read nevertheless."""
        try:
            yield
        except (Unreadable, Unsupported) as error:
            self._gap(path, Reason(error.code, error.message))

    def _gap(self, what: str, reason: Reason) -> None:
        self.gaps.add(Gap(what, reason))
