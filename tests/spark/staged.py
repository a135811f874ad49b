"""Plans for staged rewrites, made from Iceberg's own scan planning."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from icewright.model.actions.actions import Executor, FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import TaskReport, TaskSpec
from icewright.model.work.tasks import TaskState
from icewright_spark.actions.done import Done
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.rewrite_data_files import rewrite_data_files
from icewright_spark.iceberg.java_api import SparkTable, iterate
from tests.builders.specs import first_attempt
from tests.spark.loop import SparkLoop
from tests.spark.tables import contents, missing_files

CONTENTS = {
    "data": FileContent.DATA,
    "position-deletes": FileContent.POSITION_DELETES,
    "equality-deletes": FileContent.EQUALITY_DELETES,
}


def plan_of(spark: SparkSession, name: TableName, task_id: str = "task-1") -> TaskSpec:
    """All live files, a group for each partition, for the staged executor."""
    table = SparkTable(spark, name)
    base = table.java.currentSnapshot()
    tasks = [(task, described(spark, task)) for task in iterate(table.java.newScan().planFiles())]
    deletes: dict[Partition, list[DeleteFile]] = defaultdict(list)
    for task, said in tasks:
        for delete, found in zip(iterate(task.deletes()), said["delete-files"], strict=True):
            known, one = deletes[partition_of(said["data-file"])], delete_file(found, int(delete.dataSequenceNumber()))
            known.extend([one] if one not in known else [])
    groups: dict[Partition, list[InputFile]] = defaultdict(list)
    for task, said in tasks:
        file, sequence_number = said["data-file"], int(task.file().dataSequenceNumber())
        applied = {(found["file-path"], found.get("content-offset")) for found in said["delete-files"]}
        groups[partition_of(file)].append(
            InputFile(
                file["file-path"],
                file["file-size-in-bytes"],
                file["record-count"],
                sequence_number,
                FileFormat(file["file-format"]),
                file.get("first-row-id"),
                tuple(
                    number
                    for number, delete in enumerate(deletes[partition_of(file)])
                    if (delete.path, delete.content_offset) in applied
                    # Java leaves out those that by their bounds remove nothing; the planner does not look at bounds.
                    or (delete.equality_ids and delete.data_sequence_number > sequence_number)
                ),
            )
        )
    action = RewriteDataFiles(
        base.snapshotId(),
        table.schema_id,
        tuple(
            FileGroup(number, partition, partition.values, tuple(files), Executor.STAGED, tuple(deletes[partition]))
            for number, (partition, files) in enumerate(groups.items())
        ),
        1 << 29,
    )
    return first_attempt(name, table.uuid, action, task_id)


def described(spark: SparkSession, task: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(spark._jvm.org.apache.iceberg.ScanTaskParser.toJson(task))  # type: ignore[union-attr]  # there is a JVM
    return found


def partition_of(file: dict[str, Any]) -> Partition:
    return Partition(file["spec-id"], json.dumps(file["partition"], separators=(",", ":")))


def delete_file(said: dict[str, Any], data_sequence_number: int) -> DeleteFile:
    return DeleteFile(
        path=said["file-path"],
        content=CONTENTS[said["content"]],
        file_format=FileFormat(said["file-format"]),
        partition=partition_of(said),
        size_bytes=said["file-size-in-bytes"],
        record_count=said["record-count"],
        snapshot_id=0,
        data_sequence_number=data_sequence_number,
        referenced_data_file=said.get("referenced-data-file"),
        content_offset=said.get("content-offset"),
        content_size_bytes=said.get("content-size-in-bytes"),
        equality_ids=tuple(said.get("equality-ids", ())),
    )


def rewrite(spark: SparkSession, spec: TaskSpec, may_commit: Callable[[], None] = lambda: None) -> Done:
    """Carry the plan out, as an attempt does."""
    table = SparkTable(spark, spec.table_name)
    return rewrite_data_files(spark, table, spec, Phase(len(spec.rewrite.groups)), may_commit)


def rewritten(loop: SparkLoop, name: TableName, planned: Executor = Executor.STAGED) -> TaskReport:
    """The whole loop over a table: the commit must be verified, the rows be the same, and every reachable file exist.

    ``planned`` is whom the planner must choose; groups that could be merged are staged all the same.
    """
    before, spec = contents(loop.spark, name), loop.claim(name)
    assert {group.executor for group in spec.rewrite.groups} == {planned}
    groups = tuple(replace(group, executor=Executor.STAGED) for group in spec.rewrite.groups)
    report = loop.attempt(replace(spec, action=replace(spec.rewrite, groups=groups)))
    task = loop.verified(report)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert contents(loop.spark, name) == before
    assert missing_files(loop.spark, name) == []
    return report
