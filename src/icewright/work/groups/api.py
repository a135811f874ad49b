"""Resource groups: what each is, what is held of it, and what waits in it."""

from __future__ import annotations

from fastapi import APIRouter, Response

from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import Permission
from icewright.web.deps import Service
from icewright.web.messages import Cursor, Limit, decode_cursor, first_page, render
from icewright.web.schema import operation, page_of
from icewright.work.groups.views import GroupDocument, GroupView, GroupViews

router = APIRouter(prefix="/groups", tags=["queue"])


@router.get("", dependencies=[needs(Permission.READ, On.EVERYTHING)], **operation(page_of(GroupView)))
def list_groups(group_views: Service[GroupViews], limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Resource groups by name: who says what each is, its caps and windows, what is held of it, and how much waits.

    Those of the server itself, too, which have no caps, and those that optimizers alone know.
    """
    found = group_views.views(limit=limit + 1, after=decode_cursor(str, cursor))
    return first_page(found, limit, lambda one: one.name)


@router.get(
    "/{name}",
    dependencies=[needs(Permission.READ, On.EVERYTHING)],
    **operation(GroupDocument, problems={404: "No such resource group."}),
)
def show_group(group_views: Service[GroupViews], name: str) -> Response:
    """One resource group, with who holds what of it by application and owner, and what waits in each lane."""
    return render(group_views.document(name))
