"""One server asks another one of the same store, by the owner's token that they share."""

from __future__ import annotations

from typing import Final

import httpx2

from icewright.api_client.tls import trusted
from icewright.core.errors import OutcomeUnknown, Rejected, Unavailable
from icewright.core.server_urls import client_url
from icewright.model.access.on_behalf import ON_BEHALF_OF, to_header
from icewright.server.cluster.leading import Answer, Question

_CONNECT_S: Final = 3.0
_KEPT_HEADERS: Final = frozenset({"content-type", "etag", "idempotency-replayed", "retry-after", "vary"})
_UNKNOWN_TO_IT: Final = frozenset({401, 421})
_PEER_HINT: Final = "give each server a certificate and its own server.peer_url, or ask the leading one"
_HINT: Final = "ask again: the next leader is there within seconds"


def ask(
    url: str,
    token: str,
    question: Question,
    *,
    in_the_clear: bool = False,
    transport: httpx2.BaseTransport | None = None,
) -> Answer:
    """What the server at ``url`` answers. ``in_the_clear``: TLS ends in front of the servers.

    Raises :class:`~icewright.core.errors.Unavailable` when it does not answer or does not know this server, and
    :class:`~icewright.core.errors.OutcomeUnknown` when it may have done what was asked for, and nobody heard of it.
    """
    changes = question.method not in ("GET", "HEAD")
    timeout = httpx2.Timeout(question.patience_s, connect=_CONNECT_S)
    headers = {
        **question.headers,
        "Authorization": f"Bearer {token}",
        ON_BEHALF_OF: to_header(question.asked_by),
    }
    try:
        address = url if in_the_clear else client_url(url)
        with httpx2.Client(timeout=timeout, trust_env=False, transport=transport, verify=trusted(address)) as http:
            found = http.request(question.method, f"{address}{question.target}", headers=headers, content=question.body)
    except Rejected as error:
        raise Unavailable(f"the leading server cannot be asked: {error.message}", hint=_PEER_HINT) from error
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        raise Unavailable(f"the leading server does not answer: {error}", hint=_HINT) from error
    except httpx2.HTTPError as error:
        if not changes:
            raise Unavailable(f"the leading server does not answer: {error}", hint=_HINT) from error
        said = f"the leading server stopped answering during the request: {error}"
        raise OutcomeUnknown(said, hint="the outcome is unknown; check it before you retry") from error
    if found.status_code in _UNKNOWN_TO_IT:
        raise Unavailable(
            f"the leading server at {url} denies access to this one (status {found.status_code})",
            hint="give all servers of the store the same server.token, and each its own server.peer_url",
        )
    kept = {name: value for name, value in found.headers.items() if name in _KEPT_HEADERS}
    return Answer(found.status_code, kept, found.content)
