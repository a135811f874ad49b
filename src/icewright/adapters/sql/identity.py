"""Tokens, one-time codes and sessions in an SQL database, the same for all servers of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, select, update

from icewright.adapters.sql import transactions
from icewright.adapters.sql.audit import record
from icewright.adapters.sql.documents import dump, load, text_of
from icewright.adapters.sql.schema_access import login_codes, sessions, tokens
from icewright.adapters.sql.transactions import reading, writing
from icewright.domain.access import Grants, Principal
from icewright.domain.errors import NotAllowed, NotFound
from icewright.domain.identity import (
    IDLE_MS,
    SEEN_EVERY_MS,
    SESSION_MS,
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


class SqlIdentities:
    """An :class:`~icewright.ports.identity.IdentityStore` over an engine of ``open_store``.

    Time is the database's unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock

    def add_token(self, new: NewToken, digest: str, hint: str, created_by: str) -> TokenRecord:
        """See the port."""
        with writing(self._engine) as connection:
            now = self._now(connection)
            added = new.record(hint, created_by, now)
            if _named(connection, new.name) is not None:
                raise NotAllowed(f"there is or was a token {new.name}", hint="take another name")
            connection.execute(insert(tokens).values(digest=digest, **_token_row(added)))
            record(connection, now, token_added(added))
            return added

    def token(self, digest: str) -> TokenRecord | None:
        """See the port."""
        with reading(self._engine) as connection:
            now = self._now(connection)
            row = connection.execute(select(tokens).where(tokens.c.digest == digest)).mappings().one_or_none()
        found = None if row is None else _token(row)
        if found is None or not found.is_valid(now):
            return None
        if now - (found.last_used_at or 0) < SEEN_EVERY_MS:
            return found
        with writing(self._engine) as connection:
            connection.execute(update(tokens).where(tokens.c.name == found.name).values(last_used_at=now))
        return replace(found, last_used_at=now)

    def tokens(self, *, limit: int, after: str | None = None) -> Sequence[TokenRecord]:
        """See the port."""
        query = select(tokens).order_by(tokens.c.name).limit(limit)
        if after is not None:
            query = query.where(tokens.c.name > after)
        with reading(self._engine) as connection:
            return [_token(row) for row in connection.execute(query).mappings()]

    def revoke(self, name: str) -> TokenRecord:
        """See the port."""
        with writing(self._engine) as connection:
            found = _named(connection, name)
            if found is None:
                raise NotFound(f"no token {name}")
            if found.revoked_at is not None:
                return found
            now = self._now(connection)
            connection.execute(update(tokens).where(tokens.c.name == name).values(revoked_at=now))
            revoked = replace(found, revoked_at=now)
            record(connection, now, token_revoked(revoked))
            return revoked

    def has_tokens(self) -> bool:
        """See the port."""
        with reading(self._engine) as connection:
            lasts = tokens.c.expires_at.is_(None) | (tokens.c.expires_at > self._now(connection))
            query = select(func.count()).select_from(tokens).where(tokens.c.revoked_at.is_(None), lasts)
            return bool(connection.scalar(query))

    def add_code(self, digest: str, principal: Principal, lifetime_ms: int) -> None:
        """See the port."""
        with writing(self._engine) as connection:
            now = self._now(connection)
            connection.execute(delete(login_codes).where(login_codes.c.until <= now))
            row = {"digest": digest, "principal": dump(principal), "until": now + lifetime_ms}
            connection.execute(insert(login_codes), row)

    def log_in(self, code_digest: str, session_digest: str) -> Principal | None:
        """See the port."""
        wanted = select(login_codes).where(login_codes.c.digest == code_digest)
        with reading(self._engine) as connection:  # strangers may ask, and must not take the writers' turn
            row = connection.execute(wanted).one_or_none()
            if row is None or row.until <= self._now(connection):
                return None
        with writing(self._engine) as connection:
            row = connection.execute(wanted).one_or_none()
            if row is None:  # somebody was faster
                return None
            connection.execute(delete(login_codes).where(login_codes.c.digest == code_digest))
            principal, now = load(Principal, row.principal), self._now(connection)
            if row.until <= now or not _stands(connection, principal, now):
                return None
            _open(connection, session_digest, principal, now)
            return principal

    def open_session(self, session_digest: str, principal: Principal) -> None:
        """See the port."""
        with writing(self._engine) as connection:
            _open(connection, session_digest, principal, self._now(connection))

    def session(self, digest: str, *, attended: bool) -> Principal | None:
        """See the port."""
        with reading(self._engine) as connection:
            now = self._now(connection)
            row = connection.execute(select(sessions).where(sessions.c.digest == digest)).one_or_none()
            if row is None:
                return None
            found = Session(load(Principal, row.principal), row.begun_at, row.seen_at)
            if not found.lasts(now) or not _stands(connection, found.principal, now):
                return None
        if attended and now - found.seen_at >= SEEN_EVERY_MS:
            with writing(self._engine) as connection:
                connection.execute(update(sessions).where(sessions.c.digest == digest).values(seen_at=now))
        return found.principal

    def close_session(self, digest: str) -> None:
        """See the port."""
        with writing(self._engine) as connection:
            connection.execute(delete(sessions).where(sessions.c.digest == digest))

    def _now(self, connection: Connection) -> Instant:
        return transactions.now(connection, self._clock)


def _open(connection: Connection, digest: str, principal: Principal, now: Instant) -> None:
    over = (sessions.c.begun_at <= now - SESSION_MS) | (sessions.c.seen_at <= now - IDLE_MS)
    connection.execute(delete(sessions).where(over))
    row = {"digest": digest, "principal": dump(principal), "begun_at": now, "seen_at": now}
    connection.execute(insert(sessions), row)
    record(connection, now, logged_in(principal))


def _stands(connection: Connection, principal: Principal, now: Instant) -> bool:
    """Whether the token that somebody came by, if it was one, is still valid."""
    name = token_name(principal)
    found = None if name is None else _named(connection, name)
    return name is None or (found is not None and found.is_valid(now))


def _named(connection: Connection, name: str) -> TokenRecord | None:
    row = connection.execute(select(tokens).where(tokens.c.name == name)).mappings().one_or_none()
    return None if row is None else _token(row)


def _token_row(token: TokenRecord) -> dict[str, Any]:
    return {
        "name": token.name,
        "hint": token.hint,
        "grants": dump(token.grants),
        "created_at": token.created_at,
        "created_by": dump(token.created_by),
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
        "revoked_at": token.revoked_at,
    }


def _token(row: Mapping[Any, Any]) -> TokenRecord:
    return TokenRecord(
        name=row["name"],
        hint=row["hint"],
        grants=load(Grants, row["grants"]),
        created_at=row["created_at"],
        created_by=text_of(row["created_by"]),
        expires_at=row["expires_at"],
        last_used_at=row["last_used_at"],
        revoked_at=row["revoked_at"],
    )
