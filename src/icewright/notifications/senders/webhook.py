"""Messages as signed HTTP requests: no redirects, a bounded time, and nothing of what is answered but its status."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import httpcore2

from icewright import __version__
from icewright.core.errors import Rejected, Unavailable
from icewright.core.times import Instant
from icewright.notifications.port import Outgoing, TryLater
from icewright.notifications.senders.requests import Answered, Requests, error_name
from icewright.notifications.senders.signatures import signed
from icewright.notifications.senders.urls import Url

BODY_BYTES_MAX: Final = 1 << 20
_AWAY: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


@dataclass(frozen=True, slots=True, repr=False)
class Endpoint:
    """Where to send to, and the secrets to sign with: the new one and, while they are exchanged, the old one."""

    url: Url
    secrets: tuple[bytes, ...]


class WebhookSender:
    """A :class:`~icewright.notifications.port.Sender` of requests. ``endpoint`` is asked at each attempt."""

    def __init__(self, endpoint: Callable[[], Endpoint], requests: Requests) -> None:
        self._endpoint, self._requests = endpoint, requests

    def send(self, outgoing: Outgoing, at: Instant) -> None:
        """See the port."""
        endpoint = self._endpoint()
        body = json.dumps(outgoing.document, separators=(",", ":"), ensure_ascii=True).encode("ascii")
        if len(body) > BODY_BYTES_MAX:
            raise Rejected(f"the message has more than {BODY_BYTES_MAX:,} bytes")
        headers = {
            "content-type": "application/json",
            "user-agent": f"icewright/{__version__}",
            **signed(outgoing.message_id, at // 1_000, body, endpoint.secrets),
        }
        try:
            answered = self._requests.post(endpoint.url, headers, body)
        except httpcore2.ProxyError as error:
            raise Unavailable("the proxy refuses the message") from error
        except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, OSError) as error:
            raise Unavailable(f"the receiver does not answer: {error_name(error)}") from error
        _judge(answered)


def _judge(answered: Answered) -> None:
    status = answered.status
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return
    if status in _AWAY or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise TryLater(f"the receiver answers with status {status}", wait_ms=answered.wait_s * 1_000)
    if status < HTTPStatus.BAD_REQUEST:
        raise Rejected(f"the receiver answers with status {status}, and redirects are not followed")
    raise Rejected(f"the receiver refuses the message with status {status}")
