"""What leaves the server in sentences names no tables that whoever asked may not read, whichever route it comes from.

Around all routes, inside the door that says who asks: a route that somebody adds tomorrow cannot forget it. Streams do
not end, so that they ask :class:`~icewright.model.access.redacted_text.Words` themselves.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icewright.model.access.permissions import EVERYTHING, Permission, Principal
from icewright.model.access.redacted_text import Words
from icewright.web.deps import PRINCIPAL

_JSON: Final = frozenset({"application/json", "application/problem+json"})


def sees_all(caller: Principal) -> bool:
    """Whether nothing is to be withheld: whoever carries out tasks is told of all tables anyway."""
    return caller.may(Permission.READ, EVERYTHING) or caller.may(Permission.WORK, EVERYTHING)


def shown_to(caller: Principal, words: Words, document: Any) -> Any:
    """A JSON document as this caller may have it."""
    return document if sees_all(caller) else words.within(document, partial(caller.may, Permission.READ))


class RedactionMiddleware:
    """An ASGI middleware that says the sentences of JSON answers in words for whoever asked."""

    def __init__(self, app: ASGIApp, words: Words) -> None:
        self._app, self._words = app, words

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        caller = scope.get(PRINCIPAL)
        if not isinstance(caller, Principal) or sees_all(caller):
            await self._app(scope, receive, send)
            return
        begun: Message | None = None
        body = bytearray()

        async def redacted(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and _is_json(message):
                begun = message  # its length is known at the end
                return
            if begun is None or message["type"] != "http.response.body":
                await send(message)
                return
            body.extend(message.get("body", b""))
            if message.get("more_body", False):
                return
            said = _dumped(shown_to(caller, self._words, json.loads(body))) if body else b""
            headers = MutableHeaders(raw=begun["headers"])
            if body:  # an answer to HEAD says the length of another one
                headers["content-length"] = str(len(said))
            await send({**begun, "headers": headers.raw})
            await send({"type": "http.response.body", "body": said})

        await self._app(scope, receive, redacted)


def _is_json(message: Message) -> bool:
    media_type = Headers(raw=message["headers"]).get("content-type", "")
    return media_type.partition(";")[0].strip().lower() in _JSON


def _dumped(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode("ascii")
