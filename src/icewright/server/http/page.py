"""The web pages, as `web/` at the root of the repository is built into this package. They read the public API alone.

What is built is the same for everybody and has no secret, so that strangers get it too: it asks who they are, and shows
how to log in. A browser gets in with a one-time code in the address, which becomes a session cookie; see :mod:`.gate`.
"""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from icewright.identity.authentication import Access, Gate
from icewright.identity.authorization import PUBLIC
from icewright.identity.gate import presented_session, session_cookie
from icewright.model.access.identity import SESSION_MS

router = APIRouter(include_in_schema=False)

LOGIN: Final = "/login"
"""Where people begin to log in by a provider, if there is one."""

_MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_SHELL: Final = "index.html"
_HASHED: Final = "assets/"
"""What is built below this has a digest of its content in its name, and never changes."""
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_ASK_AGAIN: Final = "no-cache"
_WAYS_TO_LOG_IN: Final = b'<meta name="icewright-login" content="">'
"""Where the page is told by which way people log in, beside one-time links."""


@dataclass(frozen=True, slots=True)
class _Built:
    """A file as it is sent; ``packed`` by gzip. The tag is a weak one, since it is that of both."""

    content: bytes
    packed: bytes
    media_type: str
    tag: str


@router.get("/", dependencies=[PUBLIC])
def show_page(
    request: Request,
    access: Gate,
    token: Annotated[str | None, Query(max_length=1_000)] = None,
) -> Response:
    """The pages for a session; a session for a one-time code; else a few words on how to get in."""
    if token is not None:
        session = access.log_in(token)
        return _refused(access) if session is None else _let_in(request, session)
    session = presented_session(request.headers)
    if session is None or access.of_session(session) is None:
        return _refused(access)
    pages = show_ui(request, access, "")
    pages.headers["Cache-Control"] = "no-store"  # without a session this address has something else
    return pages


@router.get("/ui/{path:path}", dependencies=[PUBLIC])
def show_ui(request: Request, access: Gate, path: str) -> Response:
    """A part of the pages; under all other addresses their beginning, which knows what these addresses mean."""
    built = _ui()
    if path.startswith(_HASHED) and path not in built:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    if _SHELL not in built:
        words = "This server was installed from sources, without built pages. <code>make web</code> builds them."
        return plain_page("The web pages are not built", words, HTTPStatus.SERVICE_UNAVAILABLE)
    found = built[path] if path in built and path != _SHELL else _shell(has_provider=access.logins is not None)
    headers = {
        "Cache-Control": _FOR_EVER if path.startswith(_HASHED) else _ASK_AGAIN,
        "ETag": found.tag,
        "Vary": "Accept-Encoding",
    }
    if found.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=found.media_type)
    return Response(found.content, headers=headers, media_type=found.media_type)


@router.get("/docs", dependencies=[PUBLIC])
def show_docs() -> Response:
    """The reference of the API, which is one of the pages."""
    return RedirectResponse("/ui/reference", HTTPStatus.SEE_OTHER)


@cache
def _ui() -> Mapping[str, _Built]:
    """All that is built, by its path below ``/ui/``: what is not in here is not served."""
    folder = files("icewright.server.http") / "static" / "ui"
    return dict(_built_below(folder)) if folder.is_dir() else {}


def _built_below(folder: Traversable, path: str = "") -> Iterator[tuple[str, _Built]]:
    for entry in folder.iterdir():
        name = f"{path}{entry.name}"
        if entry.is_dir():
            yield from _built_below(entry, f"{name}/")
        else:
            yield name, _built(entry.read_bytes(), _MEDIA_TYPES[name.rpartition(".")[2]])


def _built(content: bytes, media_type: str) -> _Built:
    return _Built(content, gzip.compress(content, mtime=0), media_type, f'W/"{sha256(content).hexdigest()[:32]}"')


@cache
def _shell(*, has_provider: bool) -> _Built:
    shell = _ui()[_SHELL]
    told = _WAYS_TO_LOG_IN.replace(b'content=""', b'content="provider"') if has_provider else _WAYS_TO_LOG_IN
    return _built(shell.content.replace(_WAYS_TO_LOG_IN, told), shell.media_type)


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
