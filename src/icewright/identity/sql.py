"""Tokens, one-time codes and sessions in an SQL database, the same for all servers of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Engine, delete, func, insert, literal, select, update

from icewright.audit.sql import record
from icewright.core.clock import Clock
from icewright.core.errors import NotAllowed, NotFound
from icewright.core.times import Instant
from icewright.model.access.identity import (
    IDLE_MS,
    OF_TOKEN,
    SEEN_EVERY_MS,
    SESSION_ID_LENGTH,
    SESSION_MS,
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
from icewright.model.access.permissions import Grants, Principal
from icewright.store import transactions
from icewright.store.documents import dump, load, text_of
from icewright.store.schema_access import login_codes, sessions, tokens
from icewright.store.transactions import reading, writing

_CONDITIONS: Final[Any] = tuple[str, ...]


class SqlIdentities:
    """Who may come in. It is given digests of secrets, never secrets; time is the store's own.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer. What changes
    something writes its entry into the audit in the same transaction.

    Time is the database's unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock

    def add_token(self, new: NewToken, digest: str, hint: str, created_by: str) -> TokenRecord:
        """Let a token in.

        Raises :class:`~icewright.core.errors.NotAllowed` where there is or was one of that name, and what
        :meth:`NewToken.grants` raises.
        """
        with writing(self._engine) as connection:
            now = self._now(connection)
            added = new.record(hint, created_by, now)
            if _named(connection, new.name) is not None:
                raise NotAllowed(f"there is or was a token {new.name}", hint="take another name")
            connection.execute(insert(tokens).values(digest=digest, **_token_row(added)))
            record(connection, now, token_added(added))
            return added

    def token(self, digest: str) -> TokenRecord | None:
        """The token of that digest, if it is valid. Remembers that it was used, once a minute at most."""
        with reading(self._engine) as connection:
            now = self._now(connection)
            row = connection.execute(select(tokens).where(tokens.c.digest == digest)).mappings().one_or_none()
        found = None if row is None else _token(row)
        if found is None or not found.is_valid(now):
            return None
        if now - (found.last_used_at or 0) < SEEN_EVERY_MS:
            return found
        with writing(self._engine, ()) as connection:
            connection.execute(update(tokens).where(tokens.c.name == found.name).values(last_used_at=now))
        return replace(found, last_used_at=now)

    def tokens(self, *, limit: int, after: str | None = None) -> Sequence[TokenRecord]:
        """Tokens by name, valid or not; ``after`` is the name that the last page ended with."""
        query = select(tokens).order_by(tokens.c.name).limit(limit)
        if after is not None:
            query = query.where(tokens.c.name > after)
        with reading(self._engine) as connection:
            return [_token(row) for row in connection.execute(query).mappings()]

    def revoke(self, name: str) -> TokenRecord:
        """Let a token in no more, from now on, nor sessions that were opened with it.

        Once more changes nothing. Raises :class:`~icewright.core.errors.NotFound`.
        """
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
        """Whether any token is valid."""
        with reading(self._engine) as connection:
            lasts = tokens.c.expires_at.is_(None) | (tokens.c.expires_at > self._now(connection))
            query = select(func.count()).select_from(tokens).where(tokens.c.revoked_at.is_(None), lasts)
            return bool(connection.scalar(query))

    def add_code(self, digest: str, new: NewCode) -> None:
        """Let a one-time code open a session."""
        with writing(self._engine) as connection:
            now = self._now(connection)
            connection.execute(delete(login_codes).where(login_codes.c.until <= now))
            row = {
                "digest": digest,
                "principal": dump(new.principal),
                "until": now + new.lifetime_ms,
                "name": dump(new.principal.name),
                "conditions": dump(new.conditions),
                "is_program": new.is_program,
            }
            connection.execute(insert(login_codes), row)

    def log_in(self, code_digest: str, session_digest: str, *, is_program: bool = False) -> Session | None:
        """Open a session by a code, which is used up by that; None for a code that is none, was used or is too old.

        A code for a program opens none for a browser, nor the other way round, and is not used up by that. Of callers
        at once with the same code, one gets in.
        """
        ours = login_codes.c.is_program.is_(is_program)
        wanted = select(login_codes).where(login_codes.c.digest == code_digest, ours)
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
            opened = Session(
                session_id(session_digest), principal, now, now, load(_CONDITIONS, row.conditions), is_program
            )
            return _open(connection, session_digest, opened)

    def open_session(self, session_digest: str, principal: Principal, conditions: Sequence[str] = ()) -> None:
        """Open a session for whoever has proved by other means who they are.

        ``conditions`` are those of the rules by which they were let in.
        """
        with writing(self._engine) as connection:
            now = self._now(connection)
            _open(
                connection, session_digest, Session(session_id(session_digest), principal, now, now, tuple(conditions))
            )

    def session(self, digest: str, *, attended: bool) -> Session | None:
        """The session of a digest, None when it does not last any more or never was.

        ``attended`` says that a person did something; it is what keeps a session from being idle.
        """
        with reading(self._engine) as connection:
            now = self._now(connection)
            row = connection.execute(select(sessions).where(sessions.c.digest == digest)).mappings().one_or_none()
            if row is None:
                return None
            found = _session(row)
            if not found.lasts(now) or not _stands(connection, found.principal, now):
                return None
        if attended and now - found.seen_at >= SEEN_EVERY_MS:
            with writing(self._engine, ()) as connection:
                connection.execute(update(sessions).where(sessions.c.digest == digest).values(seen_at=now))
        return found

    def sessions(
        self, *, limit: int, name: str | None = None, after: tuple[Instant, str] | None = None
    ) -> Sequence[Session]:
        """Sessions that last, the newest first; of the principal of that name, or of all.

        ``after`` is ``begun_at`` and id of what the last page ended with.
        """
        query = select(sessions).order_by(sessions.c.begun_at.desc(), sessions.c.digest.desc()).limit(limit)
        if name is not None:
            query = query.where(sessions.c.name == dump(name))
        if after is not None:
            begun_at, last = after
            same = (sessions.c.begun_at == begun_at) & (sessions.c.digest < last)
            query = query.where((sessions.c.begun_at < begun_at) | same)
        with reading(self._engine) as connection:
            lasting = query.where(_lasting(self._now(connection)))
            return [_session(row) for row in connection.execute(lasting).mappings()]

    def close_session(self, digest: str) -> None:
        """Log out."""
        self._end(sessions.c.digest == digest)

    def end_session(self, session_id: str) -> Session:
        """End one session, from now on, on all servers. Raises :class:`~icewright.core.errors.NotFound`."""
        is_it = func.substr(sessions.c.digest, 1, SESSION_ID_LENGTH) == session_id
        ended = self._end(is_it)
        if not ended:
            raise NotFound(f"no session {session_id}")
        return ended[0]

    def end_sessions(self, name: str) -> Ended:
        """End all sessions of the principal of that name, from now on, on all servers; nor do codes open any for them.

        Of both, those that would have counted.
        """
        with writing(self._engine) as connection:
            theirs = login_codes.c.name == dump(name), login_codes.c.until > self._now(connection)
            codes = connection.execute(delete(login_codes).where(*theirs)).rowcount
            return Ended(tuple(self._ended(connection, sessions.c.name == dump(name))), codes)

    def _end(self, which: ColumnElement[bool]) -> Sequence[Session]:
        with writing(self._engine) as connection:
            return self._ended(connection, which)

    def _ended(self, connection: Connection, which: ColumnElement[bool]) -> Sequence[Session]:
        """Those that lasted, the newest first."""
        newest = sessions.c.begun_at.desc(), sessions.c.digest.desc()
        now = self._now(connection)
        lasting = select(sessions).where(which, _lasting(now)).order_by(*newest)
        ended = [_session(row) for row in connection.execute(lasting).mappings()]
        connection.execute(delete(sessions).where(which))
        record(connection, now, *map(session_ended, ended))
        return ended

    def _now(self, connection: Connection) -> Instant:
        return transactions.now(connection, self._clock)


