"""What the snapshots of a table tell about the rhythm of its writers."""

from __future__ import annotations

from itertools import islice, pairwise
from statistics import median

from icewright.domain.tables import Operation, Snapshot, TableMetadata

COMMITS_LOOKED_AT = 20
_ADDED_BYTES_KEY = "added-files-size"
_DIGITS_MAX = 18


def commit_interval_ms(metadata: TableMetadata) -> int | None:
    """The median gap between the latest commits of the owner, None with fewer than two.

    Looks at the newest 20 snapshots of the current lineage that neither carry an icewright task id nor are
    ``replace`` (some other maintenance). Clocks that ran backwards count as no gap.
    """
    gaps = [max(0, newer.committed_at - older.committed_at) for newer, older in pairwise(_latest(metadata))]
    return int(median(gaps)) if gaps else None


def arrival_bytes_per_ms(metadata: TableMetadata) -> float | None:
    """How fast the owner adds files, by what the summaries of the latest commits say; None where they do not tell.

    Of the same snapshots as :func:`commit_interval_ms`: the bytes of all but the oldest over the time since that one.
    """
    latest = _latest(metadata)
    added_bytes = sum(_added_bytes(snapshot) for snapshot in latest[:-1])
    span_ms = latest[0].committed_at - latest[-1].committed_at if latest else 0
    return added_bytes / span_ms if span_ms > 0 and added_bytes else None


def _latest(metadata: TableMetadata) -> list[Snapshot]:
    """The owner's latest commits, newest first."""
    own = (
        snapshot
        for snapshot in metadata.ancestors()
        if snapshot.task_id is None and snapshot.operation is not Operation.REPLACE
    )
    return list(islice(own, COMMITS_LOOKED_AT))


def _added_bytes(snapshot: Snapshot) -> int:
    """What a summary says; it is written by strangers, so what is no number counts for nothing."""
    said = snapshot.summary.get(_ADDED_BYTES_KEY, "")
    return int(said) if said.isdecimal() and said.isascii() and len(said) <= _DIGITS_MAX else 0
