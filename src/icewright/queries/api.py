"""Queries that engines ran: reported by callers who may, and shown by table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Response

from icewright.core.clock import Clock
from icewright.core.codec import from_json
from icewright.core.errors import InvalidMessage
from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import Permission, Principal, Scope, authorize
from icewright.model.queries.bounds import bounded
from icewright.model.queries.queries import QueryRecord
from icewright.model.queries.templates import WEEK_MS, week_of
from icewright.observation.lookups import NOT_FOUND, ByUuid, OfCatalog
from icewright.queries.service import QueryLog
from icewright.queries.views import Accepted, TableQueries, TableReadsView, table_queries
from icewright.web.deps import Caller, Service
from icewright.web.messages import Limit, json_body, page, render
from icewright.web.schema import operation, page_of, schema_of

router = APIRouter(tags=["queries"])

QUERIES_MAX: Final = 1_000
"""Queries of one request."""
SQL_BYTES_MAX: Final = 1024 * 1024
"""Of the texts of one request: reading them takes a second for each 100 KB."""
QUERIES_BYTES_MAX: Final = 8 * 1024 * 1024
_REPORTS: Final[Any] = needs(Permission.REPORT, On.ANYWHERE)
_FULL: Final = {429: "The spool is full: send it again later."}
_WEEKS_MAX: Final = 520

Weeks = Annotated[int, Query(ge=1, le=_WEEKS_MAX, description="How many weeks, this one and those before it.")]

QUERIES_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["queries"],
    "additionalProperties": False,
    "properties": {"queries": {"type": "array", "maxItems": QUERIES_MAX, "items": schema_of(QueryRecord)}},
}
TRINO_SCHEMA: Final[dict[str, Any]] = {
    "description": "A `QueryCompletedEvent` as Trino's HTTP event listener sends it, with whatever else it has.",
    "type": "object",
    "required": ["metadata", "statistics", "createTime", "endTime"],
    "properties": {
        **{key: {"type": "object"} for key in ("metadata", "statistics", "context", "ioMetadata")},
        **{key: {"type": "string"} for key in ("createTime", "endTime")},
    },
}


@router.post(
    "/queries",
    dependencies=[_REPORTS],
    **operation(Accepted, status=202, accepts=QUERIES_SCHEMA, problems=_FULL),
)
def report_queries(
    log: Service[QueryLog], caller: Caller, body: Annotated[Any, Depends(json_body(QUERIES_BYTES_MAX))]
) -> Response:
    """Report queries that ended, as records: all of them or none. The same query twice is one."""
    if not isinstance(body, dict) or body.keys() != {"queries"} or not isinstance(body["queries"], list):
        raise InvalidMessage('expected {"queries": [...]}')
    if len(body["queries"]) > QUERIES_MAX:
        raise InvalidMessage(f"{len(body['queries']):,} queries in one request", hint=f"send {QUERIES_MAX:,} at most")
    queries = [from_json(QueryRecord, one) for one in body["queries"]]
    if sum(len(query.sql) for query in queries) > SQL_BYTES_MAX:
        raise InvalidMessage(f"more than {SQL_BYTES_MAX:,} characters of SQL in one request", hint="send fewer at once")
    return _take(log, caller, [log.redacted(query) for query in queries])


@router.post(
    "/queries/trino",
    dependencies=[_REPORTS],
    **operation(Accepted, status=202, accepts=TRINO_SCHEMA, problems=_FULL),
)
def report_trino_event(
    log: Service[QueryLog],
    clock: Service[Clock],
    caller: Caller,
    body: Annotated[Any, Depends(json_body(QUERIES_BYTES_MAX))],
) -> Response:
    """Take what Trino's HTTP event listener sends. The event of a query that has not ended is passed over.

    What cannot be read is counted as `malformed`, and set aside for a person to look at.
    """
    from icewright.queries.sources.trino import read_event  # noqa: PLC0415 - with sqlglot, which takes 0.7 s of CPU to load

    try:
        query = read_event(body, log.rules) if isinstance(body, dict) else None
        query = None if query is None else bounded(query, clock.now())
    except InvalidMessage as error:  # the sender could only send it again; its values are kept nowhere
        digest = hashlib.sha256(json.dumps(body).encode()).hexdigest()
        return _take(log, caller, (), [f"{error.message} (sha256 {digest})".encode()])
    if not isinstance(body, dict):
        raise InvalidMessage("expected an event of Trino, which is an object")
    return _take(log, caller, () if query is None else (query,))


@router.get("/queries", dependencies=[needs(Permission.READ, On.ANYWHERE)], **operation(page_of(TableReadsView)))
def list_queried_tables(
    log: Service[QueryLog],
    clock: Service[Clock],
    caller: Caller,
    *,
    weeks: Weeks = 4,
    limit: Limit = 100,
) -> Response:
    """Tables that were read most, by bytes."""
    since = week_of(clock.now() - (weeks - 1) * WEEK_MS)
    found = log.sums.tables(since, limit, caller.scopes(Permission.READ))
    views = [
        TableReadsView(str(reads.name), reads.table_id.catalog, reads.table_id.uuid, reads.queries, reads.bytes_read)
        for reads in found
    ]
    return page(views, None)


@router.get(
    "/tables/{uuid}/queries",
    dependencies=[needs(Permission.READ, On.TABLE)],
    **operation(TableQueries, problems=NOT_FOUND),
)
def table_queries_of(
    log: Service[QueryLog],
    lookups: ByUuid,
    clock: Service[Clock],
    uuid: str,
    *,
    catalog: OfCatalog = None,
    weeks: Weeks = 4,
    limit: Limit = 100,
) -> Response:
    """Show which queries read a table: their templates, and the columns that they filter by."""
    record = lookups.record(uuid, catalog)
    since = week_of(clock.now() - (weeks - 1) * WEEK_MS)
    return render(table_queries(log.sums.of_table(record.table_id, since), since, limit))


def _take(log: QueryLog, caller: Principal, queries: Sequence[QueryRecord], malformed: Sequence[Any] = ()) -> Response:
    named = [log.named(query) for query in queries]
    for place in {Scope.of(read.table) for query in named for read in query.tables}:
        authorize(caller, Permission.REPORT, place)
    return render(log.take(named, malformed), 202)
