"""The web application over a control plane: routes, one guarded door, one shape of errors, one document of it all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from icewright import __version__
from icewright.actions.remove_files import api as quarantine
from icewright.actions.remove_files import lost_tables
from icewright.approvals import api as approvals
from icewright.events import api as events
from icewright.feed import api as feed
from icewright.feed.streams import Streams
from icewright.identity import identities
from icewright.identity import sessions_api as sessions
from icewright.identity.authentication import Access
from icewright.identity.authorization import (
    Declared,
    Finder,
    Found,
    On,
    Public,
    complete_id,
    declarations,
    needs,
    require_declarations,
)
from icewright.identity.gate import Door
from icewright.maintenance import api as plans
from icewright.maintenance.dispatch import optimizers_api as optimizers
from icewright.maintenance.dispatch import tasks_api as tasks
from icewright.model.access.permissions import Permission, Principal, Scope
from icewright.model.access.redacted_text import Words
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.names import TableId, TableName
from icewright.notifications import api as notifications
from icewright.policy import api as policies
from icewright.queries import api as queries
from icewright.queries import metrics_reports
from icewright.recommendations import api as recommendations
from icewright.recommendations import benefit_api as benefit
from icewright.server.cluster.leading import AlwaysLeads, Leading
from icewright.server.control import ControlPlane
from icewright.server.http import catalog_check_api as catalog_checks
from icewright.server.http import cluster_api, metrics, page, status
from icewright.server.http import people_api as people
from icewright.server.http.leader_proxy import LeaderProxy, LedRoute, led_routes
from icewright.tables import api as tables
from icewright.tables import details_api as table_details
from icewright.tables import lists_api as table_lists
from icewright.tables.details import FileReader
from icewright.tables.lookups import Lookups
from icewright.web import headers
from icewright.web import idempotency as once
from icewright.web.bounded_reads import Reads
from icewright.web.conditional import Conditional
from icewright.web.messages import refuse_unknown_parameters, render
from icewright.web.problems import add_handlers
from icewright.web.redaction import RedactionMiddleware
from icewright.web.request_timing import Timed
from icewright.web.schema import components
from icewright.work.autotune import api as autotune
from icewright.work.groups import api as groups
from icewright.work.halts import api as queue

PREFIX: Final = "/api/v1"

_DESCRIPTION: Final = """\
What icewright knows, plans and does, for programs. Every request but `/healthz` and that for a
session (`POST /sessions`) carries `Authorization: Bearer <token>`.

**Numbers.** Snapshot ids are strings where tables are shown (`/tables`), since JavaScript reads no 64-bit number. What
is sent, and what plans, tasks and optimizers exchange, has them and fencing tokens as JSON numbers, which JavaScript
must read from the text (`JSON.parse` with a reviver that uses `context.source`).
Instants (`..._at`) are milliseconds since the Unix epoch, UTC; sizes are bytes.

**Lists** are `{"items": [...], "next_cursor": ...}`; pass `next_cursor` as `cursor` for the next page, null ends it.

**Errors** are `application/problem+json` (RFC 9457) with a stable `code`: `invalid-request`, `invalid-message`,
`invalid-name`, `unknown-parameter` (400), `unauthenticated` (401), `forbidden`, `login-refused`, `wrong-origin`,
`in-the-clear` (403), `not-found` (404), `method-not-allowed` (405), `not-allowed`, `conflict`, `lease-lost`,
`table-replaced`, `version-mismatch`, `in-progress`, `not-kept` (409), `conflict` (412), `too-large` (413),
`unsupported-media-type` (415), `wrong-host` (421), `rejected`, `unsupported`, `invalid-configuration`,
`invalid-resource-group`, `key-reused` (422), `invalid-request` (428), `too-many-requests` (429, with `Retry-After`),
`internal`, `plan-refused` (500), `unavailable`, `unreadable`, `unknown` (503, with `Retry-After`). What the caller may
not see is answered as what is not there. `hint` says what can be done about it.

**Versions.** All JSON that is read has an `ETag`; with it in `If-None-Match` the answer is 304 while nothing has
changed. Changes of policies need `If-Match`, those of tasks take it, and are refused with 412 where another change was
faster. The part of a task's tag before the dot is its version, which heartbeats leave, and all that
`If-Match` compares.

