"""Whether statistics of a table are due by themselves: when enough of it changed since the last ones.

Statistics say which snapshot they are of, so nothing has to be remembered: what came since, the summaries of the
snapshots tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icewright.core import wording
from icewright.model.iceberg.tables import Operation, TableMetadata
from icewright.model.plans.plans import Reason

_CHANGES: Final = ("added-records", "deleted-records", "added-position-deletes", "added-equality-deletes")


@dataclass(frozen=True, slots=True)
class Changed:
    """Rows that came and went since ``snapshot_id``, of ``records``; ``rows`` is None where nobody can tell."""

    snapshot_id: int
    rows: int | None
    records: int

    @property
    def share(self) -> float:
        """Which share of the table changed; all of it where nobody can tell."""
        return 1.0 if self.rows is None else self.rows / max(1, self.records)


def changed_since_statistics(metadata: TableMetadata) -> Changed | None:
    """What changed since the newest statistics in the history of the current snapshot, None without any."""
    with_statistics = {one.snapshot_id for one in metadata.statistics}
    with_statistics |= {one.snapshot_id for one in metadata.partition_statistics}
    lineage = metadata.ancestors()
    rows: int | None = 0
    for snapshot in lineage:
        if snapshot.snapshot_id in with_statistics:
            return Changed(snapshot.snapshot_id, rows, lineage[0].number("total-records") or 0)
        if snapshot.operation is Operation.REPLACE:
            continue  # the same rows in other files
        if rows is None or snapshot.number("total-records") is None:  # its writer counts nothing
            rows = None
        else:
            rows += sum(snapshot.number(key) or 0 for key in _CHANGES)
    return None


def due_because(metadata: TableMetadata, min_change: float) -> Reason | None:
    """Why statistics are to be computed by themselves, None where those that there are still do."""
    if metadata.current_snapshot is None or metadata.statistics_problem:
        return None
    changed = changed_since_statistics(metadata)
    if changed is None:
        return Reason("statistics-missing", "no snapshot in the table's history has statistics")
    if changed.snapshot_id == metadata.current_snapshot_id or changed.share < min_change:
        return None
    if changed.rows is None:
        return Reason("statistics-old", f"the changes are unknown since snapshot {changed.snapshot_id}")
    text = f"{wording.count(changed.rows, 'row')} changed since snapshot {changed.snapshot_id}, of {changed.records:,}"
    return Reason("statistics-old", text, {"rows": changed.rows, "records": changed.records})


def still_new(metadata: TableMetadata, min_change: float) -> str:
    """Why none are due: what changed since those that there are, in words."""
    if metadata.statistics_problem:
        return metadata.statistics_problem
    changed = changed_since_statistics(metadata)
    if changed is None:
        return "nothing has been committed yet"
    if changed.snapshot_id == metadata.current_snapshot_id:
        return f"they are of the current snapshot {changed.snapshot_id}"
    rows = wording.count(changed.rows or 0, "row")
    return f"{rows} of {changed.records:,} changed since snapshot {changed.snapshot_id}, below {min_change:.0%}"
