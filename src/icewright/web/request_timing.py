"""How long requests take, by the template of their route: a path has ids, and each would be a series of its own."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icewright.ports.telemetry import note_request


class Timed:
    """An ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and note it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun_s, status = time.perf_counter(), int(HTTPStatus.INTERNAL_SERVER_ERROR)

        async def send_noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        finally:
            route: Any = scope.get("route")
            note_request(scope["method"], getattr(route, "path", None), int(status), time.perf_counter() - begun_s)
