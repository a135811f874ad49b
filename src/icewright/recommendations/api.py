"""Recommendations: listed, shown, and decided by people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Response

from icewright.core.clock import Clock
from icewright.core.codec import from_json
from icewright.core.times import Instant
from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import Permission
from icewright.observation.lookups import ByUuid
from icewright.recommendations.service import Recommendations
from icewright.recommendations.views import (
    RecommendationSummary,
    RecommendationView,
    recommendation_summary,
    recommendation_view,
)
from icewright.web.deps import BY_LEADER, Caller, Led, Service
from icewright.web.messages import Cursor, Limit, decode_cursor, first_page, json_body, render
from icewright.web.schema import operation, page_of, schema_of

router = APIRouter(prefix="/recommendations", tags=["queries"])

_NOT_FOUND: Final = {404: "No such recommendation."}
_DECIDING: Final = {**_NOT_FOUND, 409: "It is decided already, or the table changed meanwhile."}
_ONE: Final = "/{recommendation_id}"


@dataclass(frozen=True, slots=True)
class Reject:
    """Why it is not wanted."""

    why: str


@dataclass(frozen=True, slots=True)
class Snooze:
    """For how many days it is put off."""

    days: int
    why: str = ""


@router.get(
    "",
    dependencies=[needs(Permission.READ, On.ANYWHERE)],
    **operation(page_of(RecommendationSummary), problems={404: "No such table or catalog."}),
)
def list_recommendations(
    recommendations: Service[Recommendations],
    clock: Service[Clock],
    by_uuid: ByUuid,
    caller: Caller,
    *,
    table: Annotated[str | None, Query(description="Only those of the table of that uuid.")] = None,
    catalog: Annotated[str | None, Query(description="The catalog of `table`.")] = None,
    open: Annotated[bool, Query(description="Only changes that are not decided yet.")] = False,  # noqa: A002 - the parameter's name
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Recommendations for tables that the caller may read, the newest first."""
    within, now = caller.scopes(Permission.READ), clock.now()
    table_id = None if table is None else by_uuid.seen(table, catalog, within).table_id
    before = decode_cursor(tuple[Instant, str], cursor)
    found = recommendations.store.list(limit=limit + 1, before=before, table_id=table_id, only_open=open, within=within)
    return first_page(
        found, limit, lambda one: (one.made_at, one.recommendation_id), lambda one: recommendation_summary(one, now)
    )


@router.get(
    _ONE,
    dependencies=[needs(Permission.READ, On.RECOMMENDATION)],
    **operation(RecommendationView, problems=_NOT_FOUND),
)
def get_recommendation(
    recommendations: Service[Recommendations], clock: Service[Clock], recommendation_id: str
) -> Response:
    """Show a recommendation with its evidence: the queries behind it, what it would bring and cost, what lost."""
    return render(recommendation_view(recommendations.store.get(recommendation_id), clock.now()))


@router.post(
    _ONE + "/accept",
    dependencies=[needs(Permission.APPROVE, On.RECOMMENDATION), BY_LEADER],
    **operation(RecommendationView, problems=_DECIDING),
)
def accept_recommendation(
    recommendations: Led[Recommendations], clock: Service[Clock], caller: Caller, recommendation_id: str
) -> Response:
    """Accept a recommendation: its properties are set on the table, whose files follow by the table's own mode."""
    return render(recommendation_view(recommendations.accept(recommendation_id, caller.name), clock.now()))


@router.post(
    _ONE + "/reject",
    dependencies=[needs(Permission.APPROVE, On.RECOMMENDATION)],
    **operation(RecommendationView, accepts=schema_of(Reject), problems=_DECIDING),
)
def reject_recommendation(
    recommendations: Service[Recommendations],
    clock: Service[Clock],
    caller: Caller,
    recommendation_id: str,
    body: Annotated[Any, Depends(json_body())],
) -> Response:
    """Reject a recommendation, with the reason. A later one may recommend the same again."""
    said = from_json(Reject, body)
    return render(recommendation_view(recommendations.reject(recommendation_id, caller.name, said.why), clock.now()))


@router.post(
    _ONE + "/snooze",
    dependencies=[needs(Permission.APPROVE, On.RECOMMENDATION)],
    **operation(RecommendationView, accepts=schema_of(Snooze), problems=_DECIDING),
)
def snooze_recommendation(
    recommendations: Service[Recommendations],
    clock: Service[Clock],
    caller: Caller,
    recommendation_id: str,
    body: Annotated[Any, Depends(json_body())],
) -> Response:
    """Put a recommendation off: it is open again after so many days."""
    said = from_json(Snooze, body)
    kept = recommendations.snooze(recommendation_id, caller.name, said.days, said.why)
    return render(recommendation_view(kept, clock.now()))
