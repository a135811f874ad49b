"""What deletes cost the readers of a table, summed file by file from its manifests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from icewright.core import wording
from icewright.inventory.applied_deletes import DeleteIndex
from icewright.model.actions.remove_dangling_deletes import RemoveDanglingDeletesPrediction
from icewright.model.actions.rewrite_position_deletes import RewritePositionDeletesPrediction
from icewright.model.iceberg.delete_costs import DeleteCosts
from icewright.model.iceberg.files import DataFile, DeleteFile
from icewright.model.iceberg.tables import TableMetadata


def delete_costs(metadata: TableMetadata, deletes: Sequence[DeleteFile], data_files: Iterable[DataFile]) -> DeleteCosts:
    """What these deletes cost a scan of these data files; time grows with both, and with no product of them."""
    index = DeleteIndex(metadata, deletes)
    opened = opened_bytes = 0
    for file in data_files:
        its = index.opened(file)
        opened, opened_bytes = opened + its.files, opened_bytes + its.size_bytes
    return DeleteCosts(len(deletes), opened, opened_bytes)


def explain_deletes(said: RemoveDanglingDeletesPrediction | RewritePositionDeletesPrediction) -> tuple[str, ...]:
    """What work on delete files would bring, in sentences."""
    listed = wording.count(said.after.listed, "delete file")
    return (f"The table would have {listed} instead of {said.before.listed:,}.",)
