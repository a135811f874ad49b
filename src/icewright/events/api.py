"""Commit events: hints from writers and schedulers, taken in without asking any catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query, Response

from icewright.core.errors import NotFound
from icewright.events.intake import Intake
from icewright.events.views import EventView, event_view
from icewright.identity.authentication import Gate
from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import Act, Permission, Scope, authorize
from icewright.model.events.events import Channel, EventFigures, EventState
from icewright.model.events.messages import EVENTS_MAX, ID_MAX, parse_event, parse_events
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Operation
from icewright.ports.inbox import EventFilter
from icewright.ports.store import TableStore
from icewright.web.deps import Caller, Service
from icewright.web.messages import Cursor, Limit, decode_cursor, json_body, page, render
from icewright.web.schema import operation, page_of, schema_of

router = APIRouter(prefix="/events", tags=["events"])

EVENTS_BYTES_MAX: Final = 1024 * 1024
_LEAST_REPORTED: Final = 20
_REPORTS: Final[Any] = needs(Permission.REPORT, On.ANYWHERE)
_NO_CATALOG: Final = {404: "No such catalog."}

EVENT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["table_name"],
    "additionalProperties": False,
    "properties": {
        "table_name": {
            "anyOf": [
                schema_of(TableName),
                {"type": "string", "description": "catalog.namespace.table; parts with other characters in backticks"},
            ]
        },
        "snapshot_id": {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": ID_MAX},
                {"type": "string", "pattern": "^[0-9]{1,19}$"},
                {"type": "null"},
            ],
            "description": "As a string where numbers are not exact beyond 2**53, as in JavaScript. Without one the "
            "event says only that the table changed.",
        },
        "table_uuid": {"type": ["string", "null"]},
        "operation": {"anyOf": [schema_of(Operation), {"type": "null"}]},
        "added_data_files": {"type": ["integer", "null"], "minimum": 0},
        "added_records": {"type": ["integer", "null"], "minimum": 0},
    },
}
EVENTS_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["events"],
    "additionalProperties": False,
    "properties": {
        "events": {"type": "array", "maxItems": EVENTS_MAX, "items": EVENT_SCHEMA},
        "channel": {
            "enum": [Channel.HTTP.value, Channel.OUTBOX.value],
            "description": "`outbox` for events that waited at their source because the server did not answer.",
        },
    },
}


@dataclass(frozen=True, slots=True)
class EventAnswer:
    """``repeated``: the same table and snapshot id were reported before, and nothing more will happen."""

    accepted: bool
    repeated: bool


@dataclass(frozen=True, slots=True)
class EventsAnswer:
    """Of so many events, ``repeated`` had been reported before."""

    accepted: int
    repeated: int


@router.post(
    "/commits",
    dependencies=[_REPORTS],
    **operation(EventAnswer, status=202, accepts=EVENT_SCHEMA, problems=_NO_CATALOG),
)
def receive_commit(intake: Service[Intake], caller: Caller, body: Annotated[Any, Depends(json_body())]) -> Response:
    """Report a commit to a table. Answered at once; the server then reads the catalog."""
    event = parse_event(body)
    authorize(caller, Permission.REPORT, Scope.of(event.table_name))
    is_new = intake.take([event], Channel.HTTP, caller.name)
    return render(EventAnswer(accepted=True, repeated=not is_new), 202)


@router.post(
    "/commits/batch",
    dependencies=[_REPORTS],
    **operation(EventsAnswer, status=202, accepts=EVENTS_SCHEMA, problems=_NO_CATALOG),
)
def receive_commits(
    intake: Service[Intake], caller: Caller, body: Annotated[Any, Depends(json_body(EVENTS_BYTES_MAX))]
) -> Response:
    """Many commits at once, all of them or none."""
    events, channel = parse_events(body)
    for place in {Scope.of(event.table_name) for event in events}:
        authorize(caller, Permission.REPORT, place)
    new = intake.take(events, channel, caller.name)
    return render(EventsAnswer(accepted=len(events), repeated=len(events) - new), 202)


@router.get("/inbox", dependencies=[needs(Permission.READ, On.ANYWHERE)], **operation(page_of(EventView)))
def list_events(
    table_store: Service[TableStore],
    caller: Caller,
    *,
    state: Annotated[EventState | None, Query(description="Only events in this state.")] = None,
    channel: Annotated[Channel | None, Query(description="Only events that came in by this channel.")] = None,
    name: Annotated[str | None, Query(description="Only events of the table of that full dotted name.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Events that came in, newest first: those that wait, and those that were worked on, or parked, within a day.

    Of tables that the caller may read and that are known; who may read everything has those of others too.
    """
    of_table = None if name is None else TableName.parse(name)
    only = EventFilter(state, channel, of_table, caller.scopes(Permission.READ))
    found = table_store.received(only, limit=limit + 1, before=decode_cursor(int, cursor))
    items = found[:limit]
    records = table_store.records_by_name({stored.event.table_name for stored in items})
    problems = {one: record.problem for one, record in records.items()}
    views = [event_view(stored, problems.get(stored.event.table_name)) for stored in items]
    return page(views, items[-1].event_id if len(found) > limit else None)


@router.delete(
    "/inbox/{event_id}",
    dependencies=[needs(Permission.OPERATE, On.ANYWHERE)],
    **operation(EventView, problems={404: "No such event."}),
)
def delete_event(
    table_store: Service[TableStore], caller: Caller, access: Gate, event_id: Annotated[int, Path(ge=0, le=ID_MAX)]
) -> Response:
    """Forget an event, such as a parked one: no look is taken because of it, and it may be reported again."""
    stored = table_store.event(event_id)
    name = stored.event.table_name
    if not caller.may(Permission.READ, Scope.of(name)):
        raise NotFound(f"no event {event_id}")
    authorize(caller, Permission.OPERATE, Scope.of(name))
    access.audit.append(Act("event.deleted", f"event {event_id}", {"table": str(name), "state": stored.state.value}))
    table_store.remove_event(event_id)
    return render(event_view(stored, None))


@router.get("/figures", dependencies=[needs(Permission.READ, On.ANYWHERE)], **operation(EventFigures))
def show_figures(table_store: Service[TableStore], caller: Caller) -> Response:
    """How events come in: by channel of the last day, with their lag, and how many commits only the sweep found.

    Of tables that the caller may read.
    """
    within = caller.scopes(Permission.READ)
    return render(table_store.event_figures(limit=_LEAST_REPORTED, within=within))
