"""The scan tasks of planned files: each data file with the delete files that apply to it.

Iceberg's own scan planning makes them, of the base snapshot. So Java's index of deletes has a say beside the planner's,
and what the two disagree about is not rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from icewright.core.errors import Unsupported
from icewright.model.actions.actions import FileGroup, InputFile
from icewright.model.iceberg.files import FileContent, Partition
from icewright_spark.iceberg.java_api import SparkTable, iterate

_FILTERED_PARTITIONS_MAX: Final = 64
"""Beyond so many partitions the whole table is planned: a filter of many alternatives costs more than it saves."""

_API: Final = "org.apache.iceberg."
_FLOATS: Final = ("float", "double")


def planned_tasks(table: SparkTable, base_snapshot_id: int, groups: Sequence[FileGroup]) -> Mapping[int, Sequence[Any]]:
    """Java's ``FileScanTask`` of every file, by group id, in the order of the group.

    Raises :class:`Unsupported` when Iceberg plans a file otherwise than the plan says: not at all, in another
    partition, with another number of rows, or with other delete files; but it may leave equality deletes out, which by
    the bounds of their columns remove nothing.
    """
    if not groups:
        return {}
    wanted = {file.path for group in groups for file in group.files}
    found: dict[str, Any] = {}
    scan = table.java.newScan().useSnapshot(base_snapshot_id).ignoreResiduals()
    narrowed = None
    if _schema_id_of(table, base_snapshot_id) == table.schema_id:  # else a column may have had another name
        narrowed = partition_filter(table, [group.partition for group in groups])
    if narrowed is not None:
        scan = scan.filter(table.expression(narrowed))
    tasks = scan.planFiles()
    try:
        for task in iterate(_only(table, tasks, wanted)):
            found[str(task.file().location())] = task
    finally:
        tasks.close()
    for group in groups:
        for file in group.files:
            _check(table, group, file, found.get(file.path))
    return {group.group_id: [found[file.path] for file in group.files] for group in groups}


def tasks_of_files(table: SparkTable, snapshot_id: int, paths: Iterable[str]) -> list[Any]:
    """Java's ``FileScanTask`` of each of these data files that the snapshot has."""
    tasks = table.java.newScan().useSnapshot(snapshot_id).planFiles()
    try:
        return list(iterate(_only(table, tasks, paths)))
    finally:
        tasks.close()


def partition_filter(table: SparkTable, partitions: Iterable[Partition]) -> dict[str, Any] | None:
    """An expression, as Iceberg's JSON, that holds in these partitions; None where there is none worth its cost.

    It may hold elsewhere too: nulls and floating-point numbers (of which NaN equals nothing) narrow nothing.
    """
    distinct = sorted(set(partitions))
    if len(distinct) > _FILTERED_PARTITIONS_MAX:
        return None
    whole: dict[str, Any] | None = None
    for partition in distinct:
        one: dict[str, Any] | None = None
        for field, value in zip(table.partition_fields(partition.spec_id), json.loads(partition.values), strict=False):
            if value is None or field.name is None or field.type in _FLOATS:
                continue
            term = {"type": "transform", "transform": field.transform, "term": field.name}
            equal = {"type": "eq", "term": field.name if field.transform == "identity" else term, "value": value}
            one = equal if one is None else {"type": "and", "left": one, "right": equal}
        if one is None:
            return None
        whole = one if whole is None else {"type": "or", "left": whole, "right": one}
    return whole


def _schema_id_of(table: SparkTable, snapshot_id: int) -> int:
    """The id of the schema by which a snapshot is scanned: its own, or the current one where it does not say."""
    said = table.java.snapshot(snapshot_id).schemaId()
    return table.schema_id if said is None else int(said)


def _only(table: SparkTable, tasks: Any, paths: Iterable[str]) -> Any:
    """Those of Java's scan tasks that are of these paths, picked within the JVM: there may be many others."""
    wanted = table.jvm.java.util.HashSet()
    for path in paths:
        wanted.add(path)
    lists = table.lists
    is_wanted = lists.chained(
        lists.handle(f"{_API}FileScanTask", "file", "()Lorg/apache/iceberg/ContentFile;"),
        lists.handle(f"{_API}ContentFile", "location", "()Ljava/lang/String;"),
        lists.bound("java.util.Set", "contains", "(Ljava/lang/Object;)Z", wanted),
    )
    predicate = lists.instance("java.util.function.Predicate", is_wanted)
    return table.jvm.org.apache.iceberg.io.CloseableIterable.filter(tasks, predicate)


def _check(table: SparkTable, group: FileGroup, file: InputFile, task: Any) -> None:
    if task is None:
        raise Unsupported(f"Iceberg does not find {file.path} in the base snapshot")
    found = task.file()
    if int(found.recordCount()) != file.record_count or int(found.fileSizeInBytes()) != file.size_bytes:
        raise Unsupported(
            f"{file.path} has {found.recordCount()} rows and {found.fileSizeInBytes()} bytes by Iceberg's planning, "
            f"{file.record_count} and {file.size_bytes} by the plan"
        )
    if not table.is_in_partition(found, group.partition):
        raise Unsupported(f"{file.path} is not in partition {group.partition_path or '(all)'} by Iceberg's planning")
    applied = {(str(delete.location()), delete.contentOffset()) for delete in iterate(task.deletes())}
    planned = {delete.key: delete for delete in (group.delete_files[position] for position in file.deletes)}
    missing = {key for key, delete in planned.items() if delete.content is not FileContent.EQUALITY_DELETES} - applied
    surplus = applied - planned.keys()
    if missing or surplus:
        raise Unsupported(
            f"{file.path}: delete files apply to it otherwise by Iceberg's planning than by the plan: "
            f"not {sorted(missing, key=str)}, but {sorted(surplus, key=str)}"
        )
