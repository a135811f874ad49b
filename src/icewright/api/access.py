"""Who may talk to the server: one bearer token for programs, a one-time code and a session for the page.

Nothing here is ever logged or sent back. Secrets are kept as digests, so that a look-up says nothing by its timing.
"""

from __future__ import annotations

import secrets
import threading
from hashlib import sha256
from hmac import compare_digest

from icewright.domain.tables import Instant

SESSION_MS = 12 * 3_600_000
"""How long a log-in to the page lasts, whatever is done meanwhile."""
_SESSIONS_MAX = 1_000
_LOGIN_CODES_MAX = 100


_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def authority(host: str, port: int) -> str:
    """Host and port as URLs and Host headers have them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def loopback_hosts(host: str, port: int) -> frozenset[str]:
    """The Host headers by which this machine's own programs reach a server that listens on ``host``."""
    return frozenset(authority(name, port) for name in (host, *_LOOPBACK))


class Access:
    """The secrets of one running server.

    ``token`` is what programs send as ``Authorization: Bearer``. ``allowed_hosts`` are the Host headers (with port)
    that are answered at all. ``login_code``, if there is one, opens the page once as ``/?token=<code>``.
    """

    def __init__(self, token: str, allowed_hosts: frozenset[str], login_code: str | None = None) -> None:
        if not token:
            raise ValueError("the token is empty")
        self.allowed_hosts = frozenset(host.lower() for host in allowed_hosts)
        self._token = _digest(token)
        self._lock = threading.Lock()
        self._login_codes = {} if login_code is None else {_digest(login_code): None}
        self._sessions: dict[bytes, Instant] = {}

    def is_token(self, presented: str) -> bool:
        """Whether this is the bearer token, compared in constant time."""
        return compare_digest(_digest(presented), self._token)

    def new_login_code(self) -> str:
        """One more one-time code, for a page whose code is used up. The oldest gives way when there are too many."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._login_codes[_digest(code)] = None
            _keep_newest(self._login_codes, _LOGIN_CODES_MAX)
        return code

    def log_in(self, code: str, now: Instant) -> str | None:
        """A new session for a one-time code, None when the code is wrong or has been used."""
        with self._lock:
            if _digest(code) not in self._login_codes:
                return None
            del self._login_codes[_digest(code)]
            session = secrets.token_urlsafe(32)
            self._sessions[_digest(session)] = now + SESSION_MS
            _keep_newest(self._sessions, _SESSIONS_MAX)
            return session

    def is_session(self, presented: str, now: Instant) -> bool:
        """Whether this is a session that still lasts."""
        with self._lock:
            return self._sessions.get(_digest(presented), 0) > now


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _keep_newest(entries: dict[bytes, None] | dict[bytes, Instant], count: int) -> None:
    while len(entries) > count:
        entries.pop(next(iter(entries)))
