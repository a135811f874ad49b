"""The quarantine: what was removed and can be put back, until it is purged."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Response

from icewright.api.deps import Control
from icewright.api.messages import Cursor, Limit, decode_cursor, page, render
from icewright.api.schema import operation, page_of
from icewright.domain.plans import Reason
from icewright.services.quarantine_views import QuarantineView, quarantine_view, quarantine_views

router = APIRouter(prefix="/quarantine", tags=["quarantine"])


@dataclass(frozen=True, slots=True)
class PurgeAnswer:
    """What is in quarantine behind a purge, and what kept it from being looked after in full."""

    quarantine: QuarantineView
    waits: Reason | None


@router.get("", **operation(page_of(QuarantineView)))
def list_quarantine(control: Control, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Tasks whose removed files are in quarantine, newest first."""
    before = decode_cursor(str, cursor)
    found = quarantine_views(control.deletions, limit=limit + 1, before=before)
    return page(found[:limit], found[limit - 1].task_id if len(found) > limit else None)


@router.post("/{task_id}/purge", **operation(PurgeAnswer, problems={404: "That task removed nothing."}))
def purge_quarantine(control: Control, task_id: str) -> Response:
    """Look after what a task removed now: put back what its table needs, purge what has been there for its window.

    Nothing goes before its window is over, whoever asks.
    """
    waits = control.removal_rounds.tend(task_id)
    return render(PurgeAnswer(quarantine_view(control.deletions, task_id), waits))
