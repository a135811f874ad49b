"""One group through Spark's own reader and writer, and the proof that its rows are the same.

The rows are read twice, by different readers where Spark has two: once to be hashed, once to be written. The new file
is read a third time, and the two hashes of the multisets of rows must be equal.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from icewright.core.errors import Unsupported
from icewright.model.actions.actions import FileGroup
from icewright.model.iceberg.tables import ROW_LINEAGE_SINCE
from icewright.model.work.jobs import GroupFigures, TaskSpec
from icewright_spark.executors.staged.checks import (
    StagedResult,
    check_same_rows,
    checked_file,
    refuse_what_would_be_lost,
)
from icewright_spark.executors.staged.cost import executors
from icewright_spark.executors.staged.empty_file import write_empty_file
from icewright_spark.executors.staged.fields import numbered
from icewright_spark.executors.staged.hash_job import HashedRows, hash_rows
from icewright_spark.executors.staged.moving import (
    check_partitions,
    check_partitions_made,
    spec_columns,
    watch_partitions,
)
from icewright_spark.executors.staged.staging import StagedTasks, staged, task_of_new_file, without_dictionaries
from icewright_spark.executors.staged.stated import check_stated, stated_by
from icewright_spark.iceberg.commits.commit import Rewritten
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.parquet.lineage import LINEAGE_FIELDS

METHOD: Final = "multiset of rows, two 64-bit hashes summed in 128 bits, written by Spark, all files read again"
METHOD_OF_MOVES: Final = f"{METHOD}, each row in its partition"


def rewrite_group(
    spark: SparkSession,
    table: SparkTable,
    spec: TaskSpec,
    group: FileGroup,
    tasks: Sequence[Any],
    *,
    as_new: bool = False,
) -> StagedResult:
    """Rewrite the group's files, whose scan tasks are ``tasks`` in the group's order, as one new file.

    Where their rows move to another spec, as one file in each of its partitions that they belong to. ``as_new``: as
    rows that come into the table with the commit, without the ids that they had; where none is left there is no file.
    Raises :class:`ProofFailed` when the rows of the new files are not those that were read, those not the ones that
    the manifests promise, or in a partition that is not theirs; :class:`Unsupported` for what Spark cannot read or does
    not write as planned. In every case all files stay where they are, the new ones too.
    """
    refuse_what_would_be_lost(table)
    set_id, catalog = f"{spec.task_id}-{spec.attempt}-{group.group_id}", spec.table_name.catalog
    started_ns = time.perf_counter_ns()
    with executors(spark, set_id) as cost:
        with staged(spark, table, f"{set_id}-read", tasks) as inputs:
            check_partitions_made(table, group, catalog, inputs.rows(vectorised=True), may_be_empty=as_new)
            with executors(spark, f"{set_id}-hash") as hashing:
                rows = inputs.rows(vectorised=False)
                before = hash_rows(own_columns(table, rows) if as_new else rows, fields=table.schema_fields())
        properties = without_dictionaries(table, before.zeros)
        with staged(spark, table, f"{set_id}-written", tasks, properties) as inputs:
            rows = inputs.rows_in_one_split()
            files = write(inputs, without_ids(table, rows) if as_new else rows, group)
            if not files and not as_new:
                files = [write_empty_file(table, group, set_id)]
            files = _checked(table, group, files, least=0 if as_new else 1)
        with executors(spark, f"{set_id}-proof") as proof:
            after = _read_back(spark, table, spec, group, files, as_new=as_new)
    hashing_ms = before.cpu_ms + after.cpu_ms
    method = METHOD if group.output_spec_id is None else METHOD_OF_MOVES
    receipt = check_same_rows(group, files, before.by_file, after.by_file, method)
    check_stated([str(file.location()) for file in files], after.misstated)
    if group.output_spec_id is not None:
        check_partitions(table, group.output_spec_id, files, after.watched)
    outputs = tuple(Rewritten(group.group_id, str(file.location()), int(file.recordCount()), file) for file in files)
    figures = GroupFigures(
        group_id=group.group_id,
        input_files=len(group.files),
        input_bytes=group.size_bytes,
        output_paths=tuple(output.path for output in outputs),
        output_bytes=sum(int(file.fileSizeInBytes()) for file in files),
        records=sum(output.record_count for output in outputs),
        cpu_ms=cost.cpu_ms + hashing_ms,
        wall_ms=(time.perf_counter_ns() - started_ns) // 1_000_000,
        peak_memory_bytes=max(before.peak_memory_bytes, after.peak_memory_bytes),
        proof_cpu_ms=hashing.cpu_ms + proof.cpu_ms + hashing_ms,
    )
    return StagedResult(receipt, figures, outputs)


def write(staged_tasks: StagedTasks, rows: DataFrame, group: FileGroup) -> list[Any]:
    """The rows as new files: one, unless something is wrong or there are no rows, or a file for each partition."""
    if group.output_spec_id is not None:
        return staged_tasks.write(rows, group.output_spec_id, sorted_first=True)
    return staged_tasks.write(rows, group.partition.spec_id)


def without_ids(table: SparkTable, rows: DataFrame) -> DataFrame:
    """Rows as if they had never been in the table: where a file has no id of a row, the commit gives it one."""
    for name in _lineage(table):
        rows = rows.withColumn(name, lit(None).cast("long"))
    return rows


def own_columns(table: SparkTable, rows: DataFrame) -> DataFrame:
    """Rows without their lineage."""
    return rows.drop(*_lineage(table))


def _lineage(table: SparkTable) -> list[str]:
    """The columns of row lineage, which belong to nobody else from format version 3 on."""
    return [field["name"] for field in LINEAGE_FIELDS] if table.format_version >= ROW_LINEAGE_SINCE else []


def _checked(table: SparkTable, group: FileGroup, files: Sequence[Any], least: int) -> list[Any]:
    if not least <= len(files) <= group.output_files:
        text = f"group {group.group_id}: Spark wrote {len(files)} files instead of "
        raise Unsupported(text + ("one" if group.output_files == 1 else f"at most {group.output_files}"))
    return [checked_file(table, group, file) for file in files]


def _read_back(
    spark: SparkSession, table: SparkTable, spec: TaskSpec, group: FileGroup, files: Sequence[Any], *, as_new: bool
) -> HashedRows:
    """The hashes of the rows of new files, what is stated of them wrongly, and where they move, their partitions."""
    if not files:
        return HashedRows({}, 0, 0)
    set_id, spec_id = f"{spec.task_id}-{spec.attempt}-{group.group_id}-new", group.output_spec_id
    tasks = [task_of_new_file(spark, table, file, unplaced=spec_id is not None) for file in files]
    with staged(spark, table, set_id, tasks) as output:
        rows = output.rows_of_whole_files(max(int(file.fileSizeInBytes()) for file in files))
        rows = own_columns(table, rows) if as_new else rows
        stated = stated_by(table, files)
        if spec_id is None:
            return hash_rows(rows, stated=stated)
        shown = numbered(rows)
        return hash_rows(shown, spec_columns(table, spec_id, spec.table_name.catalog, shown), watch_partitions, stated)
