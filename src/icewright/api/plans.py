"""Plans: to be looked at, and to be applied exactly as they were looked at."""

from __future__ import annotations

from fastapi import APIRouter, Response

from icewright.api.deps import Control
from icewright.api.messages import render
from icewright.api.schema import operation
from icewright.api.task_views import TaskView, task_view
from icewright.services.plan_views import PlanView, plan_view

router = APIRouter(prefix="/plans", tags=["plans"])

_NOT_FOUND = {404: "No such plan."}


@router.get("/{plan_id}", **operation(PlanView, problems=_NOT_FOUND))
def show_plan(control: Control, plan_id: str) -> Response:
    """One plan: what it would do, why, and what that would bring."""
    return render(plan_view(control.tables.plan(plan_id)))


@router.post(
    "/{plan_id}/apply",
    **operation(
        TaskView,
        status=202,
        problems={**_NOT_FOUND, 409: "The plan is to do nothing, or the mode forbids it, or the world moved."},
    ),
)
def apply_plan(control: Control, plan_id: str) -> Response:
    """Queue exactly that plan. It is refused when the table has moved on so that it does not hold any more."""
    return render(task_view(control.dispatcher.apply(plan_id)), 202)
