"""The inventory: what manifests add up to, per partition.

A manifest never changes, so one :class:`ManifestSummary` per manifest is enough for ever, and the state of a table
is the *sum* of the summaries of its manifests: a commit costs the manifests that it changed.
Sizes are kept as a histogram, so that a changed target size needs no new read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from icewright.core.times import Instant
from icewright.model.iceberg.files import FileContent, FileFormat, Partition
from icewright.model.iceberg.layouts import Run

BUCKETS_PER_OCTAVE = 8
"""Resolution of the size histogram: bucket edges are 2**(k/8) bytes, 9 % apart."""

_EMPTY: Mapping[int, tuple[int, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SizeHistogram:
    """Files by size: bucket -> (files, bytes). Bucket k holds sizes in [2**(k/8), 2**((k+1)/8))."""

    buckets: Mapping[int, tuple[int, int]] = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True, order=True)
class ManifestKey:
    """What identifies a manifest: paths have been reused by writers, so length and adding snapshot belong to it."""

    path: str
    length_bytes: int
    added_snapshot_id: int


@dataclass(frozen=True, slots=True)
class RunCounts:
    """What is live of one run."""

    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """Sums over the live entries of one partition. All of them can be subtracted again.

    ``runs`` has the data files that belong to a run, by the snapshot that added them. All other files are in no order
    that we know of.
    """

    data_files: int = 0
    data_bytes: int = 0
    records: int = 0
    sizes: SizeHistogram = field(default_factory=SizeHistogram)
    formats: Mapping[FileFormat, int] = field(default_factory=dict)
    position_delete_files: int = 0
    deletion_vectors: int = 0
    deleted_records: int = 0
    equality_delete_files: int = 0
    runs: Mapping[int, RunCounts] = field(default_factory=dict)

    @property
    def delete_files(self) -> int:
        """Delete files of all kinds."""
        return self.position_delete_files + self.deletion_vectors + self.equality_delete_files


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """One manifest's share of one partition.

    ``sequence_number_max`` is the highest data sequence number among live data files (None in v1 manifests, where
    ``snapshot_ids`` has the adding snapshots instead). ``removed_files`` counts entries that this manifest marks
    as deleted, which the snapshot that added the manifest removed.
    """

    counts: PartitionCounts
    sequence_number_max: int | None
    snapshot_ids: frozenset[int]
    removed_files: int


@dataclass(frozen=True, slots=True)
class ManifestSummary:
    """All that icewright keeps of a manifest."""

    key: ManifestKey
    content: FileContent
    """DATA for data manifests, POSITION_DELETES for delete manifests of any kind."""
    partitions: Mapping[Partition, PartitionSummary]
    places: tuple[str, ...] = ()
    """Folders that have all its live files below them."""


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """What is true of one partition as of the snapshot of its inventory.

    ``written_at`` is the time of the last commit that added data here, from the snapshot's own clock; where a
    rewrite came last, of the owner's last commit before it. None when that snapshot has expired.
    """

    partition: Partition
    path: str
    """For people, e.g. ``month=2013-01``; empty for the unpartitioned."""
    counts: PartitionCounts
    written_at: Instant | None


@dataclass(frozen=True, slots=True)
class Inventory:
    """The statistics of all partitions of a table as of one snapshot, and the manifests they were summed from.

    ``runs`` says what the runs in the partitions' counts are, by snapshot id.
    """

    snapshot_id: int | None
    manifests: tuple[ManifestKey, ...]
    partitions: tuple[PartitionStatistics, ...]
    runs: Mapping[int, Run] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeleteCosts:
    """What deletes cost a scan of all of a table.

    ``listed`` are the live delete files (and deletion vectors), whose entries every planning of a scan reads.
    ``opened`` counts each of them once for each data file that it applies to, as a reader without a cache opens them;
    ``opened_bytes`` are the bytes of these, of a deletion vector those of its own blob.
    """

    listed: int = 0
    opened: int = 0
    opened_bytes: int = 0
