"""Sessions of browsers and of people's programs: who is logged in, and ending that.

Administrators have all of them, everybody their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Response

from icewright.core.codec import from_json
from icewright.core.errors import LoginRefused, NotFound
from icewright.core.times import Instant
from icewright.identity.authentication import Access, Gate
from icewright.identity.authorization import PUBLIC, On, needs
from icewright.model.access.identity import Ended, EndedSessions, GivenSession, SessionView
from icewright.model.access.permissions import Permission
from icewright.web.deps import Caller
from icewright.web.messages import Cursor, Limit, decode_cursor, first_page, json_body, render
from icewright.web.schema import operation, page_of, schema_of

router = APIRouter(tags=["access"])

_ADMINISTERS: Final = needs(Permission.ADMINISTER, On.EVERYTHING)
_OWN: Final = needs(Permission.READ, On.ANYWHERE)
_NAME_LENGTH_MAX: Final = 4_000


@dataclass(frozen=True, slots=True)
class SessionsOf:
    """Whose sessions: a name as the list has it, or of a person the provider's name for them (`sub`)."""

    name: str


@dataclass(frozen=True, slots=True)
class _After:
    """Where a page of sessions ended."""

    begun_at: Instant
    session_id: str


@dataclass(frozen=True, slots=True)
class OneTimeCode:
    """A one-time code for a program, as the page shows it to whoever asks for one at ``/login/program``."""

    code: str = field(repr=False)


@router.post(
    "/sessions",
    dependencies=[PUBLIC],
    **operation(
        GivenSession,
        status=201,
        accepts=schema_of(OneTimeCode),
        problems={403: "`login-refused`: the code was used, is too old, or never was one."},
    ),
)
def open_session(access: Gate, body: Annotated[Any, Depends(json_body())]) -> Response:
    """A session for a program of a person, by a one-time code: for 12 hours it is shown as a bearer token."""
    given = access.log_in_program(from_json(OneTimeCode, body).code)
    if given is None:
        hint = (
            "open /login/program in a browser for another one; where its answer was lost there may be a session of it, "
            "which `icewright session list --own` shows"
        )
        raise LoginRefused("the code opens nothing: it was used, is too old, or never was one", hint=hint)
    return render(given, 201)


@router.get("/sessions", dependencies=[_ADMINISTERS], **operation(page_of(SessionView)))
def list_sessions(
    access: Gate,
    limit: Limit = 100,
    cursor: Cursor = None,
    name: Annotated[
        str | None, Query(max_length=_NAME_LENGTH_MAX, description="Of this one alone: as in the list, or a `sub`.")
    ] = None,
) -> Response:
    """Who is logged in, the latest first: since when, how, until when, and what that permits by now."""
    return _page(access, None if name is None else access.person_named(name), limit, cursor)


@router.post(
    "/sessions/{session_id}/end",
    dependencies=[_ADMINISTERS],
    **operation(EndedSessions, problems={404: "No such session."}),
)
def end_session(access: Gate, session_id: str) -> Response:
    """End one session, from now on, on all servers. Streams of facts that it has open end within seconds."""
    return _ended(access, Ended((access.identities.end_session(session_id),), 0))


@router.post(
    "/sessions/end",
    dependencies=[_ADMINISTERS],
    **operation(EndedSessions, accepts=schema_of(SessionsOf), problems={404: "No session of that name exists."}),
)
def end_sessions(access: Gate, body: Annotated[Any, Depends(json_body())]) -> Response:
    """End all sessions of a person, and codes that open one, on all servers. The person may log in again."""
    name = access.person_named(from_json(SessionsOf, body).name)
    ended = access.identities.end_sessions(name)
    if not ended.sessions and not ended.codes:
        raise NotFound(f"no session of {name}", hint="`icewright session list` has the names")
    return _ended(access, ended)


@router.get("/me/sessions", dependencies=[_OWN], **operation(page_of(SessionView)))
def list_own_sessions(access: Gate, caller: Caller, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """One's own sessions, the latest first."""
    return _page(access, caller.name, limit, cursor)


@router.post("/me/sessions/end", dependencies=[_OWN], **operation(EndedSessions))
def end_own_sessions(access: Gate, caller: Caller) -> Response:
    """End all one's own sessions, in all browsers and programs: also the one that asks."""
    return _ended(access, access.identities.end_sessions(caller.name))


def _page(access: Access, name: str | None, limit: int, cursor: str | None) -> Response:
    after = decode_cursor(_After, cursor)
    place = None if after is None else (after.begun_at, after.session_id)
    found = access.identities.sessions(limit=limit + 1, name=name, after=place)
    return first_page(found, limit, lambda one: _After(one.begun_at, one.session_id), access.shown)


def _ended(access: Access, ended: Ended) -> Response:
    return render(EndedSessions(tuple(access.shown(one) for one in ended.sessions), ended.codes))
