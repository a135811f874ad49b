"""A provider of OpenID Connect in memory: it vouches for whom it is told, and signs nothing."""

from __future__ import annotations

import secrets
import threading
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qs, urlencode, urlsplit

from icewright.core.errors import LoginRefused, Unavailable
from icewright.identity.people_port import Attempt
from icewright.model.access.people import Person

_AWAY: Final = "the provider does not answer"


class MemoryProvider:
    """A :class:`~icewright.identity.people_port.Provider` that is gone with the process."""

    def __init__(self, issuer: str = "https://provider.invalid") -> None:
        self._issuer = issuer
        self._lock = threading.Lock()
        self._codes: dict[str, tuple[Person, str, str]] = {}
        self.is_away = False
        self.has_logout = False
        self.takes_tokens = False
        self.tokens: dict[str, Person] = {}

    @property
    def issuer(self) -> str:
        return self._issuer

    def address(self, attempt: Attempt, redirect_uri: str) -> str:
        self._require_here()
        asked = {"state": attempt.state, "challenge": _challenge(attempt), "redirect_uri": redirect_uri}
        return f"{self._issuer}/authorize?{urlencode(asked)}"

    def visit(self, address: str, person: Person) -> str:
        """Where a browser is sent back to in which somebody has logged in at an address."""
        asked = {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}
        code = secrets.token_urlsafe(16)
        with self._lock:
            self._codes[code] = person, asked["challenge"], asked["redirect_uri"]
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def person(self, code: str, attempt: Attempt, redirect_uri: str) -> Person:
        self._require_here()
        with self._lock:
            found = self._codes.pop(code, None)
        if found is None or found[1:] != (_challenge(attempt), redirect_uri):
            raise LoginRefused("the provider does not take the code", hint="log in again")
        return found[0]

    def bearer(self, token: str) -> Person:
        self._require_here()
        found = self.tokens.get(token) if self.takes_tokens else None
        if found is None:
            raise LoginRefused("the provider knows no such token")
        return found

    def logout_address(self, back: str) -> str | None:
        self._require_here()
        return f"{self._issuer}/logout?{urlencode({'back': back})}" if self.has_logout else None

    def _require_here(self) -> None:
        if self.is_away:
            raise Unavailable(_AWAY, hint="try again")


def _challenge(attempt: Attempt) -> str:
    return sha256(f"{attempt.nonce} {attempt.verifier}".encode()).hexdigest()
