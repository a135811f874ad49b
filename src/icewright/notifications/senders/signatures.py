"""Signatures of messages to programs, as the specification Standard Webhooks has them (standardwebhooks.com, v1).

Headers ``webhook-id``, ``webhook-timestamp`` (seconds) and ``webhook-signature``: one or more of ``v1,`` and the
Base64 of HMAC-SHA256 over ``id.timestamp.body``, separated by spaces, one for each secret that is valid at the moment.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Final

from icewright.core.errors import InvalidConfiguration

PREFIX: Final = "whsec_"
_BYTES_MIN, _BYTES_MAX = 24, 64
"""As the specification wants them."""


def parse_secret(text: str, key: str) -> bytes:
    """The key that a secret is. Raises :class:`InvalidConfiguration` naming ``key`` and nothing of the secret."""
    try:
        found = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if not text.startswith(PREFIX) or not _BYTES_MIN <= len(found) <= _BYTES_MAX:
        raise InvalidConfiguration(
            f"{key}: not a secret as Standard Webhooks has them",
            hint=f"write {PREFIX} and the Base64 of {_BYTES_MIN} to {_BYTES_MAX} random bytes, as "
            f"`openssl rand -base64 32` makes it",
        )
    return found


def signed(message_id: str, at_s: int, body: bytes, secrets: Sequence[bytes]) -> Mapping[str, str]:
    """The headers of a message at a time, in seconds since the epoch."""
    content = b".".join((message_id.encode("ascii"), str(at_s).encode("ascii"), body))
    digests = (hmac.new(secret, content, hashlib.sha256).digest() for secret in secrets)
    signatures = " ".join(f"v1,{base64.b64encode(digest).decode('ascii')}" for digest in digests)
    return {"webhook-id": message_id, "webhook-timestamp": str(at_s), "webhook-signature": signatures}
