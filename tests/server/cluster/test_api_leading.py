"""Any server answers: what is the leader's is passed on to it, with who asked, and comes back as it was answered."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network

import httpx2
import pytest

from icewright.core.errors import OutcomeUnknown, Unavailable
from icewright.core.servers import SILENT_MS, CoordinatorLink, SeenServer, Server, nobody_leads
from icewright.identity.authentication import Access
from icewright.model.access.identity import NewToken
from icewright.model.access.on_behalf import ON_BEHALF_OF, to_header
from icewright.model.access.permissions import OWNER, Principal, Role
from icewright.server.cluster.leading import Answer, Question
from icewright.server.cluster.peers import ask
from icewright.server.cluster.servers_sql import SqlServers
from icewright.server.control import ControlPlane
from icewright.server.http.app import create_app
from icewright.server.http.leader_proxy import led_routes
from icewright.web.transport import Transport
from tests.builders.served import HOST, TOKEN, V1, Served, TestClient, problem
from tests.cases import each_case

LEADER = Server("server-1", f"http://{HOST}", "0.1.0", epoch=3)
FOLLOWER = Server("server-2", "http://127.0.0.1:7078", "0.1.0")


class Follows:
    """A server that passes its questions on to ``leader``, by the wire's own words."""

    led: ControlPlane | None = None
    is_stuck = False
    buckets: int | None = None
    differing: int | None = None
    link: CoordinatorLink | None = None

    def __init__(self, served: Served) -> None:
        self.served, self.book, self.is_there = served, SqlServers(served.engine, served.clock), True
        self.asked: list[Question] = []
        self.book.beat(LEADER)
        self.book.beat(FOLLOWER)

    def servers(self) -> Sequence[SeenServer]:
        return self.book.present()

    def assigned(self) -> None:
        return None

    def ask_leader(self, question: Question) -> Answer:
        if not self.is_there:
            raise nobody_leads()
        self.asked.append(question)
        own = {"Authorization": f"Bearer {TOKEN}", ON_BEHALF_OF: to_header(question.asked_by)}
        headers = {**question.headers, **own}
        found = self.served.http.request(question.method, question.target, headers=headers, content=question.body)
        return Answer(found.status_code, dict(found.headers), found.content)


@pytest.fixture
def follows(served: Served) -> Follows:
    return Follows(served)


@pytest.fixture
def follower(served: Served, follows: Follows) -> TestClient:
    """Another server over the same stores and catalogs, which does not lead."""
    app = create_app(served.control, served.access, None, follows)
    return TestClient(app, f"http://{HOST}", headers={"Authorization": f"Bearer {TOKEN}"})


def test_only_what_the_loop_alone_knows_or_does_is_the_leaders(served: Served) -> None:
    """Whatever is added here cannot be had while no server leads."""
    found = {(min(one.methods), one.path.pattern.replace("\\", ""), one.or_here) for one in led_routes(served.app)}
    path = "(?P<{}>[^/]+)"
    table, task = f"^{V1}/tables/{path.format('uuid')}", path.format("task_id")
    assert found == {
        ("GET", f"^{V1}/status$", True),
        ("GET", f"{table}$", True),
        ("GET", f"{table}/place$", True),
        ("GET", f"{table}/storage$", False),
        ("POST", f"{table}/look$", False),
        ("POST", f"{table}/plans$", False),
        ("POST", f"{table}/unpark$", False),
        ("GET", f"^{V1}/lost-tables$", False),
        ("POST", f"^{V1}/lost-tables/{path.format('name')}$", False),
        ("POST", f"^{V1}/lost-tables/{path.format('name')}/withdraw$", False),
        ("GET", f"^{V1}/gone-tables$", False),
        ("POST", f"^{V1}/gone-tables/{path.format('name')}/{path.format('uuid')}$", False),
        ("POST", f"^{V1}/gone-tables/{path.format('name')}/{path.format('uuid')}/withdraw$", False),
        ("POST", f"^{V1}/tasks/{task}/undo$", False),
        ("POST", f"^{V1}/recommendations/{path.format('recommendation_id')}/accept$", False),
        ("POST", f"^{V1}/quarantine/{task}/purge$", False),
        ("POST", f"^{V1}/quarantine/{task}/purge-of-gone-table$", False),
    }


