"""How the server is: alive, and what it sees and does at this moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Response

from icewright import __version__
from icewright.api.deps import Control, Gate
from icewright.api.messages import render
from icewright.api.schema import operation
from icewright.domain.errors import Unavailable
from icewright.domain.jobs import PROTOCOL_VERSION
from icewright.domain.plans import Reason
from icewright.domain.tables import Instant
from icewright.ports.store import OptimizerRecord
from icewright.services.pulse import Doing

router = APIRouter(tags=["server"])


@dataclass(frozen=True, slots=True)
class Health:
    """The store answers, the loop turns, and no thread beside it hangs."""

    status: str


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
class Status:
    """The server at this moment. ``tasks`` counts them by state; ``now`` is the server's clock.

    ``doing`` is what the threads beside the loop are at: expiries and other commits of the server's own
    (``housekeeper``), and files that are looked for, removed and put back (``removals``). One that hangs is silent.
    """

    version: str
    protocol_version: int
    now: Instant
    tasks: Mapping[str, int]
    catalogs: tuple[CatalogStatus, ...]
    optimizers: tuple[OptimizerRecord, ...]
    unreadable: tuple[UnreadableTable, ...]
    doing: tuple[Doing, ...]


@dataclass(frozen=True, slots=True)
class LoginCode:
    """``path`` opens the page once, in one browser."""

    path: str


@router.get("/healthz", **operation(Health))
def healthz(control: Control) -> Response:
    """Whether the server and its store answer, its loop turns, and what is beside it gives signs of life.

    Needs no credentials and says nothing else. 503 where one of these does not hold; the detail says which.
    """
    control.tasks.now()
    control.tasks.counts()
    if control.loop.stalled_since is not None:
        raise Unavailable("the loop of the server has not ended a round for long", hint="see the log; restart it")
    silent = [one.thread for one in control.loop.doing if one.is_silent]
    if silent:
        said = f"the server's own work gives no sign of life: {', '.join(silent)}"
        raise Unavailable(said, hint="see `icewright status` and the log; restart it")
    return render(Health("ok"))


@router.get("/status", **operation(Status))
def status(control: Control) -> Response:
    """What the server sees and does."""
    return render(
        Status(
            version=__version__,
            protocol_version=PROTOCOL_VERSION,
            now=control.clock.now(),
            tasks={state.value: count for state, count in control.tasks.counts().items()},
            catalogs=tuple(CatalogStatus(name, control.loop.paused_until(name)) for name in sorted(control.catalogs)),
            optimizers=tuple(control.tables.optimizers()),
            unreadable=tuple(
                UnreadableTable(str(name), reason) for name, reason in sorted(control.loop.unreadable.copy().items())
            ),
            doing=control.loop.doing,
        )
    )


@router.post("/login-codes", **operation(LoginCode, status=201))
def new_login_code(access: Gate) -> Response:
    """A new link to the page, for a person whose own is used up: it works once."""
    return render(LoginCode(f"/?token={access.new_login_code()}"), 201)
