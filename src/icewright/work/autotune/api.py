"""Decisions about optimizers, their memory, and servers: listed, shown, held and released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Response

from icewright.core.codec import from_json
from icewright.core.times import Instant
from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import Permission
from icewright.web.deps import Service
from icewright.web.messages import Cursor, Limit, decode_cursor, first_page, json_body, render
from icewright.web.schema import operation, page_of, schema_of
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.autotune.views import DecisionView, decision_view

router = APIRouter(prefix="/autotune", tags=["queue"])

Body = Annotated[Any, Depends(json_body())]

_NOT_FOUND: Final = {404: "No such decision."}
_READS: Final = needs(Permission.READ, On.EVERYTHING)
_OPERATES: Final = needs(Permission.OPERATE, On.EVERYTHING)


@dataclass(frozen=True, slots=True)
class WhyDecision:
    """Why a decision is held or released."""

    why: str


@router.get("", dependencies=[_READS], **operation(page_of(DecisionView)))
def list_decisions(
    decisions: Service[SqlDecisions],
    *,
    standing: Annotated[bool, Query(description="Only those that stand, or are held.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Decisions about optimizers, their memory, and servers, the newest first, with reasons, figures and effects."""
    before = decode_cursor(tuple[Instant, str], cursor)
    found = decisions.list(limit=limit + 1, before=before, only_standing=standing)
    return first_page(found, limit, lambda one: (one.made_at, one.decision_id), decision_view)


@router.get("/{decision_id}", dependencies=[_READS], **operation(DecisionView, problems=_NOT_FOUND))
def show_decision(decisions: Service[SqlDecisions], decision_id: str) -> Response:
    """One decision."""
    return render(decision_view(decisions.get(decision_id)))


@router.post(
    "/{decision_id}/hold",
    dependencies=[_OPERATES],
    **operation(
        DecisionView,
        accepts=schema_of(WhyDecision),
        problems={**_NOT_FOUND, 409: "It is held already, is being carried out, or is not the latest about the same."},
    ),
)
def hold_decision(decisions: Service[SqlDecisions], decision_id: str, body: Body) -> Response:
    """Keep a decision from being carried out, and all later ones about the same, until it is released."""
    return render(decision_view(decisions.hold(decision_id, from_json(WhyDecision, body).why)))


@router.post(
    "/{decision_id}/release",
    dependencies=[_OPERATES],
    **operation(DecisionView, accepts=schema_of(WhyDecision), problems={**_NOT_FOUND, 409: "It is not held."}),
)
def release_decision(decisions: Service[SqlDecisions], decision_id: str, body: Body) -> Response:
    """End a hold. A decision that still stands is carried out if its reason has not gone."""
    return render(decision_view(decisions.release(decision_id, from_json(WhyDecision, body).why)))
