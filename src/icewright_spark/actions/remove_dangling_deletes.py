"""``remove_dangling_deletes``: take the planned delete files out of the table's metadata, and nothing else.

The job chooses nothing. It runs in Spark's driver alone, reads manifests and no row, and deletes no file. What it adds
is doubt: on the very snapshot that its commit comes after, none of the delete files may apply to a live data file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from icewright.model.actions.rewrite_delete_files import DANGLING_METHOD, RemoveDanglingDeletes
from icewright.model.work.jobs import TaskSpec
from icewright_spark.actions.done import Done
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.planned_table import check_table
from icewright_spark.iceberg.commits.deletes import commit_deletes
from icewright_spark.iceberg.dangling import Reach, found_deletes
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.manifests import PartitionFiles, remove_deletes

_FORMATS: Final = (2, 3)
"""Those that have delete files."""


def remove_dangling_deletes(
    table: SparkTable, spec: TaskSpec, action: RemoveDanglingDeletes, phase: Phase, may_commit: Callable[[], None]
) -> Done:
    """Carry out one attempt.

    Raises :class:`Conflict` when the table is not what was planned any more, :class:`Unsupported` for a partition that
    Iceberg cannot be told of; in both cases nothing has been committed.
    """
    check_table(table, spec, _FORMATS)
    format_version, reach = table.format_version, Reach(action.deletes, table.unpartitioned_specs())
    partitions = {delete.partition for delete in action.deletes}
    phase.name = "proving"

    def fill(operation: Any) -> str:
        files = PartitionFiles(table, table.java.currentSnapshot().snapshotId(), partitions)
        found = found_deletes(files, action.deletes)
        manifests = reach.check(files)
        remove_deletes(table, operation, found)
        return f"{DANGLING_METHOD};removed={len(found)};applying=0;data-manifests={manifests}"

    phase.name = "committing"
    result = commit_deletes(table, spec, fill=fill, format_version=format_version, may_commit=may_commit)
    phase.name = "done"
    return Done(result)
