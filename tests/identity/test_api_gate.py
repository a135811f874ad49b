import threading
import time
from collections.abc import Iterator

import pytest
from fastapi.routing import iter_route_contexts
from structlog.testing import capture_logs

from icewright.audit.sql import SqlAudit
from icewright.core.errors import OutcomeUnknown, Unavailable
from icewright.identity.authentication import Access, authority
from icewright.identity.sql import SqlIdentities
from icewright.model.access.identity import CODE_MS, IDLE_MS, SESSION_MS
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Reason
from icewright.server.liveness import SILENT_MS_MAX
from icewright.server.loop import ROUND_MS_MAX
from tests.builders.served import EVENTS, HOST, LOGIN_CODE, PORT, TOKEN, V1, Served, TestClient, problem, with_pages
from tests.cases import each_case
from tests.lakes.stores import new_store

PUBLIC_ROUTES = {
    ("GET", "/api/v1/healthz"),
    ("GET", "/"),
    ("GET", "/ui/x"),
    ("GET", "/docs"),
    ("GET", "/login"),
    ("GET", "/login/program"),
    ("GET", "/login/callback"),
    ("POST", "/api/v1/sessions"),
}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW")
COOKIE = f"icewright-session-{PORT}"


def routes(served: Served) -> Iterator[tuple[str, str]]:
    """Every method and path that the application serves, parameters filled in."""
    for route in iter_route_contexts(served.app.routes):
        path = str(route.path)
        for name in (
            "uuid",
            "plan_id",
            "task_id",
            "recommendation_id",
            "decision_id",
            "message_id",
            "session_id",
            "optimizer_id",
            "name",
            "catalog",
            "prefix",
            "namespace",
            "table",
            "number",
            "event_id",
            "path",
        ):
            path = path.replace(f"{{{name}}}", "x").replace(f"{{{name}:path}}", "x")
        assert "{" not in path
        for method in route.methods or ():
            yield method, path


def test_every_route_but_the_public_ones_refuses_strangers(served: Served) -> None:
    stranger = served.client()
    found = set(routes(served))
    assert len(found) > 20
    assert found >= PUBLIC_ROUTES
    for method, path in found - PUBLIC_ROUTES:
        response = stranger.request(method, path)
        problem(response, 401, "unauthenticated")
        assert response.headers["www-authenticate"] == "Bearer"


def test_other_methods_and_paths_that_nobody_thought_of_refuse_strangers_as_well(served: Served) -> None:
    stranger = served.client()
    paths = {path for _, path in routes(served)} | {"/docs", "/redoc", "/openapi.json", f"{V1}/nothing", "/assets/x"}
    paths |= {f"{V1}/healthz/", "//", f"/{V1}/status", "/api/v1/healthz/../status", "/api/v1/%2e%2e/v1/status"}
    for path in paths:
        for method in METHODS:
            if (method, path) not in PUBLIC_ROUTES:
                assert stranger.request(method, path).status_code == 401, (method, path)


def test_the_public_routes_tell_strangers_nothing(served: Served) -> None:
    stranger = served.client()
    assert stranger.get(f"{V1}/healthz").json() == {"status": "ok"}
    refused = stranger.get("/")
    assert refused.status_code == 401
    assert "icewright serve" in refused.text
    assert stranger.get("/docs").headers["location"] == "/ui/reference", "which asks them to log in"


@each_case(
    "credentials",
    ["", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer \xff"],
)
def test_wrong_tokens_are_refused_and_not_repeated(served: Served, credentials: str) -> None:
    with capture_logs() as logs:
        response = served.client().get(f"{V1}/status", headers={b"Authorization": credentials.encode("latin-1")})
    problem(response, 401, "unauthenticated")
    assert TOKEN not in response.text + str(logs)


def test_a_wrong_token_is_not_made_good_by_a_session(served: Served) -> None:
    client = logged_in(served)
    assert client.get(f"{V1}/status").status_code == 200
    problem(client.get(f"{V1}/status", headers={"Authorization": "Bearer wrong"}), 401, "unauthenticated")


@each_case(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"localhost.evil.example:{PORT}", ""]
)
def test_other_hosts_are_refused_even_with_the_token(served: Served, host: str) -> None:
    for path in (f"{V1}/status", f"{V1}/healthz", "/"):
        problem(served.http.get(path, headers={"Host": host}), 421, "wrong-host")


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_all_names_of_this_machine_are_answered(served: Served, host: str) -> None:
    assert served.http.get(f"{V1}/status", headers={"Host": host}).status_code == 200


@each_case("host", ["127.0.0.2", "localhost", "::1", "0:0:0:0:0:0:0:1"])
def test_the_host_that_was_configured_is_answered(host: str) -> None:
    served = Served(host=host)
    for name in (authority(host, PORT), HOST):
        assert served.http.get(f"{V1}/status", headers={"Host": name}).status_code == 200


