"""The commit of an expiry of data, through the one place that commits to Iceberg.

Exactly the planned files go: Iceberg validates that each is still there, and before each try it is looked whether they
are what was planned. Whatever came into their partitions since is in no list here and stays. Nothing is deleted from
storage, whatever comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from icewright.core.errors import Conflict
from icewright.model.actions.expire_data import ExpireData
from icewright.model.work.jobs import Conflicted, TaskSpec
from icewright_spark.iceberg.commits.commit import CommitResult, several_tries, sign
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.manifests import PartitionFiles

_DELETE: Final = "org/apache/iceberg/DeleteFiles"


def commit_data(
    table: SparkTable,
    spec: TaskSpec,
    action: ExpireData,
    *,
    proof: str,
    may_commit: Callable[[], None],
) -> CommitResult:
    """Delete the files of the action. ``may_commit`` and the rest as in :func:`~.commit.commit_rewrite`.

    Raises :class:`Conflict` for a table that has no snapshot any more.
    """

    def prepare() -> Any:
        gone = gone_files(action, found_files(table, action))
        if gone:
            more = f" (and {len(gone) - 1} more)" if len(gone) > 1 else ""
            return Conflicted(f"another commit removed {gone[0]}{more}")
        return _operation(table, spec, action, proof)

    return several_tries(table, spec, prepare, may_commit)


def found_files(table: SparkTable, action: ExpireData) -> dict[str, int]:
    """The data sequence numbers of those planned files that are live in the table as it is loaded, by path.

    Raises :class:`Conflict` for a file that is listed twice, and for a table without a snapshot.
    """
    current = table.java.currentSnapshot()
    if current is None:
        raise Conflict("the table has no snapshot any more")
    files = PartitionFiles(table, current.snapshotId(), {each.partition for each in action.partitions})
    entries = files.data_files({file.path for file in action.files})
    return {path: entry.data_sequence_number for path, entry in entries.items()}


def gone_files(action: ExpireData, found: Mapping[str, int]) -> list[str]:
    """The paths of those planned files that are not there, or are other ones by now."""
    return [file.path for file in action.files if found.get(file.path) != file.data_sequence_number]


def _operation(table: SparkTable, spec: TaskSpec, action: ExpireData, proof: str) -> Any:
    # Iceberg would delete manifests of a commit that was refused, and a catalog may refuse what it has done.
    operation = table.java.newDelete().deleteWith(table.deletes_nothing()).validateFilesExist()
    files, lists = (
        table.listed((each.partition, file) for each in action.partitions for file in each.files),
        table.lists,
    )
    lists.do(files, lists.bound(_DELETE, "deleteFile", f"(Lorg/apache/iceberg/DataFile;)L{_DELETE};", operation))
    sign(operation, spec, proof)
    return operation
