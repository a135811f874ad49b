"""A person takes a session to a program, as the command line: by a code that a browser shows after a new log-in."""

from __future__ import annotations

import json
import re

import pytest
from structlog.testing import capture_logs

from icewright.core.codec import to_json
from icewright.identity.sessions_api import OneTimeCode, SessionsOf
from icewright.model.access.identity import IDLE_MS, PROGRAM_CODE_MS, SESSION_MS, NewToken
from icewright.model.access.people import Person
from icewright.model.access.permissions import Role
from tests.builders.served import HOST, V1, problem
from tests.identity.test_api_sessions_api import ORIGIN, RULES, World

NOBODY = "the code opens nothing: it was used, is too old, or never was one"


@pytest.fixture
def world() -> World:
    return World()


def page_for_program(world: World, subject: str, *groups: str) -> str:
    """What the browser of somebody shows who asks for a code, in which no session is open."""
    browser = world.served.client(ORIGIN)
    person = Person(world.provider.issuer, subject, {"name": subject.title(), "groups": list(groups)})
    back = world.provider.visit(browser.get("/login/program").headers["location"], person)
    page = browser.get(back.removeprefix(f"http://{HOST}"))
    assert "icewright-session" not in page.headers.get("set-cookie", "")
    assert (page.headers["cache-control"], "no-referrer") == ("no-store", page.headers["referrer-policy"])
    assert browser.get(f"{V1}/me").status_code == 401
    return page.text


def code_for(world: World, subject: str, *groups: str) -> str:
    (code,) = re.findall(r"<code>(icc_[\w-]{43})</code>", page_for_program(world, subject, *groups))
    return str(code)


def opened(world: World, code: str) -> str:
    """The token that a program gets for a code: strangers may ask."""
    answer = world.served.client().post(f"{V1}/sessions", json=to_json(OneTimeCode(code)))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


def status(world: World, token: str) -> int:
    return world.served.client({"Authorization": f"Bearer {token}"}).get(f"{V1}/me").status_code


def test_a_person_takes_a_session_to_a_program_which_may_do_what_they_may(world: World) -> None:
    uuid = world.served.table()
    code, at = code_for(world, "ada", "data-eng"), world.served.clock.now()
    answer = world.served.client().post(f"{V1}/sessions", json={"code": code}).json()
    session = answer["session"]
    assert (session["name"], session["logged_in_by"]) == (world.name("ada"), "program")
    assert session["expires_at"] == at + SESSION_MS
    program = world.served.client({"Authorization": f"Bearer {answer['token']}"})
    assert program.get(f"{V1}/me").json()["shown"] == "Ada"
    assert program.post(f"{V1}/tables/{uuid}/look").status_code == 200, "no origin: a token of its own"
    assert program.get(f"{V1}/audit").status_code == 403
    assert ("stranger", "session.opened", world.name("ada")) in world.audit()
    assert (world.name("ada"), "api", "POST /tables/{uuid}/look") in world.audit()
    assert world.served.get("/sessions")["items"][0]["session_id"] == session["session_id"]


def test_t11_a_code_works_once_and_for_five_minutes(world: World) -> None:
    code = code_for(world, "ada", "data-eng")
    opened(world, code)
    for wrong in (code, "", "icc_", "x" * 5_000, "\ud800"):
        body, headers = json.dumps({"code": wrong}), {"Content-Type": "application/json"}
        answer = world.served.client().post(f"{V1}/sessions", content=body, headers=headers)
        assert problem(answer, 403, "login-refused")["detail"] == NOBODY
    late = code_for(world, "ada", "data-eng")
    world.served.clock.advance(PROGRAM_CODE_MS)
    problem(world.served.client().post(f"{V1}/sessions", json={"code": late}), 403, "login-refused")


def test_t11_codes_and_secrets_of_one_kind_are_nothing_to_the_other(world: World) -> None:
    code = code_for(world, "ada", "data-eng")
    assert world.served.client().get("/", params={"token": code}).status_code == 401
    of_page = world.served.access.new_login_code()
    problem(world.served.client().post(f"{V1}/sessions", json={"code": of_page}), 403, "login-refused")
    token = opened(world, code)
    cookie = f"icewright-session-{HOST.rpartition(':')[2]}"
    as_cookie = world.served.client(ORIGIN)
    as_cookie.cookies.set(cookie, token)
    assert as_cookie.get(f"{V1}/me").status_code == 401
    browser = world.log_in("ada", "data-eng")
    assert status(world, browser.cookies[cookie]) == 401


