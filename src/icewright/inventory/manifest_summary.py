"""Summing up the entries of one manifest: the one definition of what its summary counts.

Every reader of manifests feeds its entries in here, one by one, so that no file list is ever held.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from icewright.core.errors import InvalidLocation
from icewright.inventory.histogram import bucket
from icewright.model.iceberg.files import FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import (
    ManifestKey,
    ManifestSummary,
    PartitionCounts,
    PartitionSummary,
    RunCounts,
    SizeHistogram,
)
from icewright.model.iceberg.locations import Aliases, coarsened, topmost


class _PartitionSums:
    """Running sums over the entries of one partition."""

    __slots__ = (
        "buckets",
        "data_bytes",
        "data_files",
        "deleted_records",
        "deletion_vectors",
        "equality_delete_files",
        "formats",
        "position_delete_files",
        "records",
        "removed_files",
        "runs",
        "sequence_number_max",
        "snapshot_ids",
    )

    def __init__(self) -> None:
        self.data_files = self.data_bytes = self.records = self.removed_files = 0
        self.position_delete_files = self.deletion_vectors = 0
        self.equality_delete_files = self.deleted_records = 0
        self.buckets: dict[int, tuple[int, int]] = {}
        self.formats: dict[FileFormat, int] = {}
        self.runs: dict[int, tuple[int, int]] = {}
        self.sequence_number_max: int | None = None
        self.snapshot_ids: set[int] = set()

    def summary(self) -> PartitionSummary:
        counts = PartitionCounts(
            data_files=self.data_files,
            data_bytes=self.data_bytes,
            records=self.records,
            sizes=SizeHistogram(self.buckets),
            formats=self.formats,
            position_delete_files=self.position_delete_files,
            deletion_vectors=self.deletion_vectors,
            deleted_records=self.deleted_records,
            equality_delete_files=self.equality_delete_files,
            runs={run: RunCounts(*sums) for run, sums in self.runs.items()},
        )
        return PartitionSummary(counts, self.sequence_number_max, frozenset(self.snapshot_ids), self.removed_files)


class ManifestSums:
    """Sums over the entries of one manifest, per partition."""

    def __init__(self, runs: AbstractSet[int] = frozenset(), location: str | None = None) -> None:
        """``runs`` are the snapshots whose data files are counted by themselves, too; ``location`` is the table's."""
        self._runs = runs
        self._places = FilePlaces(location)
        self._partitions: dict[Partition, _PartitionSums] = {}

    def _of(self, partition: Partition) -> _PartitionSums:
        tally = self._partitions.get(partition)
        if tally is None:
            tally = self._partitions[partition] = _PartitionSums()
        return tally

    def live_at(self, path: str) -> None:
        """Note where a live file lies, of whatever content."""
        self._places.add(path)

    def removed(self, partition: Partition) -> None:
        """Count an entry that is marked as deleted, of whatever content."""
        self._of(partition).removed_files += 1

    def data_file(
        self,
        partition: Partition,
        *,
        file_format: FileFormat,
        size_bytes: int,
        record_count: int,
        sequence_number: int,
        snapshot_id: int,
    ) -> None:
        """Count a live data file. Sequence number 0 means v1: the adding snapshot is remembered instead."""
        tally = self._of(partition)
        tally.data_files += 1
        tally.data_bytes += size_bytes
        tally.records += record_count
        key = bucket(size_bytes)
        files, bytes_before = tally.buckets.get(key, (0, 0))
        tally.buckets[key] = (files + 1, bytes_before + size_bytes)
        tally.formats[file_format] = tally.formats.get(file_format, 0) + 1
        if snapshot_id in self._runs:
            of_run, bytes_of_run = tally.runs.get(snapshot_id, (0, 0))
            tally.runs[snapshot_id] = (of_run + 1, bytes_of_run + size_bytes)
        if sequence_number == 0:
            tally.snapshot_ids.add(snapshot_id)
        elif tally.sequence_number_max is None or sequence_number > tally.sequence_number_max:
            tally.sequence_number_max = sequence_number

    def delete_file(
        self, partition: Partition, *, content: FileContent, file_format: FileFormat, record_count: int
    ) -> None:
        """Count a live delete file; position deletes in Puffin are deletion vectors.

        The records of an equality delete say nothing of how many rows it deletes, so they are not counted.
        """
        tally = self._of(partition)
        if content is FileContent.EQUALITY_DELETES:
            tally.equality_delete_files += 1
            return
        if file_format is FileFormat.PUFFIN:
            tally.deletion_vectors += 1
        else:
            tally.position_delete_files += 1
        tally.deleted_records += record_count

    def summary(self, key: ManifestKey, content: FileContent) -> ManifestSummary:
        """What was counted, as the summary of that manifest."""
        partitions = {p: tally.summary() for p, tally in self._partitions.items()}
        return ManifestSummary(key, content, partitions, self._places.places())


PLACES_MAX: Final = 16
"""Folders kept of a manifest; of more, those around them are."""
_REMEMBERED_MAX: Final = 1_000
_ODD_MAX: Final = 3
_PLAIN: Final = Aliases()


class FilePlaces:
    """Gathers the folders of a manifest's files, which tell of files that were imported from somewhere else.

    A manifest never changes, and where a table says that its files are may: what of the folders is outside is judged
    each time by whoever asks. Most lie below one, the table's location, which costs next to nothing.
    """

    def __init__(self, location: str | None) -> None:
        self._inside = () if location is None else (location.rstrip("/") + "/",)
        self._is_inside = False
        self._seen: set[str] = set()
        self._found: tuple[str, ...] = ()
        self._odd: set[str] = set()

    def add(self, path: str) -> None:
        """One more file, as its manifest spells it."""
        if path.startswith(self._inside) and "/.." not in path:
            self._is_inside = True
            return
        folder = path.rpartition("/")[0]
        if folder in self._seen:
            return
        if len(self._seen) >= _REMEMBERED_MAX:
            self._seen.clear()
        self._seen.add(folder)
        try:
            place = _PLAIN.folder(folder)
        except InvalidLocation:
            if len(self._odd) < _ODD_MAX:
                self._odd.add(folder)
            return
        if not place.startswith(self._found):
            self._found = coarsened(topmost((*self._found, place)), PLACES_MAX)

    def places(self) -> tuple[str, ...]:
        """Folders that have all files below them, and folders that are none, as spelled."""
        return (*(self._inside if self._is_inside else ()), *self._found, *sorted(self._odd))
