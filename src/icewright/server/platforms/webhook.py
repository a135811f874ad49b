"""A request to a receiver of the administrator's: how many servers there are to be."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import httpcore2

from icewright import __version__
from icewright.core.errors import OutcomeUnknown, Rejected, Unavailable
from icewright.notifications.senders.requests import Requests, error_name
from icewright.notifications.senders.urls import Url
from icewright.work.autotune.servers.platform import Resize

_NOT_DONE: Final = frozenset({HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_NOT_REACHED: Final = (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.ProxyError)


class WebhookPlatform:
    """A :class:`~icewright.work.autotune.servers.platform.Platform` behind HTTPS, where notifications may be sent too.

    ``endpoint`` is asked for address and secret at each request, so that a secret in a file is exchanged at any time.
    """

    def __init__(self, endpoint: Callable[[], tuple[Url, str]], requests: Requests) -> None:
        self._endpoint, self._requests = endpoint, requests

    def resize(self, wanted: Resize) -> str:
        """See the port."""
        url, secret = self._endpoint()
        headers = {
            "authorization": f"Bearer {secret}",
            "content-type": "application/json",
            "user-agent": f"icewright/{__version__}",
            "idempotency-key": wanted.decision_id,
        }
        try:
            status = self._requests.post(url, headers, body_of(wanted)).status
        except _NOT_REACHED as error:
            raise Unavailable(f"the receiver does not answer: {error_name(error)}") from error
        except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, OSError) as error:
            raise OutcomeUnknown(f"the receiver stopped answering: {error_name(error)}") from error
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return f"the receiver was asked for {wanted.after:,}"
        if status in _NOT_DONE:
            raise Unavailable(f"the receiver answers with status {status}")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT:
            raise OutcomeUnknown(f"the receiver answers with status {status}")
        if status < HTTPStatus.BAD_REQUEST:
            raise Rejected(f"the receiver answers with status {status}, and redirects are not followed")
        raise Rejected(f"the receiver refuses with status {status}")


def body_of(wanted: Resize) -> bytes:
    """What is sent: ``servers`` are those that there are to be, ``seen`` those that there are."""
    reason = {"code": wanted.reason.code, "text": wanted.reason.text, "figures": dict(wanted.reason.figures)}
    said = {"decision": wanted.decision_id, "servers": wanted.after, "seen": wanted.before, "reason": reason}
    return json.dumps(said, separators=(",", ":")).encode("ascii")
