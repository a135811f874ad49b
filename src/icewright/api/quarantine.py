"""The quarantine: what was removed and can be put back, until it is purged."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Response

from icewright.api.deps import Control
from icewright.api.messages import Cursor, Limit, decode_cursor, encode_cursor, page, render
from icewright.api.schema import operation, page_of
from icewright.domain.plans import Reason
from icewright.services.quarantine_views import QuarantineView, quarantine_view, quarantine_views
from icewright.services.removal_rounds import LookedAfter

router = APIRouter(prefix="/quarantine", tags=["quarantine"])


@dataclass(frozen=True, slots=True)
class PurgeAnswer:
    """What is in quarantine behind a page of a purge, and what kept any of its files from being looked after.

    ``next_cursor`` is for the next page, null when all files have been looked after that can be.
    """

    quarantine: QuarantineView
    waits: Reason | None
    next_cursor: str | None


@router.get("", **operation(page_of(QuarantineView)))
def list_quarantine(control: Control, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Tasks whose removed files are in quarantine, newest first."""
    before = decode_cursor(str, cursor)
    found = quarantine_views(control.deletions, limit=limit + 1, before=before)
    return page(found[:limit], found[limit - 1].task_id if len(found) > limit else None)


@router.post("/{task_id}/purge", **operation(PurgeAnswer, problems={404: "That task removed nothing."}))
def purge_quarantine(control: Control, task_id: str, cursor: Cursor = None) -> Response:
    """Look after what a task removed now: put back what its table needs, purge what has been there for its window.

    Nothing goes before its window is over, whoever asks. A thousand files at most are looked after for one request;
    repeat it with `cursor` until `next_cursor` is null. Each is whole by itself: what is broken off goes on whenever it
    is repeated, with its cursor or without.
    """
    waits, since = control.removal_rounds.tend(task_id, decode_cursor(LookedAfter, cursor))
    after = None if since is None else encode_cursor(since)
    return render(PurgeAnswer(quarantine_view(control.deletions, task_id), waits, after))
