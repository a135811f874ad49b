"""Groups through Spark's reader, into several files each by the order of a layout, and the proof of rows and order.

The rows are read three times: all of them by Iceberg's other reader to be hashed, the columns of the layout for a
sample, and all of them to be written. The new files are read back, each from its first row to its last: the two hashes
of the multisets of rows must be equal, and the rows stand in the order that the layout says. Groups of one partition
spec share Spark's jobs, and each has a proof of its own. Memory does not grow with a group: its rows pass through
Spark's shuffle on disk, and the driver only holds the sample.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession

from icewright.core.errors import Unsupported
from icewright.model.actions.actions import FileGroup
from icewright.model.iceberg.layouts import Layout
from icewright.model.work.jobs import GroupFigures, Receipt, TaskSpec
from icewright_spark.executors.sort.cells import Cells, cells_of
from icewright_spark.executors.sort.order_proof import check_order, watch_of
from icewright_spark.executors.sort.places import arranged
from icewright_spark.executors.sort.sample import Frame, samples_of
from icewright_spark.executors.staged.checks import (
    StagedResult,
    check_same_rows,
    checked_file,
    refuse_what_would_be_lost,
)
from icewright_spark.executors.staged.cost import executors
from icewright_spark.executors.staged.empty_file import write_empty_file
from icewright_spark.executors.staged.fields import field_columns, numbered
from icewright_spark.executors.staged.hash_job import HashedRows, hash_rows
from icewright_spark.executors.staged.staging import StagedTasks, staged, task_of_new_file, without_dictionaries
from icewright_spark.executors.staged.stated import check_stated, stated_by
from icewright_spark.iceberg.commits.commit import Rewritten
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.parquet.errors import ProofFailed

METHOD: Final = (
    "multiset of rows, two 64-bit hashes summed in 128 bits, shuffled by Spark, all files read again, in order"
)

GROUPS_AT_ONCE: Final = 64
"""In one job of Spark's: each is a scan of its own in the plan."""

_PARTITION_OF_FILE: Final = re.compile(r"(\d{5,})-[^/]*\Z", re.ASCII)
"""Iceberg's writers begin the names of files with the number of the partition that they write."""


def shuffle_groups(
    spark: SparkSession,
    table: SparkTable,
    spec: TaskSpec,
    groups: Sequence[FileGroup],
    tasks: Mapping[int, Sequence[Any]],
) -> Iterator[StagedResult]:
    """Rewrite groups, whose scan tasks ``tasks`` has by group id, in the order of the action's layout.

    A group becomes ``output_files`` files; fewer only where it has fewer rows than those, or where one value in more
    rows than a file's leaves no row for another. Raises as :func:`.rewrite.rewrite_group`, and
    :class:`Unsupported` for a layout that Spark cannot order rows by; :class:`ProofFailed` when the rows of a new file
    are not in its order, or reach into another file's.
    """
    if not groups:
        return
    refuse_what_would_be_lost(table)
    layout = spec.rewrite.layout
    if layout is None:
        raise Unsupported("a shuffle is planned, and no layout")
    by_spec = sorted(groups, key=lambda group: (group.partition.spec_id, group.group_id))
    for _, same in groupby(by_spec, key=lambda group: group.partition.spec_id):
        listed = list(same)
        for start in range(0, len(listed), GROUPS_AT_ONCE):
            yield from _Job(spark, table, spec, layout, listed[start : start + GROUPS_AT_ONCE], tasks).run()


def write(staged_tasks: StagedTasks, rows: DataFrame, spec_id: int) -> list[Any]:
    """The rows as new files of a spec, one for each of their partitions that has rows."""
    return staged_tasks.write(rows, spec_id)


