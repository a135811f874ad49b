"""The client asks as the API wants to be asked, and gives back the server's own errors."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from icewright.api_client.client import Client
from icewright.api_client.problems import problem
from icewright.core.errors import (
    Conflict,
    IcewrightError,
    LeaseLost,
    NotAllowed,
    NotFound,
    Rejected,
    TableReplaced,
    Unavailable,
    Unreadable,
)
from icewright.model.actions.remove_files import RemoveOrphanFilesRequest
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.names import TableName
from icewright.model.work.tasks import TaskState
from tests.cases import each_case

HOSTILE = TableName("lake", ("a/b", "x&y=z"), "it's `odd`\n🧊?#%")


class Server:
    """Answers each request with the same document, and keeps the requests."""

    def __init__(self, document: Any, status: int = 200) -> None:
        self.document, self.status = document, status
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return httpx2.Response(self.status, json=self.document)

    def client(self) -> Client:
        return Client("https://server/", "t0ken", transport=httpx2.MockTransport(self))


def test_requests_carry_the_token_and_calls_do_not() -> None:
    server = Server({"tasks": {}})
    with server.client() as client:
        client.status()
    assert server.requests[0].headers["authorization"] == "Bearer t0ken"
    assert [str(call) for call in client.calls] == ["GET https://server/api/v1/status"]


def test_what_lists_all_files_of_a_table_may_take_its_time() -> None:
    server = Server({})
    with server.client() as client:
        client.plan_asked("uuid", "lake", RemoveOrphanFilesRequest())
        client.purge("task-1")
        client.approve("plan-1", "Ada")
    waited = [request.extensions["timeout"]["read"] for request in server.requests]
    assert waited == [3600, 3600, 30]


def test_hostile_names_travel_whole() -> None:
    server = Server({"items": [], "next_cursor": None, "unreadable": []})
    with server.client() as client:
        with pytest.raises(NotFound):
            client.table(TableName("lake", ("a/b", "x&y=z"), "it's `odd`\n🧊?#%"))
        assert server.requests[0].url.params["name"] == "lake.`a/b`.`x&y=z`.`it's ``odd``\n🧊?#%`"
        assert server.requests[2].url.params["namespace"] == "lake.`a/b`.`x&y=z`"  # for names that are spelt alike
        client.notify(CommitEvent(HOSTILE, 7))
        sent = json.loads(server.requests[4].content)
        assert (sent["table_name"]["name"], sent["snapshot_id"]) == (HOSTILE.name, 7)
        assert str(client.calls[-1]).isascii()
        client.task("../status?x")
        assert server.requests[5].url.raw_path == b"/api/v1/tasks/..%2Fstatus%3Fx"


def test_lists_have_filters_and_cursors() -> None:
    server = Server({"items": [{"task_id": "task-1"}], "next_cursor": "abc"})
    with server.client() as client:
        page = client.tasks(
            states=(TaskState.QUEUED, TaskState.RUNNING), table={"uuid": "u", "catalog": "c"}, cursor="x", limit=2
        )
    assert (page.items, page.next_cursor) == (({"task_id": "task-1"},), "abc")
    assert server.requests[0].url.query == b"state=queued&state=running&table=u&catalog=c&limit=2&cursor=x"


def test_each_method_asks_its_own_question() -> None:
    server = Server({"items": [], "next_cursor": None})
    with server.client() as client:
        client.login_code()
        client.partitions("u", "c", limit=3)
        client.look_at_table("u", "c")
        client.apply("plan-1")
        client.cancel("task-1")
        client.retry("task-1")
    assert [(call.method, call.url.removeprefix("https://server/api/v1")) for call in client.calls] == [
        ("POST", "/login-codes"),
        ("GET", "/tables/u/partitions?catalog=c&limit=3"),
        ("POST", "/tables/u/look?catalog=c"),
        ("POST", "/plans/plan-1/apply"),
        ("POST", "/tasks/task-1/cancel"),
        ("POST", "/tasks/task-1/retry"),
    ]


@each_case("error", [NotFound, NotAllowed, Conflict, TableReplaced, LeaseLost, Unreadable, Unavailable, Rejected])
def test_problems_become_the_errors_that_they_were(error: type[IcewrightError]) -> None:
    found = problem(400, {"code": error.code, "detail": "said", "hint": "do"})
    assert (type(found), found.message, found.hint) == (error, "said", "do")


def test_a_code_belongs_to_the_class_that_brought_it() -> None:
    class Nearer(NotFound):
        """Has no code of its own."""

    assert Nearer.code == NotFound.code
    assert type(problem(404, {"code": NotFound.code})) is NotFound


@each_case(
    ("status", "document", "error"),
    [
        (404, {"code": "from-the-future", "detail": "x"}, Rejected),
        (401, {"title": "Unauthorized"}, Rejected),
        (500, {}, Unavailable),
        (502, "nonsense", Unavailable),
    ],
)
def test_other_problems_become_what_suits_their_status(status: int, document: Any, error: type[IcewrightError]) -> None:
    assert type(problem(status, document)) is error


def test_a_refusal_is_raised() -> None:
    server = Server({"code": "not-allowed", "detail": "the mode forbids it"}, status=409)
    with server.client() as client, pytest.raises(NotAllowed, match="the mode forbids it"):
        client.apply("plan-1")


def test_silence_and_nonsense_are_unavailable() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    def answer_html(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, text="<html>")

    for handler in (refuse, answer_html, Server([]), Server({"items": []})):
        with (
            Client("https://server", "t", transport=httpx2.MockTransport(handler)) as client,
            pytest.raises(Unavailable),
        ):
            client.tables()


def test_an_address_that_is_none_is_rejected() -> None:
    with pytest.raises(Rejected):
        Client("http://x:port", "t")
