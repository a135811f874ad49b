"""Requests as bytes, straight into the application: no client in between that would tidy them up first."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI

from tests.builders.served import HOST, TOKEN

HANGS_AFTER_S = 60
"""Far more than anything takes on a machine with ten times too much to do: what takes longer does not end."""
PROBLEM = {"type", "title", "status", "detail", "code", "hint", "instance"}

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Got:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The code of a problem, checked for its form."""
        assert self.headers["content-type"] == "application/problem+json", self
        document = json.loads(self.body)
        assert set(document) == PROBLEM
        assert document["status"] == self.status
        return str(document["code"])


@dataclass
class Asker:
    """Asks an application as a web server would, and counts."""

    app: FastAPI
    runner: asyncio.Runner
    asked: int = 0
    statuses: dict[int, int] = field(default_factory=dict)
    codes: set[str] = field(default_factory=set)

    def ask(
        self, method: str, target: bytes, *, headers: Headers = (), body: bytes = b"", token: str | None = TOKEN
    ) -> Got:
        """Ask for ``target``, with a token or without one. Raises ``TimeoutError`` where there never is an answer."""
        credentials = [] if token is None else [(b"authorization", b"Bearer " + token.encode())]
        got = self.runner.run(
            asyncio.wait_for(self._ask(method, target, [*headers, *credentials], body), HANGS_AFTER_S)
        )
        self.asked += 1
        self.statuses[got.status] = self.statuses.get(got.status, 0) + 1
        assert got.status < 500, (method, target[:200], body[:200], got)
        if got.status >= 400:
            self.codes.add(got.code)
        return got

    async def _ask(self, method: str, target: bytes, headers: Headers, body: bytes) -> Got:
        path, _, query = target.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": [(b"host", HOST.encode()), *((name.lower(), value) for name, value in headers)],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 7077),
            "state": {},
        }
        waiting = [{"type": "http.request", "body": body, "more_body": False}]
        status, got_headers, parts = 0, {}, bytearray()

        async def receive() -> Any:
            return waiting.pop() if waiting else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal status, got_headers
            if message["type"] == "http.response.start":
                status = message["status"]
                got_headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]}
            else:
                parts.extend(message.get("body", b""))

        await self.app(scope, receive, send)
        return Got(status, got_headers, bytes(parts))


@contextmanager
def asking(app: FastAPI) -> Iterator[Asker]:
    """Somebody who asks an application."""
    with asyncio.Runner() as runner:
        yield Asker(app, runner)


def documented_codes(document: Any) -> set[str]:
    """The codes that the OpenAPI document says there are."""
    return set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", document["info"]["description"]))
