"""The plain page: tables and tasks, live. It reads the public API like any other client.

A browser gets in with a one-time code in the address, which becomes a session cookie; see :mod:`icewright.api.door`.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from icewright.api.deps import Gate
from icewright.api.door import presented_session, session_cookie
from icewright.api.needs import PUBLIC, On, needs
from icewright.domain.access import Permission
from icewright.domain.identity import SESSION_MS

router = APIRouter(include_in_schema=False)

_ASSETS: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
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
        return _refused() if session is None else _let_in(request, session)
    session = presented_session(request.headers)
    if session is None or access.of_session(session) is None:
        return _refused()
    return HTMLResponse(_asset("page.html"))


@router.get("/assets/{name}", dependencies=[needs(Permission.READ, On.ANYWHERE)])
def asset(name: str) -> Response:
    """A part of the page, from a fixed list."""
    if name not in _ASSETS:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return Response(_asset(name), media_type=_ASSETS[name])


def _let_in(request: Request, session: str) -> Response:
    response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    response.set_cookie(
        session_cookie(request.headers),
        session,
        max_age=SESSION_MS // 1000,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


def _refused() -> Response:
    content = _asset("refused.html")
    style = content.partition(b"<style>")[2].partition(b"</style>")[0]
    allowed = b64encode(sha256(style).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
    return HTMLResponse(
        content,
        HTTPStatus.UNAUTHORIZED,
        {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'", "WWW-Authenticate": "Bearer"},
    )


@cache
def _asset(name: str) -> bytes:
    return (files("icewright.api") / "static" / name).read_bytes()