def test_every_answer_carries_the_security_headers(served: Served) -> None:
    client = logged_in(served)
    stranger = served.client()
    answers = [
        client.get("/"),
        client.get("/ui/"),
        served.http.get(f"{V1}/status"),
        served.http.get(f"{V1}/nothing"),
        stranger.get(f"{V1}/status"),
        stranger.get("/"),
        stranger.get("/", headers={"Host": "evil.example"}),
    ]
    for response in answers:
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cache-control"] == ("no-cache" if response.url.path == "/ui/" else "no-store")
        assert not [name for name in response.headers if name.startswith("access-control")]


def logged_in(served: Served, code: str = LOGIN_CODE) -> TestClient:
    client = served.client()
    response = client.get("/", params={"token": code})
    assert (response.status_code, response.headers["location"]) == (303, "/")
    return client


def test_the_one_time_code_opens_the_page_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with_pages(monkeypatch)
    client = served.client()
    response = client.get("/", params={"token": LOGIN_CODE})
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert LOGIN_CODE not in cookie
    shown = client.get("/")
    assert (shown.status_code, "the pages" in shown.text) == (200, True)
    assert client.get(f"{V1}/status").status_code == 200
    again = served.client().get("/", params={"token": LOGIN_CODE})
    assert again.status_code == 401
    assert "works once" in again.text


@pytest.mark.parametrize("code", ["", "wrong", TOKEN, LOGIN_CODE + "x", "\x00", "é" * 900])
def test_wrong_codes_open_nothing_and_do_not_use_up_the_right_one(served: Served, code: str) -> None:
    response = served.client().get("/", params={"token": code})
    assert response.status_code == 401
    assert "set-cookie" not in response.headers
    logged_in(served)


def test_a_fresh_link_can_be_had_with_the_token(served: Served) -> None:
    path = served.post("/login-codes")["path"]
    client = served.client()
    assert client.get(path).status_code == 303
    assert client.get(path, headers={"Cookie": ""}).status_code == 401


