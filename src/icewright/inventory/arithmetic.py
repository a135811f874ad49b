"""The arithmetic of the inventory: a table's partitions as the sum of its manifests.

Sums go forward by addition and subtraction of the manifests that came and went; maxima cannot be subtracted and
come from the manifests that remain. Moving forward step by step gives what :func:`recompute` gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from icewright.core.times import Instant
from icewright.inventory import histogram
from icewright.inventory.histogram import NegativeCount
from icewright.inventory.partitions import partition_path
from icewright.model.iceberg.files import FileFormat, Partition
from icewright.model.iceberg.inventory import (
    ManifestKey,
    ManifestSummary,
    PartitionCounts,
    PartitionStatistics,
    PartitionSummary,
    RunCounts,
)
from icewright.model.iceberg.tables import Operation, Snapshot, TableMetadata

EMPTY = PartitionCounts()
_NOTHING = RunCounts(0, 0)

_SUMS = (
    "data_files",
    "data_bytes",
    "records",
    "position_delete_files",
    "deletion_vectors",
    "deleted_records",
    "equality_delete_files",
)


@dataclass(frozen=True, slots=True)
class InventoryChange:
    """What a step changes: partitions with new statistics, and partitions that hold no file any more."""

    changed: tuple[PartitionStatistics, ...]
    removed: tuple[Partition, ...]


def empty(counts: PartitionCounts) -> bool:
    """Whether no live file is left, neither data nor deletes."""
    return counts.data_files == 0 and counts.delete_files == 0


def add(one: PartitionCounts, other: PartitionCounts) -> PartitionCounts:
    """Both together."""
    formats = dict(one.formats)
    for key, files in other.formats.items():
        formats[key] = formats.get(key, 0) + files
    sums = {name: getattr(one, name) + getattr(other, name) for name in _SUMS}
    runs = dict(one.runs)
    for run, counts in other.runs.items():
        before = runs.get(run, _NOTHING)
        runs[run] = RunCounts(before.files + counts.files, before.size_bytes + counts.size_bytes)
    return PartitionCounts(sizes=histogram.add(one.sizes, other.sizes), formats=formats, runs=runs, **sums)


def subtract(whole: PartitionCounts, part: PartitionCounts) -> PartitionCounts:
    """``whole`` without ``part``. Raises :class:`~icewright.inventory.histogram.NegativeCount`."""
    formats: dict[FileFormat, int] = dict(whole.formats)
    for key, files in part.formats.items():
        formats[key] = formats.get(key, 0) - files
    sums = {name: getattr(whole, name) - getattr(part, name) for name in _SUMS}
    runs = dict(whole.runs)
    for run, counts in part.runs.items():
        before = runs.get(run, _NOTHING)
        runs[run] = RunCounts(before.files - counts.files, before.size_bytes - counts.size_bytes)
    negative = [name for name, value in (*sums.items(), *formats.items()) if value < 0]
    negative += [f"run {run}" for run, left in runs.items() if min(left.files, left.size_bytes) < 0]
    if negative:
        raise NegativeCount(f"{', '.join(negative)} below zero: {whole} less {part}")
    formats = {key: files for key, files in formats.items() if files}
    runs = {run: left for run, left in runs.items() if left.files}
    return PartitionCounts(sizes=histogram.subtract(whole.sizes, part.sizes), formats=formats, runs=runs, **sums)


def manifest_changes(
    before: Iterable[ManifestKey], after: Iterable[ManifestKey]
) -> tuple[tuple[ManifestKey, ...], tuple[ManifestKey, ...]]:
    """The manifests that came and those that went between two snapshots, each sorted."""
    old, new = frozenset(before), frozenset(after)
    return tuple(sorted(new - old)), tuple(sorted(old - new))


def affected_partitions(summaries: Iterable[ManifestSummary]) -> frozenset[Partition]:
    """The partitions that some manifests speak of."""
    return frozenset(partition for summary in summaries for partition in summary.partitions)


def needing_remaining(
    metadata: TableMetadata, added: Sequence[ManifestSummary], removed: Sequence[ManifestSummary]
) -> frozenset[Partition]:
    """The partitions among the affected ones for which :func:`advance` has to know what remains.

    Not those to which the current snapshot itself added data: no manifest has a higher sequence number than its own.
    So an append reads nothing of what was there before it.
    """
    affected, current = affected_partitions((*added, *removed)), metadata.current_snapshot
    if current is None or current.sequence_number == 0:
        return affected
    newest = _WriteMark(current.sequence_number, frozenset())
    if _WriteTimes(metadata).of(newest) is None:
        return affected  # then what was known counts, if nothing changed: only all manifests together can tell
    told = {
        partition
        for summary in added
        for partition, share in summary.partitions.items()
        if share.sequence_number_max == current.sequence_number
    }
    return affected - told


def recompute(metadata: TableMetadata, summaries: Iterable[ManifestSummary]) -> tuple[PartitionStatistics, ...]:
    """The statistics of all partitions from the summaries of all manifests of a snapshot, by partition."""
    counts: dict[Partition, PartitionCounts] = {}
    marks: dict[Partition, _WriteMark] = {}
    for summary in summaries:
        for partition, share in summary.partitions.items():
            counts[partition] = add(counts.get(partition, EMPTY), share.counts)
            marks[partition] = marks.get(partition, _UNWRITTEN).including(share)
    times = _WriteTimes(metadata)
    return tuple(
        PartitionStatistics(
            partition, partition_path(metadata, partition), counts[partition], times.of(marks[partition])
        )
        for partition in sorted(counts)
        if not empty(counts[partition])
    )


def advance(
    metadata: TableMetadata,
    current: Mapping[Partition, PartitionStatistics],
    *,
    added: Sequence[ManifestSummary],
    removed: Sequence[ManifestSummary],
    remaining: Iterable[ManifestSummary],
) -> InventoryChange:
    """Move statistics forward to the snapshot whose manifests are the former ones plus ``added`` less ``removed``.

    ``current`` needs the affected partitions only (:func:`affected_partitions` of both), and ``remaining`` the
    summaries that have one of :func:`needing_remaining`; those of ``removed`` may be among them and are passed over.
    The result is that of :func:`recompute`, save that a ``written_at`` once known outlives its snapshot's expiry.
    Raises :class:`~icewright.inventory.histogram.NegativeCount` when ``current`` is not the sum it should be.
    """
    counts: dict[Partition, PartitionCounts] = {}
    before: dict[Partition, _WriteMark] = {}
    for partition in affected_partitions((*added, *removed)):
        counts[partition] = current[partition].counts if partition in current else EMPTY
        before[partition] = _UNWRITTEN
    gone = frozenset(summary.key for summary in removed)
    _mark(before, (summary for summary in remaining if summary.key not in gone))
    after = dict(before)
    _mark(before, removed)
    _mark(after, added)
    for summary in added:
        for partition, share in summary.partitions.items():
            counts[partition] = add(counts[partition], share.counts)
    for summary in removed:
        for partition, share in summary.partitions.items():
            counts[partition] = subtract(counts[partition], share.counts)
    times = _WriteTimes(metadata)
    changed: list[PartitionStatistics] = []
    for partition in sorted(counts):
        known = current.get(partition)
        if empty(counts[partition]):
            continue
        written_at = times.of(after[partition])
        if written_at is None and known is not None and before[partition] == after[partition]:
            written_at = known.written_at
        statistics = PartitionStatistics(partition, partition_path(metadata, partition), counts[partition], written_at)
        if statistics != known:
            changed.append(statistics)
    lost = tuple(sorted(p for p in counts if p in current and empty(counts[p])))
    return InventoryChange(tuple(changed), lost)


def optimization_ratio(
    counts: PartitionCounts, *, small_file_size_bytes: int, target_file_size_bytes: int, min_input_files: int
) -> float:
    """How much of what merging can do for a partition is done, in (0, 1]; 1.0 when there is nothing to gain.

    The best possible number of data files over the present one. Best possible: the files that are not small stay,
    the small ones become as few files of the target size as hold their bytes. So 100 files of which 90 are small
    and fit into two give 12/100. Fewer small files than are merged at a time are nothing to gain: all of a small table
    is in so many files, after merging as well. From there on it falls with each further small file.
    """
    small_files, small_bytes = histogram.small(counts.sizes, small_file_size_bytes)
    if small_files == 0 or small_files < min_input_files:
        return 1.0
    merged = min(small_files, max(1, ceil(small_bytes / target_file_size_bytes)))
    return (counts.data_files - small_files + merged) / counts.data_files


def avoidable_files(counts: PartitionCounts, *, small_file_size_bytes: int, min_input_files: int) -> int:
    """How many files of a partition merging can take away at most: all its small ones but one, if there are enough."""
    small_files, _ = histogram.small(counts.sizes, small_file_size_bytes)
    return max(0, small_files - 1) if small_files >= min_input_files else 0


@dataclass(frozen=True, slots=True)
class _WriteMark:
    """What tells the last write to a partition: a maximum over manifests, by sequence number or (v1) snapshot ids."""

    sequence_number_max: int | None
    snapshot_ids: frozenset[int]

    def including(self, share: PartitionSummary) -> _WriteMark:
        sequence_numbers = [n for n in (self.sequence_number_max, share.sequence_number_max) if n is not None]
        return _WriteMark(max(sequence_numbers, default=None), self.snapshot_ids | share.snapshot_ids)


_UNWRITTEN = _WriteMark(None, frozenset())


def _mark(marks: dict[Partition, _WriteMark], summaries: Iterable[ManifestSummary]) -> None:
    for summary in summaries:
        for partition, share in summary.partitions.items():
            if partition in marks:
                marks[partition] = marks[partition].including(share)


class _WriteTimes:
    """When the owner last wrote, told from sequence numbers by the snapshots that the metadata still has.

    The snapshot with the highest data sequence number added the newest data. Where that is a ``replace`` (a
    rewrite that took a number of its own, or kept the number of a rewrite before it), the commit of its nearest
    ancestor that is not counts: data cannot be younger than that. v1 has no sequence numbers; there it is the
    latest of the adding snapshots that are known and not ``replace``.
    """

    def __init__(self, metadata: TableMetadata) -> None:
        self._by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
        self._by_sequence_number = {s.sequence_number: s for s in metadata.snapshots if s.sequence_number > 0}

    def of(self, mark: _WriteMark) -> Instant | None:
        if mark.sequence_number_max is not None:
            return self._owner_commit(self._by_sequence_number.get(mark.sequence_number_max))
        known = (self._by_id.get(snapshot_id) for snapshot_id in mark.snapshot_ids)
        return max((s.committed_at for s in known if s and s.operation is not Operation.REPLACE), default=None)

    def _owner_commit(self, snapshot: Snapshot | None) -> Instant | None:
        steps = len(self._by_id)  # damaged metadata may have a cycle of parents
        while snapshot is not None and snapshot.operation is Operation.REPLACE and steps > 0:
            snapshot = self._by_id.get(snapshot.parent_id) if snapshot.parent_id is not None else None
            steps -= 1
        return None if snapshot is None or snapshot.operation is Operation.REPLACE else snapshot.committed_at
