"""Requests of who may come in, and of who did what."""

from __future__ import annotations

from icewright.api_client.connection import (
    Connection,
    Page,
    part,
)
from icewright.core.codec import to_json
from icewright.model.access.identity import NewToken
from icewright.model.iceberg.tables import Json


class PeopleCalls(Connection):
    """Log-ins, tokens, sessions and the audit."""

    def login_code(self) -> Json:
        """A one-time way into the server's page: ``{"path": ...}``, to be put behind the server's URL."""
        return self.ask("POST", "/login-codes")

    def me(self) -> Json:
        """Who the server takes us for, and what we may do."""
        return self.ask("GET", "/me")

    def open_session(self, code: str) -> Json:
        """A session by a one-time code, the only time that its secret is shown. Raises ``LoginRefused``."""
        return self.ask("POST", "/sessions", body={"code": code})

    def log_out(self) -> Json:
        """End the session whose secret we show as a token; of another token nothing changes."""
        return self.ask("POST", "/logout")

    def create_token(self, new: NewToken) -> Json:
        """A new token, the only time that it is shown. Raises ``NotAllowed`` for a name that is taken."""
        return self.ask("POST", "/tokens", body=to_json(new))

    def tokens(self, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Tokens by name."""
        return self.page("/tokens", {"limit": limit, "cursor": cursor})

    def revoke_token(self, name: str) -> Json:
        """Let a token in no more. Raises ``NotFound``."""
        return self.ask("POST", f"/tokens/{part(name)}/revoke")

    def sessions(
        self, *, own: bool = False, name: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> Page:
        """Sessions, the latest first: one's own, or all, or those of one name."""
        return self.page("/me/sessions" if own else "/sessions", {"name": name, "limit": limit, "cursor": cursor})

    def end_session(self, session_id: str) -> Json:
        """End one session: an ``EndedSessions``. Raises ``NotFound``."""
        return self.ask("POST", f"/sessions/{part(session_id)}/end")

    def end_sessions(self, name: str | None) -> Json:
        """End all sessions of a person, None for one's own: an ``EndedSessions``. Raises ``NotFound``."""
        if name is None:
            return self.ask("POST", "/me/sessions/end")
        return self.ask("POST", "/sessions/end", body={"name": name})

    def audit(self, *, limit: int = 100, cursor: str | None = None, after: int | None = None) -> Page:
        """What was done by whom: the newest first, or those behind ``after`` in order."""
        return self.page("/audit", {"limit": limit, "cursor": cursor, "after": after})

    def audit_head(self) -> Json:
        """Where the audit begins and ends: ``{"start": ..., "head": ...}``."""
        return self.ask("GET", "/audit/head")
