"""The door to a provider of OpenID Connect, which says who people are. Authorization code flow with PKCE."""

from dataclasses import dataclass, field
from typing import Protocol

from icewright.model.access.people import Person


@dataclass(frozen=True, slots=True)
class Attempt:
    """One log-in that was begun by one browser. All three are random and used once.

    ``state`` comes back with the code, ``nonce`` within the signed answer, and ``verifier`` shows that whoever has the
    code redeemed is who asked for it (RFC 7636).
    """

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


class Provider(Protocol):
    """A provider, by its issuer. All methods raise :class:`~icewright.core.errors.Unavailable` when it is away."""

    @property
    def issuer(self) -> str:
        """Its URL, which is its name."""

    @property
    def takes_tokens(self) -> bool:
        """Whether programs come in by its access tokens: where it was said for whom these have to be."""

    def address(self, attempt: Attempt, redirect_uri: str) -> str:
        """Where the browser goes to log in; it comes back to ``redirect_uri`` with ``code`` and ``state``."""

    def person(self, code: str, attempt: Attempt, redirect_uri: str) -> Person:
        """Whom the code stands for. It can be redeemed once.

        Raises :class:`~icewright.core.errors.LoginRefused` for a code that is none, and for an answer that is not
        what it has to be: signed by one of the provider's keys, for us, for this attempt, and now.
        """

    def bearer(self, token: str) -> Person:
        """Of whom an access token speaks that somebody shows.

        Raises :class:`~icewright.core.errors.LoginRefused` for one that is not what it has to be: a signed access
        token (RFC 9068) of the provider's, for us, and now; and for all where none is taken.
        """

    def logout_address(self, back: str) -> str | None:
        """Where a browser goes to be logged out there as well, and from there to ``back``; None where it offers none.

        Raises :class:`~icewright.core.errors.LoginRefused` for an address where nobody is to be sent.
        """
