"""How a provider is spoken with: by TLS, without redirects, in time, and never more than so many bytes.

The issuer is an administrator's word. All other addresses are the provider's: they are held to the same, so that
whoever answers in its place cannot have us speak with this machine, or with a cloud's own addresses (hazards T7).
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from authlib.integrations.requests_client import OAuth2Session
from requests import PreparedRequest, Response, exceptions
from requests.adapters import HTTPAdapter

from icewright.core.errors import LoginRefused, Unavailable
from icewright.core.networks import PRIVATE, inside, parse
from icewright.core.server_urls import is_loopback

TIMEOUT_S: Final = (5.0, 10.0)
"""For a connection, and for each read."""
ANSWER_BYTES_MAX: Final = 1024 * 1024
_CHUNK_BYTES: Final = 64 * 1024
_REDIRECTS: Final = range(300, 400)


def require_safe(url: str, *, beside: str | None = None) -> str:
    """The URL, if a secret may be sent there: by https, or to this machine where ``beside``, the issuer, is here too.

    Without ``beside`` it is the issuer itself. Raises :class:`LoginRefused`.
    """
    parts, issuer = urlsplit(url), urlsplit(beside or url)
    host, ours = parts.hostname or "", issuer.hostname or ""
    if parts.username is not None or parts.password is not None or parts.fragment or not host:
        raise LoginRefused(f"the provider names an address that is none of its kind: {url[:200]!r}")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host) and is_loopback(ours)):
        raise LoginRefused(f"the provider is not to be spoken with but by https: {url[:200]!r}")
    if host != ours and not is_loopback(ours):
        _require_elsewhere(host, parts.port or 443)
    return url


def _require_elsewhere(host: str, port: int) -> None:
    """Raise where a name that the provider gave leads to this machine, or to what only a machine itself may ask."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"the provider's {host[:200]!r} cannot be found: {error}", hint="try again") from error
    for *_, address in found:
        what = inside(parse(str(address[0])))
        if what not in {None, PRIVATE}:  # a company's own provider may well be in its own network
            raise LoginRefused(f"the provider names {host[:200]!r}, which leads to {what}")


class _Guarded(HTTPAdapter):
    """Sends what is safe to send, and reads what is not too much."""

    def __init__(self, issuer: str) -> None:
        super().__init__(max_retries=0)
        self._issuer = issuer

    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        """See requests. Raises :class:`LoginRefused` and :class:`Unavailable`."""
        url = require_safe(request.url or "", beside=self._issuer)
        kwargs.update(stream=True, timeout=TIMEOUT_S)
        try:
            response = super().send(request, *args, **kwargs)
            body = bytearray()
            for chunk in response.iter_content(_CHUNK_BYTES):
                body += chunk
                if len(body) > ANSWER_BYTES_MAX:
                    raise LoginRefused(f"the provider answers with more than {ANSWER_BYTES_MAX:,} bytes")
        except exceptions.RequestException as error:
            raise Unavailable(f"the provider does not answer: {type(error).__name__}", hint="try again") from error
        finally:
            self.close()
        if response.status_code in _REDIRECTS:
            raise LoginRefused(f"the provider redirects, which is not followed: {url[:200]!r}")
        response._content = bytes(body)  # noqa: SLF001 - what requests keeps of a body that was read
        return response


def session_of(issuer: str, client_id: str, client_secret: str | None, method: str) -> OAuth2Session:
    """A client of a provider; ``method`` is how it shows at the token endpoint who it is."""
    session = OAuth2Session(
        client_id,
        client_secret,
        token_endpoint_auth_method=method,
        code_challenge_method="S256",
    )
    session.auth = _as_it_is
    session.mount("https://", _Guarded(issuer))
    session.mount("http://", _Guarded(issuer))
    return session


def document(session: OAuth2Session, url: str) -> Mapping[str, Any]:
    """The JSON object at an address. Raises :class:`Unavailable`, also for what is none."""
    response = session.get(url, withhold_token=True, allow_redirects=False)
    try:
        found = json.loads(response.content) if response.ok else None
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"the provider's answer at {url} is no JSON", hint="is it the issuer's URL?") from error
    if not isinstance(found, dict):
        raise Unavailable(f"the provider answers {response.status_code} at {url}", hint="is it the issuer's URL?")
    return found


def _as_it_is(request: PreparedRequest) -> PreparedRequest:
    """No credentials of a ``.netrc``."""
    return request
