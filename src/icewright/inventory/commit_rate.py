"""What the snapshots of a table tell about the rhythm of its writers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, takewhile
from statistics import median, median_low

from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.iceberg.tables import Operation, Snapshot, TableMetadata

COMMITS_LOOKED_AT = 20
RHYTHM_MS = 600_000
"""How long somebody has to have written for that to be a rhythm."""
BURST_MS = 60_000
"""Commits that follow each other within a minute are one burst."""
BURSTS_MIN = 3
"""Bursts from which on they have an interval: two of them have one gap, which says nothing of the next."""
INTERVALS_QUIET = 3
"""After so many intervals without a commit, and a minute at least, a rhythm has ended."""
_ADDED_BYTES_KEY = "added-files-size"


def commit_interval_ms(metadata: TableMetadata) -> int | None:
    """The median gap between the latest commits of the owner, None with fewer than two.

    Looks at the newest 20 snapshots of the current lineage that neither carry an icewright task id nor are
    ``replace`` (some other maintenance). Clocks that ran backwards count as no gap.
    """
    gaps = gaps_ms([snapshot.committed_at for snapshot in _latest(metadata)])
    return int(median(gaps)) if gaps else None


def commits_said(metadata: TableMetadata, now: Instant) -> str:
    """How often others commit; when they last did, where that was one burst or has ended; empty where that is unknown.

    What is committed every few seconds is one burst as well: it counts as a rhythm once there are
    :data:`COMMITS_LOOKED_AT` commits of it, or a minute of them.
    """
    times = [snapshot.committed_at for snapshot in _latest(metadata)]
    interval_ms = commit_interval_ms(metadata)
    if interval_ms is None:
        return ""
    ago_ms = max(0, now - times[0])
    is_one_burst = len(times) < COMMITS_LOOKED_AT and times[0] - times[-1] < BURST_MS
    if is_one_burst or ago_ms > max(INTERVALS_QUIET * interval_ms, BURST_MS):
        return f"others last committed {wording.about(ago_ms)} ago"
    return f"others commit every {wording.duration(interval_ms)}"


def rhythm_ms(newest_first: Sequence[Instant], since: Instant) -> int:
    """About how often something happened of which the times are known since then: the median gap, the lower of two.

    Before the first time there was a gap at least as long as from ``since`` on; of one alone it is all that is known.
    """
    return median_low(gaps_ms((*newest_first, since)))


def has_rhythm(newest_first: Sequence[Instant]) -> bool:
    """Whether something happened in several bursts, and not in one or two: only then it has an interval."""
    return bursts(newest_first) >= BURSTS_MIN


def bursts(newest_first: Sequence[Instant]) -> int:
    """In how many bursts something happened, at least one: what is less than :data:`BURST_MS` apart is one."""
    return 1 + sum(gap >= BURST_MS for gap in gaps_ms(newest_first))


def gaps_ms(newest_first: Sequence[Instant]) -> list[int]:
    """What lies between instants that follow each other. Clocks that ran backwards count as no gap."""
    return [max(0, newer - older) for newer, older in pairwise(newest_first)]


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
        added_bytes += snapshot.number(_ADDED_BYTES_KEY) or 0
    return None


def commits_since(metadata: TableMetadata, since: Instant) -> tuple[Instant, ...]:
    """When the owner committed, newest first, back to the first commit before ``since``."""
    return tuple(takewhile(lambda at: at >= since, (snapshot.committed_at for snapshot in _own(metadata))))


def _latest(metadata: TableMetadata) -> list[Snapshot]:
    return list(islice(_own(metadata), COMMITS_LOOKED_AT))


def _own(metadata: TableMetadata) -> Iterator[Snapshot]:
    """The owner's commits, newest first."""
    return (
        snapshot
        for snapshot in metadata.ancestors()
        if snapshot.task_id is None and snapshot.operation is not Operation.REPLACE
    )
