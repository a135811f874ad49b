"""Whether a plan may still be carried out: exactly that plan runs, or it is refused because the world moved."""

from __future__ import annotations

from icewright.domain.actions import Action, RewriteDataFiles, UndoExpireData
from icewright.domain.compute_statistics import ComputeStatistics
from icewright.domain.expire_data import ExpireData
from icewright.domain.expire_snapshots import ExpireSnapshots
from icewright.domain.names import TableId
from icewright.domain.plans import Reason
from icewright.domain.remove_dangling_deletes import RemoveDanglingDeletes
from icewright.domain.remove_expired_files import RemoveExpiredFiles
from icewright.domain.remove_orphan_files import RemoveOrphanFiles
from icewright.domain.restore_files import RestoreFiles
from icewright.domain.rewrite_manifests import RewriteManifests
from icewright.domain.rewrite_position_deletes import DELETE_FORMAT_VERSION, RewritePositionDeletes
from icewright.domain.rollback import Rollback
from icewright.domain.tables import ROW_LINEAGE_SINCE, Operation, Snapshot, TableMetadata
from icewright.domain.undo import UndoExpiry
from icewright.planning.data_undo import data_undo_conflict
from icewright.planning.executors import executor_obstacle
from icewright.planning.rollback import rollback_conflict
from icewright.planning.statistics_commit import statistics_conflict


def still_applies(  # noqa: PLR0911 - a case for each kind of action
    action: Action, table_id: TableId, metadata: TableMetadata
) -> Reason | None:
    """Why an action cannot be carried out on the table as it is now, or None when it still applies.

    ``table_id`` is that of the table it was planned for. Only appends, and rewrites of manifests alone, may have been
    committed since the planned snapshot: they touch none of the planned files. Anything else may have removed some of
    them or put deletes on them, or be part of a series that a rewrite must keep out of the way of (see
    :mod:`icewright.planning.shortlist`). An upgrade from format version 1 to 2 changes no file and is no reason; one
    to 3 is, since rows have a lineage from then on that the plan knows nothing of.
    Snapshots are expired by what the rule says at the commit, and put back by what is missing then, so that nothing
    else matters to it. Of manifests the job itself sees whether those to be replaced are still there, which is all that
    matters. So it does of delete files that dangle, on the very snapshot that its commit comes after. Statistics are of
    a snapshot, and whatever leaves that alone, and the statistics that it has, leaves them to be computed. Of data that
    expires the job sees whether the files are still there; the snapshot to be tagged must be in the table's history.
    This is asked before a task is queued; the commit itself validates from the same snapshot once more.
    """
    if table_id != metadata.table_id:
        text = f"{metadata.name} is now another table (uuid {metadata.table_id.uuid}, planned {table_id.uuid})"
        return Reason("table-replaced", text)
    match action:
        case RewriteDataFiles():
            return _files_moved(action, metadata)
        case ExpireSnapshots() | UndoExpiry() | RemoveOrphanFiles() | RemoveExpiredFiles() | RestoreFiles():
            return None  # asked anew, one by one, right before each goes
        case Rollback():
            return rollback_conflict(action, metadata)
        case RewriteManifests():
            return _specs_gone({each.belongs_to.spec_id for each in action.manifests}, metadata)
        case RemoveDanglingDeletes() | RewritePositionDeletes():
            return _deletes_moved(action, metadata)
        case ComputeStatistics():
            return statistics_conflict(action, metadata)
        case ExpireData():
            gone = _specs_gone({each.partition.spec_id for each in action.partitions}, metadata)
            return gone or _base_gone(action.base_snapshot_id, metadata)
        case UndoExpireData():
            return data_undo_conflict(action, metadata)


def _files_moved(action: RewriteDataFiles, metadata: TableMetadata) -> Reason | None:
    gone = _specs_gone({group.partition.spec_id for group in action.groups}, metadata)
    if gone is not None:
        return gone
    moving = {group.output_spec_id for group in action.groups if group.output_spec_id is not None}
    if moving - {metadata.default_spec_id}:
        text = (
            f"rows were to be moved to partition spec {min(moving)}, the current one is {metadata.default_spec_id} now"
        )
        return Reason("spec-changed", text)
    return (
        _schema_moved(action, metadata)
        or _snapshots_moved(action.base_snapshot_id, metadata)
        or executor_obstacle(action, metadata)
    )


def _deletes_moved(action: RemoveDanglingDeletes | RewritePositionDeletes, metadata: TableMetadata) -> Reason | None:
    if isinstance(action, RewritePositionDeletes) and metadata.format_version != DELETE_FORMAT_VERSION:
        return Reason("format-changed", f"the table is now of format version {metadata.format_version}")
    return _specs_gone({each.partition.spec_id for each in action.deletes}, metadata)


def _specs_gone(spec_ids: set[int], metadata: TableMetadata) -> Reason | None:
    missing = spec_ids - {spec.spec_id for spec in metadata.specs}
    return Reason("spec-removed", f"the table no longer has the partition spec {min(missing)}") if missing else None


def _schema_moved(action: RewriteDataFiles, metadata: TableMetadata) -> Reason | None:
    schema_id, version = action.schema_id, metadata.format_version
    without_lineage = any(file.first_row_id is None for group in action.groups for file in group.files)
    if version > ROW_LINEAGE_SINCE or (version == ROW_LINEAGE_SINCE and without_lineage):
        return Reason("format-changed", f"the table is now of format version {version}")
    if schema_id != metadata.current_schema_id:
        return Reason("schema-changed", f"planned for schema {schema_id}, now it is {metadata.current_schema_id}")
    return None


def _snapshots_moved(base_snapshot_id: int, metadata: TableMetadata) -> Reason | None:
    for snapshot in metadata.ancestors():
        if snapshot.snapshot_id == base_snapshot_id:
            return None
        if not _leaves_files_alone(snapshot):
            did = snapshot.operation.value if snapshot.operation is not None else "an unnamed operation"
            text = f"snapshot {snapshot.snapshot_id} ({did}) came since, and may have changed the planned files"
            return Reason("files-changed", text, {"snapshot_id": snapshot.snapshot_id})
    return _base_gone(base_snapshot_id, metadata)


def _base_gone(base_snapshot_id: int, metadata: TableMetadata) -> Reason | None:
    if any(snapshot.snapshot_id == base_snapshot_id for snapshot in metadata.ancestors()):
        return None
    text = f"snapshot {base_snapshot_id}, which it was planned from, is no longer in the table's history"
    return Reason("base-gone", text, {"snapshot_id": base_snapshot_id})


def _leaves_files_alone(snapshot: Snapshot) -> bool:
    """Appends, and rewrites of manifests, which Iceberg signs with ``manifests-replaced`` and no files changed."""
    changed = ["added-delete-files", "removed-delete-files"]
    if snapshot.operation is Operation.REPLACE and "manifests-replaced" in snapshot.summary:
        changed += ["added-data-files", "deleted-data-files"]
    elif snapshot.operation is not Operation.APPEND:
        return False
    return all(snapshot.summary.get(key, "0") == "0" for key in changed)
