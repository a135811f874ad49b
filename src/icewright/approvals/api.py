"""Approvals that people gave: who let which plan go, when and why it had to wait."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from icewright.approvals.views import ApprovalView, approval_view
from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import Permission
from icewright.model.plans.approvals import ApprovalPlace
from icewright.observation.lookups import ByUuid
from icewright.ports.deletions import DeletionStore
from icewright.web.deps import Caller, Service
from icewright.web.messages import Cursor, Limit, decode_cursor, first_page
from icewright.web.schema import operation, page_of

router = APIRouter(prefix="/approvals", tags=["plans"])


@router.get(
    "",
    dependencies=[needs(Permission.READ, On.ANYWHERE)],
    **operation(page_of(ApprovalView), problems={404: "No such table or catalog."}),
)
def list_approvals(
    deletions: Service[DeletionStore],
    by_uuid: ByUuid,
    caller: Caller,
    *,
    table: Annotated[str | None, Query(description="Only approvals for the table of that uuid.")] = None,
    catalog: Annotated[str | None, Query(description="The catalog of `table`.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Approvals of plans for tables that the caller may read, the latest first.

    Callers that may read everything also see those for tables that no longer exist.
    """
    before, within = decode_cursor(ApprovalPlace, cursor), caller.scopes(Permission.READ)
    table_id = None if table is None else by_uuid.seen(table, catalog, within).table_id
    found = deletions.approvals(table_id=table_id, limit=limit + 1, before=before, within=within)
    return first_page(found, limit, lambda one: ApprovalPlace(one.approved_at, one.plan_hash), approval_view)
