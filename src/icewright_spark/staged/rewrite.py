"""One group through Spark's own reader and writer, and the proof that its rows are the same.

The rows are read twice, by different readers where Spark has two: once to be written, once to be hashed. The new file
is read a third time, and the two hashes of the multisets of rows must be equal.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from icewright.domain.actions import FileGroup
from icewright.domain.errors import Unsupported
from icewright.domain.jobs import GroupFigures, Receipt, TaskSpec
from icewright_spark.commit import Rewritten
from icewright_spark.iceberg import SparkTable
from icewright_spark.staged.checks import StagedResult, check_same_rows, checked_file, refuse_what_would_be_lost
from icewright_spark.staged.cost import executors
from icewright_spark.staged.empty_file import write_empty_file
from icewright_spark.staged.hash_job import hash_rows
from icewright_spark.staged.staging import StagedTasks, staged, task_of_new_file

METHOD: Final = "multiset of rows, two 64-bit hashes summed in 128 bits, written by Spark, all files read again"


def rewrite_group(
    spark: SparkSession, table: SparkTable, spec: TaskSpec, group: FileGroup, tasks: Sequence[Any]
) -> StagedResult:
    """Rewrite the group's files, whose scan tasks are ``tasks`` in the group's order, as one new file.

    Raises :class:`ProofFailed` when the rows of the new file are not those that were read, or those not the ones that
    the manifests promise; :class:`Unsupported` for what Spark cannot read or does not write as one file of the
    group's partition. In every case all files stay where they are, the new one too.
    """
    refuse_what_would_be_lost(table)
    set_id = f"{spec.task_id}-{spec.attempt}-{group.group_id}"
    started_ns = time.perf_counter_ns()
    with executors(spark, set_id) as cost:
        with staged(spark, table, f"{set_id}-written", tasks) as inputs:
            files = write(inputs, inputs.rows_in_one_split(), group)
            data_file = _one_file(table, group, files or [write_empty_file(table, group, set_id)])
        with staged(spark, table, f"{set_id}-read", tasks) as inputs:
            before = hash_rows(inputs.rows(vectorised=False))
        with staged(spark, table, f"{set_id}-new", [task_of_new_file(spark, table, data_file)]) as output:
            after = hash_rows(output.rows(vectorised=True))
    path, records = str(data_file.location()), int(data_file.recordCount())
    rows_in, rows_out = check_same_rows(group, [data_file], before.by_file, after.by_file)
    receipt = Receipt(
        group_id=group.group_id,
        method=METHOD,
        input_digest=rows_in.text,
        output_digest=rows_out.text,
        records=rows_out.rows,
        deleted_records=group.record_count - rows_in.rows,
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
    return StagedResult(receipt, figures, (Rewritten(group.group_id, path, records, data_file),))


def write(staged_tasks: StagedTasks, rows: DataFrame, group: FileGroup) -> list[Any]:
    """The rows as new files of the group's spec: one, unless something is wrong or there are no rows."""
    return staged_tasks.write(rows, group.partition.spec_id)


def _one_file(table: SparkTable, group: FileGroup, files: Sequence[Any]) -> Any:
    if len(files) != 1:
        raise Unsupported(f"group {group.group_id}: Spark wrote {len(files)} files instead of one")
    return checked_file(table, group, files[0])
