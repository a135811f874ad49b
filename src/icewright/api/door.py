"""The one way in: every request passes here first, and what is not explicitly public needs to be authenticated.

An ASGI middleware around the whole application and not a dependency of its routes, so that a route, a mount or a
path that nobody thought of is refused as well.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icewright.api.access import Access
from icewright.api.problems import Problem, problem_response
from icewright.domain.tables import Instant

_log = structlog.get_logger("icewright.api")

PUBLIC: Final = frozenset({("GET", "/api/v1/healthz"), ("GET", "/")})
"""What is answered without credentials. The page at ``/`` itself asks for a session or a one-time code."""

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})

_WRONG_HOST: Final = Problem(
    HTTPStatus.MISDIRECTED_REQUEST,
    "wrong-host",
    "the Host header is not one that this server answers to",
    "use the address that `icewright serve` printed",
)
_UNAUTHENTICATED: Final = Problem(
    HTTPStatus.UNAUTHORIZED,
    "unauthenticated",
    "this needs the server's token",
    "send `Authorization: Bearer <token>`; the server keeps its token in server.json in its state directory",
)
_WRONG_ORIGIN: Final = Problem(
    HTTPStatus.FORBIDDEN, "wrong-origin", "a change asked for by a page must come from this server's own page"
)
_INTERNAL: Final = Problem(
    HTTPStatus.INTERNAL_SERVER_ERROR,
    "internal",
    "an unexpected error, which is a defect of icewright; the server's log has the details",
)


def session_cookie(headers: Headers) -> str:
    """The name of the session cookie. Browsers send cookies to all ports of a host, hence the port in it."""
    return f"icewright-session-{headers.get('host', '').rpartition(':')[2]}"


def presented_session(headers: Headers) -> str | None:
    """The session that a request carries, if it carries one."""
    return cookie_parser(headers.get("cookie", "")).get(session_cookie(headers))


class Door:
    """Checks host and credentials, adds the security headers, and turns what nobody expected into a plain 500."""

    def __init__(self, app: ASGIApp, access: Access, now: Callable[[], Instant]) -> None:
        self._app, self._access, self._now = app, access, now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} is not served")
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await _answer(refusal, scope, receive, send_with_headers)
            return
        try:
            await self._app(scope, receive, send_with_headers)
        except Exception:
            _log.exception("unexpected error", method=scope["method"], path=scope["path"])
            if started:
                raise
            await _answer(_INTERNAL, scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._access.allowed_hosts:
            return _WRONG_HOST
        if (scope["method"], scope["path"]) in PUBLIC:
            return None
        if "authorization" in headers:
            scheme, _, token = headers["authorization"].partition(" ")
            return None if scheme.lower() == "bearer" and self._access.is_token(token.strip()) else _UNAUTHENTICATED
        session = presented_session(headers)
        if session is None or not self._access.is_session(session, self._now()):
            return _UNAUTHENTICATED
        own = f"{scope['scheme']}://{hosts[0].lower()}"
        if scope["method"] not in _SAFE_METHODS and headers.get("origin", "").lower() != own:
            return _WRONG_ORIGIN
        return None


async def _answer(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"WWW-Authenticate": "Bearer"} if problem is _UNAUTHENTICATED else None
    await problem_response(problem, scope["path"], headers)(scope, receive, send)
