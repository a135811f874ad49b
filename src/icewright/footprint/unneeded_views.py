"""What is shown of a table's files that it does not need: orphans seen so far, and what waits in quarantine.

Both are the store's: no catalog and no storage is asked. So they cost a few queries, and are as old as the last pass.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from icewright.actions.remove_files.orphans.file_names import written_by
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.remove_files.views import QuarantineView, quarantine_view
from icewright.core.times import Instant
from icewright.model.actions.deletion import Cause, IntentState
from icewright.model.actions.orphans import SeenFiles, SeenOrphans, Sighting
from icewright.model.actions.remove_files import Doubt
from icewright.model.iceberg.names import TableId
from icewright.ports.deletions import DeletionStore, IntentCount
from icewright.ports.store import TableStore

_RUNS_A_PAGE: Final = 100
_RUNS_SINCE_MAX: Final = 100
"""Removals since the last pass that are looked at: passes are less than a day apart where anything is removed."""


@dataclass(frozen=True, slots=True)
class SeenFileView:
    """A file that nothing was found to need, in how many complete passes, and from when on it may go.

    ``may_go_from`` is null where the storage does not say when the file was written, or the pass not the age.
    With a ``doubt`` it goes only by approval of a plan that shows it, as far as its name tells.
    """

    path: str
    size_bytes: int
    first_seen_at: Instant
    passes: int
    may_go_from: Instant | None
    doubt: Doubt | None


@dataclass(frozen=True, slots=True)
class OrphansView:
    """What the last pass over a table that came to its end saw of orphans, as of its end.

    ``files`` and ``size_bytes`` are all that it remembers; ``seen`` says how far they are, null where a pass of an
    earlier version did not tell. Where the listing was not complete there may be more. ``moved_since`` are those that
    removals begun since have moved into quarantine. ``first_files`` are as many of them as were asked for, those that
    may go first.
    """

    finished_at: Instant
    listing_is_complete: bool
    files: int
    size_bytes: int
    seen: SeenOrphans | None
    moved_since: SeenFiles
    first_files: tuple[SeenFileView, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldView:
    """What is in quarantine of a table: how many tasks put it there, and when the first of it may be purged.

    ``unknown_files`` are those of which it is unknown whether they were moved, apart from the ``files``.
    """

    tasks: int
    files: int
    size_bytes: int
    unknown_files: int
    purged_from: Instant | None


@dataclass(frozen=True, slots=True)
class UnneededView:
    """Files of a table that it does not need. ``orphans`` is null as long as no pass has come to its end."""

    orphans: OrphansView | None
    quarantine: HeldView


def unneeded_view(
    sightings: SqlSightings, deletions: DeletionStore, tables: TableStore, table_id: TableId, files: int = 0
) -> UnneededView:
    """What the store has of one table, and up to ``files`` of its orphans one by one.

    Raises ``Unavailable`` where it does not answer.
    """
    return UnneededView(_orphans(sightings, deletions, table_id, files), _held(_runs_held(deletions, tables, table_id)))


def _orphans(sightings: SqlSightings, deletions: DeletionStore, table_id: TableId, files: int) -> OrphansView | None:
    last = sightings.finished(table_id)
    if last is None:
        return None
    moved = [
        tally[state]
        for run in deletions.runs(table_id=table_id, limit=_RUNS_SINCE_MAX)
        if run.cause is Cause.ORPHAN and run.begun_at >= last.finished_at
        for tally in (deletions.count_intents(run.run_id),)
        for state in (IntentState.QUARANTINED, IntentState.PURGED)
    ]
    return OrphansView(
        finished_at=last.finished_at,
        listing_is_complete=last.listing_is_complete,
        files=last.files,
        size_bytes=last.size_bytes,
        seen=last.seen,
        moved_since=_summed(moved),
        first_files=_first(sightings.sightings(table_id), last.age_min_ms, files) if files else (),
    )


def _first(seen: Iterable[Sighting], age_min_ms: int | None, files: int) -> tuple[SeenFileView, ...]:
    """Those that may go first."""
    first = heapq.nsmallest(files, seen, key=lambda one: (max(one.first_seen_at, one.modified_at or 0), one.path))
    return tuple(
        SeenFileView(
            path=str(one.path),
            size_bytes=one.size_bytes,
            first_seen_at=one.first_seen_at,
            passes=one.passes,
            may_go_from=None
            if age_min_ms is None or one.modified_at is None
            else max(one.first_seen_at, one.modified_at) + age_min_ms,
            doubt=Doubt.UNFAMILIAR if written_by(one.path) is None else None,
        )
        for one in first
    )


def _runs_held(deletions: DeletionStore, tables: TableStore, table_id: TableId) -> Iterator[QuarantineView]:
    before: str | None = None
    while page := deletions.with_held(table_id=table_id, limit=_RUNS_A_PAGE, before=before):
        for run_id in page:
            yield quarantine_view(deletions, tables, run_id)
        before = page[-1]


def _held(runs: Iterable[QuarantineView]) -> HeldView:
    held = list(runs)
    return HeldView(
        tasks=len(held),
        files=sum(run.held_files for run in held),
        size_bytes=sum(run.held_bytes for run in held),
        unknown_files=sum(run.unknown_files for run in held),
        purged_from=min((run.purged_from for run in held if run.purged_from is not None), default=None),
    )


def _summed(tallies: Iterable[IntentCount]) -> SeenFiles:
    found = list(tallies)
    return SeenFiles(sum(one.files for one in found), sum(one.bytes for one in found))
