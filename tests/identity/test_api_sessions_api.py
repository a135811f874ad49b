"""Sessions of people and of tokens: who sees them, who ends them, and what changed roles mean for them."""

from __future__ import annotations

from typing import Any

import pytest

from icewright.identity.logins import Logins
from icewright.identity.sessions_api import SessionsOf
from icewright.model.access.identity import IDLE_MS, SESSION_MS, NewToken
from icewright.model.access.people import Person, RoleRule
from icewright.model.access.permissions import Role
from tests.builders.served import HOST, TOKEN, V1, Served, TestClient, problem
from tests.doubles.people import MemoryProvider

ORIGIN = {"Origin": f"http://{HOST}"}
RULES = [
    RoleRule.parse("groups=data-eng", "operator@lake.db"),
    RoleRule.parse("groups=boss", "approver"),
    RoleRule.parse("groups=admins", "platform-admin"),
]


class World:
    """A server, its provider, and browsers in which people log in."""

    def __init__(self) -> None:
        self.served, self.provider = Served(), MemoryProvider()
        self.give(RULES)

    def give(self, rules: list[RoleRule]) -> None:
        """Start the server anew, with these rules."""
        access = self.served.access
        access.logins = Logins(self.provider, rules, access.identities, access.audit, self.served.clock, TOKEN)

    def name(self, subject: str) -> str:
        return f"person:{self.provider.issuer}#{subject}"

    def log_in(self, subject: str, *groups: str) -> TestClient:
        browser = self.served.client(ORIGIN)
        person = Person(self.provider.issuer, subject, {"name": subject.title(), "groups": list(groups)})
        back = self.provider.visit(browser.get("/login").headers["location"], person)
        assert browser.get(back.removeprefix(f"http://{HOST}")).status_code == 200
        return browser

    def audit(self) -> list[tuple[str, str, str]]:
        found = self.served.get("/audit", after=0, limit=999)["items"]
        return [(one["principal"], one["action"], one["resource"]) for one in found]


@pytest.fixture
def world() -> World:
    return World()


def status(browser: TestClient) -> int:
    return browser.get(f"{V1}/me").status_code


def ids(document: Any) -> list[str]:
    return [one["session_id"] for one in document["items"]]


