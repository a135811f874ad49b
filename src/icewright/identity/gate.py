"""The one way in: every request passes here first, and what is not explicitly public needs to be authenticated.

An ASGI middleware around the whole application and not a dependency of its routes, so that a route, a mount or a
path that nobody thought of is refused as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icewright.audit.acting import acting_as
from icewright.core.errors import IcewrightError
from icewright.identity.authentication import Access
from icewright.identity.denials import Denials
from icewright.model.access.on_behalf import ON_BEHALF_OF, from_header
from icewright.model.access.permissions import OWNER, Principal
from icewright.web.deps import PRINCIPAL, STRANGER
from icewright.web.problems import Problem, problem_of, problem_response

_log = structlog.get_logger("icewright.api")

HEALTH: Final = ("GET", "/api/v1/healthz")
"""What is answered in the clear as well: it carries no secret, and orchestrators have none to protect."""
PUBLIC: Final = frozenset(
    {
        HEALTH,
        ("GET", "/"),
        ("GET", "/docs"),
        ("GET", "/login"),
        ("GET", "/login/program"),
        ("GET", "/login/callback"),
        ("POST", "/api/v1/sessions"),
    }
)
"""What is answered without credentials. The page at ``/`` itself asks for a session or a one-time code, a session of a
program is opened by such a code, and whoever comes to log in has to be vouched for."""
PAGES: Final = "/ui/"
"""Below this are the web pages as they are built: the same for everybody, without anything of any table."""

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

STRICT_TRANSPORT: Final = "max-age=31536000"
"""For a year browsers ask this host by TLS alone. Not its subdomains, which are somebody else's."""

SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
UNATTENDED: Final = "icewright-unattended"
"""The header by which the page says that it asks by itself: that keeps no session from being idle."""
_WRONG_HOST: Final = Problem(
    HTTPStatus.MISDIRECTED_REQUEST,
    "wrong-host",
    "the Host header is not one that this server answers to",
    "use the address that `icewright serve` printed",
)
_IN_THE_CLEAR: Final = Problem(
    HTTPStatus.FORBIDDEN,
    "in-the-clear",
    "this server answers other machines by TLS only, and this request does not show that it came by TLS",
    "use https; a proxy has to be one of server.trusted_proxies and to send X-Forwarded-Proto: https",
)
_UNAUTHENTICATED: Final = Problem(
    HTTPStatus.UNAUTHORIZED,
    "unauthenticated",
    "this needs a token that is valid, or a session",
    "send `Authorization: Bearer <token>`: one of `icewright token create`, or the server's own of server.json; a "
    "session of `icewright login URL` ends after 12 hours",
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
    port = headers.get("host", "").rpartition(":")[2]
    return f"icewright-session-{port if port.isdecimal() else 443}"


def presented_session(headers: Headers) -> str | None:
    """The session that a request carries, if it carries one."""
    return presented_cookie(headers, session_cookie(headers))


def presented_cookie(headers: Headers, name: str) -> str | None:
    """The cookie of that name that a request carries, if it carries one."""
    return cookie_parser(headers.get("cookie", "")).get(name)


class Door:
    """Checks host, transport and credentials, adds the security headers, turns what nobody expected into a 500."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access
        self._denials = Denials(access.audit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} is not served")
        started, status = False, 0

        async def send_with_headers(message: Message) -> None:
            nonlocal started, status
            if message["type"] == "http.response.start":
                started, status = True, message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _security_headers(scope).items():
                    headers.setdefault(name, value)
            await send(message)

        admitted = await self._let_in(scope)
        if isinstance(admitted, Problem):
            await _answer(admitted, scope, receive, send_with_headers)
            return
        scope[PRINCIPAL] = admitted
        try:
            with acting_as(admitted.name):
                await self._app(scope, receive, send_with_headers)
        except Exception:
            _log.exception("unexpected error", method=scope["method"], path=scope["path"])
            if started:
                raise
            await _answer(_INTERNAL, scope, receive, send_with_headers)
        if status == HTTPStatus.FORBIDDEN and admitted is not STRANGER:
            self._denials.forbidden(admitted.name, scope["path"])

    async def _let_in(self, scope: Scope) -> Principal | Problem:
        """Who asks, or why they are not let in; those whose credentials are wrong again and again hear of it late."""
        if self._denials.is_due:
            await run_in_threadpool(self._denials.write)
        # Others have to be looked up in the store, which must not keep everybody waiting.
        admitted = self._recognized(scope)
        if admitted is None:
            admitted = await run_in_threadpool(self._admit, scope)
        if admitted is _UNAUTHENTICATED and has_credentials(Headers(scope=scope)):
            return await self._denials.wrong(self._access.transport.client(scope)) or _UNAUTHENTICATED
        return admitted

    def _recognized(self, scope: Scope) -> Principal | Problem | None:
        """Whoever is let in, or refused, without asking the store; None for all others."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._access.allowed_hosts:
            return _WRONG_HOST
        route = (scope["method"], scope["path"])
        scheme = self._access.transport.scheme(scope)
        if scheme is None and route != HEALTH and not self._is_peer(headers):
            return _IN_THE_CLEAR
        scope["scheme"] = scheme or "http"
        if route in PUBLIC or (scope["method"] == "GET" and scope["path"].startswith(PAGES)):
            return STRANGER
        token = bearer_token(headers)
        return _in_place_of(headers) if token is not None and self._access.is_own(token) else None

    def _is_peer(self, headers: Headers) -> bool:
        """Whether another server asks, where what is in front of all of them speaks TLS, and they do not."""
        token = bearer_token(headers)
        has_proxy = bool(self._access.transport.proxies)
        return has_proxy and ON_BEHALF_OF in headers and token is not None and self._access.is_own(token)

    def _admit(self, scope: Scope) -> Principal | Problem:
        """Who asks, or why they are not let in: also because nobody can tell."""
        try:
            return self._looked_up(scope)
        except IcewrightError as error:
            return problem_of(error)

    def _looked_up(self, scope: Scope) -> Principal | Problem:
        headers = Headers(scope=scope)
        found = whose(headers, self._access, attended=headers.get(UNATTENDED) is None)
        if found is None:
            return _UNAUTHENTICATED
        is_own = headers.get("origin", "").lower() == own_origin(scope, headers)
        if not has_token(headers) and scope["method"] not in SAFE_METHODS and not is_own:
            return _WRONG_ORIGIN
        return found


def own_origin(scope: Scope, headers: Headers) -> str:
    """The origin that this server's own page has when it is asked for by the Host header of that request."""
    scheme, host = scope["scheme"], headers["host"].lower()
    return f"{scheme}://{host.removesuffix(':443') if scheme == 'https' else host.removesuffix(':80')}"


def _security_headers(scope: Scope) -> Mapping[str, str]:
    # Of localhost browsers must not keep in mind that it is asked by TLS: its other ports are other programs'.
    is_localhost = Headers(scope=scope).get("host", "").lower().partition(":")[0] == "localhost"
    if scope["scheme"] != "https" or is_localhost:
        return SECURITY_HEADERS
    return {**SECURITY_HEADERS, "Strict-Transport-Security": STRICT_TRANSPORT}


def _in_place_of(headers: Headers) -> Principal | Problem:
    """On whose behalf the owner asks: another server passes on what somebody asked it."""
    value = headers.get(ON_BEHALF_OF)
    try:
        return OWNER if value is None else from_header(value)
    except IcewrightError as error:
        return problem_of(error)


def has_token(headers: Headers) -> bool:
    """Whether somebody comes by a token rather than by a session: credentials of their own go before a cookie."""
    return "authorization" in headers


def has_credentials(headers: Headers) -> bool:
    """Whether a request carries any; that it carries none is no attempt at anything."""
    return has_token(headers) or presented_session(headers) is not None


def whose(headers: Headers, access: Access, *, attended: bool) -> Principal | None:
    """Whose credentials a request carries, None where they are nobody's or do not stand any more."""
    if has_token(headers):
        token = bearer_token(headers)
        return None if token is None else access.of_token(token)
    session = presented_session(headers)
    return None if session is None else access.of_session(session, attended=attended)


def bearer_token(headers: Headers) -> str | None:
    """The token that a request carries, None where it carries credentials of another kind or none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


async def _answer(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"WWW-Authenticate": "Bearer"} if problem is _UNAUTHENTICATED else None
    await problem_response(problem, scope["path"], headers)(scope, receive, send)
