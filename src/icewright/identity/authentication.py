"""Who may talk to the server: programs by tokens, browsers by a one-time code and then a session.

A program of a person, as the command line, may have a session as well, whose secret it shows as a token.

One token is the server's own: whoever can read it on the server's machine is its owner. All others are in the store,
as are codes and sessions, so that every server of it knows them. Nothing here is ever logged or sent back but once, to
whom it is given; secrets are kept as digests, so that a look-up says nothing by its timing.
"""

from __future__ import annotations

import secrets
from hmac import compare_digest
from typing import Annotated, cast

from fastapi import Depends, Request

from icewright.audit.sql import SqlAudit
from icewright.identity.logins import Logins
from icewright.identity.sql import SqlIdentities
from icewright.model.access.identity import (
    CODE_MS,
    HINT_LENGTH,
    OF_TOKEN,
    PROGRAM_PREFIX,
    TOKEN_PREFIX,
    GivenSession,
    GivenToken,
    LoggedInBy,
    NewCode,
    NewToken,
    Session,
    SessionView,
    digest,
)
from icewright.model.access.people import OF_PERSON
from icewright.model.access.permissions import OWNER, Principal
from icewright.web.idempotent_answers_sql import SqlAnswers
from icewright.web.transport import LOCAL, Transport

_DOTS_OF_JWT = 2
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def authority(host: str, port: int) -> str:
    """Host and port as URLs and Host headers have them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def loopback_hosts(host: str, port: int) -> frozenset[str]:
    """The Host headers by which this machine's own programs reach a server that listens on ``host``."""
    return frozenset(authority(name, port) for name in (host, *_LOOPBACK))


class Access:
    """Who gets in to one running server.

    ``token`` is its own, ``allowed_hosts`` are the Host headers (with port) that are answered at all. ``public_url`` is
    where people find it, for links; without one they are on this machine. Without ``answers``, keys of requests mean
    nothing. ``logins``: how people log in by a provider. With
    ``one_person`` the owner approves also what they asked for.
    """

    def __init__(
        self,
        token: str,
        allowed_hosts: frozenset[str],
        identities: SqlIdentities,
        audit: SqlAudit,
        *,
        transport: Transport = LOCAL,
        public_url: str | None = None,
        answers: SqlAnswers | None = None,
        logins: Logins | None = None,
        one_person: bool = False,
    ) -> None:
        if not token:
            raise ValueError("the token is empty")
        self.allowed_hosts = frozenset(host.lower() for host in allowed_hosts)
        self.identities, self.audit, self.transport, self.public_url = identities, audit, transport, public_url
        self.answers = answers
        self.logins, self.one_person = logins, one_person
        self._token = digest(token)

    def is_own(self, presented: str) -> bool:
        """Whether this is the server's own token, compared in constant time."""
        return compare_digest(digest(presented), self._token)

    def of_token(self, presented: str) -> Principal | None:
        """Whose bearer token this is, None for one of nobody's."""
        if self.is_own(presented):
            return OWNER
        if presented.startswith(TOKEN_PREFIX):
            record = self.identities.token(digest(presented))
            return None if record is None else record.principal
        if presented.startswith(PROGRAM_PREFIX):
            return self.of_session(presented, is_program=True)
        # Whoever does not take them asks nobody about them.
        is_providers = self.logins is not None and self.logins.takes_tokens and presented.count(".") == _DOTS_OF_JWT
        return self.logins.of_token(presented) if self.logins is not None and is_providers else None

    def give_token(self, new: NewToken, created_by: str) -> GivenToken:
        """A new token. Raises as :meth:`~icewright.identity.sql.SqlIdentities.add_token` does."""
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        return GivenToken(token, self.identities.add_token(new, digest(token), token[:HINT_LENGTH], created_by))

    def new_login_code(self, principal: Principal = OWNER, lifetime_ms: int = CODE_MS) -> str:
        """A one-time code that opens the page as ``principal``, as ``/?token=<code>``."""
        code = secrets.token_urlsafe(32)
        self.identities.add_code(digest(code), NewCode(principal, lifetime_ms))
        return code

    def log_in(self, code: str) -> str | None:
        """A new session for a one-time code, None when the code is wrong, too old or has been used."""
        session = secrets.token_urlsafe(32)
        return None if self.identities.log_in(digest(code), digest(session)) is None else session

    def log_in_program(self, code: str) -> GivenSession | None:
        """A new session of a program for a one-time code; None as of :meth:`log_in`, and where it permits nothing."""
        secret = PROGRAM_PREFIX + secrets.token_urlsafe(32)
        opened = self.identities.log_in(digest(code), digest(secret), is_program=True)
        if opened is not None and self.present(opened) is None:  # the rules changed since the code was given
            self.log_out(secret)
            return None
        return None if opened is None else GivenSession(secret, self.shown(opened))

    def of_session(self, presented: str, *, attended: bool = True, is_program: bool = False) -> Principal | None:
        """Whose session this is, None when it lasts no more or never was one, or permits nothing any more.

        That of a browser is none of a program's, nor the other way round.
        """
        found = self.identities.session(digest(presented), attended=attended)
        return None if found is None or found.is_program is not is_program else self.present(found)

    def present(self, session: Session) -> Principal | None:
        """Whose session it is, with what they may do by now: what rules give to people may have changed since."""
        if not session.principal.name.startswith(OF_PERSON):
            return session.principal
        return None if self.logins is None else self.logins.present(session)

    def person_named(self, said: str) -> str:
        """The name of a principal: as it is, or of a person by the provider's name for them alone."""
        is_whole = said == OWNER.name or said.startswith((OF_PERSON, OF_TOKEN))
        return said if is_whole or self.logins is None else self.logins.name_of(said)

    def shown(self, session: Session) -> SessionView:
        """A session as people see it."""
        principal, by_now = session.principal, self.present(session)
        by = LoggedInBy.PROVIDER if principal.name.startswith(OF_PERSON) else LoggedInBy.LINK
        return SessionView(
            session.session_id,
            principal.name,
            principal.shown,
            LoggedInBy.PROGRAM if session.is_program else by,
            () if by_now is None else by_now.grants,
            session.begun_at,
            session.seen_at,
            session.expires_at,
        )

    def log_out(self, presented: str) -> None:
        """End a session."""
        self.identities.close_session(digest(presented))

    def log_out_program(self, presented: str) -> None:
        """End a session of a program; nothing of a token, which is revoked instead."""
        if presented.startswith(PROGRAM_PREFIX):
            self.log_out(presented)


def _access(request: Request) -> Access:
    return cast("Access", request.app.state.access)


Gate = Annotated[Access, Depends(_access)]
