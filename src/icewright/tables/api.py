"""Tables: what is known of them, what their metadata says, what is planned for them."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Query, Response

from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.core.codec import from_json
from icewright.core.errors import TableReplaced
from icewright.explain.service import Explanations
from icewright.footprint.unneeded_views import UnneededView, unneeded_view
from icewright.identity.authorization import On, needs
from icewright.maintenance.explain import plan_view
from icewright.maintenance.table_maintainer import TableMaintainer
from icewright.model.access.permissions import Permission
from icewright.model.iceberg.files import Partition
from icewright.model.plans.plans import Plan
from icewright.model.plans.requests import PlanRequest
from icewright.model.work.figures import SeriesPoint
from icewright.model.work.why import Why
from icewright.observation.figures import PartitionView, partition_view
from icewright.observation.lookups import NOT_FOUND, OfCatalog
from icewright.ownership.location_views import PlaceView
from icewright.plans.views import PlanView
from icewright.policy.apply import PolicyBook
from icewright.policy.rules.cases import PolicyTest
from icewright.ports.deletions import DeletionStore
from icewright.ports.store import PlanPlace, TableRecord, TableStore
from icewright.tables.api_views import HealthView, LookAnswer, ObservationView, TableDocument, TableSummary
from icewright.tables.lookups import Looked
from icewright.tables.views import RefView, SnapshotPlace, SnapshotView, ref_views, snapshot_views
from icewright.web.deps import BY_LEADER, BY_LEADER_FOR_LONG, BY_LEADER_IF_ANY, Caller, Led, Service
from icewright.web.messages import Cursor, Limit, decode_cursor, first_page, json_body, page, render
from icewright.web.schema import operation, page_of, schema_of

router = APIRouter(prefix="/tables", tags=["tables"])


@router.get(
    "/{uuid}",
    dependencies=[needs(Permission.READ, On.TABLE), BY_LEADER_IF_ANY],
    **operation(TableDocument, problems=NOT_FOUND),
)
def show_table(lookups: Looked, caller: Caller, uuid: str, catalog: OfCatalog = None) -> Response:
    """One table in full: figures, effective policy with the rule that won, schema, refs."""
    return render(lookups.document(lookups.record(uuid, catalog), partial(caller.may, Permission.READ)))


@router.get(
    "/{uuid}/summary",
    dependencies=[needs(Permission.READ, On.TABLE)],
    **operation(TableSummary, problems=NOT_FOUND),
)
def show_summary(lookups: Looked, uuid: str, catalog: OfCatalog = None) -> Response:
    """One table as lists have it: what its last look found. No catalog is asked: one that hangs hides nothing."""
    return render(lookups.summary(lookups.record(uuid, catalog)))


@router.get("/{uuid}/why", dependencies=[needs(Permission.READ, On.TABLE)], **operation(Why, problems=NOT_FOUND))
def show_why(explainer: Service[Explanations], lookups: Looked, uuid: str, catalog: OfCatalog = None) -> Response:
    """Why something happens to the table, or nothing: what was considered, what waits for what, and what is next."""
    return render(explainer.why(lookups.record(uuid, catalog)))


@router.get(
    "/{uuid}/health",
    dependencies=[needs(Permission.READ, On.TABLE)],
    **operation(HealthView, problems=NOT_FOUND),
)
def show_health(lookups: Looked, uuid: str, catalog: OfCatalog = None) -> Response:
    """The health of the table as of its last look: its parts, each with its reason and with what would raise it."""
    return render(lookups.health(lookups.record(uuid, catalog)))


@router.get(
    "/{uuid}/series",
    dependencies=[needs(Permission.READ, On.TABLE)],
    **operation(page_of(SeriesPoint), problems=NOT_FOUND),
)
def list_series(lookups: Looked, uuid: str, catalog: OfCatalog = None) -> Response:
    """What looks saw of the table over time, oldest first: one page, of some 200 points for a year.

    Points are an hour apart at least, further the older they are, and there is none where nothing changed. The last one
    is that of the last look.
    """
    return page(lookups.series(lookups.record(uuid, catalog)), None)


@router.get(
    "/{uuid}/policy-test",
    dependencies=[needs(Permission.READ, On.TABLE)],
    **operation(PolicyTest, problems=NOT_FOUND),
)
def show_policy_test(policies: Service[PolicyBook], lookups: Looked, uuid: str, catalog: OfCatalog = None) -> Response:
    """Which rule wins for each setting of the table, and which definition of its resource group, and why."""
    return render(policies.test(lookups.metadata(lookups.record(uuid, catalog))))


@router.get(
    "/{uuid}/observations",
    dependencies=[needs(Permission.READ, On.TABLE)],
    **operation(page_of(ObservationView), problems=NOT_FOUND),
)
def list_observations(lookups: Looked, uuid: str, catalog: OfCatalog = None) -> Response:
    """What looks at the table have seen: the last one alone, since no other is kept.

    Its `first_seen` marks are from looks before it.
    """
    return page([lookups.observation(lookups.record(uuid, catalog))], None)


@router.get(
    "/{uuid}/partitions",
    dependencies=[needs(Permission.READ, On.TABLE)],
    **operation(page_of(PartitionView), problems=NOT_FOUND),
)
def list_partitions(
    table_store: Service[TableStore],
    lookups: Looked,
    uuid: str,
    catalog: OfCatalog = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The partitions of a table as of its last observed snapshot, by spec and values."""
    after = decode_cursor(Partition, cursor)
    record = lookups.record(uuid, catalog)
    policy, optimized_at = lookups.policy(record), lookups.optimized_at(record)
    found = table_store.partitions(record.table_id, limit=limit + 1, after=after)
    items = [partition_view(entry, policy, optimized_at.get(entry.partition)) for entry in found[:limit]]
    return page(items, found[limit - 1].partition if len(found) > limit else None)


