"""The log-in of people by a provider of OpenID Connect: there and back again, in one browser.

Strangers ask for these, so that none says anything but to whom it belongs, nor writes before the provider has
vouched for somebody. The session's cookie is one that other sites cannot send. A browser that comes from the provider
would not send it either with the page that it is sent on to, which is why it gets a page of ours first.
"""

from __future__ import annotations

import re
from html import escape
from http import HTTPStatus
from typing import Annotated, Final

import structlog
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from icewright.core.errors import IcewrightError, LoginRefused, Unavailable
from icewright.identity.authentication import Access, Gate
from icewright.identity.authorization import PUBLIC
from icewright.identity.gate import own_origin, presented_cookie
from icewright.identity.logins import ATTEMPT_MS, Came, LoggedIn, Logins
from icewright.model.access.identity import PROGRAM_CODE_MS
from icewright.server.http.page import LOGIN, plain_page, set_session

router = APIRouter(include_in_schema=False)

_log = structlog.get_logger("icewright.logins")

BACK: Final = "/login/callback"
FOR_PROGRAM: Final = "/login/program"
"""Where people get a code for a program, as `icewright login URL` says."""
_COOKIE: Final = "icewright-login"
_LENGTH_MAX: Final = 4_000
_ERROR: Final = re.compile(r"[a-z_]{1,60}\Z", re.ASCII)
"""A code of RFC 6749, 4.1.2.1, and not a text that somebody put into an address."""

_Said = Annotated[str | None, Query(max_length=_LENGTH_MAX)]


@router.get(LOGIN, dependencies=[PUBLIC])
def begin_login(request: Request, access: Gate) -> Response:
    """Send the browser to the provider."""
    return _begun(request, access, LOGIN)


@router.get(FOR_PROGRAM, dependencies=[PUBLIC])
def begin_for_program(request: Request, access: Gate) -> Response:
    """As :func:`begin_login`, for a code to take to a program. No session opens another: it is a log-in of its own."""
    return _begun(request, access, FOR_PROGRAM)


def _begun(request: Request, access: Access, path: str) -> Response:
    logins = _logins(access)
    origin = own_origin(request.scope, request.headers)
    if access.public_url is not None and origin != access.public_url.lower():
        return RedirectResponse(access.public_url + path, HTTPStatus.SEE_OTHER)  # cookies are of one name
    try:
        begun = logins.begin(_redirect_uri(request, access), for_program=path == FOR_PROGRAM)
    except (LoginRefused, Unavailable) as error:
        return _refusal(error)
    response = RedirectResponse(begun.address, HTTPStatus.SEE_OTHER)
    response.set_cookie(
        _COOKIE,
        begun.cookie,
        max_age=ATTEMPT_MS // 1000,
        path=LOGIN,
        httponly=True,
        samesite="lax",  # or it would not come back from the provider
        secure=request.url.scheme == "https",
    )
    return response


@router.get(BACK, dependencies=[PUBLIC])
def come_back(
    request: Request,
    access: Gate,
    *,
    code: _Said = None,
    state: _Said = None,
    error: _Said = None,
    iss: _Said = None,
) -> Response:
    """For whom the provider vouches and a rule gives a role: a session, or a code for a program. Else why not."""
    logins = _logins(access)
    cookie = presented_cookie(request.headers, _COOKIE)
    try:
        came = _came(cookie, state, code, error, iss)
        found = logins.finish(came, _redirect_uri(request, access))
    except (LoginRefused, Unavailable) as refusal:
        response = _refusal(refusal)
    else:
        _log.info("logged in", principal=found.principal.name, for_program=found.for_program)
        response = _let_in(request, found)
    response.delete_cookie(_COOKIE, path=LOGIN)
    return response


def _let_in(request: Request, found: LoggedIn) -> Response:
    shown = escape(found.principal.shown)
    if found.for_program:
        minutes = PROGRAM_CODE_MS // 60_000
        words = (
            f"Paste this code into the program that asks for it, within {minutes} minutes:</p><p><code>"
            f"{escape(found.secret)}</code></p><p>It lets that program do for 12 hours what you may do, as {shown}. "
            "Give it to no one, and only to a program that you have just started yourself."
        )
        return plain_page("A code for a program", words, HTTPStatus.OK)
    response = plain_page("Logged in", f"Logged in as {shown}.", HTTPStatus.OK, goes_on=True)
    set_session(response, request, found.secret)
    return response


def _came(cookie: str | None, state: str | None, code: str | None, error: str | None, issuer: str | None) -> Came:
    if error is not None:
        said = error if _ERROR.match(error) else "for no reason that it can say"
        raise LoginRefused(f"the provider refused the log-in: {said}", hint="log in again")
    if code is None or state is None or cookie is None:
        raise LoginRefused("this log-in was not begun by this browser, or too long ago", hint="log in again")
    return Came(cookie, state, code, issuer)


def _logins(access: Access) -> Logins:
    if access.logins is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return access.logins


def _redirect_uri(request: Request, access: Access) -> str:
    """Where the provider sends the browser back to: the door has checked the name by which it came."""
    return f"{access.public_url or own_origin(request.scope, request.headers)}{BACK}"


def _refusal(error: IcewrightError) -> Response:
    _log.warning("log-in refused", code=error.code, detail=error.message)
    status = HTTPStatus.FORBIDDEN if isinstance(error, LoginRefused) else HTTPStatus.SERVICE_UNAVAILABLE
    words = " ".join(f"{said[0].upper()}{said[1:]}." for said in (error.message, error.hint) if said)
    return plain_page("Nothing was logged in", escape(words), status)
