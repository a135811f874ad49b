"""The commit of statistics files, through the one place that commits to Iceberg.

It makes no snapshot. The new metadata is built from the very state that was looked at, and the catalog swaps the two:
Iceberg's own update would retry on a state that nobody has looked at. A REST catalog is told to set the files and swaps
nothing, so that the snapshot may have expired by then; then an entry is left that nobody uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from icewright.core.errors import Conflict
from icewright.model.actions.compute_statistics import ComputeStatistics
from icewright.model.work.jobs import Committed, TaskSpec
from icewright_spark.iceberg.commits.commit import CommitResult, Swap, several_tries
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.statistics_files import ComputedFiles, described
from icewright_spark.parquet.errors import ProofFailed

_ENTRIES: Final = ("statistics", "partition-statistics")
_OF_A_COMMIT: Final = (*_ENTRIES, "last-updated-ms", "metadata-log")
"""What a commit of statistics changes of the metadata; all else stays as it is, whatever it is."""


class StatisticsUpdate:
    """The metadata of a table as it is and with these files, each in the spec's JSON, and the swap of the two."""

    def __init__(self, table: SparkTable, files: ComputedFiles) -> None:
        operations = table.java.operations()
        base = operations.current()
        builder = table.jvm.org.apache.iceberg.TableMetadata.buildFrom(base)
        if files.of_columns is not None:
            builder = builder.setStatistics(files.of_columns.java)
        if files.of_partitions is not None:
            builder = builder.setPartitionStatistics(files.of_partitions.java)
        self.swap = Swap(operations, base, builder.build())
        self.before, self.after = described(base, table), described(self.swap.updated, table)


def commit_statistics(
    table: SparkTable,
    spec: TaskSpec,
    action: ComputeStatistics,
    files: ComputedFiles,
    *,
    may_commit: Callable[[], None],
) -> CommitResult:
    """Set the files in the metadata. ``may_commit`` and the rest as in :func:`~.commit.commit_rewrite`.

    Raises :class:`Conflict` where the snapshot has expired or has other statistics by now, and :class:`ProofFailed`
    where the commit would change anything else.
    """

    def found(_attempt: int | None) -> Committed | None:
        return Committed(None) if _has(current_metadata(table), action, files) else None

    def prepare() -> Swap:
        update = StatisticsUpdate(table, files)
        check_base(update.before, action)
        check_update(update.before, update.after, action, files)
        return update.swap

    return several_tries(table, spec, prepare, may_commit, found=found)


def current_metadata(table: SparkTable) -> dict[str, Any]:
    """The table's metadata as it was loaded, in the spec's JSON."""
    return described(table.java.operations().current(), table)


def check_base(metadata: dict[str, Any], action: ComputeStatistics) -> None:
    """The snapshot is there, and has the statistics that it had. Raises :class:`Conflict`."""
    snapshot_id = action.base_snapshot_id
    snapshot = next((one for one in metadata.get("snapshots") or () if one["snapshot-id"] == snapshot_id), None)
    if snapshot is None:
        raise Conflict(f"snapshot {snapshot_id} expired meanwhile")
    if snapshot.get("schema-id") != action.schema_id:
        raise Conflict(f"snapshot {snapshot_id} is of schema {snapshot.get('schema-id')}, not {action.schema_id}")
    if action.columns and _path(metadata, _ENTRIES[0], snapshot_id) != action.statistics_before:
        raise Conflict(f"another client set statistics of snapshot {snapshot_id} meanwhile")
    if action.partition_totals is not None and _path(metadata, _ENTRIES[1], snapshot_id) is not None:
        raise Conflict(f"another client set statistics of the partitions of snapshot {snapshot_id} meanwhile")


def check_update(
    before: dict[str, Any], after: dict[str, Any], action: ComputeStatistics, files: ComputedFiles
) -> None:
    """Nothing but the entries of the action's snapshot changes. Raises :class:`ProofFailed`."""
    changed = sorted(
        key
        for key in before.keys() | after.keys()
        if key not in _OF_A_COMMIT and before.get(key, _NONE) != after.get(key, _NONE)
    )
    if changed:
        raise ProofFailed(f"the commit would change {', '.join(changed)[:200]} of the table")
    for key in _ENTRIES:
        if _of_others(before, key, action) != _of_others(after, key, action):
            raise ProofFailed(f"the commit would change {key} of other snapshots")
    if not _has(after, action, files):
        raise ProofFailed("the commit would not set the statistics that were computed")


_NONE: Final = object()


def _has(metadata: dict[str, Any], action: ComputeStatistics, files: ComputedFiles) -> bool:
    """Whether the metadata names the very files of this attempt."""
    return all(
        file is None or _path(metadata, key, action.base_snapshot_id) == file.path
        for key, file in zip(_ENTRIES, (files.of_columns, files.of_partitions), strict=True)
    )


def _path(metadata: dict[str, Any], key: str, snapshot_id: int) -> str | None:
    entry = entry_of(metadata, key, snapshot_id)
    return None if entry is None else str(entry["statistics-path"])


def entry_of(metadata: dict[str, Any], key: str, snapshot_id: int) -> dict[str, Any] | None:
    """The entry of a snapshot among ``statistics`` or ``partition-statistics``, None without one."""
    return next((one for one in metadata.get(key) or () if one["snapshot-id"] == snapshot_id), None)


def _of_others(metadata: dict[str, Any], key: str, action: ComputeStatistics) -> list[Any]:
    entries = (one for one in metadata.get(key) or () if one["snapshot-id"] != action.base_snapshot_id)
    return sorted(entries, key=lambda one: one["snapshot-id"])
