"""What an answer is a version of: ``ETag`` on every JSON that is read, ``If-None-Match``, and ``If-Match`` on changes.

Where the store counts versions, they are the tag. Elsewhere it is a digest of the answer, which spares whoever asks
again and again the bytes, and not the server the work.
"""

from __future__ import annotations

import hashlib
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Header
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icewright.core.errors import Conflict
from icewright.web.problems import BadRequest, Problem

IfMatch = Annotated[
    str | None, Header(max_length=1_000, description="The `ETag` that was seen: refused with 412 where it changed.")
]
_DIGEST_LENGTH: Final = 32
_NUMBER_LENGTH_MAX: Final = 20


class Conditional:
    """The ASGI middleware: tags what has none, and answers 304 where the caller has it already."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        held: list[Message] = []
        known = Headers(scope=scope).getlist("if-none-match")

        async def tagged(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_document(message):
                held.append(message)
                return
            if not held:
                await send(message)
                return
            start, body = held.pop(), message.get("body", b"")
            if message.get("more_body", False):  # longer than what is rendered here: nobody knows its digest yet
                await send(start)
                await send(message)
                return
            headers = MutableHeaders(scope=start)
            tag = headers.setdefault("etag", tag_of(body))
            if any(_is_among(tag, tags) for tags in known):
                for name in ("content-type", "content-length"):
                    del headers[name]
                await send({**start, "status": int(HTTPStatus.NOT_MODIFIED)})
                await send({"type": "http.response.body", "body": b""})
                return
            await send(start)
            await send(message)

        await self._app(scope, receive, tagged)


def tag_of(body: bytes, version: int | None = None) -> str:
    """A strong tag. With ``version``, what ``If-Match`` compares is that alone: see :func:`expected_version`."""
    said = hashlib.sha256(body).hexdigest()[:_DIGEST_LENGTH]
    return f'"{said}"' if version is None else f'"{version}.{said}"'


def expected_version(if_match: str | None) -> int | None:
    """The version that a change is meant for, None where it is for any.

    Raises ``BadRequest`` with status 412 for a tag of something else: no version of this had it.
    """
    if if_match is None or if_match.strip() == "*":
        return None
    number = if_match.strip().removeprefix('"').removesuffix('"').partition(".")[0]
    if number.isascii() and number.isdigit() and len(number) < _NUMBER_LENGTH_MAX:
        return int(number)
    raise changed("If-Match has no tag of this")


def changed(detail: str) -> BadRequest:
    """What is raised where a change is meant for another version than the present one."""
    hint = "look at it again, and send the ETag of that"
    return BadRequest(Problem(HTTPStatus.PRECONDITION_FAILED, Conflict.code, detail, hint))


def _is_document(start: Message) -> bool:
    kind = Headers(raw=start["headers"]).get("content-type", "")
    return start["status"] == HTTPStatus.OK and kind == "application/json"


def _is_among(tag: str, tags: str) -> bool:
    """Whether one of the listed tags is this one, by the weak comparison (RFC 9110, 8.8.3.2)."""
    listed = {one.strip().removeprefix("W/") for one in tags.split(",")}
    return "*" in listed or tag.removeprefix("W/") in listed
