"""A connection to a server: one request and its answer, problems as the very errors that the server raised."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import httpx2

from icewright.api_client.problems import problem
from icewright.core.errors import Rejected, Unavailable
from icewright.core.server_urls import client_url, trusted
from icewright.model.iceberg.tables import Json

TIMEOUT_S: Final = 30.0
SENDING_S: Final = 90.0
"""How long a service may take to accept a message, with the process that sends it."""
LONG_S: Final = 3600.0
"""How long it may take to list all files of a table, or to read all its metadata before any of them goes."""
API: Final = "/api/v1"
_PAUSES_S: Final = (0.2, 1.0, 3.0)
"""Before what got no answer is asked for again: a server that starts again, or the next one behind a balancer."""
_KEY: Final = "Idempotency-Key"
_UNDER_WAY: Final = "in-progress"


@dataclass(frozen=True, slots=True)
class Page:
    """Some items of a list; ``next_cursor`` is None on the last page."""

    items: tuple[Json, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request as it was sent, but for the token."""

    method: str
    url: str
    body: Json | None

    def __str__(self) -> str:
        """``POST http://127.0.0.1:7077/api/v1/... {"json": ...}`` in ASCII."""
        return f"{self.method} {self.url}" + ("" if self.body is None else f" {json.dumps(self.body)}")


class Connection:
    """A connection to a server, for :class:`~icewright.api_client.client.Client`."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx2.BaseTransport | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raises :class:`Rejected` for what is not the address of a server, or would send the token in the clear."""
        self.url, self._pause = client_url(url), pause
        self.calls: list[ApiCall] = []
        self._http = httpx2.Client(
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT_S,
            trust_env=False,
            verify=trusted(self.url),
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.close()

    def page(self, path: str, query: Mapping[str, Any]) -> Page:
        """A page of a list."""
        found = self.ask("GET", path, query)
        try:
            return Page(tuple(found["items"]), found["next_cursor"])
        except KeyError as error:
            raise Unavailable(f"{self.url}: the answer is not a page of a list: {error} is missing") from error

    def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Json | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """A request, and the object that it is answered by. Raises what the server says is wrong."""
        pairs = list(query_pairs(query or {}))
        url = f"{self.url}{API}{path}" + (f"?{urlencode(pairs, errors='surrogatepass')}" if pairs else "")
        self.calls.append(ApiCall(method, url, body))
        # Bodies go out in ASCII: names may hold characters that UTF-8 cannot.
        content = None if body is None else json.dumps(body).encode("ascii")
        key = {_KEY: f'"{uuid.uuid4()}"'} if method == "POST" else {}
        headers = {**headers, **key, **({} if body is None else {"Content-Type": "application/json"})}
        try:
            request = self._http.build_request(method, url, content=content, headers=headers, timeout=timeout_s)
            response, found = self._answer(request)
        except httpx2.InvalidURL as error:
            raise Rejected(f"not the address of a server: {self.url}") from error
        if not response.is_success:
            raise problem(response.status_code, found)
        if not isinstance(found, dict):
            raise Unavailable(f"{self.url} does not answer as icewright does")
        return found

    def _answer(self, request: httpx2.Request) -> tuple[httpx2.Response, Any]:
        """What the server answers at last; a key's first request may still be under way when the second one comes."""
        for pause_s in _PAUSES_S:
            try:
                response, found = self._once(request)
            except _Lost:
                self._pause(pause_s)
                continue
            if not isinstance(found, dict) or found.get("code") != _UNDER_WAY:
                return response, found
            self._pause(pause_s)
        return self._once(request)

    def _once(self, request: httpx2.Request) -> tuple[httpx2.Response, Any]:
        try:
            response = self._http.send(request)
        except httpx2.HTTPError as error:
            lost = isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError)
            raise (_Lost if lost and not isinstance(error, httpx2.ConnectError) else Unavailable)(
                f"the server at {self.url} does not answer: {error or type(error).__name__}", hint=_hint(error)
            ) from error
        try:
            return response, response.json()
        except ValueError as error:
            raise Unavailable(f"{self.url} answers {response.status_code}, and not as icewright does") from error


class _Lost(Unavailable):
    """The connection broke off behind the request: it may have been carried out."""


def _hint(error: httpx2.HTTPError) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "this machine does not trust the issuer of its certificate; SSL_CERT_FILE names a file with others"
    return "is it running? `icewright serve` starts it"


def part(text: str) -> str:
    """A word as one part of a path."""
    return quote(text, safe="", errors="surrogatepass")


def query_pairs(query: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What stands behind the question mark; a list is a key several times, None is left out."""
    for key, value in query.items():
        if isinstance(value, list):
            yield from ((key, str(item)) for item in value)
        elif value is not None:
            yield key, str(value)
