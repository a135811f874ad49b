"""The feed: what happened, page by page, and as it happens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from icewright.feed.streams import MEDIA_TYPE, EventStream, FeedSource
from icewright.feed.views import FactView, fact_view
from icewright.identity.authentication import Gate
from icewright.identity.authorization import On, needs
from icewright.identity.gate import whose
from icewright.model.access.permissions import EVERYTHING, Permission, Principal
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.iceberg.names import split_parts
from icewright.ports.store import TaskStore
from icewright.web.deps import Caller, Service
from icewright.web.messages import Cursor, Limit, decode_cursor, page
from icewright.web.schema import operation, page_of

_FACTS = "Server-sent events: `FactView` as `data`."
LastEventId = Annotated[int | None, Header(ge=0, le=2**63 - 1, description="As browsers send it.")]

router = APIRouter(prefix="/feed", tags=["feed"])

_SEQUENCE_MAX = 2**63 - 1
_UNDER_MAX = 100

Kinds = Annotated[list[FactKind] | None, Query(alias="kind", description="Only facts of one of these kinds.")]
Under = Annotated[
    list[str] | None,
    Query(
        max_length=_UNDER_MAX,
        description="Only facts of what is under one of these: a catalog, `catalog.namespace`, or a table by its name.",
    ),
]
After = Annotated[
    int | None, Query(ge=0, le=_SEQUENCE_MAX, description="Only facts with a greater `sequence` than this.")
]


def _only(caller: Principal, kinds: list[FactKind] | None, under: list[str] | None) -> FeedFilter:
    """What is asked for, of what the caller may see."""
    scopes = caller.scopes(Permission.READ)
    within = () if EVERYTHING in scopes else tuple((scope.catalog, *scope.namespace) for scope in scopes)
    return FeedFilter(frozenset(kinds or ()), tuple(tuple(split_parts(name)) for name in under or ()), within)


@router.get("", dependencies=[needs(Permission.READ, On.ANYWHERE)], **operation(page_of(FactView)))
def list_facts(
    task_store: Service[TaskStore],
    caller: Caller,
    *,
    kind: Kinds = None,
    under: Under = None,
    after: After = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """What happened to what the caller may see, oldest first, for as long as it is kept."""
    begin = decode_cursor(int, cursor)
    found = task_store.feed.after((after or 0) if begin is None else begin, limit, _only(caller, kind, under))
    return page([fact_view(told) for told in found.told], found.through if len(found.told) == limit else None)


def stream_operation(said: str) -> dict[str, Any]:
    """What the decorator of a route takes that answers with server-sent events."""
    keywords = operation(
        {"type": "string"}, problems={503: "The store does not answer, or there are too many streams."}
    )
    content = {MEDIA_TYPE: {"schema": {"type": "string"}}}
    keywords["response_class"] = EventStream
    keywords["responses"][200] = {"description": said, "content": content}
    return keywords


@router.get("/stream", dependencies=[needs(Permission.READ, On.ANYWHERE)], **stream_operation(_FACTS))
def stream_facts(
    request: Request,
    access: Gate,
    caller: Caller,
    *,
    kind: Kinds = None,
    under: Under = None,
    after: After = None,
    last_event_id: LastEventId = None,
) -> Response:
    """What happens, as it happens: server-sent events with `sequence` as `id`, the kind as `event`.

    It begins with what comes after `Last-Event-ID`, or `after`, or now. The server ends it now and then, and clients
    ask again with `Last-Event-ID`, as browsers do. An event `gap` says that facts which were asked for are not kept.
    """
    begin = after if last_event_id is None else last_event_id

    def stands() -> bool:
        return whose(request.headers, access, attended=False) == caller

    streams = request.app.state.streams
    return EventStream(streams, FeedSource(streams.feed, _only(caller, kind, under)), begin, stands)
