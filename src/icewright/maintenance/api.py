"""Plans: to be looked at, and to be applied exactly as they were looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from icewright.approvals.service import WHY_LENGTH_MAX, Approvals
from icewright.approvals.views import ApprovalView, approval_view
from icewright.core.codec import from_json
from icewright.core.errors import Forbidden, NotFound
from icewright.identity.authentication import Gate
from icewright.identity.authorization import On, named, needs, needs_as_its_actions
from icewright.maintenance.dispatch.dispatcher import Dispatcher
from icewright.maintenance.explain import plan_view
from icewright.model.access.permissions import OWNER, Permission
from icewright.plans.views import (
    PlannedFileView,
    PlanView,
    RefusalView,
    TaskView,
    WaitingView,
    planned_files,
    refusal_view,
    task_view,
    waiting_view,
)
from icewright.ports.store import TableStore
from icewright.web.deps import Caller, Service
from icewright.web.messages import Cursor, Limit, decode_cursor, first_page, json_body, page, render
from icewright.web.schema import operation, page_of, schema_of

router = APIRouter(prefix="/plans", tags=["plans"])

_NOT_FOUND = {404: "No such plan."}
_QUEUING = {**_NOT_FOUND, 409: "The plan is to do nothing, or the mode forbids it, or the world moved."}


@dataclass(frozen=True, slots=True)
class ApprovalGiven:
    """Who approves a plan, by name: it is kept with the plan and its task, as ``owner (Ada)``.

    Of callers with a token of their own it is that which is kept, whatever they call themselves.
    """

    approved_by: str


@dataclass(frozen=True, slots=True)
class RefusalGiven:
    """Why a plan is refused, and by whom, as :class:`ApprovalGiven` says it."""

    why: str
    refused_by: str


@router.get("/waiting", dependencies=[needs(Permission.READ, On.ANYWHERE)], **operation(page_of(WaitingView)))
def list_waiting_plans(
    table_store: Service[TableStore], caller: Caller, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Plans that wait for a person to approve them, of tables that the caller may read, oldest first."""
    after = decode_cursor(str, cursor)
    found = table_store.waiting(limit=limit + 1, after=after, within=caller.scopes(Permission.READ))
    return first_page(found, limit, lambda one: one.plan_id, waiting_view)


@router.get("/{plan_id}", dependencies=[needs(Permission.READ, On.PLAN)], **operation(PlanView, problems=_NOT_FOUND))
def show_plan(table_store: Service[TableStore], plan_id: str) -> Response:
    """One plan: what it would do, why, what that would bring, whether it waits for a person, and who refused it."""
    refusal, plan = table_store.refusal(plan_id), table_store.plan(plan_id)
    if refusal is not None:
        return render(replace(plan_view(plan), refused=refusal_view(refusal)))
    waits = any(one.plan_id == plan_id for one in table_store.waits(plan.table_id).values())
    return render(replace(plan_view(plan), waits=waits))


@router.get(
    "/{plan_id}/files",
    dependencies=[needs(Permission.READ, On.PLAN)],
    **operation(page_of(PlannedFileView), problems=_NOT_FOUND),
)
def list_plan_files(
    table_store: Service[TableStore], plan_id: str, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """The files that a plan would remove, with what is known of each; of other plans nothing."""
    first = decode_cursor(int, cursor) or 0
    found, more = planned_files(table_store.plan(plan_id), max(first, 0), limit)
    return page(found, first + limit if more else None)


@router.get(
    "/{plan_id}/approval",
    dependencies=[needs(Permission.READ, On.PLAN)],
    **operation(ApprovalView, problems={404: "No such plan, or it is not approved."}),
)
def show_approval(table_store: Service[TableStore], approvals: Service[Approvals], plan_id: str) -> Response:
    """Who approved exactly this plan, and when; the first one who did."""
    plan = table_store.plan(plan_id)
    approval = approvals.given(plan)
    if approval is None:
        raise NotFound(f"plan {plan_id} is not approved", hint="GET /api/v1/plans/waiting lists those that wait")
    return render(approval_view(approval))


@router.post(
    "/{plan_id}/apply",
    dependencies=[needs_as_its_actions(On.PLAN)],
    **operation(
        TaskView,
        status=202,
        problems=_QUEUING,
    ),
)
def apply_plan(dispatcher: Service[Dispatcher], plan_id: str) -> Response:
    """Run a plan now: queue exactly that one. Refused when the table has moved on so that it does not hold any more."""
    return render(task_view(dispatcher.apply(plan_id)), 202)


@router.post(
    "/{plan_id}/approve",
    dependencies=[needs(Permission.APPROVE, On.PLAN)],
    **operation(
        TaskView,
        status=202,
        accepts={**schema_of(ApprovalGiven), "properties": {"approved_by": {"minLength": 1, "pattern": r"\S"}}},
        problems=_QUEUING,
    ),
)
def approve_plan(
    table_store: Service[TableStore],
    dispatcher: Service[Dispatcher],
    gate: Gate,
    caller: Caller,
    plan_id: str,
    body: Annotated[Any, Depends(json_body())],
) -> Response:
    """Approve exactly this plan, and queue it. A plan that cannot be queued is approved nevertheless.

    It has to wait for approval, by its mode, by its kind or since it is beyond a budget: any other plan is applied.
    Another person approves than the one who asked for it, unless the configuration says that the installation is of
    one person (`server.approvals`); the approval says so.
    """
    given = from_json(ApprovalGiven, body)
    approved_by = named(caller, given.approved_by)
    if caller.name == table_store.asked_by(plan_id):  # whatever the owner says who they are
        hint = "another person approves it, with a token of `icewright token create --role approver --scope SCOPE NAME`"
        if not (gate.one_person and caller == OWNER):
            raise Forbidden(f"{caller.name} asked for plan {plan_id}", hint=hint)
        approved_by += ", who asked for it (installation of one person)"
    return render(task_view(dispatcher.approve(plan_id, approved_by)), 202)


@router.post(
    "/{plan_id}/refuse",
    dependencies=[needs(Permission.APPROVE, On.PLAN)],
    **operation(
        RefusalView,
        accepts={
            **schema_of(RefusalGiven),
            "properties": {
                "why": {"minLength": 1, "maxLength": WHY_LENGTH_MAX, "pattern": r"\S"},
                "refused_by": {"minLength": 1, "pattern": r"\S"},
            },
        },
        problems={**_NOT_FOUND, 409: "The plan does not wait, or not any more, or it was approved or applied."},
    ),
)
def refuse_plan(
    approvals: Service[Approvals], caller: Caller, plan_id: str, body: Annotated[Any, Depends(json_body())]
) -> Response:
    """Refuse exactly this plan, which waits for approval: it cannot be approved or applied any more.

    No other plan of its kind waits until the table's policy changes, for a plan for data files until the table does,
    and for a week at most. The first refusal of a plan stays. Also the one who asked for a plan may refuse it.
    """
    given = from_json(RefusalGiven, body)
    return render(refusal_view(approvals.refuse(plan_id, named(caller, given.refused_by), given.why)))
