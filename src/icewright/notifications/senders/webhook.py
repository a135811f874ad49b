"""Messages as signed HTTP requests: no redirects, a bounded time, and nothing of what is answered but its status."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import httpcore2

from icewright import __version__
from icewright.core.errors import Rejected, Unavailable
from icewright.core.times import Instant
from icewright.notifications.port import Outgoing, TryLater
from icewright.notifications.senders.guard import Guard, Pinned
from icewright.notifications.senders.signatures import signed
from icewright.notifications.senders.urls import Proxy, Url

PATIENCE_S: Final = 15.0
"""How long one attempt may take, from the first packet to the status."""
BODY_BYTES_MAX: Final = 1 << 20
_AWAY: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_WAIT_S_MAX: Final = 86_400


@dataclass(frozen=True, slots=True, repr=False)
class Endpoint:
    """Where to send to, and the secrets to sign with: the new one and, while they are exchanged, the old one."""

    url: Url
    secrets: tuple[bytes, ...]


class WebhookSender:
    """A :class:`~icewright.notifications.port.Sender` of requests. ``endpoint`` is asked at each attempt.

    ``proxy`` is an administrator's, by whom all goes; then it is the proxy that resolves and connects.
    """

    def __init__(
        self,
        endpoint: Callable[[], Endpoint],
        guard: Guard,
        *,
        context: ssl.SSLContext | None = None,
        proxy: Callable[[], Proxy | None] = lambda: None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._endpoint, self._guard, self._proxy, self._patience_s = endpoint, guard, proxy, patience_s
        self._context = context or ssl.create_default_context()

    def send(self, outgoing: Outgoing, at: Instant) -> None:
        """See the port."""
        endpoint = self._endpoint()
        body = json.dumps(outgoing.document, separators=(",", ":"), ensure_ascii=True).encode("ascii")
        if len(body) > BODY_BYTES_MAX:
            raise Rejected(f"the message has more than {BODY_BYTES_MAX:,} bytes")
        headers = {
            "content-type": "application/json",
            "user-agent": f"icewright/{__version__}",
            "connection": "close",
            "host": endpoint.url.authority,
            **signed(outgoing.message_id, at // 1_000, body, endpoint.secrets),
        }
        status, wait_s = self._answer(endpoint.url, headers, body)
        _judge(status, wait_s)

    def _answer(self, url: Url, headers: dict[str, str], body: bytes) -> tuple[int, int]:
        """The status that is answered, and for how many seconds to wait."""
        where = httpcore2.URL(scheme=url.scheme, host=url.host.strip("[]"), port=url.port, target=url.target)
        try:
            with (
                self._pool(url) as pool,
                pool.stream("POST", where, headers=list(headers.items()), content=body) as response,
            ):
                return response.status, _wait_s(response)
        except httpcore2.ProxyError as error:
            raise Unavailable("the proxy refuses the message") from error
        except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, OSError) as error:
            raise Unavailable(f"the receiver does not answer: {_told(error)}") from error

    def _pool(self, url: Url) -> httpcore2.ConnectionPool:
        until, proxy = time.monotonic() + self._patience_s, self._proxy()
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


def _judge(status: int, wait_s: int) -> None:
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return
    if status in _AWAY or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise TryLater(f"the receiver answers with status {status}", wait_ms=wait_s * 1_000)
    if status < HTTPStatus.BAD_REQUEST:
        raise Rejected(f"the receiver answers with status {status}, and redirects are not followed")
    raise Rejected(f"the receiver refuses the message with status {status}")


def _wait_s(response: httpcore2.Response) -> int:
    """What ``Retry-After`` asks for, in seconds; dates are left out."""
    found = next((value for name, value in response.headers if name.lower() == b"retry-after"), b"")
    return min(int(found), _WAIT_S_MAX) if found.isdigit() and len(found) < len(str(_WAIT_S_MAX)) + 1 else 0


def _told(error: BaseException) -> str:
    """What went wrong, without what a library would tell of addresses; of a certificate, what is wrong with it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted: {cause.verify_message}"
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__
