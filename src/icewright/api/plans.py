"""Plans: to be looked at, and to be applied exactly as they were looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from icewright.api.deps import Control
from icewright.api.messages import Cursor, Limit, decode_cursor, json_body, page, render
from icewright.api.schema import operation, page_of, schema_of
from icewright.api.task_views import TaskView, task_view
from icewright.domain.codec import from_json
from icewright.services.plan_views import PlannedFileView, PlanView, WaitingView, plan_view, planned_files, waiting_view

router = APIRouter(prefix="/plans", tags=["plans"])

_NOT_FOUND = {404: "No such plan."}
_QUEUING = {**_NOT_FOUND, 409: "The plan is to do nothing, or the mode forbids it, or the world moved."}


@dataclass(frozen=True, slots=True)
class ApprovalGiven:
    """Who approves a plan, by name: it is kept with the plan and its task."""

    approved_by: str


@router.get("/waiting", **operation(page_of(WaitingView)))
def list_waiting(control: Control, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Plans that wait for a person to approve them, oldest first."""
    after = decode_cursor(str, cursor)
    found = control.tables.waiting(limit=limit + 1, after=after)
    views = [waiting_view(one) for one in found[:limit]]
    return page(views, views[-1].plan_id if len(found) > limit else None)


@router.get("/{plan_id}", **operation(PlanView, problems=_NOT_FOUND))
def show_plan(control: Control, plan_id: str) -> Response:
    """One plan: what it would do, why, and what that would bring."""
    return render(plan_view(control.tables.plan(plan_id)))


@router.get("/{plan_id}/files", **operation(page_of(PlannedFileView), problems=_NOT_FOUND))
def list_files(control: Control, plan_id: str, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """The files that a plan would remove, with what is known of each; of other plans nothing."""
    first = decode_cursor(int, cursor) or 0
    found, more = planned_files(control.tables.plan(plan_id), max(first, 0), limit)
    return page(found, first + limit if more else None)


@router.post(
    "/{plan_id}/apply",
    **operation(
        TaskView,
        status=202,
        problems=_QUEUING,
    ),
)
def apply_plan(control: Control, plan_id: str) -> Response:
    """Queue exactly that plan. It is refused when the table has moved on so that it does not hold any more."""
    return render(task_view(control.dispatcher.apply(plan_id)), 202)


@router.post(
    "/{plan_id}/approve",
    **operation(
        TaskView,
        status=202,
        accepts=schema_of(ApprovalGiven),
        problems=_QUEUING,
    ),
)
def approve_plan(control: Control, plan_id: str, body: Annotated[Any, Depends(json_body())]) -> Response:
    """Let exactly that plan go beyond its budget, and queue it. What cannot be queued is approved all the same."""
    given = from_json(ApprovalGiven, body)
    return render(task_view(control.dispatcher.approve(plan_id, given.approved_by)), 202)
