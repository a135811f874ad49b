"""Whether a plan may still be carried out: exactly that plan runs, or it is refused because the world moved.

A function for each kind of action; of the kinds see :mod:`icewright.maintenance.registry.planning`.
"""

from __future__ import annotations

from icewright.actions.rewrite_data_files.executors import executor_obstacle
from icewright.model.actions.actions import Action, RewriteDataFiles
from icewright.model.actions.expire_data import ExpireData
from icewright.model.actions.rewrite_delete_files import (
    DELETE_FORMAT_VERSION,
    RemoveDanglingDeletes,
    RewritePositionDeletes,
)
from icewright.model.actions.rewrite_manifests import RewriteManifests
from icewright.model.iceberg.tables import ROW_LINEAGE_SINCE, Operation, Snapshot, TableMetadata
from icewright.model.plans.plans import Reason


def rewrite_conflict(action: RewriteDataFiles, metadata: TableMetadata) -> Reason | None:
    """Only appends, and rewrites of manifests alone, may have been committed since the planned snapshot.

    They touch none of the planned files. Anything else may have removed some of them or put deletes on them, or be part
    of a series that a rewrite must keep out of the way of (see :mod:`.shortlist`). An upgrade from
    format version 1 to 2 changes no file and is no reason; one to 3 is, since rows have a lineage from then on that the
    plan knows nothing of.
    """
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


def deletes_conflict(action: RemoveDanglingDeletes | RewritePositionDeletes, metadata: TableMetadata) -> Reason | None:
    """The job itself sees whether they still dangle, on the very snapshot that its commit comes after."""
    if isinstance(action, RewritePositionDeletes) and metadata.format_version != DELETE_FORMAT_VERSION:
        return Reason("format-changed", f"the table is now of format version {metadata.format_version}")
    return _specs_gone({each.partition.spec_id for each in action.deletes}, metadata)


def manifests_conflict(action: RewriteManifests, metadata: TableMetadata) -> Reason | None:
    """The job itself sees whether those to be replaced are still there, which is all that matters."""
    return _specs_gone({each.belongs_to.spec_id for each in action.manifests}, metadata)


def expire_data_conflict(action: ExpireData, metadata: TableMetadata) -> Reason | None:
    """The job sees whether the files are still there; the snapshot to be tagged must be in the table's history."""
    gone = _specs_gone({each.partition.spec_id for each in action.partitions}, metadata)
    return gone or _base_gone(action.base_snapshot_id, metadata)


def no_conflict(_action: Action, _metadata: TableMetadata) -> None:
    """What is asked one by one, right before each goes or comes back: snapshots, refs and files."""


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
