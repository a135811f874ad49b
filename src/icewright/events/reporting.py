"""How well commits are reported: each commit of others is told of by an event, or found by the sweep alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from icewright.core.times import Instant
from icewright.model.events.events import Channel, ReportedCommits, Reporting, Untold
from icewright.model.iceberg.tables import Snapshot, TableMetadata

GRACE_MS: Final = 10 * 60_000
"""How long an event may be on its way behind its commit, before that counts as one that only the sweep found."""
UNTOLD_MAX: Final = 1_000
"""Commits of a table that wait for their event; beyond these, the oldest count as found by the sweep alone."""


def new_commits(metadata: TableMetadata, seen_before: int | None, looked_at: Instant) -> tuple[Snapshot, ...]:
    """The commits of others to ``main`` since a look that saw the snapshot ``seen_before``, oldest first.

    Where that snapshot is no ancestor any more (expired, or rolled back), those that say that they are newer.
    """
    ancestors = tuple(metadata.ancestors())
    ids = [snapshot.snapshot_id for snapshot in ancestors]
    if seen_before is None or seen_before in ids:
        found = ancestors if seen_before is None else ancestors[: ids.index(seen_before)]
    else:
        found = tuple(snapshot for snapshot in ancestors if snapshot.committed_at > looked_at)
    return tuple(snapshot for snapshot in reversed(found) if snapshot.task_id is None)


def unreported_snapshots(reporting: Reporting | None, new: Sequence[Snapshot]) -> tuple[int, ...]:
    """The snapshots of which it matters whether an event told of them."""
    waiting = () if reporting is None else reporting.untold
    return (*(one.snapshot_id for one in waiting), *(snapshot.snapshot_id for snapshot in new))


def counted(reporting: Reporting | None, new: Sequence[Snapshot], told: ReportedCommits, now: Instant) -> Reporting:
    """The figures after a look that found these commits new, at the time when these events had come in.

    The first look counts nothing: what was there before nobody could tell us of. An event without a snapshot id has
    told of all that is new.
    """
    if reporting is None:
        return Reporting(since=now, counted_at=now)
    by_channel: Counter[Channel] = Counter(reporting.told)
    untold: list[Untold] = []
    waiting = [*reporting.untold, *(Untold(snapshot.snapshot_id, now) for snapshot in new)]
    fresh = {snapshot.snapshot_id for snapshot in new}
    for one in waiting:
        channel = told.snapshots.get(one.snapshot_id) or (told.table if one.snapshot_id in fresh else None)
        if channel is None:
            untold.append(one)
        else:
            by_channel[channel] += 1
    kept = [one for one in untold if now - one.seen_at < GRACE_MS][-UNTOLD_MAX:]
    late = len(untold) - len(kept)
    return replace(
        reporting, counted_at=now, told=dict(by_channel), untold=tuple(kept), sweep_only=reporting.sweep_only + late
    )


def committed_at(told: Mapping[int, int | None], snapshots: Sequence[Snapshot]) -> Mapping[int, Instant]:
    """When the snapshots were committed that events told of, by the ids of events, as far as the table says so.

    ``told`` are the snapshots' ids by those of the events.
    """
    at = {snapshot.snapshot_id: snapshot.committed_at for snapshot in snapshots}
    return {event_id: at[snapshot_id] for event_id, snapshot_id in told.items() if snapshot_id in at}
