"""Tokens, one-time codes and sessions as values. Of the secrets themselves only digests go anywhere."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from hashlib import sha256
from typing import Final

from icewright.core.errors import InvalidMessage
from icewright.core.times import Instant
from icewright.model.access.permissions import EVERYTHING, Act, Grant, Grants, Principal, Role, Scope

TOKEN_PREFIX: Final = "icw_"  # noqa: S105 - what tokens begin with, so that scanners find those that got out
HINT_LENGTH: Final = 8
"""How much of a token is kept as it is, so that people know it again."""
PROGRAM_PREFIX: Final = "ics_"
"""What the sessions of programs begin with, which these show as tokens."""
CODE_PREFIX: Final = "icc_"
"""What one-time codes for programs begin with."""
SESSION_MS: Final = 12 * 3_600_000
"""How long a log-in lasts, whatever is done meanwhile."""
IDLE_MS: Final = 30 * 60_000
"""How long one of a browser lasts while nobody does anything."""
CODE_MS: Final = 15 * 60_000
"""How long a one-time code can be used that opens the page."""
PROGRAM_CODE_MS: Final = 5 * 60_000
"""How long one can be used that a person takes to a program."""
SESSION_ID_LENGTH: Final = 16
SEEN_EVERY_MS: Final = 60_000
"""How often it is written down that a token or a session was used."""
LIFETIME_MS_MAX: Final = 10 * 366 * 24 * 3_600_000
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z", re.ASCII)
OF_TOKEN: Final = "token:"  # noqa: S105 - what names of principals begin with
_EVERYWHERE_ONLY: Final = frozenset({Role.OPTIMIZER, Role.PLATFORM_ADMIN})


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that is asked for: it gets each of these roles in each of these scopes; ``*``, everything, is said."""

    name: str
    roles: tuple[Role, ...]
    scopes: tuple[str, ...]
    lifetime_ms: int | None = None
    """None: it never expires."""

    def require_catalogs(self, known: Collection[str]) -> None:
        """Raises :class:`InvalidMessage` for a scope in a catalog that there is not: it would permit nothing."""
        for catalog in sorted({Scope.parse(scope).catalog for scope in self.scopes} - {"", *known}):
            close = get_close_matches(catalog, known, n=1)
            meant = f"; perhaps {close[0]} is meant" if close else ""
            configured = ", ".join(sorted(known)) or "none"
            raise InvalidMessage(
                f"no catalog {catalog!r}{meant}", hint=f"configured catalogs: {configured}; `*` is all"
            )

    def grants(self) -> tuple[Grant, ...]:
        """What it would permit. Raises :class:`InvalidMessage`, and ``InvalidName`` for a scope that is none."""
        if not _NAME.match(self.name):
            raise InvalidMessage("a token's name is of a-z, 0-9 and . _ -, at most 64 of them")
        if not self.roles or not self.scopes:
            raise InvalidMessage("a token needs a role and a scope")
        if self.lifetime_ms is not None and not 0 < self.lifetime_ms <= LIFETIME_MS_MAX:
            raise InvalidMessage(f"a token lasts 1 to {LIFETIME_MS_MAX} ms, or forever")
        scopes = sorted({Scope.parse(scope) for scope in self.scopes})
        for role in sorted(_EVERYWHERE_ONLY & set(self.roles)):
            if scopes != [EVERYTHING]:
                raise InvalidMessage(f"the role {role} is for everything alone", hint="its scope is `*`")
        return tuple(Grant(role, scope) for role in sorted(set(self.roles)) for scope in scopes)

    def record(self, hint: str, created_by: str, now: Instant) -> TokenRecord:
        """The token as it is kept. Raises as :meth:`grants` does."""
        expires_at = None if self.lifetime_ms is None else now + self.lifetime_ms
        return TokenRecord(self.name, hint, self.grants(), now, created_by, expires_at)


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A token as it is shown: everything but the secret. ``hint`` is how it begins."""

    name: str
    hint: str
    grants: tuple[Grant, ...]
    created_at: Instant
    created_by: str
    expires_at: Instant | None
    last_used_at: Instant | None = None
    revoked_at: Instant | None = None

    @property
    def principal(self) -> Principal:
        """Whoever has it."""
        return Principal(OF_TOKEN + self.name, self.grants)

    def is_valid(self, now: Instant) -> bool:
        """Whether it opens anything."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class GivenToken:
    """A token when it is given: the only time that anybody sees it."""

    token: str = field(repr=False)
    record: TokenRecord


