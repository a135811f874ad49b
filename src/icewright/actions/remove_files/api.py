"""The quarantine: what was removed and can be put back, until it is purged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from icewright.actions.remove_files.quarantine_scheduler import LookedAfter, QuarantineScheduler
from icewright.actions.remove_files.views import (
    HeldFileView,
    QuarantineView,
    held_files,
    quarantine_view,
    quarantine_views,
)
from icewright.core.codec import from_json
from icewright.identity.authorization import On, named, needs
from icewright.model.access.permissions import Permission
from icewright.model.plans.plans import Reason
from icewright.ports.deletions import DeletionStore
from icewright.ports.store import TableStore
from icewright.web.deps import BY_LEADER_FOR_LONG, Caller, Led, Service
from icewright.web.messages import Cursor, Limit, decode_cursor, encode_cursor, first_page, json_body, render
from icewright.web.schema import operation, page_of, schema_of

router = APIRouter(prefix="/quarantine", tags=["quarantine"])


@dataclass(frozen=True, slots=True)
class PurgeAnswer:
    """What is in quarantine behind a page of a purge, and what kept any of its files from being looked after.

    Or what keeps files that are over their time: they are in no place that belongs to their table alone.

    ``next_cursor`` is for the next page, null when all files have been looked after that can be.
    """

    quarantine: QuarantineView
    waits: Reason | None
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class PurgeOfGone:
    """Who says that nobody will want a table back that is gone: it is logged."""

    purged_by: str


@dataclass(frozen=True, slots=True)
class PurgeOfGoneAnswer:
    """What is in quarantine behind some purging of a table that is gone, and what kept it from going on."""

    quarantine: QuarantineView
    waits: Reason | None


@router.get("", dependencies=[needs(Permission.READ, On.ANYWHERE)], **operation(page_of(QuarantineView)))
def list_quarantine(
    deletions: Service[DeletionStore],
    table_store: Service[TableStore],
    caller: Caller,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Tasks whose removed files are in quarantine, of tables that the caller may read, newest first."""
    before, within = decode_cursor(str, cursor), caller.scopes(Permission.READ)
    found = quarantine_views(deletions, table_store, limit=limit + 1, before=before, within=within)
    return first_page(found, limit, lambda one: one.task_id)


@router.post(
    "/{task_id}/purge",
    dependencies=[needs(Permission.REMOVE, On.RUN), BY_LEADER_FOR_LONG],
    **operation(PurgeAnswer, problems={404: "That task removed nothing."}),
)
def purge_quarantine(
    removal_rounds: Led[QuarantineScheduler],
    deletions: Led[DeletionStore],
    table_store: Led[TableStore],
    task_id: str,
    cursor: Cursor = None,
) -> Response:
    """Look after what a task removed now: put back what its table needs, purge what has been there for its window.

    Nothing is purged before its window has ended, for any caller. One request looks after a thousand files at most;
    repeat it with `cursor` until `next_cursor` is null. What is interrupted continues when it is repeated, with its
    cursor or without.
    """
    waits, since = removal_rounds.tend(task_id, decode_cursor(LookedAfter, cursor))
    after = None if since is None else encode_cursor(since)
    return render(PurgeAnswer(quarantine_view(deletions, table_store, task_id), waits, after))


@router.get(
    "/{task_id}",
    dependencies=[needs(Permission.READ, On.RUN)],
    **operation(QuarantineView, problems={404: "That task removed nothing."}),
)
def show_quarantine(deletions: Service[DeletionStore], table_store: Service[TableStore], task_id: str) -> Response:
    """What one task has in quarantine."""
    return render(quarantine_view(deletions, table_store, task_id))


@router.get(
    "/{task_id}/files",
    dependencies=[needs(Permission.READ, On.RUN)],
    **operation(page_of(HeldFileView), problems={404: "That task removed nothing."}),
)
def list_held_files(
    deletions: Service[DeletionStore], task_id: str, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """The files that one task has in quarantine, by the paths that they were at."""
    found = held_files(deletions, task_id, limit=limit + 1, after=decode_cursor(int, cursor))
    return first_page(found, limit, lambda one: one[0], lambda one: one[1])


@router.post(
    "/{task_id}/purge-of-gone-table",
    dependencies=[needs(Permission.APPROVE, On.RUN), BY_LEADER_FOR_LONG],
    **operation(
        PurgeOfGoneAnswer,
        accepts=schema_of(PurgeOfGone),
        problems={404: "That task removed nothing.", 409: "The table is there, or no file is removed in its catalog."},
    ),
)
def purge_gone_table(
    removal_rounds: Led[QuarantineScheduler],
    deletions: Led[DeletionStore],
    table_store: Led[TableStore],
    caller: Caller,
    task_id: str,
    body: Annotated[Any, Depends(json_body())],
) -> Response:
    """Purge files of a dropped table whose window in quarantine has ended, by a person's approval.

    Not while the table exists, nor any other of its uuid, nor one with a place or files where its files were, nor as
    long as not all tables of all catalogs are known. A thousand files at most: repeat it until no more are purged.
    """
    given = from_json(PurgeOfGone, body)
    waits = removal_rounds.purge_gone(task_id, named(caller, given.purged_by))
    return render(PurgeOfGoneAnswer(quarantine_view(deletions, table_store, task_id), waits))