def test_what_lies_in_the_store_is_answered_by_any_server(
    served: Served, follows: Follows, follower: TestClient
) -> None:
    uuid = served.table()
    assert len(follower.get(f"{V1}/tables").json()["items"]) == 1
    assert follower.get(f"{V1}/healthz").json() == {"status": "ok"}
    event = {"table_name": "lake.db.events"}
    assert follower.post(f"{V1}/events/commits", json=event).status_code == 202
    assert len(served.control.tables.inbox(10)) == 1
    plan_id = served.get(f"/tables/{uuid}/plans")["items"][0]["plan_id"]
    assert follower.get(f"{V1}/plans/{plan_id}").status_code == 200
    assert follows.asked == []


def test_what_is_the_leaders_is_passed_on_and_comes_back_as_it_was_answered(
    served: Served, follows: Follows, follower: TestClient
) -> None:
    uuid = served.table()
    planned = follower.post(f"{V1}/tables/{uuid}/look", params={"catalog": "lake"})
    assert planned.status_code == 200
    assert planned.json()["plan"]["plan_id"] == served.get(f"/tables/{uuid}/plans")["items"][0]["plan_id"]
    assert follows.asked[0].target == f"{V1}/tables/{uuid}/look?catalog=lake"
    asked = follower.post(f"{V1}/tables/{uuid}/plans", json={"kind": "nothing"})
    problem(asked, 400, "invalid-message")
    problem(follower.get(f"{V1}/tables/nothing"), 404, "not-found")
    assert len(follows.asked) == 3


def test_the_leader_judges_and_notes_who_asked(served: Served, follows: Follows, follower: TestClient) -> None:
    uuid = served.table()
    reader = served.access.give_token(NewToken("ada", (Role.VIEWER,), ("lake",)), "owner").token
    operator = served.access.give_token(NewToken("bob", (Role.OPERATOR,), ("lake",)), "owner").token
    path = f"{V1}/tables/{uuid}/look"
    problem(follower.post(path, headers={"Authorization": f"Bearer {reader}"}), 403, "forbidden")
    problem(follower.post(path, headers={"Authorization": "Bearer icw_nobody"}), 401, "unauthenticated")
    before = served.audit.latest(limit=1)[0].number
    assert follower.post(path, headers={"Authorization": f"Bearer {operator}"}).status_code == 200
    asked = [entry for entry in served.audit.entries(limit=100, after=before) if entry.action == "api"]
    assert [(entry.principal, entry.resource) for entry in asked] == [("token:bob", "POST /tables/{uuid}/look")]
    assert [question.asked_by.name for question in follows.asked] == ["token:ada", "token:bob"]


def test_t2_nobody_speaks_for_others_but_with_the_owners_token(served: Served) -> None:
    reader = served.access.give_token(NewToken("ada", (Role.VIEWER,), ("lake",)), "owner").token
    for claim in (to_header(OWNER), "bm9ib2R5", "?", ""):
        headers = {"Authorization": f"Bearer {reader}", ON_BEHALF_OF: claim}
        problem(served.http.get(f"{V1}/metrics", headers=headers), 403, "forbidden")
        headers = {ON_BEHALF_OF: claim, "Authorization": "Bearer nobody"}
        problem(served.http.get(f"{V1}/metrics", headers=headers), 401, "unauthenticated")
    for claim in ("bm9ib2R5", "?", ""):
        headers = {"Authorization": f"Bearer {TOKEN}", ON_BEHALF_OF: claim}
        problem(served.http.get(f"{V1}/metrics", headers=headers), 400, "invalid-message")
    less = {"Authorization": f"Bearer {TOKEN}", ON_BEHALF_OF: to_header(Principal("nobody", ()))}
    problem(served.http.get(f"{V1}/metrics", headers=less), 403, "forbidden")


def test_a_request_is_passed_on_once(served: Served, follows: Follows, follower: TestClient) -> None:
    uuid = served.table()
    headers = {ON_BEHALF_OF: to_header(OWNER)}
    problem(follower.post(f"{V1}/tables/{uuid}/look", headers=headers), 503, "unavailable")
    assert follows.asked == []


