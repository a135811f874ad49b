"""What deletes cost the readers of a table, summed file by file from its manifests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from icewright.domain.delete_costs import DeleteCosts
from icewright.domain.files import DataFile, DeleteFile
from icewright.domain.tables import TableMetadata
from icewright.planning.deletes import DeleteIndex


def delete_costs(metadata: TableMetadata, deletes: Sequence[DeleteFile], data_files: Iterable[DataFile]) -> DeleteCosts:
    """What these deletes cost a scan of these data files; time grows with both, and with no product of them."""
    index = DeleteIndex(metadata, deletes)
    opened = opened_bytes = 0
    for file in data_files:
        its = index.opened(file)
        opened, opened_bytes = opened + its.files, opened_bytes + its.size_bytes
    return DeleteCosts(len(deletes), opened, opened_bytes)