class LoggedInBy(StrEnum):
    """How somebody came in who has a session."""

    PROVIDER = "provider"
    """By a provider of OpenID Connect, who vouches for them."""
    LINK = "link"
    """By a one-time link, which the owner or whoever has a token asked for."""
    PROGRAM = "program"
    """A program, with a code that a person took there for whom the provider had vouched."""


@dataclass(frozen=True, slots=True)
class Session:
    """A log-in of a browser, or of a program that a person uses, kept beside the digest of its secret.

    ``conditions`` are those of the rules by which a person was let in, as ``groups=data-eng``: what these rules give by
    now is what the session permits. ``session_id`` is the beginning of the digest, and opens nothing. That of a program
    does not end while nobody does anything: who leaves a browser alone leaves it open to others, a file is not.
    """

    session_id: str
    principal: Principal
    begun_at: Instant
    seen_at: Instant
    conditions: tuple[str, ...] = ()
    is_program: bool = False

    @property
    def expires_at(self) -> Instant:
        """When it ends if nobody does anything from now on."""
        return min(self.begun_at + SESSION_MS, self.seen_at + self._idle_ms)

    def lasts(self, now: Instant) -> bool:
        """Whether it has neither idled nor lasted too long; a clock that went back ends it as well."""
        return 0 <= now - self.begun_at < SESSION_MS and 0 <= now - self.seen_at < self._idle_ms

    @property
    def _idle_ms(self) -> int:
        return SESSION_MS if self.is_program else IDLE_MS


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session as it is shown: whose it is, since when, and what it permits by now."""

    session_id: str
    name: str
    shown: str
    logged_in_by: LoggedInBy
    grants: Grants
    begun_at: Instant
    last_used_at: Instant
    expires_at: Instant
    """When it ends if nobody does anything from now on."""


@dataclass(frozen=True, slots=True)
class GivenSession:
    """A session of a program when it is given: the only time that anybody sees its secret, shown as a bearer token."""

    token: str = field(repr=False)
    session: SessionView


@dataclass(frozen=True, slots=True)
class Ended:
    """Sessions of somebody that were ended, the newest first, and how many codes of theirs open none any more."""

    sessions: tuple[Session, ...]
    codes: int


@dataclass(frozen=True, slots=True)
class EndedSessions:
    """Sessions that were ended, as they were. ``codes``: how many one-time codes opened nothing yet, and will not."""

    sessions: tuple[SessionView, ...]
    codes: int


@dataclass(frozen=True, slots=True)
class NewCode:
    """What a one-time code will open: a session of a browser, or of a program, for ``principal``.

    ``conditions`` are those of the rules by which a person was let in.
    """

    principal: Principal
    lifetime_ms: int
    conditions: tuple[str, ...] = ()
    is_program: bool = False


def session_id(session_digest: str) -> str:
    """What a session is called: so much of a digest that no two of them begin alike."""
    return session_digest[:SESSION_ID_LENGTH]


def token_name(principal: Principal) -> str | None:
    """The name of the token that a principal is, None for people and the owner."""
    return principal.name.removeprefix(OF_TOKEN) if principal.name.startswith(OF_TOKEN) else None


def token_added(record: TokenRecord) -> Act:
    """That a token was let in."""
    grants = ", ".join(f"{grant.role} on {grant.scope}" for grant in record.grants)
    return Act("token.created", f"token {record.name}", {"grants": grants, "expires_at": record.expires_at or 0})


def token_revoked(record: TokenRecord) -> Act:
    """That a token was revoked."""
    return Act("token.revoked", f"token {record.name}")


def logged_in(session: Session) -> Act:
    """That somebody logged in: nobody acts on their behalf before."""
    return Act("session.opened", session.principal.name, _of(session))


def session_ended(session: Session) -> Act:
    """That a session was ended before its time: by whoever logged out, or by somebody else."""
    return Act("session.ended", session.principal.name, _of(session))


def digest(secret: str) -> str:
    """What is kept of a secret: SHA-256, in hexadecimal. Secrets here are random and long, so that it needs no salt."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _of(session: Session) -> dict[str, str | int]:
    shown = {"shown": session.principal.shown} if session.principal.shown else {}
    return {"session": session.session_id, **shown, **({"of": "a program"} if session.is_program else {})}
