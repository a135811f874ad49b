"""The keys of a provider, by their ids: read when they are needed, and anew when a signature names one that is new."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey, import_key

from icewright.core.errors import LoginRefused, Unavailable
from icewright.core.times import Instant

KEPT_MS: Final = 10 * 60_000
"""How long keys are believed: one that the provider took back signs nothing after that."""
REREAD_MS: Final = 60_000
"""How often they are read again since a signature names one that is not there: anybody can name any."""
AGAIN_MS: Final = 10_000
"""How long the provider is left alone when it did not answer: strangers may have us ask it."""
KEYS_MAX: Final = 100
_RSA_BITS_MIN: Final = 2_048


class Keys:
    """The keys that ``read`` finds. Safe for several threads."""

    def __init__(self, read: Callable[[], Mapping[str, Any]], now: Callable[[], Instant]) -> None:
        self._read, self._now = read, now
        self._lock = threading.Lock()
        self._keys: dict[str, Key] = {}
        self._read_at: Instant | None = None
        self._away: tuple[Instant, str] | None = None

    def of(self, kid: Any) -> Key:
        """The key of that id; without one, the only key that there is.

        Raises :class:`LoginRefused` where there is none, and what ``read`` raises.
        """
        with self._lock:
            if self._read_at is None or not 0 <= self._now() - self._read_at < KEPT_MS:
                self._load()
            found = self._find(kid)
            if found is None and self._now() - (self._read_at or 0) >= REREAD_MS:
                self._load()
                found = self._find(kid)
        if found is None:
            raise LoginRefused("the provider's answer is signed with a key that it does not name as its own")
        return found

    def _find(self, kid: Any) -> Key | None:
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid) if isinstance(kid, str) else None

    def _load(self) -> None:
        now = self._now()
        if self._away is not None and 0 <= now - self._away[0] < AGAIN_MS:
            raise Unavailable(self._away[1], hint="try again in a moment")
        try:
            listed = self._read().get("keys")
        except Unavailable as error:
            self._away = now, error.message
            raise
        found = [_key(one) for one in listed[:KEYS_MAX]] if isinstance(listed, list) else []
        # A key without an id can only be the only one; of two with one id, neither is known by it.
        ids = [kid for kid, _ in found]
        self._keys = {kid: key for kid, key in found if key is not None and ids.count(kid) == 1}
        self._read_at, self._away = now, None


def _key(listed: Any) -> tuple[str, Key | None]:
    """A key that signatures can be checked with, None for one that is for something else or that nobody knows."""
    if not isinstance(listed, dict) or listed.get("use", "sig") != "sig" or "d" in listed:
        return "", None
    kid = listed.get("kid")
    try:
        key = import_key(listed)
    except (JoseError, ValueError, TypeError, KeyError):
        return "", None
    is_fit = isinstance(key, ECKey | OKPKey) or (isinstance(key, RSAKey) and key.raw_value.key_size >= _RSA_BITS_MIN)
    return (kid if isinstance(kid, str) else ""), (key if is_fit else None)
