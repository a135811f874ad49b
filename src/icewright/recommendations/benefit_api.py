"""What our work has brought and cost: of a table, of the fleet, and each measurement with its rows."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import Permission
from icewright.model.queries.measurements import Measurement
from icewright.observation.lookups import NOT_FOUND, ByUuid, OfCatalog
from icewright.recommendations.benefit import Benefit, FleetBenefit, TableBenefit
from icewright.recommendations.service import Recommendations
from icewright.web.deps import Caller, Service
from icewright.web.messages import page, render
from icewright.web.schema import operation, page_of

router = APIRouter(tags=["queries"])

_WEEKS_MAX: Final = 26
Weeks = Annotated[int, Query(ge=1, le=_WEEKS_MAX, description="How many weeks, this one and those before it.")]


@router.get("/benefit", dependencies=[needs(Permission.READ, On.ANYWHERE)], **operation(FleetBenefit))
def fleet_benefit(benefit: Service[Benefit], caller: Caller, *, weeks: Weeks = 8) -> Response:
    """Show what our work has brought and cost by week, over all tables that the caller may read."""
    return render(benefit.of_fleet(weeks, caller.scopes(Permission.READ)))


@router.get(
    "/tables/{uuid}/benefit",
    dependencies=[needs(Permission.READ, On.TABLE)],
    **operation(TableBenefit, problems=NOT_FOUND),
)
def table_benefit(
    benefit: Service[Benefit], lookups: ByUuid, uuid: str, *, catalog: OfCatalog = None, weeks: Weeks = 8
) -> Response:
    """Show what our work on a table has brought and cost by week, as predicted and as measured."""
    record = lookups.record(uuid, catalog)
    return render(benefit.of_table(record.table_id, record.name, weeks))


@router.get(
    "/recommendations/{recommendation_id}/measurements",
    dependencies=[needs(Permission.READ, On.RECOMMENDATION)],
    **operation(page_of(Measurement), problems={404: "No such recommendation."}),
)
def list_measurements(recommendations: Service[Recommendations], recommendation_id: str) -> Response:
    """Show what was measured of an accepted recommendation, with the rows that each figure is computed from."""
    store = recommendations.store
    kept = store.get(recommendation_id)
    return page(store.measurements.of_recommendation(kept.recommendation_id), None)
