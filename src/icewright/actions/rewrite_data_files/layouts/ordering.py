"""What of a partition is in the order of its table's layout, told by the inventory, and which level that asks for.

A file is in order when a commit of ours that says so added it, under the layout that the table has now. So after a
restart, a rollback, a rewrite by somebody else or another layout the answer is right by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icewright.actions.rewrite_data_files.layouts.layouts import in_names
from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.iceberg.files import DataFile, Partition
from icewright.model.iceberg.inventory import Inventory, PartitionCounts
from icewright.model.iceberg.layouts import Curve, Layout, Level
from icewright.model.iceberg.tables import SortField, TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy

PARTITIONS_LOOKED_AT = 64
"""The most partitions whose files are read for Level 1 or 2 in one plan: all files of each, where Level 0 reads the
small ones. The others have their turn with later commits."""

MERGED_FILES_MAX = 256
"""The most files that one merge by key opens."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """The layout of a table, and the snapshots whose files are in its order.

    ``level_1`` are those of a Level 1 among them; ``committed_at`` says of all when they were made. ``said`` is the
    layout for people, by the names of its columns.
    """

    layout: Layout
    said: str
    runs: frozenset[int]
    level_1: frozenset[int]
    committed_at: Mapping[int, Instant] = field(default_factory=dict)

    @classmethod
    def of(cls, metadata: TableMetadata, inventory: Inventory, layout: Layout) -> Ordering:
        """What is in the order of a layout as of an inventory."""
        runs = {snapshot_id: run for snapshot_id, run in inventory.runs.items() if run.layout == layout.key}
        level_1 = frozenset(snapshot_id for snapshot_id, run in runs.items() if run.level is Level.LEVEL_1)
        committed_at = {snapshot_id: run.committed_at for snapshot_id, run in runs.items()}
        return cls(layout, in_names(metadata, layout), frozenset(runs), level_1, committed_at)

    @property
    def lead(self) -> SortField | None:
        """The field by whose bounds files are told to be in order: none under a curve, which no one column follows."""
        return self.layout.fields[0] if self.layout.curve is Curve.SORT else None

    @property
    def by_columns(self) -> bool:
        """Whether rows can be compared by the values of columns as they are: those in files, which a merge sees."""
        return self.layout.curve is Curve.SORT and all(field.transform == "identity" for field in self.layout.fields)

    def merges(self, files: Sequence[DataFile]) -> bool:
        """Whether files that are all in order can be merged by their key, instead of being put in order anew.

        Only under a sort by columns as they are: a merge compares the values in the files. At most
        :data:`MERGED_FILES_MAX`, since all of them may have to be open at once.
        """
        return self.by_columns and len(files) <= MERGED_FILES_MAX and all(self.has(file) for file in files)

    def has(self, file: DataFile) -> bool:
        """Whether a file is in order."""
        return file.snapshot_id in self.runs

    def unordered(self, counts: PartitionCounts) -> tuple[int, int]:
        """Files of a partition that are not in order, and their bytes."""
        ordered = [of_run for run, of_run in counts.runs.items() if run in self.runs]
        files = counts.data_files - sum(of_run.files for of_run in ordered)
        return files, counts.data_bytes - sum(of_run.size_bytes for of_run in ordered)

    def due(self, counts: PartitionCounts, policy: Policy) -> tuple[Due, ...]:
        """The levels that a partition is due for, the highest first; none where Level 0 is all there is to do."""
        due: list[Due] = []
        runs = len(self.level_1 & counts.runs.keys())
        if runs >= policy.level_2_runs:
            text = f"Level 2 is due: {runs:,} runs of Level 1 in the order of {self.said} lie side by side"
            text += f" ({policy.level_2_runs:,} are enough)"
            due.append(Due(Level.LEVEL_2, Reason(Level.LEVEL_2.value, text, {"level_1_runs": runs})))
        files, size_bytes = self.unordered(counts)
        if size_bytes >= policy.level_1_size_bytes:
            text = f"Level 1 is due: {wording.size(size_bytes)} in {wording.count(files, 'file')} are not in the order "
            text += f"of {self.said} ({wording.size(policy.level_1_size_bytes)} are enough)"
            figures = {"unordered_files": files, "unordered_bytes": size_bytes}
            due.append(Due(Level.LEVEL_1, Reason(Level.LEVEL_1.value, text, figures)))
        return tuple(due)


@dataclass(frozen=True, slots=True)
class Due:
    """A level that a partition is due for by its statistics, and why."""

    level: Level
    reason: Reason


@dataclass(frozen=True, slots=True)
class Levels:
    """What Level 1 and 2 go by in one table, and the partitions that are due for them, the highest level first."""

    ordering: Ordering
    due: Mapping[Partition, tuple[Due, ...]]

    @property
    def fields(self) -> tuple[SortField, ...]:
        """The fields whose spans are asked for; none where no partition is due."""
        return self.ordering.layout.fields if self.due else ()

    @classmethod
    def of(cls, observation: Observation, policy: Policy, layout: Layout) -> Levels:
        """The partitions that are due under a layout, at most :data:`PARTITIONS_LOOKED_AT` of them.

        Of more, others are looked at with each commit.
        """
        metadata, inventory = observation.metadata, observation.inventory
        ordering, current = Ordering.of(metadata, inventory, layout), metadata.current_snapshot
        found = [(one.partition, due) for one in inventory.partitions if (due := ordering.due(one.counts, policy))]
        first = 0
        if len(found) > PARTITIONS_LOOKED_AT and current is not None:
            first = current.sequence_number * PARTITIONS_LOOKED_AT % len(found)
        return cls(ordering, dict([*found[first:], *found[:first]][:PARTITIONS_LOOKED_AT]))