**Trying again.** A POST that changes something takes an `Idempotency-Key` (the IETF's draft), but for that of a
stranger with a code: the same request under the same key is carried out once within 24 hours, and answered the same,
with `Idempotency-Replayed: true`. Another request under it is refused (`key-reused`); while the first one is under
way, or when a server died over it, the answer is `in-progress`; answers with a secret, and those over 1 MiB, are
`not-kept`. What is answered `unavailable` changed nothing, and its key may be used again.
"""


def create_app(
    control: ControlPlane, access: Access, shown: metrics.Shown | None = None, leading: Leading | None = None
) -> FastAPI:
    """The application. Serve it without the web server's own access log: one-time codes are part of addresses.

    ``shown`` is what the metrics have beside what the control plane tells. ``leading`` says which of several servers
    leads; without, the loop of ``control`` is the only one.
    """
    leading = leading or AlwaysLeads(control)
    app, routes = _application(), _routes()
    app.router.routes.extend(routes.routes)
    app.state.control, app.state.access, app.state.leading = control, access, leading
    lookups = Lookups(
        control.tables,
        control.tasks,
        control.observer,
        control.planner,
        control.clock,
        lambda: (leading.led or control).registry,
    )
    app.state.lookups, app.state.finders = lookups, _finders(control, lookups)
    words = Words(control.catalogs)
    app.state.streams = Streams(control.tasks.feed, words)
    app.state.reads, app.state.file_reader = Reads(), FileReader()
    app.state.catalog_checks = catalog_checks.CatalogChecks()
    app.state.shown = shown or metrics.Shown()
    add_handlers(app)
    once.add_handler(app)
    app.add_middleware(once.Once, answers=access.answers)  # within the words: what is kept is for whoever asks again
    app.add_middleware(RedactionMiddleware, words=words)
    app.add_middleware(Conditional)  # around the words: the tag is that of what is sent
    app.add_middleware(LeaderProxy, leading=leading, routes=routes.led)  # the leader does all of the above
    app.add_middleware(Door, access=access)  # says who asks, to what is inside
    app.add_middleware(Timed)  # around the door: what it refuses is counted as well
    return app


@dataclass(frozen=True)
class _Routes:
    """The routes, and those of them that are the leader's."""

    routes: Sequence[BaseRoute]
    led: Sequence[LedRoute]


def _application() -> FastAPI:
    """One without routes."""
    return FastAPI(
        title="icewright",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url=None,  # it would be a route of its own beside the others; ours follows below
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )


@cache
def _routes() -> _Routes:
    """What all applications of a process have in common. FastAPI takes a third of a second to make it.

    It is tied to none of them: a request says which one it is for.
    """
    app = _application()
    api = APIRouter(prefix=PREFIX, dependencies=[Depends(refuse_unknown_parameters)])
    routers = (
        status,
        cluster_api,
        identities,
        sessions,
        table_lists,
        catalog_checks,
        tables,
        table_details,
        approvals,
        plans,
        policies,
        tasks,
        queue,
        groups,
        autotune,
        quarantine,
        lost_tables,
        feed,
        notifications,
        events,
        queries,
        recommendations,
        benefit,
        optimizers,
        metrics,
    )
    for routes in routers:
        api.include_router(routes.router)
    api.include_router(tasks.attempts_router)
    api.include_router(tasks.latest_router)
    api.include_router(lost_tables.gone_router)
    document = cache(lambda: render(_document(app)).body)  # made when it is first asked for: most servers never are

    @api.get("/openapi.json", include_in_schema=False, dependencies=[needs(Permission.READ, On.ANYWHERE)])
    def openapi() -> Response:
        """The OpenAPI document of all this."""
        return Response(document(), media_type="application/json")

    app.include_router(api)
    app.include_router(metrics_reports.router)
    app.include_router(page.router)
    app.include_router(people.router)
    require_declarations(app)
    return _Routes(app.router.routes, tuple(led_routes(app)))


def _finders(control: ControlPlane, lookups: Lookups) -> dict[On, Finder]:
    """How resources are found that paths name."""

    def place(table_id: TableId, name: TableName) -> Scope:
        """Where a table is by now: it may have been renamed since a plan of it had its name."""
        record = control.tables.record(table_id)
        return Scope.of(name if record is None else record.name)

    def table(request: Request, caller: Principal) -> Found:
        within = caller.scopes(Permission.READ)
        record = lookups.seen(request.path_params["uuid"], request.query_params.get("catalog"), within)
        return Found(Scope.of(record.name))

    def plan(request: Request, caller: Principal) -> Found:
        found = control.tables.plan(complete_id(request, caller, "plan_id", control.tables.ids_like))
        kinds = tuple(ActionKind(action.kind) for action in found.actions)
        return Found(place(found.table_id, found.table_name), kinds)

    def task(request: Request, caller: Principal) -> Found:
        found = control.tasks.head(complete_id(request, caller, "task_id", control.tasks.ids_like))
        return Found(place(found.table_id, found.table_name), (found.kind,))

    def run(request: Request, caller: Principal) -> Found:
        found = control.deletions.run(complete_id(request, caller, "task_id", control.tasks.ids_like))
        return Found(place(found.table_id, found.table_name))

    def recommendation(request: Request, caller: Principal) -> Found:
        store = control.recommendations.store
        found = store.get(complete_id(request, caller, "recommendation_id", store.ids_like))
        return Found(place(found.table_id, found.recommendation.table))

    return {On.TABLE: table, On.PLAN: plan, On.TASK: task, On.RUN: run, On.RECOMMENDATION: recommendation}


def _operation_id(route: APIRoute) -> str:
    """What programs that are made from the document call an operation."""
    return route.name


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, openapi_version="3.1.0"
    )
    parts = document.setdefault("components", {})
    parts["schemas"] = {**parts.get("schemas", {}), **components()}
    # FastAPI's own shape of validation errors, which are problems with status 400 here.
    for unused in ("HTTPValidationError", "ValidationError"):
        parts["schemas"].pop(unused, None)
    parts["parameters"] = headers.PARAMETERS
    parts["securitySchemes"] = headers.SECURITY_SCHEMES
    document["tags"] = headers.TAGS
    document["security"] = [{name: []} for name in headers.SECURITY_SCHEMES]
    public = {(method, path) for method, path, declared in declarations(app) if isinstance(declared, Public)}
    keyed = {(method, path) for method, path, one in declarations(app) if isinstance(one, Declared) and one.changes}
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            described["responses"].pop("422", None)
            if (method.upper(), path) in public:
                described["security"] = []
            headers.describe(method, described, is_keyed=(method.upper(), path) in keyed)
    return document
