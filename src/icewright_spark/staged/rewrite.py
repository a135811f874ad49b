"""One group through Spark's own reader and writer, and the proof that its rows are the same.

The rows are read twice, by different readers where Spark has two: once to be written, once to be hashed. The new file
is read a third time, and the two hashes of the multisets of rows must be equal.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from icewright.domain.actions import FileGroup
from icewright.domain.column_types import has_variant
from icewright.domain.errors import Unsupported
from icewright.domain.files import FileContent, FileFormat
from icewright.domain.jobs import GroupFigures, Receipt, TaskSpec
from icewright.domain.writer_settings import encryption_property, shredding_property
from icewright_spark.commit import Rewritten
from icewright_spark.iceberg import SparkTable
from icewright_spark.merge.errors import ProofFailed
from icewright_spark.staged.cost import executors
from icewright_spark.staged.empty_file import write_empty_file
from icewright_spark.staged.hash_job import HashedRows, hash_rows, hash_rows_by_file
from icewright_spark.staged.staging import StagedTasks, staged, task_of_new_file

METHOD: Final = "multiset of rows, two 64-bit hashes summed in 128 bits, written by Spark, all files read again"


@dataclass(frozen=True, slots=True)
class StagedResult:
    """A rewritten group: what proves it, what it cost, and the file to commit."""

    receipt: Receipt
    figures: GroupFigures
    output: Rewritten


def rewrite_group(
    spark: SparkSession, table: SparkTable, spec: TaskSpec, group: FileGroup, tasks: Sequence[Any]
) -> StagedResult:
    """Rewrite the group's files, whose scan tasks are ``tasks`` in the group's order, as one new file.

    Raises :class:`ProofFailed` when the rows of the new file are not those that were read, or those not the ones that
    the manifests promise; :class:`Unsupported` for what Spark cannot read or does not write as one file of the
    group's partition. In every case all files stay where they are, the new one too.
    """
    _refuse_what_would_be_lost(table)
    set_id = f"{spec.task_id}-{spec.attempt}-{group.group_id}"
    started_ns = time.perf_counter_ns()
    with executors(spark, set_id) as cost:
        with staged(spark, table, f"{set_id}-written", tasks) as inputs:
            files = write(inputs, inputs.rows_in_one_split(), group)
            data_file = _one_file(table, group, files or [write_empty_file(table, group, set_id)])
        with staged(spark, table, f"{set_id}-read", tasks) as inputs:
            before = hash_rows_by_file(inputs.rows(vectorised=False))
        with staged(spark, table, f"{set_id}-new", [task_of_new_file(spark, table, data_file)]) as output:
            after = hash_rows(output.rows(vectorised=True))
    path, records = str(data_file.location()), int(data_file.recordCount())
    check_rows_of_files(group, before.by_file)
    _compare(group, path, before, after)
    if records != after.rows.rows:
        raise ProofFailed(f"{path} is said to have {records} rows, {after.rows.rows} were read")
    receipt = Receipt(
        group_id=group.group_id,
        method=METHOD,
        input_digest=before.rows.text,
        output_digest=after.rows.text,
        records=after.rows.rows,
        deleted_records=group.record_count - before.rows.rows,
    )
    figures = GroupFigures(
        group_id=group.group_id,
        input_files=len(group.files),
        input_bytes=group.size_bytes,
        output_paths=(path,),
        output_bytes=int(data_file.fileSizeInBytes()),
        records=records,
        cpu_ms=cost.cpu_ms + before.cpu_ms + after.cpu_ms,
        wall_ms=(time.perf_counter_ns() - started_ns) // 1_000_000,
        peak_memory_bytes=max(before.peak_memory_bytes, after.peak_memory_bytes),
    )
    return StagedResult(receipt, figures, Rewritten(group.group_id, path, records, data_file))


def write(staged_tasks: StagedTasks, rows: DataFrame, group: FileGroup) -> list[Any]:
    """The rows as new files of the group's spec: one, unless something is wrong or there are no rows."""
    return staged_tasks.write(rows, group.partition.spec_id)


def _refuse_what_would_be_lost(table: SparkTable) -> None:
    """The planner does not plan such; the job does not rely on it. Raises :class:`Unsupported`."""
    properties = table.properties
    encryption, shredding = encryption_property(properties), shredding_property(properties)
    if encryption is not None:
        raise Unsupported(f"the table is encrypted ({encryption} is set)")
    if shredding is not None and has_variant(table.schema_fields()):
        raise Unsupported(f"{shredding} asks for shredded variants, which Spark's rewrites do not write")


def check_rows_of_files(group: FileGroup, by_file: Mapping[str, int]) -> None:
    """Every file gave its rows, but for those that its deletes can have removed. Raises :class:`ProofFailed`.

    A deletion vector removes as many rows as it counts; position deletes at most that many, since they may name a row
    twice; equality deletes any number.
    """
    unknown = by_file.keys() - {file.path for file in group.files}
    if unknown:
        raise ProofFailed(f"rows were read from files that are not in the group: {', '.join(sorted(unknown))}")
    for file in group.files:
        rows, deletes = by_file.get(file.path, 0), [group.delete_files[position] for position in file.deletes]
        removed = sum(delete.record_count for delete in deletes)
        most = file.record_count
        least = most - removed
        if any(delete.content is FileContent.EQUALITY_DELETES for delete in deletes):
            least = 0
        elif deletes and all(delete.file_format is FileFormat.PUFFIN for delete in deletes):
            most = least
        if not max(0, least) <= rows <= most:
            raise ProofFailed(
                f"{rows} rows were read from {file.path}, which has {file.record_count}, and {len(deletes)} delete "
                f"files with {removed} entries apply to it"
            )


def _one_file(table: SparkTable, group: FileGroup, files: Sequence[Any]) -> Any:
    if len(files) != 1:
        raise Unsupported(f"group {group.group_id}: Spark wrote {len(files)} files instead of one")
    (file,) = files
    size_bytes = int(table.java.io().newInputFile(file.location()).getLength())
    if size_bytes != file.fileSizeInBytes():
        raise ProofFailed(f"{file.location()} has {size_bytes} bytes, and was written with {file.fileSizeInBytes()}")
    if not table.is_in_partition(file, group.partition):
        raise ProofFailed(f"{file.location()} was not written to partition {group.partition_path or '(all)'}")
    return table.unsorted(file)


def _compare(group: FileGroup, path: str, before: HashedRows, after: HashedRows) -> None:
    if before.rows != after.rows:
        raise ProofFailed(
            f"group {group.group_id}: the rows of {path} are not those of its inputs; "
            f"rows {before.rows.rows} -> {after.rows.rows}; {before.rows.text} -> {after.rows.text}",
            hint="nothing was committed; keep the files, they are the evidence",
        )
