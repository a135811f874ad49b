"""A server that others reach: its name, TLS in it or in front of it, and who is believed to say so."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from icewright.core.server_urls import authorities
from icewright.identity.authentication import Access, loopback_hosts
from icewright.server.http.app import create_app
from icewright.web.transport import Transport
from tests.builders.served import LOGIN_CODE, PORT, TOKEN, V1, Served, TestClient, problem
from tests.cases import each_case

PUBLIC = "lake.example"
URL = f"https://{PUBLIC}"
PROXY, ELSEWHERE, HERE = "10.1.0.7", "192.0.2.9", "127.0.0.1"
BY_TLS = {"X-Forwarded-Proto": "https"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Exposed:
    """A server at https://lake.example, behind a proxy of 10.1.0.0/16."""

    def __init__(self) -> None:
        self.served = Served()
        access = Access(
            TOKEN,
            loopback_hosts(HERE, PORT) | authorities(URL),
            self.served.access.identities,
            self.served.audit,
            transport=Transport(is_exposed=True, proxies=[ip_network("10.1.0.0/16"), ip_network("fd00::7")]),
            public_url=URL,
        )
        self.app = create_app(self.served.control, access)

    def client(self, peer: str, scheme: str = "http", **headers: str) -> TestClient:
        """Somebody at an address, who asks by the public name."""
        return TestClient(self.app, f"{scheme}://{PUBLIC}", headers=headers, client=(peer, 40_000))


@pytest.fixture
def exposed() -> Exposed:
    return Exposed()


@each_case("peer", [PROXY, "::ffff:10.1.0.7", "fd00::7"])
def test_what_came_by_tls_to_the_proxy_is_answered(exposed: Exposed, peer: str) -> None:
    answer = exposed.client(peer).get(f"{V1}/status", headers={**BEARER, **BY_TLS})
    assert answer.status_code == 200
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


@each_case("peer", [ELSEWHERE, "10.2.0.7", "::ffff:192.0.2.9", "fd00::8", "testclient", ""])
def test_t10_nobody_else_is_believed_to_have_come_by_tls(exposed: Exposed, peer: str) -> None:
    for path in (f"{V1}/status", "/", "/?token=x", f"{V1}/nothing"):
        refused = exposed.client(peer).get(path, headers={**BEARER, **BY_TLS})
        problem(refused, 403, "in-the-clear")
        assert "strict-transport-security" not in refused.headers


@each_case("said", [None, "http", "https, http", "http, https", "wss", ""])
def test_a_proxy_that_does_not_say_so_did_not_speak_tls(exposed: Exposed, said: str | None) -> None:
    headers = BEARER if said is None else {**BEARER, "X-Forwarded-Proto": said}
    problem(exposed.client(PROXY).get(f"{V1}/status", headers=headers), 403, "in-the-clear")


def test_a_proxy_that_says_it_twice_is_not_believed(exposed: Exposed) -> None:
    twice = [*BEARER.items(), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Proto", "https")]
    problem(exposed.client(PROXY).get(f"{V1}/status", headers=twice), 403, "in-the-clear")


def test_a_one_time_code_that_came_in_the_clear_is_not_used_up(exposed: Exposed) -> None:
    problem(exposed.client(ELSEWHERE).get("/", params={"token": LOGIN_CODE}), 403, "in-the-clear")
    assert exposed.client(PROXY, **BY_TLS).get("/", params={"token": LOGIN_CODE}).status_code == 303


def test_health_is_told_in_the_clear_to_who_knows_the_name(exposed: Exposed) -> None:
    assert exposed.client(ELSEWHERE).get(f"{V1}/healthz").status_code == 200
    problem(exposed.client(ELSEWHERE).get(f"{V1}/healthz", headers={"Host": ELSEWHERE}), 421, "wrong-host")
    problem(exposed.client(ELSEWHERE).post(f"{V1}/healthz"), 403, "in-the-clear")


def test_its_own_tls_needs_nobody_in_front(exposed: Exposed) -> None:
    assert exposed.client(ELSEWHERE, "https").get(f"{V1}/status", headers=BEARER).status_code == 200


def test_programs_of_its_machine_need_no_tls_unless_they_are_a_proxy_that_says_otherwise(exposed: Exposed) -> None:
    own = {**BEARER, "Host": f"127.0.0.1:{PORT}"}
    answer = exposed.client(HERE).get(f"{V1}/status", headers=own)
    assert answer.status_code == 200
    assert "strict-transport-security" not in answer.headers
    problem(exposed.client(ELSEWHERE).get(f"{V1}/status", headers=own), 403, "in-the-clear")


@pytest.mark.parametrize("host", [PUBLIC, f"{PUBLIC}:443", PUBLIC.upper()])
def test_the_public_name_is_answered(exposed: Exposed, host: str) -> None:
    client = exposed.client(PROXY, **BEARER, **BY_TLS)
    assert client.get(f"{V1}/status", headers={"Host": host}).status_code == 200


@each_case("host", ["evil.example", f"{PUBLIC}.evil.example", f"{PUBLIC}:80", PROXY, f"www.{PUBLIC}"])
def test_t10_other_names_are_refused_whatever_a_proxy_forwards(exposed: Exposed, host: str) -> None:
    client = exposed.client(PROXY, **BEARER, **BY_TLS, **{"X-Forwarded-Host": PUBLIC, "Forwarded": f"host={PUBLIC}"})
    problem(client.get(f"{V1}/status", headers={"Host": host}), 421, "wrong-host")


def test_sessions_go_by_tls_alone(exposed: Exposed) -> None:
    client = exposed.client(PROXY, **BY_TLS)
    cookie = client.get("/", params={"token": LOGIN_CODE}).headers["set-cookie"]
    assert cookie.startswith("icewright-session-443=")
    assert {"Secure", "HttpOnly", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (f"https://{PUBLIC}", 200),
        (f"https://{PUBLIC.upper()}", 200),
        (f"http://{PUBLIC}", 403),
        (f"https://{PUBLIC}:8443", 403),
        (f"https://{PUBLIC}.evil.example", 403),
        ("https://evil.example", 403),
        ("null", 403),
        (None, 403),
    ],
)
def test_t10_a_page_changes_something_from_the_public_address_alone(
    exposed: Exposed, origin: str | None, status: int
) -> None:
    client = exposed.client(PROXY, "https", **BY_TLS)
    assert client.get("/", params={"token": LOGIN_CODE}).status_code == 303
    for host in (PUBLIC, f"{PUBLIC}:443"):
        headers = {"Host": host} if origin is None else {"Origin": origin, "Host": host}
        answer = client.post(f"{V1}/logout", headers=headers)
        assert answer.status_code == status, answer.text
        if status == 200:
            break


def test_links_are_to_the_public_address(exposed: Exposed) -> None:
    code = exposed.client(PROXY, **BEARER, **BY_TLS).post(f"{V1}/login-codes").json()
    assert code["link"] == f"https://{PUBLIC}{code['path']}"
    assert Served().post("/login-codes")["link"] is None


def test_behind_a_proxy_of_the_same_machine_the_scheme_is_the_proxys() -> None:
    local = Transport(is_exposed=False, proxies=[ip_network(HERE)])
    scope = {"type": "http", "scheme": "http", "client": (HERE, 1), "headers": []}
    assert local.scheme(scope) == "http"
    assert local.scheme({**scope, "headers": [(b"x-forwarded-proto", b"https")]}) == "https"
    assert local.scheme({**scope, "headers": [(b"x-forwarded-proto", b"http")]}) is None
