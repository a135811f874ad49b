"""What is shown of a table's files that it does not need: orphans seen so far, and what waits in quarantine.

Both are the store's: no catalog and no storage is asked. So they cost a few queries, and are as old as the last pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from icewright.domain.deletion import Cause, IntentState
from icewright.domain.names import TableId
from icewright.domain.orphans import SeenFiles, SeenOrphans
from icewright.domain.tables import Instant
from icewright.ports.deletions import DeletionStore, Tally
from icewright.ports.sightings import Sightings
from icewright.ports.store import TableStore
from icewright.services.quarantine_views import QuarantineView, quarantine_view

_RUNS_A_PAGE: Final = 100
_RUNS_SINCE_MAX: Final = 100
"""Removals since the last pass that are looked at: passes are less than a day apart where anything is removed."""


@dataclass(frozen=True, slots=True)
class OrphansView:
    """What the last pass over a table that came to its end saw of orphans, as of its end.

    ``files`` and ``size_bytes`` are all that it remembers; ``seen`` says how far they are, null where a pass of an
    earlier version did not tell. Where the listing was not complete there may be more. ``moved_since`` are those that
    removals begun since have moved into quarantine.
    """

    finished_at: Instant
    listing_is_complete: bool
    files: int
    size_bytes: int
    seen: SeenOrphans | None
    moved_since: SeenFiles


@dataclass(frozen=True, slots=True)
class HeldView:
    """What is in quarantine of a table: how many tasks put it there, and when the first of it may be purged.

    ``unknown_files`` are those of which nobody knows whether they were moved, beside the ``files``.
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
    sightings: Sightings, deletions: DeletionStore, tables: TableStore, table_id: TableId
) -> UnneededView:
    """What the store has of one table. Raises ``Unavailable`` where it does not answer."""
    return UnneededView(_orphans(sightings, deletions, table_id), _held(_runs_held(deletions, tables, table_id)))


def _orphans(sightings: Sightings, deletions: DeletionStore, table_id: TableId) -> OrphansView | None:
    last = sightings.finished(table_id)
    if last is None:
        return None
    moved = [
        tally[state]
        for run in deletions.runs(table_id=table_id, limit=_RUNS_SINCE_MAX)
        if run.cause is Cause.ORPHAN and run.begun_at >= last.finished_at
        for tally in (deletions.tally(run.run_id),)
        for state in (IntentState.QUARANTINED, IntentState.PURGED)
    ]
    return OrphansView(
        finished_at=last.finished_at,
        listing_is_complete=last.listing_is_complete,
        files=last.files,
        size_bytes=last.size_bytes,
        seen=last.seen,
        moved_since=_summed(moved),
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


def _summed(tallies: Iterable[Tally]) -> SeenFiles:
    found = list(tallies)
    return SeenFiles(sum(one.files for one in found), sum(one.bytes for one in found))
