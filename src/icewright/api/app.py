"""The web application over a control plane: routes, one guarded door, one shape of errors, one document of it all."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, FastAPI, Response
from fastapi.openapi.utils import get_openapi

from icewright import __version__
from icewright.api import (
    events,
    feed,
    identities,
    metrics,
    metrics_reports,
    optimizers,
    page,
    plans,
    policies,
    quarantine,
    status,
    tables,
    tasks,
)
from icewright.api.access import Access
from icewright.api.door import Door
from icewright.api.lookups import Lookups
from icewright.api.messages import render
from icewright.api.needs import On, needs, require_declarations
from icewright.api.problems import add_handlers
from icewright.api.schema import components
from icewright.api.streams import Streams
from icewright.api.timed import Timed
from icewright.api.worded import Worded
from icewright.domain.access import Permission
from icewright.planning.words_shown import Words
from icewright.services.control import ControlPlane

PREFIX: Final = "/api/v1"

_DESCRIPTION: Final = """\
What icewright knows, plans and does, for programs. Every request but `/healthz` carries
`Authorization: Bearer <token>`.

**Numbers.** Snapshot ids and fencing tokens are 64-bit integers and are written as JSON numbers. Python and Java read
them exactly; JavaScript must read them from the text (`JSON.parse` with a reviver that uses `context.source`).
Instants (`..._at`) are milliseconds since the Unix epoch, UTC; sizes are bytes.

**Lists** are `{"items": [...], "next_cursor": ...}`; pass `next_cursor` as `cursor` for the next page, null ends it.

**Errors** are `application/problem+json` (RFC 9457) with a stable `code`: `invalid-request`, `invalid-message`,
`invalid-name` (400), `unauthenticated` (401), `forbidden`, `wrong-origin` (403), `not-found` (404),
`method-not-allowed` (405), `not-allowed`, `conflict`, `lease-lost`, `table-replaced`, `version-mismatch` (409),
`too-large` (413), `unsupported-media-type` (415), `wrong-host` (421), `in-the-clear` (403), `rejected`, `unsupported`,
`invalid-configuration` (422), `internal`, `plan-refused` (500), `unavailable`, `unreadable`, `unknown` (503, with
`Retry-After`). What the caller may not see is answered as what is not there.
`hint` says what can be done about it.
"""


def create_app(control: ControlPlane, access: Access, shown: metrics.Shown | None = None) -> FastAPI:
    """The application. Serve it without the web server's own access log: one-time codes are part of addresses.

    ``shown`` is what the metrics have beside what the control plane tells.
    """
    app = FastAPI(
        title="icewright",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url=None,  # it would be a route of its own beside the others; ours follows below
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.control, app.state.access, app.state.lookups = control, access, Lookups(control)
    words = Words(control.catalogs)
    app.state.streams = Streams(control.tasks.feed, words)
    app.state.shown = shown or metrics.Shown()
    api = APIRouter(prefix=PREFIX)
    routers = (status, identities, tables, plans, policies, tasks, quarantine, feed, events, optimizers, metrics)
    for routes in routers:
        api.include_router(routes.router)
    api.include_router(tasks.attempts_router)
    document: dict[str, Any] = {}

    @api.get("/openapi.json", include_in_schema=False, dependencies=[needs(Permission.READ, On.ANYWHERE)])
    def openapi() -> Response:
        """The OpenAPI document of all this."""
        return render(document)

    app.include_router(api)
    app.include_router(metrics_reports.router)
    app.include_router(page.router)
    document.update(_document(app))
    require_declarations(app)
    add_handlers(app)
    app.add_middleware(Worded, words=words)
    app.add_middleware(Door, access=access)  # says who asks, to what is inside
    app.add_middleware(Timed)  # around the door: what it refuses is counted as well
    return app


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, openapi_version="3.1.0"
    )
    parts = document.setdefault("components", {})
    parts["schemas"] = {**parts.get("schemas", {}), **components()}
    # FastAPI's own shape of validation errors, which are problems with status 400 here.
    for unused in ("HTTPValidationError", "ValidationError"):
        parts["schemas"].pop(unused, None)
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    document["paths"][f"{PREFIX}/healthz"]["get"]["security"] = []
    for path in document["paths"].values():
        for described in path.values():
            described["responses"].pop("422", None)
    return document