def test_while_nobody_leads_each_server_tells_what_it_knows(
    served: Served, follows: Follows, follower: TestClient
) -> None:
    uuid = served.table()
    follows.is_there = False
    for server in (LEADER, FOLLOWER):
        follows.book.beat(server)
    status = follower.get(f"{V1}/status").json()
    assert [(one["server_id"], one["leads"], one["is_silent"]) for one in status["servers"]] == [
        ("server-1", True, False),
        ("server-2", False, False),
    ]
    assert follower.get(f"{V1}/tables/{uuid}").status_code == 200
    problem(follower.post(f"{V1}/tables/{uuid}/look"), 503, "unavailable")
    served.clock.advance(SILENT_MS + 1)
    follows.book.beat(FOLLOWER)
    assert [one["is_silent"] for one in follower.get(f"{V1}/status").json()["servers"]] == [True, False]


def test_a_body_that_no_route_would_read_is_not_passed_on(follows: Follows, follower: TestClient) -> None:
    large = follower.post(f"{V1}/tables/x/plans", content=b"x" * 70_000, headers={"Content-Type": "application/json"})
    problem(large, 413, "too-large")
    assert follows.asked == []


QUESTION = Question("POST", f"{V1}/tables/x/look?catalog=lake", {"idempotency-key": "once"}, b"{}", OWNER)


def test_one_server_asks_another_by_the_token_that_they_share() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(409, json={"code": "conflict"}, headers={"ETag": '"1"', "Set-Cookie": "a=b"})

    found = ask("https://10.0.0.1:7077", "t" * 43, QUESTION, transport=httpx2.MockTransport(answer))
    assert (found.status, found.body) == (409, b'{"code":"conflict"}')
    assert found.headers == {"content-type": "application/json", "etag": '"1"'}
    assert str(seen[0].url) == f"https://10.0.0.1:7077{QUESTION.target}"
    assert (seen[0].headers["authorization"], seen[0].headers["idempotency-key"]) == (f"Bearer {'t' * 43}", "once")


@pytest.mark.parametrize(("status", "code"), [(401, "unauthenticated"), (421, "wrong-host")])
def test_a_leader_that_does_not_let_its_followers_in_says_what_is_wrong(status: int, code: str) -> None:
    transport = httpx2.MockTransport(lambda _request: httpx2.Response(status, json={"code": code}))
    with pytest.raises(Unavailable, match="denies access to this one") as raised:
        ask("https://10.0.0.1:7077", "t" * 43, QUESTION, transport=transport)
    assert "server.token" in raised.value.hint


@each_case(
    ("method", "error", "kind"),
    [
        ("POST", httpx2.ConnectError("refused"), Unavailable),
        ("POST", httpx2.ReadError("reset"), OutcomeUnknown),
        ("GET", httpx2.ReadError("reset"), Unavailable),
    ],
)
def test_what_may_have_happened_is_said_to_be_unknown(method: str, error: Exception, kind: type[Exception]) -> None:
    def fail(_request: httpx2.Request) -> httpx2.Response:
        raise error

    question = Question(method, f"{V1}/status", {}, b"", OWNER)
    with pytest.raises(kind):
        ask("https://10.0.0.1:7077", "t" * 43, question, transport=httpx2.MockTransport(fail))


def test_t5_no_server_sends_the_token_to_another_machine_in_the_clear() -> None:
    with pytest.raises(Unavailable, match="in the clear") as raised:
        ask("http://10.0.0.1:7077", TOKEN, QUESTION)
    assert "server.peer_url" in raised.value.hint


def test_t5_servers_ask_each_other_in_the_clear_where_tls_ends_in_front_of_them(served: Served) -> None:
    found = ask(
        "http://10.0.0.1:7077",
        TOKEN,
        QUESTION,
        in_the_clear=True,
        transport=httpx2.MockTransport(lambda _request: httpx2.Response(204)),
    )
    assert found.status == 204
    own = {"Authorization": f"Bearer {TOKEN}"}
    for proxies, headers, status in (
        ([ip_network("10.0.0.2/32")], {**own, ON_BEHALF_OF: to_header(OWNER)}, 200),
        ([ip_network("10.0.0.2/32")], own, 403),
        ([ip_network("10.0.0.2/32")], {"Authorization": "Bearer nobody", ON_BEHALF_OF: to_header(OWNER)}, 403),
        ([], {**own, ON_BEHALF_OF: to_header(OWNER)}, 403),
    ):
        exposed = Transport(is_exposed=True, proxies=proxies)
        access = Access(TOKEN, frozenset({HOST}), served.access.identities, served.audit, transport=exposed)
        client = TestClient(create_app(served.control, access), f"http://{HOST}", client=("10.0.0.3", 50_000))
        assert client.get(f"{V1}/status", headers=headers).status_code == status
