"""Keyed digests of strings in queries: equal ones stay equal, and who does not have the key cannot try values."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

_DIGITS: Final = 16


def literal_digest(key: bytes, text: str) -> str:
    """What is kept of a string: 64 bits in hexadecimal digits."""
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()[:_DIGITS]
