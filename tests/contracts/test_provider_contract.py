"""What every provider of people must do: the one in memory, and a real one on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from icewright.core.errors import LoginRefused, Unavailable
from icewright.identity.oidc.provider import Client, OidcProvider
from icewright.identity.people_port import Attempt, Provider
from icewright.model.access.people import Person
from tests.doubles.clock import ManualClock
from tests.doubles.people import MemoryProvider
from tests.servers.oidc import CLIENT_ID, CLIENT_SECRET, Answer, oidc_server

BACK = "http://127.0.0.1:7077/login/callback"
ATTEMPT = Attempt("the-state", "the-nonce", "v" * 43)


@dataclass
class Vouching:
    """A provider with a browser in which Ada has logged in."""

    provider: Provider
    visit: Callable[[str], str]
    go_away: Callable[[], None]

    def code(self, attempt: Attempt = ATTEMPT) -> str:
        """What the browser comes back with."""
        back = urlsplit(self.visit(self.provider.address(attempt, BACK)))
        query = {key: values[0] for key, values in parse_qs(back.query).items()}
        assert f"{back.scheme}://{back.netloc}{back.path}" == BACK
        assert query["state"] == attempt.state
        return query["code"]


@pytest.fixture(params=["memory", "oidc"])
def vouching(request: pytest.FixtureRequest) -> Iterator[Vouching]:
    if request.param == "memory":
        memory = MemoryProvider()
        ada = Person(memory.issuer, "ada-7", {"groups": ["data-eng"]})
        yield Vouching(memory, lambda address: memory.visit(address, ada), lambda: setattr(memory, "is_away", True))
        return
    clock = ManualClock()
    with oidc_server() as server:
        server.now = lambda: clock.now() / 1000
        provider = OidcProvider(Client(server.issuer, CLIENT_ID, CLIENT_SECRET), clock.now)

        def visit(address: str) -> str:
            return httpx2.get(address, follow_redirects=False).headers["location"]

        def go_away() -> None:
            clock.advance(2 * 3_600_000)
            server.answers |= dict.fromkeys(("/.well-known/openid-configuration", "/token"), Answer(503))

        yield Vouching(provider, visit, go_away)


def test_a_code_stands_for_who_has_logged_in(vouching: Vouching) -> None:
    person = vouching.provider.person(vouching.code(), ATTEMPT, BACK)
    assert (person.issuer, person.subject) == (vouching.provider.issuer, "ada-7")
    assert person.claims["groups"] == ["data-eng"]


def test_t11_a_code_is_redeemed_once(vouching: Vouching) -> None:
    code = vouching.code()
    vouching.provider.person(code, ATTEMPT, BACK)
    with pytest.raises(LoginRefused):
        vouching.provider.person(code, ATTEMPT, BACK)


@pytest.mark.parametrize("changed", ["nonce", "verifier"])
def test_t11_nor_by_anybody_but_who_asked_for_it(vouching: Vouching, changed: str) -> None:
    other = replace(ATTEMPT, **{changed: "x" * 43})
    with pytest.raises(LoginRefused):
        vouching.provider.person(vouching.code(), other, BACK)


def test_t11_nor_for_another_place_to_come_back_to(vouching: Vouching) -> None:
    with pytest.raises(LoginRefused):
        vouching.provider.person(vouching.code(), ATTEMPT, BACK + "/x")


def test_a_code_that_is_none_is_refused(vouching: Vouching) -> None:
    with pytest.raises(LoginRefused):
        vouching.provider.person("x", ATTEMPT, BACK)


def test_one_that_is_away_is_said_to_be(vouching: Vouching) -> None:
    code = vouching.code()
    vouching.go_away()
    for ask in (
        lambda: vouching.provider.person(code, ATTEMPT, BACK),
        lambda: vouching.provider.address(ATTEMPT, BACK),
    ):
        with pytest.raises(Unavailable):
            ask()
