"""A provider of OpenID Connect: found by its issuer, and believed in what one of its keys has signed for us.

Discovery 1.0, Core 1.0, section 3.1, with PKCE (RFC 7636), and RP-Initiated Logout 1.0. The flow and the claims are
authlib's, signatures joserfc's; what is stricter here than there is which addresses are spoken with, which algorithms
count and which keys.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from authlib.common.urls import add_params_to_uri
from authlib.integrations.base_client import OAuthError
from authlib.oidc.core import CodeIDToken
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwt import JWTClaimsRegistry
from requests.exceptions import RequestException

from icewright.core.errors import LoginRefused, Unavailable
from icewright.core.times import Instant
from icewright.identity.oidc.guarded import document, require_safe, session_of
from icewright.identity.oidc.keys import AGAIN_MS, Keys
from icewright.identity.people_port import Attempt
from icewright.model.access.people import SUBJECT_LENGTH_MAX, Person

ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"}
)
"""By which the provider may sign: with a key of its own that is nobody else's. Never ``none``, and never HMAC, whose
key would be our secret, or the provider's public key for who mistakes it for one."""
LEEWAY_S: Final = 60
"""By how much the provider's clock may be off."""
FOUND_MS: Final = 3_600_000
"""How long what discovery found is believed."""
TYPES: Final = frozenset({"at+jwt", "application/at+jwt"})
"""What access tokens say that they are (RFC 9068, 2.1): no ID token does, nor anything else that a provider signs."""
TOKEN_LENGTH_MAX: Final = 64 * 1024
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_METHODS: Final = ("client_secret_basic", "client_secret_post")


@dataclass(frozen=True, slots=True)
class Client:
    """How a provider knows us. Without a secret we are a public client, by PKCE alone."""

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    audience: str | None = None
    """For whom access tokens have to be that programs show; without it none is taken."""