@router.get(
    "/{uuid}/snapshots",
    dependencies=[needs(Permission.READ, On.TABLE)],
    **operation(page_of(SnapshotView), problems=NOT_FOUND),
)
def list_snapshots(
    lookups: Looked, uuid: str, catalog: OfCatalog = None, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """The snapshots in the table's metadata as it is at each page, newest first."""
    after = decode_cursor(SnapshotPlace, cursor)
    found = snapshot_views(lookups.metadata(lookups.record(uuid, catalog)))
    left = [one for one in found if after is None or one.place.is_behind(after)]
    return page(left[:limit], left[limit - 1].place if len(left) > limit else None)


@router.get(
    "/{uuid}/refs", dependencies=[needs(Permission.READ, On.TABLE)], **operation(page_of(RefView), problems=NOT_FOUND)
)
def list_refs(
    lookups: Looked, uuid: str, catalog: OfCatalog = None, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """The branches and tags in the table's metadata as it is at each page, by name."""
    after = decode_cursor(str, cursor)
    found = ref_views(lookups.metadata(lookups.record(uuid, catalog)))
    left = [one for one in found if after is None or one.name > after]
    return page(left[:limit], left[limit - 1].name if len(left) > limit else None)


@router.get(
    "/{uuid}/place",
    dependencies=[needs(Permission.READ, On.TABLE), BY_LEADER_IF_ANY],
    **operation(PlaceView, problems=NOT_FOUND),
)
def show_place(lookups: Looked, caller: Caller, uuid: str, catalog: OfCatalog = None) -> Response:
    """What the table alone owns, or why nothing may be deleted there; as all tables were last seen.

    Tables and catalogs that the caller may not read are not named.
    """
    return render(lookups.place(lookups.record(uuid, catalog), partial(caller.may, Permission.READ)))


@router.get(
    "/{uuid}/unneeded", dependencies=[needs(Permission.READ, On.TABLE)], **operation(UnneededView, problems=NOT_FOUND)
)
def show_unneeded(
    sightings: Service[SqlSightings],
    deletions: Service[DeletionStore],
    table_store: Service[TableStore],
    lookups: Looked,
    uuid: str,
    catalog: OfCatalog = None,
    files: Annotated[int, Query(ge=0, le=1000, description="How many orphans to list one by one.")] = 0,
) -> Response:
    """Files that the table does not need: orphans that passes have seen so far, and what is in quarantine of it."""
    record = lookups.record(uuid, catalog)
    return render(unneeded_view(sightings, deletions, table_store, record.table_id, files))


@router.get(
    "/{uuid}/plans",
    dependencies=[needs(Permission.READ, On.TABLE)],
    **operation(page_of(PlanView), problems=NOT_FOUND),
)
def list_plans(
    table_store: Service[TableStore],
    lookups: Looked,
    uuid: str,
    catalog: OfCatalog = None,
    limit: Limit = 10,
    cursor: Cursor = None,
) -> Response:
    """The plans of a table that are kept, newest first."""
    before, record = decode_cursor(PlanPlace, cursor), lookups.record(uuid, catalog)
    found = table_store.plans(record.table_id, limit=limit + 1, before=before)
    return first_page(found, limit, lambda plan: PlanPlace(plan.planned_at, plan.plan_id), plan_view)


@router.post(
    "/{uuid}/look",
    dependencies=[needs(Permission.OPERATE, On.TABLE), BY_LEADER],
    **operation(LookAnswer, problems={**NOT_FOUND, 409: "The name now leads to another table."}),
)
def look_at_table(
    maintainer: Led[TableMaintainer],
    lookups: Looked,
    uuid: str,
    catalog: OfCatalog = None,
) -> Response:
    """Look at the table now and plan it again. In mode ``auto`` the plan is also queued, as after a commit."""
    return render(_looked_at(maintainer, lookups.record(uuid, catalog)))


@router.post(
    "/{uuid}/unpark",
    dependencies=[needs(Permission.OPERATE, On.TABLE), BY_LEADER],
    **operation(LookAnswer, problems={**NOT_FOUND, 409: "The name now leads to another table."}),
)
def unpark_table(
    maintainer: Led[TableMaintainer],
    lookups: Looked,
    uuid: str,
    catalog: OfCatalog = None,
) -> Response:
    """Resume the table, which was parked after repeated failures, and look at it as `look` does."""
    record = lookups.record(uuid, catalog)
    maintainer.unpark(record.table_id)
    return render(_looked_at(maintainer, record))


def _looked_at(maintainer: TableMaintainer, record: TableRecord) -> LookAnswer:
    """What a look at the table comes to that is taken now."""
    looked = maintainer.look(record.name, plan_anew=True)
    _same_table(record, looked.plan)
    queued = looked.enqueued
    task_id = queued.task.task_id if queued is not None and (queued.created or queued.coalesced) else None
    return LookAnswer(plan_view(looked.plan), task_id, looked.upkeep.reasons)


@router.post(
    "/{uuid}/plans",
    dependencies=[needs(Permission.OPERATE, On.TABLE), BY_LEADER_FOR_LONG],
    **operation(
        PlanView,
        status=201,
        accepts=schema_of(PlanRequest),
        problems={**NOT_FOUND, 409: "The name now leads to another table."},
    ),
)
def create_plan(
    maintainer: Led[TableMaintainer],
    lookups: Looked,
    uuid: str,
    body: Annotated[Any, Depends(json_body())],
    catalog: OfCatalog = None,
) -> Response:
    """Plan what is asked for, and nothing else. It is never queued automatically: apply the plan by its id."""
    record = lookups.record(uuid, catalog)
    asked: PlanRequest = from_json(cast("Any", PlanRequest), body)
    return render(plan_view(maintainer.plan_asked(record.name, asked, record.table_id)), 201)


def _same_table(record: TableRecord, plan: Plan) -> Plan:
    """The plan, if it is of the table that was asked for. Raises ``TableReplaced``."""
    if plan.table_id != record.table_id:
        raise TableReplaced(f"{record.name} is another table now (uuid {plan.table_id.uuid})")
    return plan
