"""What is shown of the quarantine: the runs that have something in it, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icewright.actions.remove_files.quarantine_scheduler import TEND_AGAIN_MS, TEND_INTERVAL_MS
from icewright.core.times import Instant
from icewright.model.access.permissions import Scopes
from icewright.model.actions.deletion import WINDOW_FLOOR_MS, Cause, IntentState
from icewright.model.plans.plans import Reason
from icewright.ports.deletions import DeletionStore
from icewright.ports.store import TableStore

_TENDED_MS = TEND_INTERVAL_MS + TEND_AGAIN_MS
"""Within so long it was looked after each file that is over its time, unless something keeps us from that."""
_UNKNOWN = frozenset({IntentState.UNKNOWN})
_HELD = frozenset({IntentState.QUARANTINED})


@dataclass(frozen=True, slots=True)
class QuarantineView:
    """What a task has in quarantine. Files are purged from ``purged_from`` on, the first ones first.

    ``table`` is the last name that is known of their table, and ``dropped_at`` when it was found to be gone: then
    nothing of them is purged by itself, since nobody can tell what it needs.

    ``unknown_files`` are those of which nobody knows whether they were moved, for the reason ``why``: they are looked
    for again and again, and no other removal of the table begins meanwhile. Where there are none, ``why`` says that
    files were not purged in their time: ``over-its-time``.
    """

    task_id: str
    table: str
    dropped_at: Instant | None
    catalog: str
    uuid: str
    cause: Cause
    approved_by: str | None
    begun_at: Instant
    held_files: int
    held_bytes: int
    purged_from: Instant | None
    purged_files: int
    restored_files: int
    unknown_files: int
    why: Reason | None


def quarantine_view(store: DeletionStore, tables: TableStore, run_id: str) -> QuarantineView:
    """One run for display. Raises ``NotFound``."""
    run, tally = store.run(run_id), store.tally(run_id)
    record = tables.record(run.table_id)
    first = store.intents(run_id, _HELD, limit=1)
    unknown = store.intents(run_id, _UNKNOWN, limit=1)
    held_at = first[0].held_at if first else None
    is_gone = record is not None and record.dropped_at is not None
    overdue = None if is_gone else _overdue(store, run_id, held_at)
    return QuarantineView(
        task_id=run_id,
        table=str(run.table_name if record is None else record.name),
        dropped_at=None if record is None else record.dropped_at,
        catalog=run.table_id.catalog,
        uuid=run.table_id.uuid,
        cause=run.cause,
        approved_by=run.approved_by,
        begun_at=run.begun_at,
        held_files=tally[IntentState.QUARANTINED].files,
        held_bytes=tally[IntentState.QUARANTINED].bytes,
        purged_from=None if held_at is None else held_at + WINDOW_FLOOR_MS,
        purged_files=tally[IntentState.PURGED].files,
        restored_files=tally[IntentState.RESTORED].files,
        unknown_files=tally[IntentState.UNKNOWN].files,
        why=unknown[0].why if unknown else overdue,
    )


def _overdue(store: DeletionStore, run_id: str, held_at: Instant | None) -> Reason | None:
    """That nobody has purged in time what could have been; only a look at the table tells why."""
    if held_at is None or store.now() <= held_at + WINDOW_FLOOR_MS + _TENDED_MS:
        return None
    said = f"files are past their window by more than a day; `icewright quarantine purge {run_id}` says why"
    return Reason("over-its-time", said)


@dataclass(frozen=True, slots=True)
class HeldFileView:
    """A file in quarantine, by the path that it was at; since when it is there, and from when on it may be purged."""

    path: str
    size_bytes: int
    held_at: Instant | None
    purged_from: Instant | None


def held_files(
    store: DeletionStore, run_id: str, *, limit: int, after: int | None
) -> Sequence[tuple[int, HeldFileView]]:
    """Files that a run has in quarantine, each with its number; ``after`` is the one that the last page ended with.

    Raises ``NotFound``.
    """
    store.run(run_id)
    return [
        (
            one.number,
            HeldFileView(
                str(one.object.path),
                one.object.size_bytes,
                one.held_at,
                None if one.held_at is None else one.held_at + WINDOW_FLOOR_MS,
            ),
        )
        for one in store.intents(run_id, _HELD, limit=limit, after=after)
    ]


def quarantine_views(
    store: DeletionStore, tables: TableStore, *, limit: int, before: str | None, within: Scopes
) -> Sequence[QuarantineView]:
    """Runs with something in quarantine, newest first; ``before`` is the id that the last page ended with."""
    found = store.with_held(limit=limit, before=before, within=within)
    return [quarantine_view(store, tables, run_id) for run_id in found]
