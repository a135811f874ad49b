"""What planning knows of a table, all of it as of one snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from icewright.core.times import Instant
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.inventory import Inventory
from icewright.model.iceberg.layouts import Level
from icewright.model.iceberg.snapshot_sightings import Mark
from icewright.model.iceberg.tables import TableMetadata


@dataclass(frozen=True, slots=True)
class Removal:
    """A commit that removed rows: when it was, and from which partitions; ``everywhere`` where it may be any."""

    at: Instant
    partitions: frozenset[Partition]
    everywhere: bool = False

    def touches(self, partition: Partition) -> bool:
        """Whether it may have removed rows from a partition."""
        return self.everywhere or partition in self.partitions


@dataclass(frozen=True, slots=True)
class Removals:
    """Which partitions lost rows lately (files removed or delete files added), and how long such writers run.

    ``removed_at`` has the time of the last such commit per partition. ``everywhere_at`` stands in for all
    partitions when there were too many such commits to look at one by one, or one could not be read.
    ``every_ms`` is about how often there were such commits, by the median of the gaps before them, per partition.
    ``rhythmic`` are the partitions of which that is a rhythm: there were several bursts of such commits.
    ``writer_run_ms_max`` is the longest observed span from a writer's first file to its commit, 0 when unknown.
    ``latest`` are those commits one by one, newest first. ``rewritten_at`` and ``all_rewritten_at`` are the same as the
    first two, of commits of ours that replaced files within a day, where rows were removed at all.
    """

    removed_at: Mapping[Partition, Instant] = field(default_factory=dict)
    everywhere_at: Instant | None = None
    writer_run_ms_max: int = 0
    every_ms: Mapping[Partition, int] = field(default_factory=dict)
    rhythmic: frozenset[Partition] = frozenset()
    latest: tuple[Removal, ...] = ()
    rewritten_at: Mapping[Partition, Instant] = field(default_factory=dict)
    all_rewritten_at: Instant | None = None

    @property
    def any(self) -> bool:
        """Whether a partition has lost rows."""
        return bool(self.removed_at) or self.everywhere_at is not None


@dataclass(frozen=True, slots=True)
class TaskThroughput:
    """What the latest tasks of a table tell about the next one.

    ``pace`` is how long they took on the clock, against what was expected of them. ``was_tight`` says whether the last
    one was of the groups alone that had least time.
    """

    pace: float = 1.0
    was_tight: bool = False


class WorkerAccess(StrEnum):
    """Whether an optimizer's Python workers can read and write where the table keeps its files."""

    PROVED = "proved"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Written:
    """What the latest commits of one level by one executor wrote, and what had been modelled for them."""

    level: Level
    executor: Executor
    commits: int
    modelled_bytes: int
    output_bytes: int


@dataclass(frozen=True, slots=True)
class Observation:
    """A table as of ``metadata.current_snapshot_id``; ``inventory`` and ``removals`` belong to that snapshot.

    ``commit_interval_ms`` is the median gap between the latest commits that were not ours, None with fewer than two.
    ``worker_access`` is what an optimizer proved of the table's location; a local file system needs no proof.
    ``access_detail`` says why access is refused, or that it was assumed where nobody was asked. ``rewritten_at`` has
    the partitions with files of a rewrite of ours, and when the last such commit was, where the policy asks for it.
    ``not_stitched`` says why the row groups of its files could not be copied when that was tried, and ``not_sorted``
    why files could not be merged by their key; nothing where they could, or nobody tried.
    ``experience`` is what the table's latest tasks tell, where it has lost rows lately.
    ``not_merged`` says of files, by path, why a merge refused them lately, where only their footers tell.
    ``put_off`` has the files, by path, of groups that failed by themselves, and until when they are left alone.
    ``written`` is what our latest commits wrote, where that is known. ``marks`` tell when snapshots were first seen.
    ``is_queried`` is whether queries of it may be counted.
    """

    metadata: TableMetadata
    observed_at: Instant
    inventory: Inventory
    removals: Removals
    commit_interval_ms: int | None
    worker_access: WorkerAccess = WorkerAccess.PROVED
    access_detail: str = ""
    rewritten_at: Mapping[Partition, Instant] = field(default_factory=dict)
    not_stitched: str = ""
    not_sorted: str = ""
    not_merged: Mapping[str, str] = field(default_factory=dict)
    put_off: Mapping[str, Instant] = field(default_factory=dict)
    written: tuple[Written, ...] = ()
    experience: TaskThroughput = TaskThroughput()
    marks: tuple[Mark, ...] = ()
    is_queried: bool = True
