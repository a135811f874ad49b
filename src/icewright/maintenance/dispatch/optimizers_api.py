"""The optimizer's side: it introduces itself, asks for work, and compares what it sees with what the server sees."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Response
from pydantic import StringConstraints

from icewright.core.codec import from_json
from icewright.core.errors import InvalidMessage, NotFound, TooManyRequests
from icewright.identity.authorization import On, needs
from icewright.maintenance.dispatch.dispatcher import Dispatcher, NextRound
from icewright.model.access.permissions import EVERYWHERE, Permission, Scopes
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.jobs import ClaimRequest, OptimizerHello, TableCheck, TaskSpec
from icewright.model.work.optimizers import Backlog, BacklogRequest, SeenSubmitter, Submitting
from icewright.model.work.storage import ProbeReports, Probes
from icewright.observation.lookups import ByUuid
from icewright.observation.observer import Observer
from icewright.ports.store import OptimizerRecord, TableStore, TaskStore
from icewright.web.deps import Caller, Service
from icewright.web.messages import Cursor, Limit, decode_cursor, json_body, page, render
from icewright.web.schema import operation, page_of, schema_of
from icewright.work.optimizers.backlog import SEEN_MS, Backlogs

router = APIRouter(tags=["optimizers"])

_LONG_MAX = 2**63 - 1
_NAME_MAX = 500
_NAME: Final = re.compile(r"[\w.:@/+-]{1,200}\Z", re.ASCII)
OPTIMIZERS_MAX: Final = 2_000
"""Optimizers that are known at a time: ids are free to invent, and lists and metrics read all of them."""
Announced = Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,100}:[0-9]{1,9}$")]
"""A kind of action, and the version in which it is understood."""
_NO_CONTENT = {"description": "There is nothing to do now; ask again."}


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """Whether both see the table at the same metadata file."""

    agrees: bool


def optimizers_for(table_store: TableStore, within: Scopes) -> tuple[OptimizerRecord, ...]:
    """Optimizers that reach a catalog in which somebody may read something; of their catalogs, those alone."""
    found = table_store.optimizers()
    if within == EVERYWHERE:
        return tuple(found)
    theirs = {scope.catalog for scope in within}
    reached = (
        replace(one, hello=replace(one.hello, catalogs=tuple(c for c in one.hello.catalogs if c in theirs)))
        for one in found
    )
    return tuple(one for one in reached if one.hello.catalogs)


def submitters_for(task_store: TaskStore, table_store: TableStore, within: Scopes) -> tuple[SeenSubmitter, ...]:
    """Submitters that asked lately, as :func:`optimizers_for` has optimizers."""
    since = task_store.now() - SEEN_MS
    found = [one for one in table_store.submitters.noted() if one.asked_at > since]
    if within == EVERYWHERE:
        return tuple(found)
    theirs = {scope.catalog for scope in within}
    reached = (
        replace(one, submitter=replace(one.submitter, catalogs=tuple(c for c in one.submitter.catalogs if c in theirs)))
        for one in found
    )
    return tuple(one for one in reached if one.submitter.catalogs)


@router.get("/optimizers", dependencies=[needs(Permission.READ, On.ANYWHERE)], **operation(page_of(OptimizerRecord)))
def list_optimizers(
    table_store: Service[TableStore], caller: Caller, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Optimizers as they introduced themselves, by id: which was seen last changes from page to page.

    Those that reach a catalog in which the caller may read something.
    """
    after, found = decode_cursor(str, cursor), optimizers_for(table_store, caller.scopes(Permission.READ))
    by_id = {one.hello.optimizer_id: one for one in found}
    left = sorted(name for name in by_id if after is None or name > after)
    return page([by_id[name] for name in left[:limit]], left[limit - 1] if len(left) > limit else None)


@router.post(
    "/optimizers",
    dependencies=[needs(Permission.WORK, On.EVERYTHING)],
    **operation(
        None,
        status=204,
        accepts=schema_of(OptimizerHello),
        problems={409: "`version-mismatch`: server and optimizer speak different versions of the protocol."},
    ),
)
def register_optimizer(
    dispatcher: Service[Dispatcher], table_store: Service[TableStore], body: Annotated[Any, Depends(json_body())]
) -> Response:
    """An optimizer introduces itself, and does so again every few seconds as long as it lives."""
    said = from_json(OptimizerHello, body)
    for what, name in (("optimizer_id", said.optimizer_id), ("resource_group", said.resource_group)):
        if _NAME.match(name) is None:
            raise InvalidMessage(f"$.{what}: 1 to 200 letters, digits and . _ : @ / + - are a name")
    known = {one.hello.optimizer_id for one in table_store.optimizers()}
    if said.optimizer_id not in known and len(known) >= OPTIMIZERS_MAX:
        raise TooManyRequests(
            f"{OPTIMIZERS_MAX:,} optimizers are known already", hint="those not heard of for long are forgotten"
        )
    dispatcher.hello(said)
    return Response(status_code=204)


