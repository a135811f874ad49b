"""HTTP requests to addresses that were looked at: no redirects, a bounded time, a status and nothing else."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import httpcore2

from icewright.notifications.senders.guard import Guard, Pinned
from icewright.notifications.senders.urls import Proxy, Url

TIMEOUT_S: Final = 15.0
"""How long one request may take, from the first packet to the status."""
_WAIT_S_MAX: Final = 86_400


@dataclass(frozen=True, slots=True)
class Answered:
    """The status, and for how many seconds the receiver wants to be left alone."""

    status: int
    wait_s: int


class Requests:
    """Sends requests where ``guard`` allows it.

    ``proxy`` is an administrator's, by whom all goes; then it is the proxy that resolves and connects.
    """

    def __init__(
        self,
        guard: Guard,
        *,
        context: ssl.SSLContext | None = None,
        proxy: Callable[[], Proxy | None] = lambda: None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._guard, self._proxy, self._timeout_s = guard, proxy, timeout_s
        self._context = context or ssl.create_default_context()

    def post(self, url: Url, headers: Mapping[str, str], body: bytes) -> Answered:
        """What is answered.

        Raises :class:`~icewright.core.errors.Forbidden` and :class:`~icewright.core.errors.Unavailable` as the guard
        does, and what ``httpcore2`` raises.
        """
        where = httpcore2.URL(scheme=url.scheme, host=url.host.strip("[]"), port=url.port, target=url.target)
        sent = [*headers.items(), ("connection", "close"), ("host", url.authority)]
        with self._pool(url) as pool, pool.stream("POST", where, headers=sent, content=body) as response:
            return Answered(response.status, _wait_s(response))

    def _pool(self, url: Url) -> httpcore2.ConnectionPool:
        until, proxy = time.monotonic() + self._timeout_s, self._proxy()
        if proxy is None:
            backend = Pinned(self._guard.addresses(url), until)
            return httpcore2.ConnectionPool(ssl_context=self._context, network_backend=backend)
        self._guard.judge_as_far_as_known(url)
        return httpcore2.HTTPProxy(
            f"{proxy.scheme}://{proxy.authority}",
            proxy_auth=proxy.login,
            ssl_context=self._context,
            network_backend=Pinned((), until),
        )


def error_name(error: BaseException) -> str:
    """What went wrong, without what a library would tell of addresses; of a certificate, what is wrong with it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted: {cause.verify_message}"
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


def _wait_s(response: httpcore2.Response) -> int:
    """What ``Retry-After`` asks for, in seconds; dates are left out."""
    found = next((value for name, value in response.headers if name.lower() == b"retry-after"), b"")
    return min(int(found), _WAIT_S_MAX) if found.isdigit() and len(found) < len(str(_WAIT_S_MAX)) + 1 else 0
