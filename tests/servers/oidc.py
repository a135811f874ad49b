"""A provider of OpenID Connect on loopback, as small as can be, that can be told to misbehave.

It lets everybody in at once as the person that the test names. Signatures are joserfc's.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from tests.servers.in_threads import answering

CLIENT_ID = "icewright"
CLIENT_SECRET = "the-secret-of-this-client"  # noqa: S105 - not a secret
_ALL = ["RS256", "ES256", "HS256", "none"]


@dataclass
class Answer:
    """An answer of the provider's."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, document: Any, status: int = 200) -> Answer:
        return cls(status, json.dumps(document).encode(), {"Content-Type": "application/json"})


@cache
def _first_key() -> RSAKey:
    """What every provider begins with: making one takes a tenth of a second."""
    return RSAKey.generate_key(2048, {"kid": "k1", "use": "sig"})


@dataclass
class Granted:
    """What a code stands for."""

    nonce: str | None
    challenge: str
    redirect_uri: str


class OidcServer:
    """What the provider is, says and was asked. A test changes what it likes."""

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self.person: dict[str, Any] = {"sub": "ada-7", "name": "Ada", "groups": ["data-eng"]}
        self.keys: dict[str, RSAKey | ECKey] = {"k1": _first_key()}
        self.algorithm, self.kid = "RS256", "k1"
        self.secret: str | None = CLIENT_SECRET
        self.asked: Counter[str] = Counter()
        self.codes: dict[str, Granted] = {}
        self.now: Callable[[], float] = time.time
        self.discovery: dict[str, Any] = {}
        """What it says of itself in place of the truth."""
        self.claims: dict[str, Any] = {}
        """What an ID token says in place of the truth; None leaves a claim out."""
        self.signed: Callable[[dict[str, Any]], str] = self.sign
        self.answers: dict[str, Answer] = {}
        """What it answers at a path in place of the truth."""

    def access_token(self, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
        """A token for programs, for ``the-api``; None leaves a claim out."""
        now = int(self.now())
        said = {"iss": self.issuer, "aud": "the-api", "iat": now, "exp": now + 300, **self.person, **claims}
        head = {"alg": self.algorithm, "kid": self.kid, "typ": "at+jwt", **(header or {})}
        kept = {key: value for key, value in said.items() if value is not None}
        shown = {key: value for key, value in head.items() if value is not None}
        return self.encode(shown, kept, self.keys[self.kid])

    def rotate(self, kid: str, *, keep: bool = False) -> None:
        """Sign with another key from now on."""
        key = ECKey.generate_key("P-256", {"kid": kid, "use": "sig"})
        self.keys = {**(self.keys if keep else {}), kid: key}
        self.algorithm, self.kid = "ES256", kid

    def sign(self, claims: dict[str, Any]) -> str:
        return self.encode({"alg": self.algorithm, "kid": self.kid}, claims, self.keys[self.kid])

    def encode(self, header: dict[str, Any], claims: dict[str, Any], key: Any) -> str:
        return jwt.encode(header, claims, key, algorithms=_ALL)

    def sign_by_hand(self, header: dict[str, Any], claims: dict[str, Any]) -> str:
        """RS256 under whatever header: joserfc would not sign each of them."""
        head = ".".join(_encoded(json.dumps(one).encode()) for one in (header, claims))
        key: Any = self.keys["k1"]
        return f"{head}.{_encoded(key.private_key.sign(head.encode(), PKCS1v15(), SHA256()))}"

    def sign_with_public_key(self, claims: dict[str, Any], typ: str = "JWT") -> str:
        """HS256 with what everybody can read: who takes the algorithm from the token believes it."""
        header = {"alg": "HS256", "kid": "k1", "typ": typ}
        head = ".".join(_encoded(json.dumps(one).encode()) for one in (header, claims))
        public = self.keys["k1"].as_pem(private=False)
        return f"{head}.{_encoded(hmac.digest(public, head.encode(), sha256))}"  # joserfc would not do that

    def sign_with_nothing(self, claims: dict[str, Any], typ: str = "JWT") -> str:
        header = {"alg": "none", "kid": "k1", "typ": typ}
        head = ".".join(_encoded(json.dumps(one).encode()) for one in (header, claims))
        return f"{head}."

    def answer(self, path: str, query: Mapping[str, str], form: Mapping[str, str], authorization: str) -> Answer:
        self.asked[path] += 1
        if path in self.answers:
            return self.answers[path]
        match path:
            case "/.well-known/openid-configuration":
                return Answer.json(self._about())
            case "/keys":
                return Answer.json({"keys": [key.as_dict(private=False) for key in self.keys.values()]})
            case "/authorize" | "/logout":
                return self._authorize(query) if path == "/authorize" else self._log_out(query)
            case "/token":
                return self._token(form, authorization)
        return Answer(404)

    def _about(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "end_session_endpoint": f"{self.issuer}/logout?theme=dark",
            "response_types_supported": ["code"],
            **self.discovery,
        }

    def _authorize(self, query: Mapping[str, str]) -> Answer:
        assert (query["response_type"], query["client_id"]) == ("code", CLIENT_ID)
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = Granted(query.get("nonce"), query["code_challenge"], query["redirect_uri"])
        back = urlencode({"code": code, "state": query["state"], "iss": self.issuer})
        return Answer(302, headers={"Location": f"{query['redirect_uri']}?{back}"})

    def _log_out(self, query: Mapping[str, str]) -> Answer:
        assert query == {
            "theme": "dark",
            "client_id": CLIENT_ID,
            "post_logout_redirect_uri": query["post_logout_redirect_uri"],
        }
        return Answer(302, headers={"Location": query["post_logout_redirect_uri"]})

    def _token(self, form: Mapping[str, str], authorization: str) -> Answer:
        wanted = base64.b64encode(f"{CLIENT_ID}:{self.secret}".encode()).decode()
        is_known = authorization == f"Basic {wanted}" if self.secret else form.get("client_id") == CLIENT_ID
        if not is_known:
            return Answer.json({"error": "invalid_client"}, 401)
        granted = self.codes.pop(form.get("code", ""), None)
        verifier = sha256(form.get("code_verifier", "").encode()).digest()
        challenge = _encoded(verifier)
        if granted is None or (granted.challenge, granted.redirect_uri) != (challenge, form.get("redirect_uri")):
            return Answer.json({"error": "invalid_grant"}, 400)
        now = int(self.now())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": granted.nonce}
        said = {**claims, **self.person, **self.claims}
        signed = self.signed({key: value for key, value in said.items() if value is not None})
        return Answer.json({"access_token": "a", "token_type": "Bearer", "expires_in": 300, "id_token": signed})


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _handler_of(servers: list[OidcServer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            self._reply({key: values[0] for key, values in parse_qs(body).items()})

        def _reply(self, form: Mapping[str, str]) -> None:
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            answer = servers[0].answer(parts.path, query, form, self.headers.get("Authorization", ""))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """Nothing: tests read what was asked."""

    return Handler


@contextmanager
def oidc_server() -> Iterator[OidcServer]:
    """A provider that answers while the block runs."""
    servers: list[OidcServer] = []
    web = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(servers))
    servers.append(OidcServer(web.server_port))
    with answering(web):
        yield servers[0]