def _submitting(
    submitter_id: Annotated[
        str | None, Query(min_length=1, max_length=_NAME_MAX, description="Who starts them.")
    ] = None,
    host: Annotated[str, Query(max_length=_NAME_MAX, description="Where that one runs.")] = "",
    applications: Annotated[int, Query(ge=0, le=_LONG_MAX, description="How many it has running.")] = 0,
    applications_max: Annotated[int, Query(ge=1, le=_LONG_MAX, description="How many it may have.")] = 1,
) -> Submitting | None:
    """Who starts applications, where that one says so."""
    return None if submitter_id is None else Submitting(submitter_id, host, applications, applications_max)


@router.get("/backlog", dependencies=[needs(Permission.WORK, On.EVERYTHING)], **operation(Backlog))
def show_backlog(
    backlogs: Service[Backlogs],
    resource_group: Annotated[str, Query(max_length=1_000, description="Whose tasks.")],
    catalog: Annotated[list[str] | None, Query(description="The catalogs that the optimizers reach.")] = None,
    queue: Annotated[list[Queue] | None, Query(description="The queues whose tasks they take.")] = None,
    cores: Annotated[int | None, Query(ge=0, le=_LONG_MAX, description="What each takes, where that is known.")] = None,
    memory_bytes: Annotated[int | None, Query(ge=0, le=_LONG_MAX, description="See `cores`.")] = None,
    submitting: Annotated[Submitting | None, Depends(_submitting)] = None,
    action: Annotated[
        list[Announced] | None, Query(description="The actions that they carry out, as `KIND:VERSION` each.")
    ] = None,
) -> Response:
    """What waits for applications at this moment, for submitters that start them on demand.

    Asking changes nothing, but that a submitter who says who it is is named in the reasons of waiting tasks.
    """
    actions = {kind: int(version) for kind, _, version in (one.partition(":") for one in action or ())}
    asked = BacklogRequest(resource_group, cores, memory_bytes, tuple(queue or Queue), submitting, actions)
    return render(backlogs.of(asked, frozenset(catalog or ())))


def _claim_operation() -> dict[str, Any]:
    problems = {409: "The optimizer has not introduced itself."}
    keywords = operation(TaskSpec, accepts=schema_of(ClaimRequest), problems=problems)
    keywords["responses"][204] = _NO_CONTENT
    return keywords


@router.post(
    "/optimizers/{optimizer_id}/claims", dependencies=[needs(Permission.WORK, On.EVERYTHING)], **_claim_operation()
)
def claim_task(
    dispatcher: Service[Dispatcher], optimizer_id: str, body: Annotated[Any, Depends(json_body())]
) -> Response:
    """The next task for an optimizer, of those that it asks for and understands. Heartbeats extend its lease."""
    spec = dispatcher.claim(optimizer_id, from_json(ClaimRequest, body))
    return Response(status_code=204) if spec is None else render(spec)


def _probes_operation() -> dict[str, Any]:
    keywords = operation(Probes, problems={409: "The optimizer has not introduced itself."})
    keywords["responses"][204] = _NO_CONTENT
    return keywords


@router.post(
    "/optimizers/{optimizer_id}/probes", dependencies=[needs(Permission.WORK, On.EVERYTHING)], **_probes_operation()
)
def claim_probes(dispatcher: Service[Dispatcher], optimizer_id: str) -> Response:
    """Tables whose storage an idle optimizer shall try out: whether its workers can write, see and read back there."""
    wanted = dispatcher.probes(optimizer_id)
    return render(wanted) if wanted.requests else Response(status_code=204)


@router.post(
    "/optimizers/{optimizer_id}/probe-reports",
    dependencies=[needs(Permission.WORK, On.EVERYTHING)],
    **operation(
        None,
        status=204,
        accepts=schema_of(ProbeReports),
        problems={409: "The optimizer has not introduced itself."},
    ),
)
def report_probes(
    dispatcher: Service[Dispatcher],
    next_round: Service[NextRound],
    optimizer_id: str,
    body: Annotated[Any, Depends(json_body())],
) -> Response:
    """What an optimizer found out of storages; what it was not asked is passed over."""
    dispatcher.probed(optimizer_id, from_json(ProbeReports, body))
    next_round.begin()
    return Response(status_code=204)


@router.post(
    "/tables/{uuid}/check",
    dependencies=[needs(Permission.WORK, On.EVERYTHING)],
    **operation(CheckAnswer, accepts=schema_of(TableCheck), problems={404: "No such table or catalog."}),
)
def check_table(
    observer: Service[Observer], by_uuid: ByUuid, uuid: str, body: Annotated[Any, Depends(json_body())]
) -> Response:
    """Whether an optimizer's catalog leads to the same table, at the same metadata file, as the server's."""
    check = from_json(TableCheck, body)
    if check.table_id.uuid != uuid:
        raise InvalidMessage(f"$.table_id.uuid: is {check.table_id.uuid!r}, the address says {uuid!r}")
    record = by_uuid.record(uuid, check.table_id.catalog)
    try:
        location = observer.catalog(record.name.catalog).metadata_location(record.name)
    except NotFound:
        return render(CheckAnswer(agrees=False))  # dropped since the server looked
    return render(CheckAnswer(agrees=location == check.metadata_location))