class OidcProvider:
    """A :class:`~icewright.identity.people_port.Provider` that is spoken with over HTTP. Safe for several threads."""

    def __init__(self, client: Client, now: Callable[[], Instant]) -> None:
        self._client, self._now = client, now
        self._lock = threading.Lock()
        self._found: Mapping[str, Any] = {}
        self._found_at: Instant | None = None
        self._away: tuple[Instant, str] | None = None
        self._keys = Keys(self._read_keys, now)
        require_safe(client.issuer)

    @property
    def issuer(self) -> str:
        """See the port."""
        return self._client.issuer

    @property
    def takes_tokens(self) -> bool:
        """See the port."""
        return self._client.audience is not None

    def address(self, attempt: Attempt, redirect_uri: str) -> str:
        """See the port."""
        found = self._discovered()
        address, _ = self._session(found).create_authorization_url(
            found["authorization_endpoint"],
            state=attempt.state,
            code_verifier=attempt.verifier,
            nonce=attempt.nonce,
            redirect_uri=redirect_uri,
            scope=" ".join(self._client.scopes),
        )
        return str(address)

    def person(self, code: str, attempt: Attempt, redirect_uri: str) -> Person:
        """See the port."""
        found = self._discovered()
        try:
            answer = self._session(found).fetch_token(
                found["token_endpoint"],
                grant_type="authorization_code",
                code=code,
                code_verifier=attempt.verifier,
                redirect_uri=redirect_uri,
                allow_redirects=False,
            )
        except OAuthError as error:
            raise LoginRefused(
                f"the provider does not take the code: {str(error.error)[:100]!r}", hint="log in again"
            ) from error
        except (RequestException, ValueError, RecursionError) as error:
            raise Unavailable("the provider gives no answer for the code", hint="try again") from error
        signed = answer.get("id_token")
        if not isinstance(signed, str) or len(signed) > TOKEN_LENGTH_MAX:
            raise LoginRefused("the provider says nothing of who this is", hint="its client needs the scope openid")
        return self._vouched(signed, attempt, answer.get("access_token"))

    def bearer(self, token: str) -> Person:
        """See the port. RFC 9068, section 4."""
        if self._client.audience is None or len(token) > TOKEN_LENGTH_MAX:
            raise LoginRefused("no access token of that kind is taken")
        try:
            found = self._signed(token)
            if str(found.header.get("typ")).lower() not in TYPES:
                raise LoginRefused(f"this is no access token, but {str(found.header.get('typ'))[:20]!r}")
            JWTClaimsRegistry(
                now=self._now() // 1000,
                leeway=LEEWAY_S,
                iss={"essential": True, "value": self.issuer},
                aud={"essential": True, "value": self._client.audience},
                exp={"essential": True},
                iat={"essential": True},
                sub={"essential": True},
            ).validate(found.claims)
        except (JoseError, ValueError, TypeError) as error:
            raise LoginRefused(f"the access token is not what it has to be: {str(error)[:200]}") from error
        return self._person(found.claims)

    def logout_address(self, back: str) -> str | None:
        """See the port. RP-Initiated Logout 1.0, section 2: without ``id_token_hint``, since no ID token is kept."""
        found = self._discovered().get("end_session_endpoint")
        if not isinstance(found, str):
            return None
        said = [("client_id", self._client.client_id), ("post_logout_redirect_uri", back)]
        return str(add_params_to_uri(require_safe(found, beside=self.issuer), said))

    def _vouched(self, signed: str, attempt: Attempt, access_token: Any) -> Person:
        """Of whom a signed answer speaks. Raises :class:`LoginRefused`, saying what is wrong with it."""
        try:
            token = self._signed(signed)
            claims = CodeIDToken(
                token.claims,
                token.header,
                {"iss": {"essential": True, "value": self.issuer}, "aud": {"value": self._client.client_id}},
                {
                    "nonce": attempt.nonce,
                    "client_id": self._client.client_id,
                    "access_token": access_token if isinstance(access_token, str) else None,
                },
            )
            claims.validate(now=self._now() // 1000, leeway=LEEWAY_S)
        except (JoseError, ValueError, TypeError) as error:
            said = str(error)[:200]
            raise LoginRefused(f"the provider's answer is not valid: {said}", hint="log in again") from error
        return self._person(token.claims)

    def _signed(self, token: str) -> jwt.Token:
        """What one of the provider's keys has signed. Raises :class:`LoginRefused`, and what joserfc raises."""
        header = jws.extract_compact(token.encode()).headers()
        if header.get("alg") not in ALGORITHMS:
            raise LoginRefused(f"this is signed by {str(header.get('alg'))[:20]!r}, not by a key of the provider's")
        return jwt.decode(token, self._keys.of(header.get("kid")), algorithms=ALGORITHMS)

    def _person(self, claims: Mapping[str, Any]) -> Person:
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_LENGTH_MAX or not subject.isprintable():
            raise LoginRefused("the provider has no name for who this is")
        return Person(self.issuer, subject, claims)

    def _session(self, found: Mapping[str, Any]) -> Any:
        method = "none"
        if self._client.client_secret is not None:
            offered = found.get("token_endpoint_auth_methods_supported") or _METHODS
            method = next((one for one in _METHODS if one in offered), _METHODS[0])
        return session_of(self.issuer, self._client.client_id, self._client.client_secret, method)

    def _discovered(self) -> Mapping[str, Any]:
        """What the provider says of itself, as of an hour ago at most."""
        with self._lock:
            now = self._now()
            if self._found_at is not None and 0 <= now - self._found_at < FOUND_MS:
                return self._found
            if self._away is not None and 0 <= now - self._away[0] < AGAIN_MS:
                raise Unavailable(self._away[1], hint="try again in a moment")
            try:
                self._found = self._discover()
            except Unavailable as error:
                self._away = now, error.message
                raise
            self._found_at, self._away = now, None
            return self._found

    def _discover(self) -> Mapping[str, Any]:
        url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        found = document(self._session({}), url)
        if found.get("issuer") != self.issuer:
            raise LoginRefused(
                f"the provider calls itself {str(found.get('issuer'))[:200]!r}", hint=f"not {self.issuer!r}: see [oidc]"
            )
        for endpoint in _ENDPOINTS:
            address = found.get(endpoint)
            if not isinstance(address, str):
                raise LoginRefused(f"the provider names no {endpoint}")
            require_safe(address, beside=self.issuer)
        return found

    def _read_keys(self) -> Mapping[str, Any]:
        found = self._discovered()
        return document(self._session(found), found["jwks_uri"])
