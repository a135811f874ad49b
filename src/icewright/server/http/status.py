"""How the server is: alive, and what it sees and does at this moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Annotated, Final, cast

from fastapi import APIRouter, Depends, Query, Request, Response

from icewright import __version__
from icewright.core.errors import Forbidden, IcewrightError, Unavailable
from icewright.core.servers import SeenServer, leader_of
from icewright.core.times import Instant
from icewright.core.wording import instant
from icewright.identity.authentication import Gate
from icewright.identity.authorization import PUBLIC, On, needs
from icewright.identity.gate import has_token
from icewright.maintenance.dispatch.optimizers_api import optimizers_for, submitters_for
from icewright.model.access.people import OF_PERSON
from icewright.model.access.permissions import EVERYTHING, Permission, Scope, covers
from icewright.model.plans.plans import Reason
from icewright.model.work.jobs import PROTOCOL_VERSION
from icewright.model.work.optimizers import SeenSubmitter
from icewright.model.work.retention import RowKind
from icewright.observation.lookups import is_about
from icewright.ports.store import OptimizerRecord
from icewright.retention.history import LATE_MS, HistoryStatus
from icewright.server.cluster.leading import Leading
from icewright.server.control import ControlPlane
from icewright.server.liveness import Doing
from icewright.web.deps import BY_LEADER_IF_ANY, Caller, LedOrOwn, Service
from icewright.web.messages import render
from icewright.web.schema import operation
from icewright.work.halts.api import halts_for
from icewright.work.halts.service import HaltView

router = APIRouter(tags=["server"])


def _leading(request: Request) -> Leading:
    return cast("Leading", request.app.state.leading)


LeadingNow = Annotated[Leading, Depends(_leading)]
Live = Annotated[str | None, Query(max_length=10, description="Say `?live` to leave the store out.")]
UNREADABLE_SHOWN_MAX: Final = 1_000
"""Of tables that cannot be read, which a storage that is away makes of all."""
OPTIMIZER_SEEN_MS: Final = 120_000
"""An optimizer that was heard of in this time is one that works: one without work asks for some all the time."""


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """The store answers, the loop turns, and no thread beside it hangs."""

    status: str


@dataclass(frozen=True, slots=True)
class Part:
    """What the server needs, and how it is. What is not required leaves the server ready when it is not well."""

    name: str
    is_required: bool
    is_well: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """The server is ready; ``parts`` has the store, each catalog, the loop, what is beside it, and optimizers."""

    status: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class CatalogStatus:
    """A catalog. ``paused_until`` is set while it is left alone because it did not answer."""

    name: str
    paused_until: Instant | None


@dataclass(frozen=True, slots=True)
class UnreadableTable:
    """A table that was never readable, so that it is in no list of tables."""

    name: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class ServerView:
    """A server of the store. One leads; ``is_silent``: it was not heard of for a while, and may have died."""

    server_id: str
    url: str
    version: str
    started_at: Instant
    seen_at: Instant
    leads: bool
    is_silent: bool


@dataclass(frozen=True, slots=True)
class ReceiverStatus:
    """Somebody who is told by messages; ``trouble`` is empty while that goes well."""

    name: str
    trouble: str


@dataclass(frozen=True, slots=True)
class Status:
    """The server that leads, or this one where none does, at this moment.

    ``tasks`` counts them by state; ``now`` is the server's clock. ``unreadable`` has the first 1,000 tables by their
    names, ``unreadable_count`` how many there are.

    ``doing`` is what the threads beside the loop are at: expiries and other commits of the server's own
    (``housekeeper``), and files that are looked for, removed and put back (``removals``). One that hangs is silent.
    ``halts`` is what of the queue is paused, draining or stopped. ``history`` is null where nobody wants one, and for
    whoever may not read everything. ``submitters`` start an application for each task, and asked within five minutes.
    """

    version: str
    protocol_version: int
    now: Instant
    tasks: Mapping[str, int]
    catalogs: tuple[CatalogStatus, ...]
    optimizers: tuple[OptimizerRecord, ...]
    unreadable: tuple[UnreadableTable, ...]
    doing: tuple[Doing, ...]
    receivers: tuple[ReceiverStatus, ...]
    servers: tuple[ServerView, ...] = ()
    halts: tuple[HaltView, ...] = ()
    history: HistoryStatus | None = None
    submitters: tuple[SeenSubmitter, ...] = ()
    unreadable_count: int = 0


@dataclass(frozen=True, slots=True)
class LoginCode:
    """``path`` opens the page once, in one browser; ``link`` is all of it where the server has a public address."""

    path: str
    link: str | None


@router.get("/healthz", dependencies=[PUBLIC], **operation(ServerHealth))
def show_liveness(
    control: Service[ControlPlane], led: LedOrOwn[ControlPlane], leading: LeadingNow, live: Live = None
) -> Response:
    """Whether the server and its store answer, its loop runs, and its background threads give signs of life.

    Needs no credentials and says nothing else. 503 where one of these does not hold; the detail says which.
    With `?live` the store is not asked: for a supervisor that restarts a process that does not answer.
    """
    if live is None:
        control.tasks.now()
        control.tasks.counts()
    if leading.is_stuck:
        raise Unavailable(
            "the loop that led here hangs in a call; another server may lead", hint="see the log; restart it"
        )
    if led.loop.stalled_since is not None:
        raise Unavailable("the loop of the server has not ended a round for long", hint="see the log; restart it")
    silent = [one.thread for one in led.loop.doing if one.is_silent]
    if silent:
        said = f"the server's own work gives no sign of life: {', '.join(silent)}"
        raise Unavailable(said, hint="see `icewright status` and the log; restart it")
    return render(ServerHealth("ok"))


@router.get(
    "/readyz",
    dependencies=[needs(Permission.READ, On.EVERYTHING)],
    **operation(Readiness, problems={503: "Not ready; the detail names each part and its trouble."}),
)
def show_readiness(control: Service[ControlPlane], led: LedOrOwn[ControlPlane]) -> Response:
    """Whether the server can do its work, part by part.

    503 while the store does not answer, or the loop, or a background thread, hangs. Catalogs that are left alone for a
    while and missing optimizers are reported and do not make it unready: this server could do nothing about it.
    """
    parts = tuple(_parts(control, led))
    troubles = [f"{part.name}: {part.detail}" for part in parts if not part.is_well and part.is_required]
    if troubles:
        raise Unavailable("; ".join(troubles), hint="see docs/monitoring.md, `Is it well?`")
    return render(Readiness("ready", parts))


def _parts(control: ControlPlane, led: ControlPlane) -> Iterator[Part]:
    now, loop = control.clock.now(), led.loop
    try:
        census = control.tables.census()
        halted = [f"{halt.part} {halt.state}" for halt in control.tasks.halts.present()]
        yield Part("store", is_required=True, is_well=True, detail="it answers")
        # A person wants it so: whoever took such a server out of the way would keep people from resuming it.
        yield Part("queue", is_required=False, is_well=not halted, detail=", ".join(halted[:20]) or "nothing is halted")
    except IcewrightError as error:
        census = None
        yield Part("store", is_required=True, is_well=False, detail=error.message)
    for name in sorted(control.catalogs):
        until = loop.paused_until(name)
        detail = (
            "it answers, as far as is known"
            if until is None
            else f"it did not answer and is left alone until {instant(until)}"
        )
        yield Part(f"catalog {name}", is_required=False, is_well=until is None, detail=detail)
    ended_at, stalled = loop.round_ended_at, loop.stalled_since is not None
    turns = "it turns on the server that leads" if ended_at is None else f"its last round ended at {instant(ended_at)}"
    yield Part("loop", is_required=True, is_well=not stalled, detail=turns)
    silent = [one.thread for one in loop.doing if one.is_silent]
    yield Part("threads", is_required=True, is_well=not silent, detail=f"silent: {', '.join(silent) or 'none'}")
    if led.history is not None:
        lag_ms = led.history.lag_ms(now)
        detail = "it was not asked yet" if lag_ms is None else f"{lag_ms // 60_000} minutes behind"
        yield Part("history", is_required=False, is_well=(lag_ms or 0) <= LATE_MS, detail=detail)
    if census is not None:
        for one in control.notifications.views():
            detail = one.trouble or "messages arrive, as far as there were any"
            yield Part(f"receiver {one.name}", is_required=False, is_well=not one.trouble, detail=detail)
        seen = sum(now - at < OPTIMIZER_SEEN_MS for times in census.seen_at.values() for at in times)
        asked = sum(now - at < OPTIMIZER_SEEN_MS for times in census.asked_at.values() for at in times)
        detail = f"{seen} heard of within two minutes" + (f", and {asked} that start them" if asked else "")
        yield Part("optimizers", is_required=False, is_well=seen + asked > 0, detail=detail)


@router.get("/status", dependencies=[needs(Permission.READ, On.ANYWHERE), BY_LEADER_IF_ANY], **operation(Status))
def show_status(
    control: Service[ControlPlane], led: LedOrOwn[ControlPlane], leading: LeadingNow, caller: Caller
) -> Response:
    """What the server that leads sees and does, as far as it is about what the caller may read, and which there are."""
    within = caller.scopes(Permission.READ)
    names = [name for name in sorted(control.catalogs) if is_about(within, name)]
    unreadable = {name: reason for name, reason in led.loop.unreadable.copy().items() if covers(within, Scope.of(name))}
    first = nsmallest(UNREADABLE_SHOWN_MAX, unreadable)
    return render(
        Status(
            version=__version__,
            protocol_version=PROTOCOL_VERSION,
            now=control.clock.now(),
            tasks={state.value: count for state, count in control.tasks.counts(within).items()},
            catalogs=tuple(CatalogStatus(name, led.loop.paused_until(name)) for name in names),
            optimizers=optimizers_for(control.tables, within),
            unreadable=tuple(UnreadableTable(str(name), unreadable[name]) for name in first),
            unreadable_count=len(unreadable),
            doing=led.loop.doing,
            servers=server_views(leading.servers()) if EVERYTHING in within else (),
            halts=halts_for(control.halting, within),
            receivers=_receivers(control) if EVERYTHING in within else (),
            submitters=submitters_for(control.tasks, control.tables, within),
            history=_history(led) if EVERYTHING in within else None,
        )
    )


def _history(led: ControlPlane) -> HistoryStatus | None:
    kept_ms = led.retention.spans_ms[RowKind.TASKS]
    return None if led.history is None else led.history.status(led.tasks.now(), kept_ms)


def server_views(servers: Sequence[SeenServer]) -> tuple[ServerView, ...]:
    """Servers as they are shown."""
    leader = leader_of(servers)
    return tuple(
        ServerView(
            server_id=one.server.server_id,
            url=one.server.url,
            version=one.server.version,
            started_at=one.started_at,
            seen_at=one.seen_at,
            leads=one is leader,
            is_silent=one.is_silent,
        )
        for one in servers
    )


def _receivers(control: ControlPlane) -> tuple[ReceiverStatus, ...]:
    return tuple(ReceiverStatus(one.name, one.trouble) for one in control.notifications.views())


@router.post("/login-codes", dependencies=[needs(Permission.READ, On.ANYWHERE)], **operation(LoginCode, status=201))
def create_login_code(request: Request, access: Gate, caller: Caller) -> Response:
    """A new link to the page with the permissions of the caller: it works once, within 15 minutes.

    Not for sessions, which could renew themselves forever.
    """
    if not has_token(request.headers):
        hint = "`icewright login` prints one with a token"
        raise Forbidden("a session opens no other session", hint=hint)
    if caller.name.startswith(OF_PERSON):
        raise Forbidden("people log in to the page by their provider", hint="open /login in a browser")
    path = f"/?token={access.new_login_code(caller)}"
    return render(LoginCode(path, None if access.public_url is None else access.public_url + path), 201)
