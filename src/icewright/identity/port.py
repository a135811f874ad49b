"""The door to tokens, one-time codes and sessions: the same for all servers of one store."""

from collections.abc import Sequence
from typing import Protocol

from icewright.core.times import Instant
from icewright.model.access.identity import Ended, NewCode, NewToken, Session, TokenRecord
from icewright.model.access.permissions import Principal


class IdentityStore(Protocol):
    """Who may come in. It is given digests of secrets, never secrets; time is the store's own.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer. What changes
    something writes its entry into the audit in the same transaction.
    """

    def add_token(self, new: NewToken, digest: str, hint: str, created_by: str) -> TokenRecord:
        """Let a token in.

        Raises :class:`~icewright.core.errors.NotAllowed` where there is or was one of that name, and what
        :meth:`NewToken.grants` raises.
        """
        ...

    def token(self, digest: str) -> TokenRecord | None:
        """The token of that digest, if it is valid. Remembers that it was used, once a minute at most."""
        ...

    def tokens(self, *, limit: int, after: str | None = None) -> Sequence[TokenRecord]:
        """Tokens by name, valid or not; ``after`` is the name that the last page ended with."""
        ...

    def revoke(self, name: str) -> TokenRecord:
        """Let a token in no more, from now on, nor sessions that were opened with it.

        Once more changes nothing. Raises :class:`~icewright.core.errors.NotFound`.
        """
        ...

    def has_tokens(self) -> bool:
        """Whether any token is valid."""
        ...

    def add_code(self, digest: str, new: NewCode) -> None:
        """Let a one-time code open a session."""
        ...

    def log_in(self, code_digest: str, session_digest: str, *, is_program: bool = False) -> Session | None:
        """Open a session by a code, which is used up by that; None for a code that is none, was used or is too old.

        A code for a program opens none for a browser, nor the other way round, and is not used up by that. Of callers
        at once with the same code, one gets in.
        """
        ...

    def open_session(self, session_digest: str, principal: Principal, conditions: Sequence[str] = ()) -> None:
        """Open a session for whoever has proved by other means who they are.

        ``conditions`` are those of the rules by which they were let in.
        """
        ...

    def session(self, digest: str, *, attended: bool) -> Session | None:
        """The session of a digest, None when it does not last any more or never was.

        ``attended`` says that a person did something; it is what keeps a session from being idle.
        """
        ...

    def sessions(
        self, *, limit: int, name: str | None = None, after: tuple[Instant, str] | None = None
    ) -> Sequence[Session]:
        """Sessions that last, the newest first; of the principal of that name, or of all.

        ``after`` is ``begun_at`` and id of what the last page ended with.
        """
        ...

    def close_session(self, digest: str) -> None:
        """Log out."""
        ...

    def end_session(self, session_id: str) -> Session:
        """End one session, from now on, on all servers. Raises :class:`~icewright.core.errors.NotFound`."""
        ...

    def end_sessions(self, name: str) -> Ended:
        """End all sessions of the principal of that name, from now on, on all servers; nor do codes open any for them.

        Of both, those that would have counted.
        """
        ...
