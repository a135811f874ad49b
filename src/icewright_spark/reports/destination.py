"""The server that commits are reported to: over HTTP, with a token by reference."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import httpx2

from icewright.core.errors import InvalidConfiguration, Rejected, Unavailable
from icewright.core.server_urls import client_url, trusted

_TRY_LATER: Final = frozenset({401, 403, 408, 421, 425, 429})
"""Refusals that say nothing of the event: of the credentials, the address or the moment."""
_SERVER_ERRORS_FROM: Final = 500
_PROBLEM: Final = "application/problem+json"
_PROBLEM_TYPE: Final = "urn:icewright:problem:"


class Destination:
    """A server, and the token that is presented there, by reference: ``env:NAME`` or ``file:/path``."""

    def __init__(self, url: str, token: str) -> None:
        """Raises :class:`InvalidConfiguration`."""
        try:
            self._url = client_url(url)
        except Rejected as error:
            raise InvalidConfiguration(error.message, hint=error.hint) from error
        self._token, self._trusted = _secret(token), trusted(url)

    def tell(self, events: Sequence[Any], until_s: float, *, late: bool = True) -> None:
        """Tell of events; ``late``: that waited. Raises ``Rejected`` where one is wrong, else ``Unavailable``."""
        body = {"events": list(events), "channel": "outbox" if late else "http"}
        try:
            response = httpx2.post(
                f"{self._url}/api/v1/events/commits/batch",
                content=json.dumps(body),
                headers={"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
                timeout=max(0.1, until_s - time.monotonic()),
                trust_env=False,
                verify=self._trusted,
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unavailable(f"{self._url} does not answer: {error or type(error).__name__}") from error
        if response.is_success:
            return
        said = f"{self._url} answered {response.status_code}: {response.text[:300]}"
        later = response.status_code in _TRY_LATER or response.status_code >= _SERVER_ERRORS_FROM
        raise Unavailable(said) if later or not _is_problem_of_ours(response) else Rejected(said)


def _is_problem_of_ours(response: httpx2.Response) -> bool:
    """Whether icewright itself refused: a proxy before it knows nothing of events, whatever status it answers."""
    if response.headers.get("content-type", "").partition(";")[0].strip().lower() != _PROBLEM:
        return False
    try:
        said = json.loads(response.content)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and bool(said.get("code")) and said.get("type") == f"{_PROBLEM_TYPE}{said['code']}"


def _secret(reference: str) -> str:
    source, _, where = reference.partition(":")
    try:
        if source == "env":
            return os.environ[where]
        if source == "file":
            return Path(where).read_text(encoding="utf-8").strip()
    except (KeyError, OSError, UnicodeDecodeError) as error:
        raise InvalidConfiguration(f"there is no token in {reference}") from error
    raise InvalidConfiguration("the token is given as env:NAME or file:/path, never as it is")