@dataclass(frozen=True, slots=True)
class _Job:
    """Groups of one partition spec that go through Spark together."""

    spark: SparkSession
    table: SparkTable
    spec: TaskSpec
    layout: Layout
    groups: Sequence[FileGroup]
    tasks: Mapping[int, Sequence[Any]]

    def run(self) -> Iterator[StagedResult]:
        # An attempt begins groups again where the input of another one is damaged.
        set_id = f"{self.spec.task_id}-{self.spec.attempt}-{self.groups[0].group_id}-{uuid4().hex[:8]}"
        started_ns = time.perf_counter_ns()
        with executors(self.spark, set_id) as cost:
            everything = [task for group in self.groups for task in self.tasks[group.group_id]]
            with (
                executors(self.spark, f"{set_id}-hash") as hashing,
                staged(self.spark, self.table, f"{set_id}-read", everything) as inputs,
            ):
                before = hash_rows(inputs.rows(vectorised=False), fields=self.table.schema_fields())
            cells, written = self._write(set_id, without_dictionaries(self.table, before.zeros))
            with executors(self.spark, f"{set_id}-proof") as proof:
                after = self._read_back(f"{set_id}-new", cells, written)
        hashing_ms = before.cpu_ms + after.cpu_ms
        wall_ms = (time.perf_counter_ns() - started_ns) // 1_000_000
        unknown = before.by_file.keys() - {file.path for group in self.groups for file in group.files}
        if unknown:
            raise ProofFailed(f"rows were read from files that are in no group: {', '.join(sorted(unknown))}")
        total = sum(group.size_bytes for group in self.groups)
        for group, files in zip(self.groups, written, strict=True):
            receipt = self._receipt(group, files, before, after)
            figures = GroupFigures(
                group_id=group.group_id,
                input_files=len(group.files),
                input_bytes=group.size_bytes,
                output_paths=tuple(str(file.location()) for file in files),
                output_bytes=sum(int(file.fileSizeInBytes()) for file in files),
                records=receipt.records,
                cpu_ms=(cost.cpu_ms + hashing_ms) * group.size_bytes // max(total, 1),
                wall_ms=wall_ms,
                peak_memory_bytes=max(before.peak_memory_bytes, after.peak_memory_bytes),
                proof_cpu_ms=(hashing.cpu_ms + proof.cpu_ms + hashing_ms) * group.size_bytes // max(total, 1),
            )
            yield StagedResult(receipt, figures, self._outputs(group, files))

    def _write(self, set_id: str, properties: Mapping[str, str]) -> tuple[list[Cells], list[list[Any]]]:
        """The cells of each group, and its data files in their order: one without rows where no row is left."""
        with ExitStack() as stack:
            inputs = [
                stack.enter_context(
                    staged(
                        self.spark, self.table, f"{set_id}-of-{group.group_id}", self.tasks[group.group_id], properties
                    )
                )
                for group in self.groups
            ]
            frames = [self._frame(group, each) for group, each in zip(self.groups, inputs, strict=True)]
            cells = [
                cells_of(sample, self.layout, group.output_files)
                for group, sample in zip(self.groups, samples_of(frames), strict=True)
            ]
            names = inputs[0].rows(vectorised=True).columns
            rows = arranged(frames, cells, self.layout).toDF(*names)
            found = write(inputs[0], rows, self.groups[0].partition.spec_id)
            files = self._by_group(found)
        written = []
        for group, its in zip(self.groups, files, strict=True):
            those = its or [write_empty_file(self.table, group, f"{set_id}-of-{group.group_id}")]
            written.append([checked_file(self.table, group, file) for file in those])
        return cells, written

    def _frame(self, group: FileGroup, inputs: StagedTasks) -> Frame:
        rows = numbered(inputs.rows(vectorised=True))
        return Frame(rows, self._fields(rows), group.record_count, group.output_files)

    def _fields(self, rows: DataFrame) -> list[Column]:
        return field_columns(self.table.schema_fields(), self.layout, self.spec.table_name.catalog, rows)

    def _by_group(self, files: Sequence[Any]) -> list[list[Any]]:
        """The files that were written, by the partitions of the rows that they are of."""
        numbers: dict[int, Any] = {}
        for file in files:
            said = _PARTITION_OF_FILE.search(str(file.location()))
            if said is None:
                raise Unsupported(f"{file.location()} is not called as Iceberg's writers call files")
            if int(said[1]) in numbers:
                raise ProofFailed(
                    f"{file.location()} is not the only file of its rows: {numbers[int(said[1])].location()}"
                )
            numbers[int(said[1])] = file
        found, first = [], 0
        for group in self.groups:
            its = range(first, first + group.output_files)
            found.append([numbers.pop(number) for number in its if number in numbers])
            first += group.output_files
        if numbers:
            raise ProofFailed(f"{next(iter(numbers.values())).location()} belongs to no group")
        return found

    def _read_back(self, set_id: str, cells: Sequence[Cells], written: Sequence[Sequence[Any]]) -> HashedRows:
        by_file = {str(file.location()): own for own, files in zip(cells, written, strict=True) for file in files}
        tasks = [task_of_new_file(self.spark, self.table, file) for files in written for file in files]
        with staged(self.spark, self.table, set_id, tasks) as output:
            rows = numbered(output.rows_file_by_file())
            stated = stated_by(self.table, [file for files in written for file in files])
            return hash_rows(rows, self._fields(rows), watch_of(self.layout, by_file), stated)

    def _receipt(self, group: FileGroup, files: Sequence[Any], before: HashedRows, after: HashedRows) -> Receipt:
        inputs, outputs = {file.path for file in group.files}, [str(file.location()) for file in files]
        receipt = check_same_rows(
            group,
            files,
            {path: found for path, found in before.by_file.items() if path in inputs},
            {path: found for path, found in after.by_file.items() if path in outputs},
            METHOD,
        )
        check_stated(outputs, after.misstated)
        check_order(self.layout, outputs, after.watched)
        return receipt

    def _outputs(self, group: FileGroup, files: Sequence[Any]) -> tuple[Rewritten, ...]:
        """The files to commit, said to be in the table's sort order if that is what was proved of them."""
        entries = self.table.ordered_by(self.layout, files)
        return tuple(
            Rewritten(group.group_id, str(file.location()), int(file.recordCount()), entry)
            for file, entry in zip(files, entries, strict=True)
        )
