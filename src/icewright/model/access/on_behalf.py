"""Who asked, as one server tells another one that answers in its place."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from icewright.core.codec import dumps, loads
from icewright.core.errors import InvalidMessage
from icewright.model.access.permissions import Principal

ON_BEHALF_OF: Final = "icewright-on-behalf-of"
"""The header that says on whose behalf a server asks. Believed beside the owner's token alone, which may do it all."""


def to_header(principal: Principal) -> str:
    """A principal as the value of :data:`ON_BEHALF_OF`: ASCII, whatever their name."""
    return base64.urlsafe_b64encode(dumps(principal).encode("utf-8", "surrogatepass")).decode()


def from_header(value: str) -> Principal:
    """What :func:`to_header` was given. Raises :class:`InvalidMessage` for anything else."""
    try:
        return loads(Principal, base64.b64decode(value, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error) as error:
        raise InvalidMessage(f"{ON_BEHALF_OF} names no principal: {error}") from error
