"""Tokens, codes and sessions in memory: the plainest statement of the port."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from icewright.adapters.memory.audit import MemoryAudit
from icewright.domain.access import Principal
from icewright.domain.errors import NotAllowed, NotFound
from icewright.domain.identity import (
    SEEN_EVERY_MS,
    NewToken,
    Session,
    TokenRecord,
    logged_in,
    token_added,
    token_name,
    token_revoked,
)
from icewright.domain.tables import Instant
from icewright.ports.clock import Clock


class MemoryIdentities:
    """An :class:`~icewright.ports.identity.IdentityStore` that is gone with the process."""

    def __init__(self, clock: Clock, audit: MemoryAudit | None = None) -> None:
        self._clock = clock
        self._audit = audit or MemoryAudit(clock)
        self._lock = threading.RLock()
        self._tokens: dict[str, TokenRecord] = {}
        self._codes: dict[str, tuple[Principal, Instant]] = {}
        self._sessions: dict[str, Session] = {}

    def add_token(self, new: NewToken, digest: str, hint: str, created_by: str) -> TokenRecord:
        """See the port."""
        with self._lock:
            record = new.record(hint, created_by, self._clock.now())
            if any(one.name == new.name for one in self._tokens.values()):
                raise NotAllowed(f"there is or was a token {new.name}", hint="take another name")
            self._tokens[digest] = record
            self._audit.append(token_added(record))
            return record

    def token(self, digest: str) -> TokenRecord | None:
        """See the port."""
        with self._lock:
            found, now = self._tokens.get(digest), self._clock.now()
            if found is None or not found.is_valid(now):
                return None
            if now - (found.last_used_at or 0) >= SEEN_EVERY_MS:
                self._tokens[digest] = found = replace(found, last_used_at=now)
            return found

    def tokens(self, *, limit: int, after: str | None = None) -> Sequence[TokenRecord]:
        """See the port."""
        with self._lock:
            found = sorted(self._tokens.values(), key=lambda one: one.name)
        return [one for one in found if after is None or one.name > after][:limit]

    def revoke(self, name: str) -> TokenRecord:
        """See the port."""
        with self._lock:
            for digest, found in self._tokens.items():
                if found.name == name and found.revoked_at is not None:
                    return found
                if found.name == name:
                    self._tokens[digest] = revoked = replace(found, revoked_at=self._clock.now())
                    self._audit.append(token_revoked(revoked))
                    return revoked
        raise NotFound(f"no token {name}")

    def has_tokens(self) -> bool:
        """See the port."""
        with self._lock:
            return any(one.is_valid(self._clock.now()) for one in self._tokens.values())

    def add_code(self, digest: str, principal: Principal, lifetime_ms: int) -> None:
        """See the port."""
        with self._lock:
            now = self._clock.now()
            self._codes = {key: one for key, one in self._codes.items() if one[1] > now}
            self._codes[digest] = principal, now + lifetime_ms

    def log_in(self, code_digest: str, session_digest: str) -> Principal | None:
        """See the port."""
        with self._lock:
            principal, until = self._codes.pop(code_digest, (None, 0))
            if principal is None or until <= self._clock.now() or not self._stands(principal):
                return None
            self.open_session(session_digest, principal)
            return principal

    def open_session(self, session_digest: str, principal: Principal) -> None:
        """See the port."""
        with self._lock:
            now = self._clock.now()
            self._sessions = {key: one for key, one in self._sessions.items() if one.lasts(now)}
            self._sessions[session_digest] = Session(principal, now, now)
            self._audit.append(logged_in(principal))

    def session(self, digest: str, *, attended: bool) -> Principal | None:
        """See the port."""
        with self._lock:
            found, now = self._sessions.get(digest), self._clock.now()
            if found is None or not found.lasts(now) or not self._stands(found.principal):
                return None
            if attended and now - found.seen_at >= SEEN_EVERY_MS:
                self._sessions[digest] = replace(found, seen_at=now)
            return found.principal

    def close_session(self, digest: str) -> None:
        """See the port."""
        with self._lock:
            self._sessions.pop(digest, None)

    def _stands(self, principal: Principal) -> bool:
        """Whether the token that somebody came by, if it was one, is still valid."""
        name, now = token_name(principal), self._clock.now()
        return name is None or any(one.name == name and one.is_valid(now) for one in self._tokens.values())
