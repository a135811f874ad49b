"""People log in with a browser, by a real provider on loopback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from icewright.core.codec import to_json
from icewright.core.errors import StoreUnavailable
from icewright.core.server_urls import trusted
from icewright.identity.authentication import Access, loopback_hosts
from icewright.identity.logins import Logins
from icewright.identity.oidc.provider import Client, OidcProvider
from icewright.model.access.identity import IDLE_MS
from icewright.model.access.people import RoleRule
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.server.http.app import create_app
from tests.builders.served import EVENTS, HOST, LOGIN_CODE, PORT, TOKEN, V1, Served, TestClient, with_pages
from tests.servers.oidc import CLIENT_ID, CLIENT_SECRET, Answer, OidcServer, oidc_server

RULES = [
    RoleRule.parse("groups=data-eng", "operator@lake.db"),
    RoleRule.parse("groups=approvers", "approver, policy-admin"),
]


@dataclass
class World:
    served: Served
    provider: OidcServer

    def browser(self) -> TestClient:
        return TestClient(self.served.app, f"http://{HOST}")

    def logins(self, audience: str | None = None) -> Logins:
        client = Client(self.provider.issuer, CLIENT_ID, CLIENT_SECRET, audience=audience)
        provider = OidcProvider(client, self.served.clock.now)
        access = self.served.access
        return Logins(provider, RULES, access.identities, access.audit, self.served.clock, TOKEN)

    def come_back(self, browser: TestClient, at: str = "/login") -> str:
        """Where the provider sends a browser back to, that has just asked to log in."""
        sent = browser.get(at)
        assert sent.status_code == 303
        to = sent.headers["location"]
        back = httpx2.get(to, verify=trusted(to)).headers["location"]
        assert back.startswith(f"http://{HOST}/login/callback?")
        return str(back).removeprefix(f"http://{HOST}")

    def log_in(self, browser: TestClient) -> httpx2.Response:
        return browser.get(self.come_back(browser))


@pytest.fixture
def world() -> Iterator[World]:
    with oidc_server() as provider:
        served = Served()
        provider.now = lambda: served.clock.now() / 1000
        world = World(served, provider)
        served.access.logins = world.logins()
        yield world


def text_of(page: httpx2.Response) -> str:
    return re.sub(r"<[^>]*>", "", page.text.partition("<main>")[2])


def test_a_person_logs_in_does_what_they_may_and_logs_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with_pages(monkeypatch)
    uuid = world.served.table()
    browser = world.browser()
    assert 'href="/login"' in browser.get("/").text
    page = world.log_in(browser)
    assert (page.status_code, "Logged in as Ada." in page.text) == (200, True)
    assert 'http-equiv="refresh" content="0; url=/"' in page.text  # a page of ours, so that the strict cookie is sent
    shown = browser.get("/")
    assert (shown.status_code, "the pages" in shown.text) == (200, True)
    me = browser.get(f"{V1}/me").json()
    assert (me["name"], me["shown"]) == (f"person:{world.provider.issuer}#ada-7", "Ada")
    assert [one["name"] for one in browser.get(f"{V1}/tables").json()["items"]] == [str(EVENTS)]
    origin = {"Origin": f"http://{HOST}"}
    assert browser.post(f"{V1}/tables/{uuid}/look", headers=origin).status_code == 200
    assert browser.get(f"{V1}/audit").status_code == 403
    gone = browser.post(f"{V1}/logout", headers=origin)
    further = f"{world.provider.issuer}/logout?theme=dark&client_id=icewright&post_logout_redirect_uri="
    assert gone.json() == {"further": f"{further}http%3A%2F%2F127.0.0.1%3A{PORT}%2F"}
    assert browser.get(f"{V1}/me").status_code == 401
    said = [(one["principal"], one["action"], one["detail"].get("shown")) for one in audit(world)]
    assert ("stranger", "session.opened", "Ada") in said
    assert (me["name"], "api", None) in said


def test_a_person_takes_a_session_to_a_program(world: World) -> None:
    browser = world.browser()
    page = browser.get(world.come_back(browser, "/login/program"))
    assert (page.status_code, "as Ada" in page.text, browser.get(f"{V1}/me").status_code) == (200, True, 401)
    (code,) = re.findall(r"<code>(\S+)</code>", page.text)
    given = world.browser().post(f"{V1}/sessions", json={"code": code}).json()
    me = world.browser().get(f"{V1}/me", headers={"Authorization": f"Bearer {given['token']}"}).json()
    assert (me["name"], me["shown"]) == (f"person:{world.provider.issuer}#ada-7", "Ada")
    assert "operate" in me["permissions"]


@pytest.mark.parametrize("how", ["none", "unsafe", "away"])
def test_somebody_is_logged_out_here_whatever_the_provider_offers(world: World, how: str) -> None:
    browser = world.browser()
    world.log_in(browser)
    world.provider.discovery = {"end_session_endpoint": {"none": None, "unsafe": "javascript:alert(1)"}.get(how)}
    if how == "away":
        world.provider.answers["/.well-known/openid-configuration"] = Answer(503)
    world.served.access.logins = world.logins()  # another server, which asks the provider anew
    gone = browser.post(f"{V1}/logout", headers={"Origin": f"http://{HOST}"})
    assert (gone.status_code, gone.json()) == (200, {"further": None})
    assert browser.get(f"{V1}/me").status_code == 401


def test_whoever_did_not_come_by_the_provider_is_not_sent_there(world: World) -> None:
    assert world.served.post("/logout") == {"further": None}
    browser = world.browser()
    browser.get("/", params={"token": LOGIN_CODE})
    gone = browser.post(f"{V1}/logout", headers={"Origin": f"http://{HOST}"})
    assert gone.json() == {"further": None}
    assert not world.provider.asked


def test_t5_the_provider_is_given_no_token_of_anybody_and_none_is_kept(world: World) -> None:
    signed: list[str] = []

    def sign(claims: dict[str, Any]) -> str:
        signed.append(world.provider.sign(claims))
        return signed[-1]

    world.provider.signed = sign
    browser = world.browser()
    world.log_in(browser)
    found = world.served.access.identities.sessions(limit=9)
    assert signed[0] not in str(found)
    gone = browser.post(f"{V1}/logout", headers={"Origin": f"http://{HOST}"}).json()["further"]
    assert ("id_token" in gone, signed[0] in gone, signed[0] in str(audit(world))) == (False, False, False)


def audit(world: World) -> list[dict[str, Any]]:
    return list(world.served.get("/audit", after=0, limit=999)["items"])


def test_t11_cookies_are_no_scripts_business_and_no_other_sites(world: World) -> None:
    browser = world.browser()
    (begun,) = browser.get("/login").headers.get_list("set-cookie")
    assert {"HttpOnly", "Path=/login", "SameSite=lax", "Max-Age=600"} <= set(begun.split("; "))
    back = world.log_in(browser)
    cookies = back.headers.get_list("set-cookie")
    session = next(one for one in cookies if one.startswith("icewright-session-"))
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(session.split("; "))
    assert any(one.startswith('icewright-login=""') for one in cookies)


def test_t11_by_tls_they_are_sent_by_tls_alone(world: World) -> None:
    served, url = world.served, "https://icewright.example.com"
    access = Access(
        TOKEN,
        frozenset({"icewright.example.com", *loopback_hosts("127.0.0.1", PORT)}),
        served.access.identities,
        served.audit,
        public_url=url,
        logins=world.logins(),
    )
    app = create_app(served.control, access)
    elsewhere = TestClient(app, f"http://{HOST}").get("/login")
    assert elsewhere.headers["location"] == f"{url}/login"  # cookies are of the name that the provider sends back to
    browser = TestClient(app, url)
    sent = browser.get("/login")
    assert "Secure" in sent.headers["set-cookie"]
    assert "redirect_uri=https%3A%2F%2Ficewright.example.com%2Flogin%2Fcallback" in sent.headers["location"]
    back = httpx2.get(sent.headers["location"], follow_redirects=False).headers["location"]
    page = browser.get(back)
    assert page.status_code == 200
    assert all("Secure" in one for one in page.headers.get_list("set-cookie") if "session" in one)


def test_t2_whoever_has_no_role_gets_no_session(world: World) -> None:
    world.provider.person["groups"] = ["marketing"]
    browser = world.browser()
    page = world.log_in(browser)
    assert (page.status_code, "Ada is known, and has no role here." in text_of(page)) == (403, True)
    assert not [name for name in browser.cookies if name.startswith("icewright-session")]
    refused = [one for one in audit(world) if one["action"] == "session.refused"]
    assert [one["resource"] for one in refused] == [f"person:{world.provider.issuer}#ada-7"]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?code=x",
        "?state=x",
        "?code=x&state=x",
        "?error=access_denied",
        "?error=%3Cscript%3E&error_description=%3Cscript%3E",
        "?code=x&state=%ff",
        "?code=" + "x" * 3_999 + "&state=y",
    ],
)
def test_t11_a_callback_that_nobody_asked_for_opens_nothing(world: World, query: str) -> None:
    for browser in (world.browser(), world.browser()):
        page = browser.get(f"/login/callback{query}")
        assert page.status_code == 403
        assert "<script" not in page.text
        assert not [name for name in browser.cookies if name.startswith("icewright-session")]
        browser.get("/login")  # now it has a cookie of an attempt
    assert not world.provider.asked["/token"]


def test_t11_nor_one_of_another_browser_nor_a_second_time(world: World) -> None:
    ada, eve = world.browser(), world.browser()
    of_eve = world.come_back(eve)
    assert ada.get(of_eve).status_code == 403
    world.come_back(ada)
    assert ada.get(of_eve).status_code == 403  # Ada would be logged in as Eve
    back = world.come_back(ada)
    cookie = ada.cookies["icewright-login"]
    assert ada.get(back).status_code == 200
    replayed = world.browser()
    replayed.cookies.set("icewright-login", cookie, path="/login")
    assert replayed.get(back).status_code == 403
    world.provider.claims = {"nonce": "of another log-in"}
    assert world.log_in(world.browser()).status_code == 403


def test_while_the_provider_is_away_it_says_so(world: World) -> None:
    world.provider.answers["/.well-known/openid-configuration"] = Answer(503)
    page = world.browser().get("/login")
    assert (page.status_code, "Try again" in text_of(page) or "issuer" in text_of(page)) == (503, True)
    assert not page.headers.get_list("set-cookie")


def test_t12_without_an_audit_nobody_is_let_in(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise StoreUnavailable("the store does not answer")

    monkeypatch.setattr("icewright.audit.sql.acting", away)
    browser = world.browser()
    page = world.log_in(browser)
    assert page.status_code == 503
    assert not [name for name in browser.cookies if name.startswith("icewright-session")]


def test_t1_where_no_provider_is_configured_there_is_no_log_in(served: Served) -> None:
    for path in ("/login", "/login/callback?code=x&state=y"):
        assert served.client().get(path).status_code == 404
    assert "/login" not in served.client().get("/").text


def test_t2_people_approve_by_their_own_name_and_not_what_they_asked_for(world: World) -> None:
    world.provider.person["groups"] = ["data-eng", "approvers"]
    world.served.table()
    browser = world.browser()
    world.log_in(browser)
    origin = {"Origin": f"http://{HOST}"}
    body = to_json(ExpireSnapshotsRequest("PT0S", 1))
    uuid = browser.get(f"{V1}/tables").json()["items"][0]["uuid"]
    planned = browser.post(f"{V1}/tables/{uuid}/plans", headers=origin, json=body)
    assert planned.status_code == 201, planned.text
    path = f"{V1}/plans/{planned.json()['plan_id']}/approve"
    refused = browser.post(path, headers=origin, json={"approved_by": "somebody else"})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


def test_t11_an_idle_session_is_over(world: World) -> None:
    browser = world.browser()
    world.log_in(browser)
    world.served.clock.advance(IDLE_MS)
    assert browser.get(f"{V1}/me").status_code == 401


class TestAccessTokens:
    """Programs show what the provider gave them, in place of a token of ours."""

    def client(self, world: World, token: str) -> TestClient:
        return world.served.client({"Authorization": f"Bearer {token}"})

    def test_a_program_does_what_the_rules_give_and_the_audit_says_who(self, world: World) -> None:
        uuid = world.served.table()
        world.served.access.logins = world.logins("the-api")
        program = self.client(world, world.provider.access_token(sub="etl", name="ETL"))
        me = program.get(f"{V1}/me").json()
        assert (me["name"], me["permissions"]) == (
            f"person:{world.provider.issuer}#etl",
            ["operate", "read", "report", "undo"],
        )
        assert program.post(f"{V1}/tables/{uuid}/look").status_code == 200
        assert (me["name"], "POST /tables/{uuid}/look") in [(one["principal"], one["resource"]) for one in audit(world)]
        assert program.get(f"{V1}/audit").status_code == 403

    def test_t11_it_is_over_when_the_provider_says_so(self, world: World) -> None:
        world.served.access.logins = world.logins("the-api")
        program = self.client(world, world.provider.access_token())
        assert program.get(f"{V1}/me").status_code == 200
        world.served.clock.advance(361_000)
        assert program.get(f"{V1}/me").status_code == 401

    def test_t11_off_unless_it_is_configured_and_never_for_who_has_no_role(self, world: World) -> None:
        token = world.provider.access_token()
        assert self.client(world, token).get(f"{V1}/me").status_code == 401
        assert not world.provider.asked, "nobody is asked about what is not taken"
        world.served.access.logins = None
        assert self.client(world, token).get(f"{V1}/me").status_code == 401
        world.served.access.logins = world.logins("the-api")
        assert self.client(world, token).get(f"{V1}/me").status_code == 200
        nobody = world.provider.access_token(groups=["marketing"])
        assert self.client(world, nobody).get(f"{V1}/me").status_code == 401

    def test_t11_nobody_comes_in_by_what_is_no_such_token(self, world: World) -> None:
        world.served.access.logins = world.logins("the-api")
        now = world.served.clock.now() // 1000
        claims = {"iss": world.provider.issuer, "aud": "the-api", "iat": now, "exp": now + 9, **world.provider.person}
        for token in (
            world.provider.sign_with_nothing(claims, "at+jwt"),
            world.provider.sign_with_public_key(claims, "at+jwt"),
            world.provider.sign({**claims, "aud": CLIENT_ID}),
            world.provider.access_token(aud="another-api"),
            world.provider.access_token(exp=now - 61),
            "a.b.c",
            "..",
        ):
            answer = self.client(world, token).get(f"{V1}/me")
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
            assert token not in answer.text

    def test_t11_it_opens_no_session(self, world: World) -> None:
        world.served.access.logins = world.logins("the-api")
        answer = self.client(world, world.provider.access_token()).post(f"{V1}/login-codes")
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")

    def test_while_the_provider_is_away_nobody_can_tell(self, world: World) -> None:
        world.served.access.logins = world.logins("the-api")
        world.provider.answers["/keys"] = Answer(503)
        answer = self.client(world, world.provider.access_token()).get(f"{V1}/me")
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert world.served.http.get(f"{V1}/me").status_code == 200
