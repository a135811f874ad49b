"""Whose turn it is: which level a table's next task is of.

A task is of one level, since one commit says of all its files in which order they are. The levels of a table take
turns, the cheap ones first: Level 0 (and the files in order that are rewritten for their deletes, which keep it),
Level 1, Level 2, and Level 0 again; one that has nothing to do is passed over. So fresh data never waits for more than
one task of each level above, each of bounded size, and the costly levels do not wait for ever where small files never
end.

Whose turn was last is told by the table: by the latest commit of ours that it has. One of more than a quarter of an
hour ago says nothing, and Level 0 begins; so it goes on where the tasks of a higher level come to nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeAlias

from icewright.core.times import Instant
from icewright.model.iceberg.layouts import Level, run_of
from icewright.model.iceberg.tables import LEVEL_KEY, Snapshot, TableMetadata

Work: TypeAlias = tuple[Level, bool]
"""A level, and whether the files that it makes are in the order of the layout."""

MERGING: Final[Work] = (Level.LEVEL_0, False)
KEEPING: Final[Work] = (Level.LEVEL_0, True)
ORDERING: Final[tuple[Work, ...]] = ((Level.LEVEL_1, True), (Level.LEVEL_2, True))
TURNS: Final[tuple[Work, ...]] = (MERGING, KEEPING, *ORDERING)
FORGOTTEN_AFTER_MS: Final = 900_000


def next_turn(metadata: TableMetadata, works: Collection[Work], now: Instant) -> Work:
    """The one of ``works``, of which there is at least one, whose turn it is."""
    latest = next((snapshot for snapshot in metadata.ancestors() if snapshot.task_id is not None), None)
    recent = latest is not None and latest.committed_at > now - FORGOTTEN_AFTER_MS
    first = TURNS.index(_work_of(latest)) + 1 if recent and latest is not None else 0
    return next(work for work in (*TURNS[first:], *TURNS[:first]) if work in works)


def _work_of(snapshot: Snapshot) -> Work:
    """What a commit of ours was; one from before there were levels was of Level 0."""
    run = run_of(snapshot)
    if run is not None:
        return (run.level, True)
    said = snapshot.summary.get(LEVEL_KEY, "")
    return MERGING if said not in (Level.LEVEL_1, Level.LEVEL_2) else (Level(said), True)
