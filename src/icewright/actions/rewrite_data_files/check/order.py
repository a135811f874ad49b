"""Levels and orders, stated a second time, for :mod:`icewright.actions.rewrite_data_files.check.plan`.

Nothing is imported that the planner tells levels by: that files in order stay in it, and that a level is done only
where it is due, is said here in another way, as a mistake has to be made twice to reach a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from icewright.model.actions.actions import Executor, FileGroup, RewriteDataFiles
from icewright.model.iceberg.files import DataFile, Partition
from icewright.model.iceberg.inventory import Inventory, PartitionCounts
from icewright.model.iceberg.layouts import Curve, Layout, Level, Run
from icewright.model.policy.policy import MigrateSpec, Policy
from icewright.plans.check_table import Wrong

_SORTED_BYTES_MAX = 33_554_432
_OLDER_BYTES_TIMES: Final = 4


def order_violations(
    action: RewriteDataFiles,
    layout: Layout | None,
    inventory: Inventory,
    policy: Policy,
    files: Mapping[str, DataFile] | None,
) -> Iterator[Wrong]:
    """All that is wrong with the level and the order of an action; ``layout`` and ``files`` as for ``check_plan``."""
    if action.level is not Level.LEVEL_0 and action.layout is None:
        yield "wrong-layout", f"{action.level} without a layout"
    if action.layout is not None and action.layout != layout:
        yield "wrong-layout", f"the layout {action.layout.key} is not the table's"
    key = None if layout is None else layout.key
    ordered = {snapshot_id: run for snapshot_id, run in inventory.runs.items() if run.layout == key}
    counts = {one.partition: one.counts for one in inventory.partitions}
    yield from _Order(action, policy, ordered, counts).violations(files)


@dataclass(frozen=True, slots=True)
class _Order:
    """An action, and the snapshots whose files are in the order of the table's layout."""

    action: RewriteDataFiles
    policy: Policy
    ordered: Mapping[int, Run]
    counts: Mapping[Partition, PartitionCounts]

    def violations(self, files: Mapping[str, DataFile] | None) -> Iterator[Wrong]:
        partitions = Counter(group.partition for group in self.action.groups)
        for group in self.action.groups:
            if group.output_spec_id is not None:  # told by ``check_moves``
                if self.policy.migrate_spec is not MigrateSpec.ALL and files is not None:
                    yield from self._touched(group, files)  # only a person's wish takes what is in order out of it
                continue
            if self.action.level is Level.LEVEL_0:
                yield from self._as_they_came(group)
            else:
                yield from self._put_in_order(group, files)
                if partitions[group.partition] > 1:
                    yield "several-runs", f"{group.partition} would have several runs of one commit"
            if self.action.level is not Level.LEVEL_2 and files is not None:
                yield from self._touched(group, files)
            if self.action.level is Level.LEVEL_2 and files is not None:
                yield from self._part_of_partition(group, files)
        for partition in partitions:
            if partition in self.counts:
                yield from self._due(partition, self.counts[partition])

    def _as_they_came(self, group: FileGroup) -> Iterator[Wrong]:
        where = f"group {group.group_id}"
        if group.output_files != 1 or group.executor in (Executor.SHUFFLE, Executor.SORT):
            yield "wrong-output-files", f"{where} is to become {group.output_files} files by {group.executor}"
        if self.action.layout is not None and len(group.files) > 1:
            yield "order-lost", f"{where} merges files, and says that they stay in order"

    def _may_be_merged(self, group: FileGroup, files: Mapping[str, DataFile] | None) -> bool:
        """A merge by key takes files that are sorted already, by columns as they are."""
        if not self._goes_by_columns():
            return False
        live = {} if files is None else files
        return files is None or all(f.path in live and live[f.path].snapshot_id in self.ordered for f in group.files)

    def _goes_by_columns(self) -> bool:
        layout = self.action.layout
        return (
            layout is not None and layout.curve is Curve.SORT and {f.transform for f in layout.fields} == {"identity"}
        )

    def _put_in_order(self, group: FileGroup, files: Mapping[str, DataFile] | None) -> Iterator[Wrong]:
        where, size_bytes = f"group {group.group_id}", sum(file.size_bytes for file in group.files)
        if group.executor not in (Executor.SHUFFLE, Executor.MERGE, Executor.SORT):
            yield "wrong-executor", f"{where} is to be put in order by {group.executor}"
        if group.executor is Executor.MERGE and not self._may_be_merged(group, files):
            yield "wrong-executor", f"{where} is to be merged by its order, and not all of its files are in it"
        if group.executor is Executor.SORT and (size_bytes > _SORTED_BYTES_MAX or not self._goes_by_columns()):
            yield "wrong-executor", f"{where} of {size_bytes} bytes is to be sorted by one worker"
        if not group.files:
            yield "group-too-few", f"{where} has no files"
        rows = sum(file.record_count for file in group.files)
        most = max(1, min(-(-size_bytes // self.policy.target_file_size_bytes), rows))
        if not 1 <= group.output_files <= most:
            yield "wrong-output-files", f"{where} is to become {group.output_files} files, and {most} at most"

    def _touched(self, group: FileGroup, files: Mapping[str, DataFile]) -> Iterator[Wrong]:
        """Only Level 2 takes files in order among others; a rewrite that keeps an order takes nothing else."""
        keeps = self.action.level is Level.LEVEL_0 and self.action.layout is not None
        for file in group.files:
            is_ordered = file.path in files and files[file.path].snapshot_id in self.ordered
            if is_ordered and not keeps:
                yield "order-lost", f"{file.path} is in order, and {self.action.level} does not keep that"
            if keeps and not is_ordered:
                yield "wrong-layout", f"{file.path} is not in the order that it is to keep"

    def _part_of_partition(self, group: FileGroup, files: Mapping[str, DataFile]) -> Iterator[Wrong]:
        """Under a curve, what was done by Level 2 is done again for enough new bytes, and after enough new runs."""
        layout, counts = self.action.layout, self.counts.get(group.partition)
        if layout is None or layout.curve is Curve.SORT or counts is None:
            return
        if counts.data_bytes <= self.policy.max_task_size_bytes and counts.data_files <= self.policy.max_task_files:
            return
        where, new_bytes, others = f"group {group.group_id}", 0, list[tuple[DataFile, Run]]()
        for file in (files[one.path] for one in group.files if one.path in files):
            run = self.ordered.get(file.snapshot_id)
            if run is None:
                yield "not-in-order", f"{where} is a part of its partition, and {file.path} is in no order"
            elif run.level is Level.LEVEL_1:
                new_bytes += file.size_bytes
            else:
                others.append((file, run))
        if sum(file.size_bytes for file, _ in others) > _OLDER_BYTES_TIMES * new_bytes:
            yield "too-much-again", f"{where} takes more than {_OLDER_BYTES_TIMES} times its {new_bytes} new bytes"
        new_runs = [run for one in counts.runs if (run := self.ordered.get(one)) and run.level is Level.LEVEL_1]
        for file, run in others:
            if sum(new.committed_at > run.committed_at for new in new_runs) < self.policy.level_2_runs:
                yield "too-soon-again", f"{where} takes {file.path}, which too few runs of Level 1 came after"

    def _due(self, partition: Partition, counts: PartitionCounts) -> Iterator[Wrong]:
        live = {snapshot_id: of_run for snapshot_id, of_run in counts.runs.items() if snapshot_id in self.ordered}
        if self.action.level is Level.LEVEL_2:
            runs = sum(self.ordered[snapshot_id].level is Level.LEVEL_1 for snapshot_id in live)
            if runs < self.policy.level_2_runs:
                yield "not-due", f"{partition} has {runs} runs of Level 1"
        if self.action.level is Level.LEVEL_1:
            others = counts.data_bytes - sum(of_run.size_bytes for of_run in live.values())
            if others < self.policy.level_1_size_bytes:
                yield "not-due", f"{partition} has {others} bytes that are not in order"
