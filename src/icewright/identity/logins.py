"""Log-ins of people by a provider of OpenID Connect: begun by a browser, and brought to an end by the same one.

What was begun is in a cookie of that browser and nowhere else: strangers may begin as many log-ins as they like, and
write nothing into the store. The cookie is signed with a key that all servers of one owner's token have.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

import structlog

from icewright.audit.port import AuditLog
from icewright.core.clock import Clock
from icewright.core.errors import LoginRefused, Unavailable
from icewright.core.times import Instant
from icewright.identity.people_port import Attempt, Provider
from icewright.identity.port import IdentityStore
from icewright.model.access.identity import CODE_PREFIX, PROGRAM_CODE_MS, NewCode, Session, digest
from icewright.model.access.people import RoleRule, granted, name_of, refused
from icewright.model.access.permissions import Principal

_log = structlog.get_logger("icewright.logins")

ATTEMPT_MS: Final = 10 * 60_000
"""How long a person may take at the provider."""
AT_ONCE_MAX: Final = 8
"""So many codes are redeemed at a time: each keeps a thread of the server, for as long as the provider takes."""
TOKENS_AT_ONCE_MAX: Final = 8
"""So many access tokens are looked at at a time: that is quick, unless the provider has to be asked for its keys."""
TOKENS_WAIT_S: Final = 0.5
USED_MAX: Final = 100_000
_KEY_FOR: Final = b"icewright log-ins by OpenID Connect, of browsers and programs"


@dataclass(frozen=True, slots=True)
class Begun:
    """A log-in that was begun: what the browser keeps, and where it goes."""

    cookie: str
    address: str


@dataclass(frozen=True, slots=True)
class Came:
    """What the browser comes back with. ``issuer`` is there where the provider says who it is (RFC 9207)."""

    cookie: str
    state: str
    code: str
    issuer: str | None = None


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """Who came back, and what they get: the secret of a session for their browser, or a code to take to a program."""

    principal: Principal
    secret: str = field(repr=False)
    for_program: bool


@dataclass(frozen=True, slots=True)
class _Opened:
    """What was in the cookie of a log-in."""

    attempt: Attempt
    for_program: bool


class Logins:
    """Log-ins at one server. ``secret`` is that of the owner's token, and goes nowhere. Safe for several threads."""

    def __init__(
        self,
        provider: Provider,
        rules: Sequence[RoleRule],
        identities: IdentityStore,
        audit: AuditLog,
        clock: Clock,
        secret: str,
    ) -> None:
        self._provider, self._rules = provider, tuple(rules)
        self._identities, self._audit, self._clock = identities, audit, clock
        self._key = hmac.digest(secret.encode(), _KEY_FOR, sha256)
        self._turns = threading.BoundedSemaphore(AT_ONCE_MAX)
        self._looks = threading.BoundedSemaphore(TOKENS_AT_ONCE_MAX)
        self._lock = threading.Lock()
        self._used: dict[str, Instant] = {}

    def begin(self, redirect_uri: str, *, for_program: bool = False) -> Begun:
        """A new log-in. Raises :class:`Unavailable` while the provider does not answer."""
        opened = _Opened(Attempt(*(secrets.token_urlsafe(32) for _ in range(3))), for_program)
        return Begun(self._sealed(opened), self._provider.address(opened.attempt, redirect_uri))

    def finish(self, came: Came, redirect_uri: str) -> LoggedIn:
        """A session for the browser of whoever comes back, or a code where they asked for one to take to a program.

        Raises :class:`LoginRefused` where that cannot be told, or they have no role, and :class:`Unavailable`.
        """
        opened, state = self._opened(came.cookie), came.state.encode("utf-8", "replace")
        if opened is None or not hmac.compare_digest(opened.attempt.state.encode(), state):
            raise LoginRefused(
                "this log-in was not begun by this browser, or too long ago",
                hint="log in again; cookies of this site have to be allowed",
            )
        if came.issuer is not None and came.issuer != self._provider.issuer:
            raise LoginRefused("the answer is not from the provider", hint="log in again")
        with self._turn():
            self._use(opened.attempt)
            person = self._provider.person(came.code, opened.attempt, redirect_uri)
        principal = person.principal(self._rules)
        if not principal.grants:
            self._audit.append(refused(person, "no-role"))
            raise LoginRefused(
                f"{principal.shown} is known, and has no role here",
                hint="an administrator gives roles to groups in [oidc.roles]; what changed counts at the next log-in",
            )
        secret, conditions = secrets.token_urlsafe(32), person.conditions(self._rules)
        if opened.for_program:
            secret = CODE_PREFIX + secret
            new = NewCode(principal, PROGRAM_CODE_MS, conditions, is_program=True)
            self._identities.add_code(digest(secret), new)
        else:
            self._identities.open_session(digest(secret), principal, conditions)
        return LoggedIn(principal, secret, opened.for_program)

    def present(self, session: Session) -> Principal | None:
        """Whose session it is, with what the rules give by now; None where that is nothing, or by another provider.

        Only what they were let in by counts: of claims that nobody asked about then nothing is known.
        """
        name, grants = session.principal.name, granted(self._rules, session.conditions)
        is_ours = name.startswith(self.name_of(""))
        return Principal(name, grants, session.principal.shown) if is_ours and grants else None

    @property
    def takes_tokens(self) -> bool:
        """Whether programs come in by access tokens of the provider."""
        return self._provider.takes_tokens

    def of_token(self, presented: str) -> Principal | None:
        """Whose access token this is, with what the rules give to them; None for one of nobody's, or of nobody here.

        Raises :class:`Unavailable` while nobody can tell.
        """
        if not self._looks.acquire(timeout=TOKENS_WAIT_S):
            raise Unavailable("too many access tokens are looked at at this moment", hint="try again")
        try:
            principal = self._provider.bearer(presented).principal(self._rules)
        except LoginRefused as error:
            _log.debug("access token refused", detail=error.message)
            return None
        finally:
            self._looks.release()
        return principal if principal.grants else None

    def logout_address(self, principal: Principal, back: str) -> str | None:
        """Where the browser of somebody who has logged out here goes, to be logged out at the provider as well.

        None where they came otherwise, or the provider offers no such address, or none that anybody is to be sent to,
        or is away: nobody stays logged in here because of that.
        """
        if not principal.name.startswith(self.name_of("")):
            return None
        try:
            return self._provider.logout_address(back)
        except (LoginRefused, Unavailable) as error:
            _log.warning("not logged out at the provider", code=error.code, detail=error.message)
            return None

    def name_of(self, subject: str) -> str:
        """By which name the audit has whom the provider calls so."""
        return name_of(self._provider.issuer, subject)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._turns.acquire(blocking=False):
            raise Unavailable("too many log in at this moment", hint="try again")
        try:
            yield
        finally:
            self._turns.release()

    def _use(self, attempt: Attempt) -> None:
        """Let each attempt come back once: another time it is a replay, whatever became of the first."""
        now, state = self._clock.now(), digest(attempt.state)
        with self._lock:
            if state in self._used:
                raise LoginRefused("this log-in was brought to an end already", hint="log in again")
            self._used = {key: until for key, until in self._used.items() if until > now}
            if len(self._used) >= USED_MAX:
                raise Unavailable("too many have logged in within minutes", hint="try again")
            self._used[state] = now + ATTEMPT_MS

    def _sealed(self, opened: _Opened) -> str:
        attempt = opened.attempt
        parts = [attempt.state, attempt.nonce, attempt.verifier, opened.for_program, self._clock.now()]
        said = json.dumps(parts).encode()
        return f"{said.hex()}.{self._signature(said).hex()}"

    def _opened(self, cookie: str) -> _Opened | None:
        """What was sealed, None for what was not by us, or too long ago."""
        head, _, tail = cookie.partition(".")
        try:
            said, signature = bytes.fromhex(head), bytes.fromhex(tail)
        except ValueError:
            return None
        if not hmac.compare_digest(signature, self._signature(said)):
            return None
        state, nonce, verifier, for_program, begun_at = json.loads(said)
        is_fresh = 0 <= self._clock.now() - begun_at < ATTEMPT_MS
        return _Opened(Attempt(state, nonce, verifier), for_program) if is_fresh else None

    def _signature(self, said: bytes) -> bytes:
        return hmac.digest(self._key, said, sha256)
