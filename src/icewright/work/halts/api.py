"""The queue as a whole: what of it is paused, draining or stopped, and changing that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from icewright.core.codec import from_json
from icewright.core.errors import InvalidMessage
from icewright.identity.authorization import On, needs
from icewright.model.access import permissions as access
from icewright.model.access.permissions import Permission, Principal, Scope, Scopes, authorize
from icewright.model.iceberg.names import TableName
from icewright.model.work.halts import HaltState, PartKind
from icewright.web.deps import Caller, Service
from icewright.web.messages import json_body, render
from icewright.web.schema import operation, schema_of
from icewright.work.halts.service import Halting, HaltView

router = APIRouter(prefix="/queue", tags=["queue"])

Body = Annotated[Any, Depends(json_body())]

_UNKNOWN_PART = {404: "No such group, catalog or table."}
_HALTING = {**_UNKNOWN_PART, 409: "There are too many halts already."}
_OPERATES = needs(Permission.OPERATE, On.ANYWHERE)


@dataclass(frozen=True, slots=True)
class PartAsked:
    """A part of the queue: ``all``, or a ``group``, ``catalog`` or ``table`` of that name; and why.

    For all, and for a group, which may have tables everywhere, the permission is needed on everything. With ``preview``
    the answer says what would be halted, and nothing is.
    """

    part: PartKind
    name: str = ""
    reason: str = ""
    preview: bool = False


@dataclass(frozen=True, slots=True)
class QueueView:
    """What of the queue is halted, as far as the caller may see it."""

    halts: tuple[HaltView, ...]


@dataclass(frozen=True, slots=True)
class Resumed:
    """Whether the part was halted, and what still is, as far as the caller may see it."""

    resumed: bool
    halts: tuple[HaltView, ...]


@router.get("", dependencies=[needs(Permission.READ, On.ANYWHERE)], **operation(QueueView))
def show_queue(halting: Service[Halting], caller: Caller) -> Response:
    """What of the queue is paused, draining or stopped, and what still runs there."""
    return render(QueueView(halts_for(halting, caller.scopes(Permission.READ))))


@router.post("/pause", dependencies=[_OPERATES], **operation(HaltView, accepts=schema_of(PartAsked), problems=_HALTING))
def pause_queue(halting: Service[Halting], caller: Caller, body: Body) -> Response:
    """Start nothing more of this part. What runs continues; removals stop after the current batch."""
    return _halt(halting, caller, body, HaltState.PAUSED)


@router.post("/drain", dependencies=[_OPERATES], **operation(HaltView, accepts=schema_of(PartAsked), problems=_HALTING))
def drain_queue(halting: Service[Halting], caller: Caller, body: Body) -> Response:
    """As `pause`, for callers that wait until nothing runs any more: `running` says how much does."""
    return _halt(halting, caller, body, HaltState.DRAINING)


@router.post("/stop", dependencies=[_OPERATES], **operation(HaltView, accepts=schema_of(PartAsked), problems=_HALTING))
def stop_queue(halting: Service[Halting], caller: Caller, body: Body) -> Response:
    """As `pause`, and end what runs before its commit: attempts hear of it at their next heartbeat, and wait again."""
    return _halt(halting, caller, body, HaltState.STOPPED)


@router.post(
    "/resume", dependencies=[_OPERATES], **operation(Resumed, accepts=schema_of(PartAsked), problems=_UNKNOWN_PART)
)
def resume_queue(halting: Service[Halting], caller: Caller, body: Body) -> Response:
    """Resume exactly this part. Halts of smaller or larger parts stay."""
    asked = _asked(caller, body)
    if asked.preview:
        raise InvalidMessage("`preview` is for pause, drain and stop")
    part = halting.part(asked.part, asked.name, halted=True)
    halt = halting.resume(part, asked.reason)
    return render(Resumed(halt is not None, halts_for(halting, caller.scopes(Permission.READ))))


def _halt(halting: Halting, caller: Principal, body: Any, state: HaltState) -> Response:
    asked = _asked(caller, body)
    part = halting.part(asked.part, asked.name)
    change = halting.preview if asked.preview else halting.halt
    return render(change(part, state, asked.reason))


def _asked(caller: Principal, body: Any) -> PartAsked:
    """What is asked for, of whoever may. Asked before it is looked whether there is such a thing."""
    asked = from_json(PartAsked, body)
    if (asked.part is PartKind.EVERYTHING) != (not asked.name):
        raise InvalidMessage("`name` is needed of a group, a catalog or a table, and of nothing else")
    authorize(caller, Permission.OPERATE, _place(asked.part, asked.name))
    return asked


def _place(kind: PartKind, name: str | None) -> Scope:
    match kind:
        case PartKind.CATALOG if name:
            return Scope(name)
        case PartKind.TABLE if name:
            return Scope.of(TableName.parse(name))
        case _:
            return access.EVERYTHING


def halts_for(halting: Halting, within: Scopes) -> tuple[HaltView, ...]:
    """The halts of what lies in one of the scopes, and all that keep something in them from going on."""

    def concerns(halt: HaltView) -> bool:
        place, more = _place(halt.kind, halt.name), halt.kind is not PartKind.TABLE
        return any(scope.covers(place) or (more and place.covers(scope)) for scope in within)

    return tuple(halt for halt in halting.views() if concerns(halt))
