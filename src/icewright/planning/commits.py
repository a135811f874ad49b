"""What the snapshots of a table tell about the rhythm of its writers."""

from __future__ import annotations

from itertools import islice, pairwise
from statistics import median

from icewright.domain.tables import Operation, TableMetadata

COMMITS_LOOKED_AT = 20


def commit_interval_ms(metadata: TableMetadata) -> int | None:
    """The median gap between the latest commits of the owner, None with fewer than two.

    Looks at the newest 20 snapshots of the current lineage that neither carry an icewright task id nor are
    ``replace`` (some other maintenance). Clocks that ran backwards count as no gap.
    """
    own = (
        snapshot.committed_at
        for snapshot in metadata.ancestors()
        if snapshot.task_id is None and snapshot.operation is not Operation.REPLACE
    )
    gaps = [max(0, newer - older) for newer, older in pairwise(islice(own, COMMITS_LOOKED_AT))]
    return int(median(gaps)) if gaps else None
