"""Whether statistics may still be committed, whether they were, and whether the commit did anything else.

The commit makes no snapshot, so nothing of it carries a task's id. It does not have to: statistics are of a snapshot,
which never changes, so those that anybody has computed since are as good, and computing them twice loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from icewright.model.actions.compute_statistics import NDV_TOLERANCE, ComputeStatistics
from icewright.model.iceberg.tables import PartitionStatisticsFile, StatisticsFile, TableMetadata
from icewright.model.plans.plans import Reason

STATISTICS_UNSEEN = "statistics-unseen"
"""The code of a problem that says: nobody can tell."""

_MAY_CHANGE = frozenset({"metadata_location", "updated_at", "metadata_log", "statistics", "partition_statistics"})


def statistics_conflict(action: ComputeStatistics, now: TableMetadata) -> Reason | None:
    """Why an action must not be committed to the table as it is now, None when it may be."""
    snapshot_id = action.base_snapshot_id
    if now.snapshot(snapshot_id) is None:
        return Reason("base-gone", f"snapshot {snapshot_id} has expired", {"snapshot_id": snapshot_id})
    there = now.statistics_of(snapshot_id)
    if action.columns and (None if there is None else there.path) != action.statistics_before:
        return Reason("statistics-changed", f"snapshot {snapshot_id} has other statistics than when this was planned")
    if action.partition_totals is not None and now.partition_statistics_of(snapshot_id) is not None:
        return Reason("statistics-changed", f"snapshot {snapshot_id} has statistics of its partitions now")
    return None


def computed(
    action: ComputeStatistics, now: TableMetadata
) -> tuple[StatisticsFile | None, PartitionStatisticsFile | None] | None:
    """The files that there are since the action was planned, None until all are there that it wants."""
    of_columns = of_partitions = None
    if action.columns:
        of_columns = now.statistics_of(action.base_snapshot_id)
        wanted = {column.field_id for column in action.columns}
        if of_columns is None or of_columns.path == action.statistics_before or wanted - of_columns.sketched_fields:
            return None
    if action.partition_totals is not None:
        of_partitions = now.partition_statistics_of(action.base_snapshot_id)
        if of_partitions is None:
            return None
    return of_columns, of_partitions


def problem_of_statistics(
    before: TableMetadata | None, after: TableMetadata, action: ComputeStatistics
) -> Reason | None:
    """What a commit of statistics changed that it should not have, or says that cannot be.

    ``before`` is the state that it was made on, ``after`` the one that it made. Without a ``before`` nobody can tell.
    """
    wrong = next(_implausible(after, action), None)
    if wrong is not None:
        return wrong
    if before is None:
        return Reason(STATISTICS_UNSEEN, "the metadata from before the commit no longer exists: the outcome is unknown")
    return next(_changes(before, after, action), None)


def _implausible(after: TableMetadata, action: ComputeStatistics) -> Iterator[Reason]:
    snapshot, there = after.snapshot(action.base_snapshot_id), after.statistics_of(action.base_snapshot_id)
    if snapshot is None or there is None or not action.columns:
        return
    names = {column.field_id: column.name for column in action.columns}
    for blob in there.blobs:
        field = blob.sketched_field
        if field not in names:
            continue
        if blob.snapshot_id != snapshot.snapshot_id or blob.sequence_number != snapshot.sequence_number:
            text = f"the sketch of {names[field]} says that it is of snapshot {blob.snapshot_id}"
            yield Reason("other-snapshot", text)
        if blob.ndv is None or blob.ndv > action.records * NDV_TOLERANCE:
            text = f"{names[field]} is said to have {blob.ndv} distinct values in {action.records} rows"
            yield Reason("ndv-implausible", text, {"records": action.records})


def _changes(before: TableMetadata, after: TableMetadata, action: ComputeStatistics) -> Iterator[Reason]:
    """All that the commit changed but the statistics of the action's snapshot."""
    for field in fields(TableMetadata):
        if field.name not in _MAY_CHANGE and getattr(before, field.name) != getattr(after, field.name):
            yield Reason("more-changed", f"the commit changed {field.name.replace('_', '-')} of the table as well")
    snapshot_id = action.base_snapshot_id
    for one, other in (
        (before.statistics, after.statistics),
        (before.partition_statistics, after.partition_statistics),
    ):
        if set(_of_others(one, snapshot_id)) != set(_of_others(other, snapshot_id)):
            yield Reason("statistics-lost", "the commit changed statistics of other snapshots as well")


def _of_others(
    files: tuple[StatisticsFile, ...] | tuple[PartitionStatisticsFile, ...], snapshot_id: int
) -> Iterator[tuple[int, str]]:
    return ((file.snapshot_id, file.path) for file in files if file.snapshot_id != snapshot_id)