def test_t11_a_session_ends(served: Served) -> None:
    client = logged_in(served)
    for _ in range(SESSION_MS // IDLE_MS * 2 - 1):
        served.clock.advance(IDLE_MS // 2)
        assert client.get(f"{V1}/status").status_code == 200
    served.clock.advance(IDLE_MS // 2)
    problem(client.get(f"{V1}/status"), 401, "unauthenticated")
    assert client.get("/").status_code == 401


def test_t11_a_session_gets_no_link_to_another_one_and_so_does_not_go_on_for_ever(served: Served) -> None:
    client = logged_in(served)
    refused = problem(client.post(f"{V1}/login-codes", headers={"Origin": f"http://{HOST}"}), 403, "forbidden")
    assert "icewright login" in refused["hint"]
    with_both = client.post(f"{V1}/login-codes", headers={"Authorization": f"Bearer {TOKEN}"})
    assert with_both.status_code == 201


def test_t11_a_page_that_nobody_looks_at_keeps_no_session_alive(served: Served) -> None:
    client = logged_in(served)
    for waited in (IDLE_MS - 1, 1):
        served.clock.advance(waited)
        status = client.get(f"{V1}/status", headers={"Icewright-Unattended": "1"}).status_code
        assert status == (200 if waited > 1 else 401)


def test_whoever_logs_out_is_out_and_says_so_from_the_own_page_alone(served: Served) -> None:
    client, other = logged_in(served), logged_in(served, served.access.new_login_code())
    problem(client.post(f"{V1}/logout"), 403, "wrong-origin")
    gone = client.post(f"{V1}/logout", headers={"Origin": f"http://{HOST}"})
    assert gone.status_code == 200
    assert f'{COOKIE}=""' in gone.headers["set-cookie"]
    client.cookies.clear()
    cookie = gone.request.headers["cookie"]
    problem(client.get(f"{V1}/status", headers={"Cookie": cookie}), 401, "unauthenticated")
    assert other.get(f"{V1}/status").status_code == 200
    assert served.http.post(f"{V1}/logout").status_code == 200


def test_a_link_lasts_a_quarter_of_an_hour(served: Served) -> None:
    path = served.post("/login-codes")["path"]
    served.clock.advance(CODE_MS)
    assert served.client().get(path).status_code == 401


def test_a_store_that_is_away_lets_nobody_in_but_the_owner(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise Unavailable("the store does not answer")

    client = logged_in(served)
    monkeypatch.setattr(served.access.identities, "session", away)
    monkeypatch.setattr(served.access.identities, "token", away)
    problem(client.get(f"{V1}/status"), 503, "unavailable")
    problem(served.client({"Authorization": "Bearer icw_x"}).get(f"{V1}/status"), 503, "unavailable")
    assert served.http.get(f"{V1}/status").status_code == 200


def test_made_up_sessions_are_refused(served: Served) -> None:
    for value in ("x", TOKEN, LOGIN_CODE, ""):
        problem(served.client({"Cookie": f"{COOKIE}={value}"}).get(f"{V1}/status"), 401, "unauthenticated")


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", f"http://localhost:{PORT}", f"https://{HOST}"])
def test_a_page_of_another_origin_cannot_change_anything_by_the_cookie(served: Served, origin: str | None) -> None:
    uuid = served.table(mode="approve")
    client = logged_in(served)
    headers = {} if origin is None else {"Origin": origin}
    problem(client.post(f"{V1}/tables/{uuid}/look", headers=headers), 403, "wrong-origin")
    assert len(served.get(f"/tables/{uuid}/plans")["items"]) == 1


def test_the_own_page_may_change_things_and_programs_need_no_origin(served: Served) -> None:
    uuid = served.table(mode="approve")
    own = logged_in(served).post(f"{V1}/tables/{uuid}/look", headers={"Origin": f"http://{HOST}"})
    assert own.status_code == 200
    assert served.http.post(f"{V1}/tables/{uuid}/look").status_code == 200


def test_an_unexpected_error_is_logged_and_says_nothing_of_the_inside(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_table_id: object) -> object:
        raise RuntimeError("secret inside")

    monkeypatch.setattr(served.control.tables, "record", broken)
    with capture_logs() as logs:
        response = served.http.get(f"{V1}/tables/some-uuid")
    problem(response, 500, "internal")
    assert "secret inside" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"
    (entry,) = [log for log in logs if log["event"] == "unexpected error"]
    assert entry["exc_info"]
    assert TOKEN not in str(logs)


def test_health_tells_when_the_store_is_away(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> int:
        raise Unavailable("the store does not answer")

    monkeypatch.setattr(served.control.tasks, "now", away)
    response = served.client().get(f"{V1}/healthz")
    problem(response, 503, "unavailable")


def test_a_write_whose_fate_is_not_known_is_told_as_such_and_may_be_asked_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unheard(*_: object) -> int:
        raise OutcomeUnknown("the store went away in the middle of a commit")

    served.table()
    (task,) = served.get("/tasks")["items"]
    monkeypatch.setattr(served.control.tasks, "request_cancel", unheard)
    response = served.http.post(f"{V1}/tasks/{task['task_id']}/cancel")
    problem(response, 503, "unknown")
    assert int(response.headers["retry-after"]) > 0


def test_health_tells_when_the_loop_hangs(served: Served) -> None:
    loop = served.control.loop
    running = threading.Thread(target=loop.run, args=(60.0,))
    running.start()
    loop.stop()
    running.join()
    served.clock.advance(ROUND_MS_MAX)
    assert served.client().get(f"{V1}/healthz").status_code == 200
    served.clock.advance(1)
    problem(served.client().get(f"{V1}/healthz"), 503, "unavailable")


def test_health_and_status_tell_when_what_is_beside_the_loop_hangs(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    def look_for_orphans() -> None:
        hangs.set()
        goes_on.wait()

    loop, begun_at = served.control.loop, served.clock.now()
    monkeypatch.setattr(loop, "_removal_steps", lambda: () if goes_on.is_set() else (look_for_orphans,))
    running = threading.Thread(target=loop.run, args=(0.01,))
    running.start()
    try:
        hangs.wait()
        served.clock.advance(SILENT_MS_MAX + 1)
        while loop.stalled_since is not None or [one.thread for one in loop.doing if one.is_silent] != ["removals"]:
            loop.wake()
            time.sleep(0.01)
        response = served.client().get(f"{V1}/healthz")
        problem(response, 503, "unavailable")
        assert "removals" in response.json()["detail"]
        (hung,) = [one for one in served.get("/status")["doing"] if one["is_silent"]]
        assert hung == {
            "thread": "removals",
            "step": "look_for_orphans",
            "since": begun_at,
            "heard_at": begun_at,
            "is_silent": True,
        }
        goes_on.set()
        while served.client().get(f"{V1}/healthz").status_code != 200:
            time.sleep(0.01)
    finally:
        goes_on.set()
        loop.stop()
        running.join()


def test_there_is_no_server_without_a_token() -> None:
    store = new_store()
    with pytest.raises(ValueError, match="token"):
        Access("", frozenset(), SqlIdentities(store), SqlAudit(store))


def test_status_says_what_the_server_sees_and_does(served: Served) -> None:
    served.table()
    bad = TableName("lake", ("db",), "b\u202ead")
    served.control.loop.unreadable[bad] = Reason("unreadable", "damaged")
    served.lake.available = False
    served.append(EVENTS, "later")
    served.control.tables.receive(CommitEvent(EVENTS, 1))
    served.control.loop.round()
    status = served.get("/status")
    assert status["tasks"]["queued"] == 1
    by_name = {catalog["name"]: catalog["paused_until"] for catalog in status["catalogs"]}
    assert by_name["lake"] > status["now"]
    assert by_name["other"] is None
    assert status["unreadable"] == [
        {"name": str(bad), "reason": {"code": "unreadable", "text": "damaged", "figures": {}}}
    ]