def test_t11_it_lasts_its_time_unused_and_goes_by_what_the_rules_say_by_now(world: World) -> None:
    token = opened(world, code_for(world, "ada", "data-eng"))
    world.served.clock.advance(10 * IDLE_MS)
    assert status(world, token) == 200
    world.give(RULES[1:])
    assert status(world, token) == 401
    world.give(RULES)
    world.served.clock.advance(SESSION_MS - 10 * IDLE_MS)
    assert status(world, token) == 401


def test_t11_a_code_that_somebody_got_permits_nothing_when_the_rules_do_not_any_more(world: World) -> None:
    code = code_for(world, "ada", "data-eng")
    world.give(RULES[1:])
    problem(world.served.client().post(f"{V1}/sessions", json={"code": code}), 403, "login-refused")
    assert world.served.get("/sessions")["items"] == []


def test_who_has_no_role_gets_no_code(world: World) -> None:
    page = page_for_program(world, "eve")
    assert ("has no role here" in page, "icc_" in page) == (True, False)


def test_t11_it_is_ended_by_the_program_by_its_owner_and_by_an_administrator(world: World) -> None:
    tokens = [opened(world, code_for(world, "ada", "data-eng")) for _ in range(3)]
    program = world.served.client({"Authorization": f"Bearer {tokens[0]}"})
    assert program.post(f"{V1}/logout").status_code == 200
    assert [status(world, token) for token in tokens] == [401, 200, 200]
    shown = world.served.get("/sessions")["items"][0]["session_id"]
    world.served.post(f"/sessions/{shown}/end")
    assert [status(world, token) for token in tokens].count(200) == 1
    browser = world.log_in("ada", "data-eng")
    assert len(browser.post(f"{V1}/me/sessions/end").json()["sessions"]) == 2
    assert [status(world, token) for token in tokens] == [401, 401, 401]


@pytest.mark.parametrize("who", ["administrator", "herself"])
def test_t11_a_code_that_was_not_used_yet_ends_with_the_sessions(world: World, who: str) -> None:
    code = code_for(world, "ada", "data-eng")
    other = code_for(world, "bob", "data-eng")
    if who == "administrator":
        assert world.served.post("/sessions/end", SessionsOf("ada")) == {"sessions": [], "codes": 1}
    else:
        ended = world.log_in("ada", "data-eng").post(f"{V1}/me/sessions/end").json()
        assert (len(ended["sessions"]), ended["codes"]) == (1, 1)
    problem(world.served.client().post(f"{V1}/sessions", json={"code": code}), 403, "login-refused")
    assert status(world, opened(world, other)) == 200


def test_t13_what_strangers_send_with_a_key_is_not_read_for_it(world: World) -> None:
    headers = {"Idempotency-Key": '"k"', "Content-Type": "text/plain"}
    answer = world.served.client().post(f"{V1}/sessions", content=b"x" * 5_000_000, headers=headers)
    problem(answer, 415, "unsupported-media-type")


def test_logging_out_with_a_token_revokes_nothing(world: World) -> None:
    token = world.served.post("/tokens", NewToken("ci", (Role.VIEWER,), ("*",)))["token"]
    world.served.client({"Authorization": f"Bearer {token}"}).post(f"{V1}/logout")
    assert status(world, token) == 200


def test_t11_no_session_opens_another_one(world: World) -> None:
    token = opened(world, code_for(world, "ada", "data-eng"))
    program = world.served.client({"Authorization": f"Bearer {token}"})
    problem(program.post(f"{V1}/login-codes"), 403, "forbidden")


def test_without_a_provider_there_is_nothing_to_be_had(world: World) -> None:
    world.served.access.logins = None
    assert world.served.client().get("/login/program").status_code == 404
    problem(world.served.client().post(f"{V1}/sessions", json={"code": "icc_x"}), 403, "login-refused")


def test_t13_no_secret_is_in_the_log_nor_in_what_is_shown(world: World) -> None:
    with capture_logs() as logs:
        code = code_for(world, "ada", "data-eng")
        token = opened(world, code)
        problem(world.served.client().post(f"{V1}/sessions", json={"code": code}), 403, "login-refused")
    assert any(entry["event"] == "logged in" for entry in logs)
    kept = [logs, world.served.get("/audit", after=0, limit=999), world.served.get("/sessions")]
    for secret in (code, token):
        assert secret not in repr(kept)
