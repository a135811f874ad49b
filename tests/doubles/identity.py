"""Tokens, codes and sessions in memory: the plainest statement of the port."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from icewright.core.clock import Clock
from icewright.core.errors import NotAllowed, NotFound
from icewright.core.times import Instant
from icewright.model.access.identity import (
    SEEN_EVERY_MS,
    Ended,
    NewCode,
    NewToken,
    Session,
    TokenRecord,
    logged_in,
    session_ended,
    session_id,
    token_added,
    token_name,
    token_revoked,
)
from icewright.model.access.permissions import Principal
from tests.doubles.audit import MemoryAudit


class MemoryIdentities:
    """An :class:`~icewright.identity.port.IdentityStore` that is gone with the process."""

    def __init__(self, clock: Clock, audit: MemoryAudit | None = None) -> None:
        self._clock = clock
        self._audit = audit or MemoryAudit(clock)
        self._lock = threading.RLock()
        self._tokens: dict[str, TokenRecord] = {}
        self._codes: dict[str, tuple[NewCode, Instant]] = {}
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

    def add_code(self, digest: str, new: NewCode) -> None:
        """See the port."""
        with self._lock:
            now = self._clock.now()
            self._codes = {key: one for key, one in self._codes.items() if one[1] > now}
            self._codes[digest] = new, now + new.lifetime_ms

    def log_in(self, code_digest: str, session_digest: str, *, is_program: bool = False) -> Session | None:
        """See the port."""
        with self._lock:
            code, until = self._codes.get(code_digest, (None, 0))
            if code is None or code.is_program is not is_program:
                return None
            del self._codes[code_digest]
            if until <= self._clock.now() or not self._stands(code.principal):
                return None
            return self._open(session_digest, code.principal, code.conditions, is_program=is_program)

    def open_session(self, session_digest: str, principal: Principal, conditions: Sequence[str] = ()) -> None:
        """See the port."""
        with self._lock:
            self._open(session_digest, principal, conditions, is_program=False)

    def _open(self, digest: str, principal: Principal, conditions: Sequence[str], *, is_program: bool) -> Session:
        now = self._clock.now()
        self._sessions = {key: one for key, one in self._sessions.items() if one.lasts(now)}
        opened = Session(session_id(digest), principal, now, now, tuple(conditions), is_program)
        self._sessions[digest] = opened
        self._audit.append(logged_in(opened))
        return opened

    def session(self, digest: str, *, attended: bool) -> Session | None:
        """See the port."""
        with self._lock:
            found, now = self._sessions.get(digest), self._clock.now()
            if found is None or not self._lasts(found):
                return None
            if attended and now - found.seen_at >= SEEN_EVERY_MS:
                self._sessions[digest] = replace(found, seen_at=now)
            return found

    def sessions(
        self, *, limit: int, name: str | None = None, after: tuple[Instant, str] | None = None
    ) -> Sequence[Session]:
        """See the port."""
        with self._lock:
            lasting = [one for one in self._sessions.values() if self._lasts(one)]
        found = [one for one in lasting if name is None or one.principal.name == name]
        found.sort(key=_place, reverse=True)
        return [one for one in found if after is None or _place(one) < after][:limit]

    def close_session(self, digest: str) -> None:
        """See the port."""
        with self._lock:
            self._end([digest] if digest in self._sessions else [])

    def end_session(self, session_id: str) -> Session:
        """See the port."""
        with self._lock:
            ended = self._end([key for key, one in self._sessions.items() if one.session_id == session_id])
        if not ended:
            raise NotFound(f"no session {session_id}")
        return ended[0]

    def end_sessions(self, name: str) -> Ended:
        """See the port."""
        with self._lock:
            now = self._clock.now()
            codes = [key for key, (new, until) in self._codes.items() if new.principal.name == name and until > now]
            for key in codes:
                del self._codes[key]
            ended = self._end([key for key, one in self._sessions.items() if one.principal.name == name])
            return Ended(tuple(ended), len(codes))

    def _end(self, digests: Sequence[str]) -> Sequence[Session]:
        """Those that lasted, the newest first."""
        gone = sorted((self._sessions.pop(digest) for digest in digests), key=_place, reverse=True)
        ended = [one for one in gone if self._lasts(one)]
        for one in ended:
            self._audit.append(session_ended(one))
        return ended

    def _lasts(self, session: Session) -> bool:
        return session.lasts(self._clock.now()) and self._stands(session.principal)

    def _stands(self, principal: Principal) -> bool:
        """Whether the token that somebody came by, if it was one, is still valid."""
        name, now = token_name(principal), self._clock.now()
        return name is None or any(one.name == name and one.is_valid(now) for one in self._tokens.values())


def _place(session: Session) -> tuple[Instant, str]:
    return session.begun_at, session.session_id
