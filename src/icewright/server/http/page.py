"""The plain page: tables and tasks, live. It reads the public API like any other client.

A browser gets in with a one-time code in the address, which becomes a session cookie; see :mod:`.gate`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from string import Template
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from icewright.identity.authentication import Access, Gate
from icewright.identity.authorization import PUBLIC, On, needs
from icewright.identity.gate import presented_session, session_cookie
from icewright.model.access.identity import SESSION_MS
from icewright.model.access.permissions import Permission

router = APIRouter(include_in_schema=False)

LOGIN: Final = "/login"
"""Where people begin to log in by a provider, if there is one."""

_ASSETS: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "parts.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@router.get("/", dependencies=[PUBLIC])
def show_page(
    request: Request,
    access: Gate,
    token: Annotated[str | None, Query(max_length=1_000)] = None,
) -> Response:
    """The page for a session; a session for a one-time code; else a few words on how to get in."""
    if token is not None:
        session = access.log_in(token)
        return _refused(access) if session is None else _let_in(request, session)
    session = presented_session(request.headers)
    if session is None or access.of_session(session) is None:
        return _refused(access)
    return HTMLResponse(_asset("page.html"))


@router.get("/assets/{name}", dependencies=[needs(Permission.READ, On.ANYWHERE)])
def asset(name: str) -> Response:
    """A part of the page, from a fixed list."""
    if name not in _ASSETS:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return Response(_asset(name), media_type=_ASSETS[name])


def _let_in(request: Request, session: str) -> Response:
    response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    set_session(response, request, session)
    return response


def set_session(response: Response, request: Request, session: str) -> None:
    """Let the browser keep a session: no script reads it, and no other site sends it."""
    response.set_cookie(
        session_cookie(request.headers),
        session,
        max_age=SESSION_MS // 1000,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def plain_page(title: str, words: str, status: HTTPStatus, *, goes_on: bool = False) -> Response:
    """A page of a few words, which are HTML, for somebody without a session. ``goes_on``: to the page itself."""
    parts = {
        "title": title,
        "words": words,
        "head": '<meta http-equiv="refresh" content="0; url=/">' if goes_on else "",
        "link": "/" if goes_on else LOGIN,
        "further": "Go on to the page" if goes_on else "Log in",
    }
    content = Template(_asset("plain.html").decode()).substitute(parts)
    return _plain(content.encode("utf-8", "replace"), status)


def _refused(access: Access) -> Response:
    link = b"" if access.logins is None else f'<p><a href="{LOGIN}">Log in</a></p>'.encode()
    content = _asset("refused.html").replace(b"<!-- log in -->", link)
    return _plain(content, HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": "Bearer"})


def _plain(content: bytes, status: HTTPStatus, headers: Mapping[str, str] | None = None) -> Response:
    style = content.partition(b"<style>")[2].partition(b"</style>")[0]
    allowed = b64encode(sha256(style).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
    return HTMLResponse(
        content, status, {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'", **(headers or {})}
    )


@cache
def _asset(name: str) -> bytes:
    return (files("icewright.server.http") / "static" / name).read_bytes()
