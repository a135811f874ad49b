"""What the snapshots of a table tell about the rhythm of its writers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from statistics import median

from icewright.domain.tables import Operation, Snapshot, TableMetadata

COMMITS_LOOKED_AT = 20
RHYTHM_MS = 600_000
"""How long somebody has to have written for that to be a rhythm."""
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

    Over ten minutes before the newest commit, and on to the next older one. A table that has not been written to for
    so long tells nothing: a burst of commits is no rhythm, and nobody knows what follows.
    """
    added_bytes, newest_at = 0, None
    for snapshot in _own(metadata):
        newest_at = snapshot.committed_at if newest_at is None else newest_at
        span_ms = newest_at - snapshot.committed_at
        if span_ms >= RHYTHM_MS:
            return added_bytes / span_ms if added_bytes else None
        added_bytes += _added_bytes(snapshot)
    return None


def _latest(metadata: TableMetadata) -> list[Snapshot]:
    return list(islice(_own(metadata), COMMITS_LOOKED_AT))


def _own(metadata: TableMetadata) -> Iterator[Snapshot]:
    """The owner's commits, newest first."""
    return (
        snapshot
        for snapshot in metadata.ancestors()
        if snapshot.task_id is None and snapshot.operation is not Operation.REPLACE
    )


def _added_bytes(snapshot: Snapshot) -> int:
    """What a summary says; it is written by strangers, so what is no number counts for nothing."""
    said = snapshot.summary.get(_ADDED_BYTES_KEY, "")
    return int(said) if said.isdecimal() and said.isascii() and len(said) <= _DIGITS_MAX else 0
