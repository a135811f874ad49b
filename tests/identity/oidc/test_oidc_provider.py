"""A provider that misbehaves, or somebody in its place: nobody is let in, nothing else is spoken with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import pytest
from joserfc.jwk import OctKey, RSAKey

from icewright.core.errors import IcewrightError, LoginRefused, Unavailable
from icewright.core.server_urls import trusted
from icewright.identity.oidc.guarded import ANSWER_BYTES_MAX, require_safe
from icewright.identity.oidc.provider import ALGORITHMS, LEEWAY_S, Client, OidcProvider
from icewright.identity.people_port import Attempt
from icewright.model.access.people import Person
from tests.cases import each_case
from tests.doubles.clock import ManualClock
from tests.servers.oidc import CLIENT_ID, CLIENT_SECRET, Answer, OidcServer, oidc_server

BACK = "http://127.0.0.1:7077/login/callback"
ATTEMPT = Attempt("the-state", "the-nonce", "v" * 43)
DISCOVERY = "/.well-known/openid-configuration"


@dataclass
class World:
    server: OidcServer
    clock: ManualClock
    provider: OidcProvider

    def log_in(self, attempt: Attempt = ATTEMPT) -> Person:
        asked = self.provider.address(attempt, BACK)
        back = httpx2.get(asked, verify=trusted(asked)).headers["location"]
        return self.provider.person(httpx2.QueryParams(back.partition("?")[2])["code"], attempt, BACK)

    def new_provider(self, **changes: Any) -> OidcProvider:
        """As another server would have it, which has asked nothing yet."""
        client = replace(Client(self.server.issuer, CLIENT_ID, CLIENT_SECRET), **changes)
        self.provider = OidcProvider(client, self.clock.now)
        return self.provider


@pytest.fixture
def world() -> Iterator[World]:
    clock = ManualClock()
    with oidc_server() as server:
        server.now = lambda: clock.now() / 1000
        yield World(server, clock, OidcProvider(Client(server.issuer, CLIENT_ID, CLIENT_SECRET), clock.now))


def at(world: World, seconds: int) -> int:
    return world.clock.now() // 1000 + seconds


def refuses(world: World) -> None:
    """The answer of the provider lets nobody in."""
    with pytest.raises(LoginRefused):
        world.log_in()


class TestClaims:
    @pytest.mark.parametrize(
        "claims",
        [
            {"aud": "another-client"},
            {"aud": ["another-client", "a-third"]},
            {"aud": []},
            {"aud": None},
            {"aud": [CLIENT_ID, "another-client"]},  # without azp
            {"aud": [CLIENT_ID, "another-client"], "azp": "another-client"},
            {"azp": "another-client"},
            {"iss": "https://elsewhere.example.com"},
            {"iss": None},
            {"sub": None},
            {"sub": ""},
            {"sub": 7},
            {"sub": "a" * 256},
            {"sub": "a\nb"},
            {"nonce": None},
            {"nonce": "of another log-in"},
            {"exp": None},
            {"exp": "never"},
            {"exp": True},
            {"iat": None},
            {"at_hash": "xxxx"},
        ],
        ids=str,
    )
    def test_t11_what_is_not_said_of_this_log_in_by_this_provider_for_us_lets_nobody_in(
        self, world: World, claims: dict[str, Any]
    ) -> None:
        world.server.claims = claims
        refuses(world)

    @pytest.mark.parametrize(("claim", "off"), [("exp", -LEEWAY_S), ("nbf", LEEWAY_S + 1), ("iat", LEEWAY_S + 1)])
    def test_t11_nor_what_is_not_said_now(self, world: World, claim: str, off: int) -> None:
        world.server.claims = {claim: at(world, off)}
        refuses(world)
        world.server.claims = {claim: at(world, off + (1 if claim == "exp" else -1))}
        assert world.log_in().subject == "ada-7"  # clocks may be off by a minute

    def test_several_audiences_are_fine_when_we_are_who_asked(self, world: World) -> None:
        world.server.claims = {"aud": [CLIENT_ID, "another-client"], "azp": CLIENT_ID}
        assert world.log_in().subject == "ada-7"


class TestSignatures:
    @pytest.mark.parametrize("how", ["nothing", "public-key", "other-key", "changed", "secret"])
    def test_t11_what_the_provider_has_not_signed_lets_nobody_in(self, world: World, how: str) -> None:
        server = world.server
        mine = RSAKey.generate_key(2048, {"kid": "k1"})

        def with_mine(claims: dict[str, Any]) -> str:
            own, server.keys = server.keys, {"k1": mine}
            signed = server.sign(claims)
            server.keys = own
            return signed

        def with_secret(claims: dict[str, Any]) -> str:
            return server.encode({"alg": "HS256", "kid": "k1"}, claims, OctKey.import_key(CLIENT_SECRET.encode()))

        def changed(claims: dict[str, Any]) -> str:
            head, body, signature = server.sign(claims).split(".")
            return ".".join([head, body[:-4] + ("AAAA" if body[-4:] != "AAAA" else "BBBB"), signature])

        signers: dict[str, Callable[[dict[str, Any]], str]] = {
            "nothing": server.sign_with_nothing,
            "public-key": server.sign_with_public_key,
            "other-key": with_mine,
            "changed": changed,
            "secret": with_secret,
        }
        server.signed = signers[how]
        refuses(world)

    def test_t11_only_signatures_by_a_key_pair_count(self) -> None:
        assert not [one for one in ALGORITHMS if one == "none" or one.startswith("HS")]

    @pytest.mark.parametrize("token", [None, 7, "", "x", "a.b", "a.b.c", "..", "é.é.é", "a" * 100_000])
    def test_t9_what_is_no_signed_answer_lets_nobody_in(self, world: World, token: Any) -> None:
        world.server.answers["/token"] = Answer.json({"access_token": "a", "token_type": "Bearer", "id_token": token})
        refuses(world)


class TestKeys:
    def test_a_key_that_is_new_is_found_and_one_that_is_gone_opens_nothing(self, world: World) -> None:
        assert world.log_in().subject == "ada-7"
        old, world.server.signed = world.server.keys["k1"], world.server.sign
        world.clock.advance(60_000)
        world.server.rotate("k2")
        assert world.log_in().subject == "ada-7"
        world.server.keys["k1"] = old  # it signs on, and is none of the provider's any more
        world.server.kid, world.server.algorithm = "k1", "RS256"
        listed = {"keys": [world.server.keys["k2"].as_dict(private=False)]}
        world.server.answers["/keys"] = Answer.json(listed)
        refuses(world)

    def test_t13_unknown_keys_make_us_ask_once_a_minute_at_most(self, world: World) -> None:
        world.log_in()
        own = world.server.keys["k1"]
        world.server.keys = {"k9": RSAKey.generate_key(2048, {"kid": "k9"})}
        world.server.kid = "k9"
        world.server.answers["/keys"] = Answer.json({"keys": [own.as_dict(private=False)]})
        for _ in range(5):
            refuses(world)
        assert world.server.asked["/keys"] == 1
        world.clock.advance(60_000)
        for _ in range(5):
            refuses(world)
        assert world.server.asked["/keys"] == 2

    def test_t11_without_an_id_only_the_only_key_is_meant(self, world: World) -> None:
        server = world.server
        server.signed = lambda claims: server.encode({"alg": "RS256"}, claims, server.keys["k1"])
        assert world.log_in().subject == "ada-7"
        server.keys["k2"] = RSAKey.generate_key(2048, {"kid": "k2"})
        world.new_provider()
        refuses(world)

    @pytest.mark.parametrize("how", ["encrypts", "short", "secret", "twice", "other-algorithm", "private", "none"])
    def test_t11_keys_for_anything_else_are_none(self, world: World, how: str) -> None:
        public = world.server.keys["k1"].as_dict(private=False)
        short = RSAKey.generate_key(1024, {"kid": "k1"}) if how == "short" else world.server.keys["k1"]
        listed: Any = {
            "encrypts": [{**public, "use": "enc"}],
            "short": [short.as_dict(private=False)],
            "secret": [{"kty": "oct", "kid": "k1", "k": "AAAA"}],
            "twice": [public, public],
            "other-algorithm": [{**public, "alg": "PS256"}],
            "private": [world.server.keys["k1"].as_dict(private=True)],
            "none": "x",
        }[how]
        world.server.keys = {"k1": short}
        world.server.answers["/keys"] = Answer.json({"keys": listed})
        refuses(world)


class TestAddresses:
    """T7: what a provider, or somebody in its place, may have us speak with."""

    @pytest.mark.parametrize("path", [DISCOVERY, "/keys", "/token"])
    def test_t7_redirects_are_not_followed(self, world: World, path: str) -> None:
        with oidc_server() as elsewhere:
            to = {"Location": f"{elsewhere.issuer}{path}"}
            for status in (301, 302, 303, 307, 308):
                world.server.answers[path] = Answer(status, headers=to)
                world.new_provider()
                refuses(world)
            assert not elsewhere.asked

    def test_t7_who_calls_itself_otherwise_is_somebody_else(self, world: World) -> None:
        for issuer in ("https://elsewhere.example.com", world.server.issuer + "/", None):
            world.server.discovery = {"issuer": issuer}
            refuses(world)

    @pytest.mark.parametrize("endpoint", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
    @pytest.mark.parametrize(
        "address", [None, 7, "", "x", "ftp://127.0.0.1/", "file:///etc/passwd", "http://example.com/", "https://a:b@c/"]
    )
    def test_t7_only_https_and_without_credentials(self, world: World, endpoint: str, address: Any) -> None:
        world.server.discovery = {endpoint: address}
        refuses(world)

    @each_case(
        "host",
        [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "localhost",
            "0.0.0.0",  # noqa: S104 - nothing listens there
            "169.254.169.254",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:169.254.169.254]",
            "[fe80::1]",
            "224.0.0.1",
        ],
    )
    def test_t7_a_provider_elsewhere_cannot_have_us_speak_with_this_machine_or_a_clouds_own(self, host: str) -> None:
        with pytest.raises(IcewrightError):
            require_safe(f"https://{host}/token", beside="https://login.example.com")
        with pytest.raises(LoginRefused):
            require_safe(f"http://{host}/token", beside="https://login.example.com")

    @each_case("issuer", ["http://login.example.com", "ftp://x", "https://a@b", "https://", "https://a/#b"])
    def test_t7_an_issuer_is_spoken_with_by_https_alone(self, issuer: str) -> None:
        with pytest.raises(LoginRefused):
            OidcProvider(Client(issuer, "x"), lambda: 0)

    @pytest.mark.parametrize("path", [DISCOVERY, "/keys", "/token"])
    def test_t13_an_answer_without_an_end_is_not_read(self, world: World, path: str) -> None:
        body = json.dumps({"x": "a" * ANSWER_BYTES_MAX}).encode()
        world.server.answers[path] = Answer(200, body, {"Content-Type": "application/json"})
        with pytest.raises(LoginRefused, match="answers with more than"):
            world.log_in()

    @pytest.mark.parametrize("path", [DISCOVERY, "/keys", "/token"])
    @pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b"[" * 100_000])
    def test_t9_what_is_no_document_is_no_answer(self, world: World, path: str, body: bytes) -> None:
        world.server.answers[path] = Answer(200, body, {"Content-Type": "application/json"})
        with pytest.raises((Unavailable, LoginRefused)):
            world.log_in()

    def test_t13_one_that_is_away_is_left_alone_for_a_while(self, world: World) -> None:
        world.server.answers[DISCOVERY] = Answer(503)
        for _ in range(5):
            with pytest.raises(Unavailable):
                world.log_in()
        assert world.server.asked[DISCOVERY] == 1
        world.server.answers.clear()
        world.clock.advance(10_000)
        assert world.log_in().subject == "ada-7"


class TestLogOut:
    def test_a_browser_is_sent_to_the_provider_and_back_without_any_token(self, world: World) -> None:
        address = world.provider.logout_address("http://127.0.0.1:7077/")
        assert address is not None
        assert address.startswith(f"{world.server.issuer}/logout?theme=dark&client_id={CLIENT_ID}&post_logout")
        assert httpx2.get(address, follow_redirects=False).headers["location"] == "http://127.0.0.1:7077/"
        assert world.server.asked["/logout"] == 1, "the browser asked, we did not"

    @pytest.mark.parametrize("said", [None, 7, []])
    def test_where_the_provider_has_none_it_is_sent_nowhere(self, world: World, said: Any) -> None:
        world.server.discovery = {"end_session_endpoint": said}
        assert world.provider.logout_address("http://127.0.0.1:7077/") is None

    @pytest.mark.parametrize(
        "address",
        [
            "",
            "x",
            "javascript:alert(1)",
            "data:text/html,x",
            "//evil.example.com",
            "http://evil.example.com/",
            "https://a@b/",
        ],
    )
    def test_t7_nobody_is_sent_where_a_log_in_would_not_go(self, world: World, address: str) -> None:
        world.server.discovery = {"end_session_endpoint": address}
        with pytest.raises(LoginRefused):
            world.provider.logout_address("http://127.0.0.1:7077/")
        assert world.log_in().subject == "ada-7"


class TestAccessTokens:
    """RFC 9068: what programs show, off unless an audience is configured."""

    @pytest.fixture
    def taking(self, world: World) -> World:
        world.new_provider(audience="the-api")
        return world

    def test_a_program_is_whom_its_token_speaks_of(self, taking: World) -> None:
        server, provider = taking.server, taking.provider
        server.person["sub"] = "etl"
        for audience in ("the-api", ["another-api", "the-api"]):
            found = provider.bearer(server.access_token(aud=audience))
            assert (found.issuer, found.subject, found.claims["groups"]) == (server.issuer, "etl", ["data-eng"])
        assert provider.bearer(server.access_token({"typ": "application/AT+JWT"})).subject == "etl"
        assert server.asked["/keys"] == 1, "keys are kept"
        server.rotate("k2", keep=True)
        taking.clock.advance(60_000)
        assert provider.bearer(server.access_token()).subject == "etl"
        assert server.asked["/token"] == 0

    @pytest.mark.parametrize(
        "claims",
        [
            {"aud": "another-api"},
            {"aud": CLIENT_ID},
            {"aud": ["another-api"]},
            {"aud": []},
            {"aud": None},
            {"aud": "the-api2"},
            {"aud": {"the-api": 1}},
            {"iss": "https://elsewhere.example.com"},
            {"iss": None},
            {"sub": None},
            {"sub": ""},
            {"sub": 7},
            {"exp": None},
            {"exp": "never"},
            {"iat": None},
        ],
        ids=str,
    )
    def test_t11_one_that_is_not_said_by_this_provider_for_us_opens_nothing(
        self, taking: World, claims: dict[str, Any]
    ) -> None:
        with pytest.raises(LoginRefused):
            taking.provider.bearer(taking.server.access_token(**claims))

    @pytest.mark.parametrize(("claim", "off"), [("exp", -LEEWAY_S), ("nbf", LEEWAY_S + 1), ("iat", LEEWAY_S + 1)])
    def test_t11_nor_one_that_is_over_or_of_later(self, taking: World, claim: str, off: int) -> None:
        wrong: dict[str, Any] = {claim: at(taking, off)}
        with pytest.raises(LoginRefused):
            taking.provider.bearer(taking.server.access_token(**wrong))
        near: dict[str, Any] = {claim: at(taking, off + (1 if claim == "exp" else -1))}
        assert taking.provider.bearer(taking.server.access_token(**near)).subject == "ada-7"

    @pytest.mark.parametrize(
        "header",
        [
            {"typ": "JWT"},
            {"typ": None},
            {"typ": ""},
            {"typ": "at"},
            {"kid": "k9"},
            {"kid": 7},
            {"kid": "../k1"},
            {"crit": ["x"], "x": 1},
        ],
        ids=str,
    )
    def test_t11_nor_one_that_says_to_be_something_else_or_of_another_key(
        self, taking: World, header: dict[str, Any]
    ) -> None:
        server, now = taking.server, at(taking, 0)
        claims = {"iss": server.issuer, "aud": "the-api", "iat": now, "exp": now + 300, "sub": "ada-7"}
        said = {"alg": "RS256", "kid": "k1", "typ": "at+jwt"}
        assert taking.provider.bearer(server.sign_by_hand(said, claims)).subject == "ada-7"
        token = server.sign_by_hand({**said, **header}, claims)
        with pytest.raises(LoginRefused):
            taking.provider.bearer(token)

    @pytest.mark.parametrize("how", ["nothing", "public-key", "other-key", "changed", "secret", "id-token"])
    def test_t11_nor_one_that_the_provider_has_not_signed(self, taking: World, how: str) -> None:
        server = taking.server
        now = at(taking, 0)
        claims = {"iss": server.issuer, "aud": "the-api", "iat": now, "exp": now + 300, "sub": "ada-7"}
        good = server.access_token()
        assert taking.provider.bearer(good).subject == "ada-7"
        head, body, signature = good.split(".")
        own = RSAKey.generate_key(2048, {"kid": "k1"})
        header = {"kid": "k1", "typ": "at+jwt"}
        token = {
            "nothing": lambda: server.sign_with_nothing(claims, "at+jwt"),
            "public-key": lambda: server.sign_with_public_key(claims, "at+jwt"),
            "other-key": lambda: server.encode({"alg": "RS256", **header}, claims, own),
            "changed": lambda: ".".join([head, body[:-4] + ("AAAA" if body[-4:] != "AAAA" else "BBBB"), signature]),
            "secret": lambda: server.encode(
                {"alg": "HS256", **header}, claims, OctKey.import_key(CLIENT_SECRET.encode())
            ),
            "id-token": lambda: server.sign({**claims, "aud": CLIENT_ID}),
        }[how]()
        with pytest.raises(LoginRefused):
            taking.provider.bearer(token)

    @pytest.mark.parametrize(
        "token", ["", "x", "a.b", "a.b.c", "..", "é.é.é", "\ud800.b.c", "a" * 100_000, "a.b.c.d.e"]
    )
    def test_t9_what_is_no_token_opens_nothing(self, taking: World, token: str) -> None:
        with pytest.raises(LoginRefused):
            taking.provider.bearer(token)

    def test_t11_without_an_audience_none_is_taken(self, world: World) -> None:
        assert not world.provider.takes_tokens
        with pytest.raises(LoginRefused):
            world.provider.bearer(world.server.access_token())
        with pytest.raises(LoginRefused):
            world.provider.bearer(world.server.access_token(aud=None))
        assert not world.server.asked

    def test_t13_a_provider_without_keys_is_asked_once_in_a_while(self, taking: World) -> None:
        taking.server.answers["/keys"] = Answer(503)
        for _ in range(5):
            with pytest.raises(Unavailable):
                taking.provider.bearer(taking.server.access_token())
        assert taking.server.asked["/keys"] == 1
        taking.server.answers.clear()
        taking.clock.advance(10_000)
        assert taking.provider.bearer(taking.server.access_token()).subject == "ada-7"


class TestSecret:
    def test_a_wrong_secret_lets_nobody_in(self, world: World) -> None:
        world.new_provider(client_secret="x")  # noqa: S106 - not a secret
        refuses(world)

    def test_a_public_client_has_none(self, world: World) -> None:
        world.server.secret = None
        world.new_provider(client_secret=None)
        assert world.log_in().subject == "ada-7"

    def test_t5_what_holds_secrets_does_not_show_them(self, world: World) -> None:
        assert CLIENT_SECRET not in repr(Client("https://a", "b", CLIENT_SECRET))
        assert not [word for word in ("the-state", "the-nonce", "vvv") if word in repr(ATTEMPT)]
        assert "data-eng" not in repr(world.log_in())