def test_an_administrator_sees_who_is_logged_in_since_when_and_how(world: World) -> None:
    begun_at = world.served.clock.now()
    ada = world.log_in("ada", "data-eng", "boss")
    token = world.served.post("/tokens", NewToken("ci", (Role.VIEWER,), ("*",)))["token"]
    world.served.clock.advance(60_000)
    ada.get(f"{V1}/me")
    path = world.served.client({"Authorization": f"Bearer {token}"}).post(f"{V1}/login-codes").json()["path"]
    assert world.served.client().get(path).status_code == 303
    of_token, of_ada = world.served.get("/sessions")["items"]
    assert len(of_ada.pop("session_id")) == 16
    assert of_ada == {
        "name": world.name("ada"),
        "shown": "Ada",
        "logged_in_by": "provider",
        "grants": [
            {"role": "approver", "scope": {"catalog": "", "namespace": []}},
            {"role": "operator", "scope": {"catalog": "lake", "namespace": ["db"]}},
        ],
        "begun_at": begun_at,
        "last_used_at": begun_at + 60_000,
        "expires_at": begun_at + 60_000 + IDLE_MS,
    }
    assert (of_token["name"], of_token["logged_in_by"]) == ("token:ci", "link")
    assert (
        world.served.get("/sessions", name="ada")["items"]
        == world.served.get("/sessions", name=world.name("ada"))["items"]
    )
    assert [one["name"] for one in world.served.get("/sessions", name="token:ci")["items"]] == ["token:ci"]
    for _ in range(SESSION_MS // 60_000 // 20 - 1):
        world.served.clock.advance(20 * 60_000)
        ada.get(f"{V1}/me")
    (left,) = world.served.get("/sessions")["items"]
    assert left["expires_at"] == begun_at + SESSION_MS, "whatever is done"


def test_they_come_in_pages(world: World) -> None:
    for subject in ("ada", "bob", "eve"):
        world.log_in(subject, "data-eng")
    first = world.served.get("/sessions", limit=2)
    second = world.served.get("/sessions", limit=2, cursor=first["next_cursor"])
    assert (len(first["items"]), len(second["items"]), second["next_cursor"]) == (2, 1, None)
    assert ids(first) + ids(second) == ids(world.served.get("/sessions"))


def test_no_answer_has_what_opens_a_session(world: World) -> None:
    ada = world.log_in("ada", "data-eng")
    (cookie,) = [value for name, value in ada.cookies.items() if "session" in name]
    (listed,) = world.served.get("/sessions")["items"]
    assert cookie not in str(listed)
    stranger = world.served.client(ORIGIN)
    stranger.cookies.set(next(iter(ada.cookies)), listed["session_id"])
    assert status(stranger) == 401


@pytest.mark.parametrize("by", ["id", "name", "subject"])
def test_t11_an_administrator_ends_them_at_once_and_the_audit_says_so(world: World, by: str) -> None:
    ada, bob = world.log_in("ada", "data-eng"), world.log_in("bob", "data-eng")
    admin = world.log_in("root", "admins")
    (session,) = ids(admin.get(f"{V1}/sessions", params={"name": "ada"}).json())
    if by == "id":
        answer = admin.post(f"{V1}/sessions/{session}/end")
    else:
        name = "ada" if by == "subject" else world.name("ada")
        answer = admin.post(f"{V1}/sessions/end", json={"name": name})
    assert (answer.status_code, [one["session_id"] for one in answer.json()["sessions"]]) == (200, [session])
    assert (status(ada), status(bob), status(admin)) == (401, 200, 200)
    assert (world.name("root"), "session.ended", world.name("ada")) in world.audit()
    again = admin.post(f"{V1}/sessions/{session}/end")
    problem(again, 404, "not-found")
    problem(admin.post(f"{V1}/sessions/end", json={"name": "ada"}), 404, "not-found")


def test_all_of_a_person_end_and_a_new_one_may_begin(world: World) -> None:
    browsers = [world.log_in("ada", "data-eng") for _ in range(3)]
    assert len(world.served.post("/sessions/end", SessionsOf("ada"))["sessions"]) == 3
    assert [status(one) for one in browsers] == [401] * 3
    assert status(world.log_in("ada", "data-eng")) == 200, "who may log in is the provider's business"


def test_t2_a_person_sees_and_ends_their_own_alone(world: World) -> None:
    ada, again, bob = (world.log_in(one, "data-eng") for one in ("ada", "ada", "bob"))
    (of_bob,) = ids(bob.get(f"{V1}/me/sessions").json())
    assert [one["name"] for one in ada.get(f"{V1}/me/sessions").json()["items"]] == [world.name("ada")] * 2
    for refused in (
        ada.get(f"{V1}/sessions"),
        ada.get(f"{V1}/sessions", params={"name": world.name("ada")}),
        ada.post(f"{V1}/sessions/{of_bob}/end"),
        ada.post(f"{V1}/sessions/end", json={"name": world.name("bob")}),
    ):
        problem(refused, 403, "forbidden")
    ended = ada.post(f"{V1}/me/sessions/end").json()["sessions"]
    assert [one["name"] for one in ended] == [world.name("ada")] * 2
    assert (status(ada), status(again), status(bob)) == (401, 401, 200)


def test_t10_another_sites_page_ends_nothing(world: World) -> None:
    ada = world.log_in("ada", "data-eng")
    problem(ada.post(f"{V1}/me/sessions/end", headers={"Origin": "https://evil.example.com"}), 403, "wrong-origin")
    assert status(ada) == 200


def test_t2_a_role_that_rules_do_not_give_any_more_is_gone_with_the_next_request(world: World) -> None:
    world.served.table()
    ada = world.log_in("ada", "data-eng", "boss")
    assert status(ada) == 200
    assert ada.get(f"{V1}/audit").status_code == 200
    world.give(RULES[:1])
    problem(ada.get(f"{V1}/audit"), 403, "forbidden")
    assert ada.get(f"{V1}/me").json()["permissions"] == ["operate", "read", "report", "undo"]
    (listed,) = world.served.get("/sessions")["items"]
    assert [one["role"] for one in listed["grants"]] == ["operator"]
    world.give([])
    assert status(ada) == 401
    assert ada.get("/").status_code == 401
    world.served.access.logins = None
    assert status(ada) == 401


def test_t2_a_revoked_token_and_its_session_have_no_role_with_the_next_request(world: World) -> None:
    token = world.served.post("/tokens", NewToken("ci", (Role.VIEWER,), ("*",)))["token"]
    program, browser = world.served.client({"Authorization": f"Bearer {token}"}), world.served.client(ORIGIN)
    browser.get(program.post(f"{V1}/login-codes").json()["path"])
    assert (status(program), status(browser)) == (200, 200)
    world.served.post("/tokens/ci/revoke")
    assert (status(program), status(browser)) == (401, 401)
    assert world.served.get("/sessions")["items"] == []
