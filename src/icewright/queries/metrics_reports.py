"""Iceberg's own reports of commits and scans, as clients send them to their REST catalog: events, and queries.

They come here where that route is mirrored (docs/events.md). The address is the one of the REST specification, so that
a proxy need not change it, and is described there and not here; the catalog's own credentials stay with the catalog.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Depends, Request, Response

from icewright.core.clock import Clock
from icewright.core.errors import InvalidName, NotFound
from icewright.events.api import EVENTS_BYTES_MAX
from icewright.events.intake import Intake
from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import EVERYTHING, Permission, Principal, Scope, forbidden
from icewright.model.events.events import Channel
from icewright.model.events.messages import parse_report
from icewright.model.iceberg.names import TableName
from icewright.queries.service import QueryLog
from icewright.web.deps import Caller, Service
from icewright.web.messages import json_body

router = APIRouter(prefix="/v1", tags=["events"])

_ADDRESS: Final = re.compile(
    rb"/v1/(?:(?P<prefix>[^?]+)/)?namespaces/(?P<namespace>[^/?]+)/tables/(?P<table>[^/?]+)/metrics\Z"
)
_SEPARATOR: Final = "\x1f"
_SCAN: Final = "scan-report"
_KNOWN_KINDS: Final = {"commit-report", _SCAN}
# Levels of a name may have slashes in them, which the web framework has decoded by the time that it compares paths.
_ROUTE: Final[dict[str, Any]] = {
    "status_code": HTTPStatus.NO_CONTENT,
    "include_in_schema": False,
    "dependencies": [needs(Permission.REPORT, On.ANYWHERE)],
}
_TABLE: Final = "/namespaces/{namespace:path}/tables/{table:path}/metrics"


@router.post(_TABLE, **_ROUTE)
@router.post("/{prefix:path}" + _TABLE, **_ROUTE)
def report_metrics(
    intake: Service[Intake],
    log: Service[QueryLog],
    clock: Service[Clock],
    caller: Caller,
    request: Request,
    body: Annotated[Any, Depends(json_body(EVENTS_BYTES_MAX))],
) -> Response:
    """A report of Iceberg's. A commit becomes an event, a scan a query."""
    name = _table_name(intake, caller, request.scope["raw_path"])
    kind, event = parse_report(body, name)
    if event is not None:
        intake.take([event], Channel.METRICS_REPORT, caller.name)
    else:
        from icewright.queries.sources.scan_reports import read_report  # noqa: PLC0415 - with sqlglot, which takes 0.7 s of CPU to load

        query = read_report(body, name, caller.name, clock.now(), log.rules) if kind == _SCAN else None
        if query is None or not log.is_kept:
            intake.pass_over(kind if kind in _KNOWN_KINDS else "other-report")
        else:
            log.take([query])
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _table_name(intake: Intake, caller: Principal, raw_path: bytes) -> TableName:
    """The table of an address as it was sent, each part decoded once, if the caller may report of it.

    Raises ``NotFound`` and ``InvalidName``; ``Forbidden`` alike for a prefix that stands for nothing and for one whose
    catalog is not the caller's, who would else learn which catalogs there are.
    """
    found = _ADDRESS.match(raw_path.partition(b"?")[0])
    if found is None:
        raise NotFound("not the address of a table's metrics")
    namespace = tuple(_decoded(found["namespace"]).split(_SEPARATOR))
    table, prefix = _decoded(found["table"]), _decoded(found["prefix"] or b"")
    refusal = forbidden(caller, Permission.REPORT, "the table of this address")
    try:
        catalog = intake.catalog_of(prefix)
    except NotFound:
        if caller.may(Permission.REPORT, EVERYTHING):
            raise
        raise refusal from None
    if not any(scope.catalog in {"", catalog} for scope in caller.scopes(Permission.REPORT)):
        raise refusal
    name = TableName(catalog, namespace, table)
    if not caller.may(Permission.REPORT, Scope.of(name)):
        raise refusal
    return name


def _decoded(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError as error:
        raise InvalidName("a part of the address is not UTF-8") from error
