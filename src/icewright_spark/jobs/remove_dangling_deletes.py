"""``remove_dangling_deletes``: take the planned delete files out of the table's metadata, and nothing else.

The job chooses nothing. It runs in Spark's driver alone, reads manifests and no row, and deletes no file. What it adds
is doubt: on the very snapshot that its commit comes after, none of the delete files may apply to a live data file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from icewright.domain.errors import Conflict, TableReplaced
from icewright.domain.jobs import TaskSpec
from icewright.domain.remove_dangling_deletes import METHOD, RemoveDanglingDeletes
from icewright_spark.commit import CommitResult
from icewright_spark.commit_deletes import commit_deletes
from icewright_spark.dangling import Reach, found_deletes
from icewright_spark.iceberg import SparkTable
from icewright_spark.jobs.phase import Phase
from icewright_spark.manifests import FoundDelete, PartitionFiles

_FORMATS: Final = (2, 3)


def remove_dangling_deletes(
    table: SparkTable, spec: TaskSpec, action: RemoveDanglingDeletes, phase: Phase, may_commit: Callable[[], None]
) -> CommitResult:
    """Carry out one attempt; how its commit ended.

    Raises :class:`Conflict` when the table is not what was planned any more, :class:`Unsupported` for a partition that
    Iceberg cannot be told of; in both cases nothing has been committed.
    """
    check_table(table, spec)
    format_version, reach = table.format_version, Reach(action.deletes, table.unpartitioned_specs())
    partitions = {delete.partition for delete in action.deletes}
    phase.name = "proving"

    def fill(operation: Any) -> str:
        files = PartitionFiles(table, table.java.currentSnapshot().snapshotId(), partitions)
        found = found_deletes(files, action.deletes)
        manifests = reach.check(files)
        remove(table, operation, found)
        return f"{METHOD};removed={len(found)};applying=0;data-manifests={manifests}"

    phase.name = "committing"
    result = commit_deletes(table, spec, fill=fill, format_version=format_version, may_commit=may_commit)
    phase.name = "done"
    return result


def check_table(table: SparkTable, spec: TaskSpec) -> None:
    """The table is the planned one, of a version that has delete files. Raises :class:`Conflict`."""
    if table.uuid != spec.table_id.uuid:
        raise TableReplaced(f"{spec.table_name} is another table now: uuid {table.uuid}, not {spec.table_id.uuid}")
    if table.format_version not in _FORMATS:
        raise Conflict(f"{spec.table_name} has format version {table.format_version} by now")


def remove(table: SparkTable, operation: Any, found: Iterable[FoundDelete]) -> None:
    """Have a Java ``RewriteFiles`` remove these delete files."""
    places: dict[int, tuple[Any, list[int]]] = {}
    for each in found:
        places.setdefault(id(each.listed), (each.listed, []))[1].append(each.place)
    for listed, its in places.values():
        table.remove_delete_files(operation, listed, its)