def _open(connection: Connection, digest: str, opened: Session) -> Session:
    now = opened.begun_at
    idled = ~sessions.c.is_program & (sessions.c.seen_at <= now - IDLE_MS)
    connection.execute(delete(sessions).where((sessions.c.begun_at <= now - SESSION_MS) | idled))
    row = {
        "digest": digest,
        "name": dump(opened.principal.name),
        "principal": dump(opened.principal),
        "conditions": dump(opened.conditions),
        "is_program": opened.is_program,
        "begun_at": now,
        "seen_at": now,
    }
    connection.execute(insert(sessions), row)
    record(connection, now, logged_in(opened))
    return opened


def _session(row: Mapping[Any, Any]) -> Session:
    principal, conditions = load(Principal, row["principal"]), load(_CONDITIONS, row["conditions"])
    times = row["begun_at"], row["seen_at"]
    return Session(session_id(row["digest"]), principal, *times, conditions, row["is_program"])


def _lasting(now: Instant) -> ColumnElement[bool]:
    """As :meth:`Session.lasts` says, and of whoever came by a token that is still valid."""
    begun = sessions.c.begun_at.between(now - SESSION_MS + 1, now)
    seen = (sessions.c.seen_at <= now) & (sessions.c.is_program | (sessions.c.seen_at > now - IDLE_MS))
    quoted = literal(f'"{OF_TOKEN}') + tokens.c.name + literal('"')  # the names of tokens need no escapes
    valid = select(quoted).where(
        tokens.c.revoked_at.is_(None), tokens.c.expires_at.is_(None) | (tokens.c.expires_at > now)
    )
    stands = sessions.c.name.not_like(f'"{OF_TOKEN}%') | sessions.c.name.in_(valid)
    return begun & seen & stands


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
