"""Which requests are the leading server's, and how they come to it from a server that follows.

Most of what is asked lies in the store, and any server answers it. Some of it is known to the loop alone: what it is
at, which catalogs it leaves alone, whose place is whose; and some would be in its way anywhere else: looks that plan,
and files that are moved. Such a request is let in where it came, and passed on with who asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from icewright.core.errors import IcewrightError
from icewright.model.access.on_behalf import ON_BEHALF_OF
from icewright.server.cluster.leading import Answer, Leading, Question
from icewright.web.deps import PRINCIPAL, OfLeader
from icewright.web.messages import BODY_BYTES_MAX
from icewright.web.problems import Problem, problem_of, problem_response


@dataclass(frozen=True, slots=True)
class LedRoute:
    """A route of the leader's."""

    methods: frozenset[str]
    path: re.Pattern[str]
    or_here: bool
    patience_s: float


def led_routes(app: FastAPI) -> Iterator[LedRoute]:
    """The routes that declare to be the leader's."""
    for route in iter_route_contexts(app.routes):
        dependant = getattr(route, "dependant", None)
        declared = [] if dependant is None else [one.call for one in dependant.dependencies]
        for one in declared:
            if isinstance(one, OfLeader):
                methods = frozenset(getattr(route, "methods", None) or ())
                yield LedRoute(methods, compile_path(str(route.path))[0], one.or_here, one.patience_s)


class LeaderProxy:
    """Passes requests on that are the leader's, behind the door: who asks is known by then."""

    def __init__(self, app: ASGIApp, leading: Leading, routes: Sequence[LedRoute]) -> None:
        self._app, self._leading, self._routes = app, leading, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer here, or pass on."""
        route = None if scope["type"] != "http" or self._leading.led is not None else self._route(scope)
        if route is None or ON_BEHALF_OF in Headers(scope=scope):  # passed on once, and not the leader's any more
            await self._app(scope, receive, send)
            return
        body = await _body(Request(scope, receive))
        answered = (
            _TOO_LARGE if body is None else await run_in_threadpool(self._ask, _question(scope, body, route.patience_s))
        )
        if isinstance(answered, Answer):
            await Response(answered.body, answered.status, dict(answered.headers))(scope, receive, send)
        elif route.or_here:
            await self._app(scope, receive, send)
        else:
            await problem_response(answered, scope["path"])(scope, receive, send)

    def _route(self, scope: Scope) -> LedRoute | None:
        for route in self._routes:
            if scope["method"] in route.methods and route.path.match(scope["path"]):
                return route
        return None

    def _ask(self, question: Question) -> Answer | Problem:
        try:
            return self._leading.ask_leader(question)
        except IcewrightError as error:
            return problem_of(error)


_PASSED_HEADERS: Final = frozenset({"content-type", "idempotency-key", "if-match", "if-none-match"})
_TOO_LARGE: Final = Problem(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", f"the body exceeds {BODY_BYTES_MAX:,} bytes"
)


async def _body(request: Request) -> bytes | None:
    """The body, None for one that is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            return None
    return bytes(body)


def _question(scope: Scope, body: bytes, patience_s: float) -> Question:
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    headers = {name: value for name, value in Headers(scope=scope).items() if name in _PASSED_HEADERS}
    return Question(scope["method"], target.decode("ascii"), headers, body, scope[PRINCIPAL], patience_s)
