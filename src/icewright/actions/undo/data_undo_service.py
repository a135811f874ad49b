"""Planning to insert rows again that expired: what nothing stands in the way of, of the files right before."""

from __future__ import annotations

from collections.abc import Iterator

from icewright.actions.undo.data_undo_plan import (
    DataUndoDecision,
    data_undo_obstacle,
    frame_of,
    plan_data_undo,
    still_there,
)
from icewright.catalogs.port import Catalog
from icewright.core.reasons import Reason
from icewright.model.actions.expire_data import ExpireData
from icewright.model.iceberg.files import DataFile
from icewright.model.iceberg.tables import Snapshot, TableMetadata
from icewright.model.policy.policy import Policy
from icewright.plans.standalone_plan import Decided


def decide_data_undo(
    catalog: Catalog, task_id: str, expiry: ExpireData, made: Snapshot, metadata: TableMetadata, policy: Policy
) -> DataUndoDecision:
    """What becomes of an expiry of that task, which made that snapshot, in a table that was committed to since.

    Raises as :class:`~icewright.catalogs.port.Catalog` does.
    """
    frame = frame_of(task_id, expiry, made, metadata)
    if isinstance(frame, Reason):
        return Decided(frame)
    base, current = metadata.snapshot(frame.base_snapshot_id), metadata.current_snapshot
    obstacle = data_undo_obstacle(frame, metadata, policy)
    if obstacle is not None or base is None or current is None:
        return Decided(obstacle or Reason("base-gone", "the snapshot right before it has expired"))
    partitions = frozenset(each.partition for each in expiry.partitions)

    def files(at: Snapshot) -> Iterator[DataFile]:
        return catalog.data_files(metadata, at, catalog.manifests(metadata, at), partitions)

    there = still_there(expiry, files(current))
    if there is not None:
        return Decided(there)
    deletes = catalog.delete_files(metadata, base, catalog.manifests(metadata, base), partitions)
    return plan_data_undo(frame, expiry, files(base), deletes, metadata, policy)
