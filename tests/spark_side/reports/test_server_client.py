"""What the optimizer makes of the server's answers, and of there being none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from icewright.core.codec import to_json
from icewright.core.errors import (
    IcewrightError,
    InvalidMessage,
    LeaseLost,
    Rejected,
    ServerUnavailable,
    Unavailable,
    VersionMismatch,
)
from icewright.model.actions.actions import OPTIMIZER_ACTIONS
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.observation import WorkerAccess
from icewright.model.work.jobs import (
    PROTOCOL_VERSION,
    Heartbeat,
    HeartbeatReply,
    OptimizerHello,
    SentReport,
    TableCheck,
)
from icewright.model.work.storage import ProbeReport, ProbeReports, ProbeRequest, Probes
from icewright.model.work.tasks import Progress
from icewright_spark.reports.client import Server
from tests.builders.specs import log_lines, report_of, spec_of
from tests.cases import each_case

HELLO = OptimizerHello(
    PROTOCOL_VERSION, "optimizer-1", "0", "default", 2, ("lake",), "4.1.4", "1.12.0", actions=OPTIMIZER_ACTIONS
)
BEAT = Heartbeat(7, Progress("merging", 0, 2))
TABLE = (TableId("lake", "uuid-1"), TableName("lake", ("db",), "t"))
WANTED = ProbeRequest(*TABLE, "s3://bucket/t/data")
PROBED = ProbeReport(*TABLE, "s3://bucket/t/data", WorkerAccess.REFUSED, "no")
CHECK = TableCheck(TableId("lake", "uuid-1"), "file:/t/v1.json")

Answer = Callable[[httpx2.Request], httpx2.Response]


def server(answer: Answer) -> Server:
    return Server("http://127.0.0.1:9", "the-token", transport=httpx2.MockTransport(answer))


def answering(status: int, body: Any = None) -> Server:
    return server(lambda _request: httpx2.Response(status, json=body))


def calls(client: Server) -> list[Callable[[], object]]:
    return [
        lambda: client.hello(HELLO),
        lambda: client.claim("optimizer-1"),
        lambda: client.heartbeat("task-1", BEAT),
        lambda: client.report(report_of(spec_of())),
        lambda: client.sees_the_same(CHECK),
        lambda: client.probes("optimizer-1"),
        lambda: client.probed("optimizer-1", ProbeReports((PROBED,))),
    ]


CALLS = range(7)


def test_requests_carry_the_token_and_the_documents() -> None:
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        body = {"lease_ms": 5, "cancel": True} if "heartbeat" in request.url.path else {"agrees": True}
        return httpx2.Response(204) if "/optimizer-1/" in request.url.path else httpx2.Response(200, json=body)

    client = server(answer)
    for call in calls(client):
        call()

    assert [request.url.path for request in requests] == [
        "/api/v1/optimizers",
        "/api/v1/optimizers/optimizer-1/claims",
        "/api/v1/tasks/task-1/heartbeat",
        "/api/v1/tasks/task-1/report",
        "/api/v1/tables/uuid-1/check",
        "/api/v1/optimizers/optimizer-1/probes",
        "/api/v1/optimizers/optimizer-1/probe-reports",
    ]
    assert {request.headers["authorization"] for request in requests} == {"Bearer the-token"}
    assert json.loads(requests[0].content) == to_json(HELLO)
    assert json.loads(requests[3].content) == to_json(report_of(spec_of()))


def test_a_log_is_said_where_there_is_one_and_a_server_of_before_is_told_of_none() -> None:
    bodies: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        return httpx2.Response(200, json={"lease_ms": 5, "cancel": True})

    client, log = server(answer), log_lines("began")
    client.heartbeat("task-1", BEAT)
    client.heartbeat("task-1", replace(BEAT, log=log))
    client.report(SentReport.of(report_of(spec_of()), None))
    client.report(SentReport.of(report_of(spec_of()), log))
    said = [body.pop("log", "nothing") for body in bodies]
    assert said == ["nothing", to_json(log), "nothing", to_json(log)]
    beat = {"fencing_token": 7, "progress": to_json(BEAT.progress)}
    assert bodies == [beat, beat, to_json(report_of(spec_of())), to_json(report_of(spec_of()))]


def test_answers_are_read() -> None:
    assert answering(200, to_json(spec_of())).claim("optimizer-1") == spec_of()
    assert answering(204).claim("optimizer-1") is None
    assert answering(200, {"lease_ms": 5, "cancel": True}).heartbeat("task-1", BEAT) == HeartbeatReply(5, cancel=True)
    assert answering(204).probes("optimizer-1") == ()
    assert answering(200, to_json(Probes((WANTED,)))).probes("optimizer-1") == (WANTED,)
    assert answering(200, {"agrees": False}).sees_the_same(CHECK) is False


@each_case("number", CALLS)
@each_case(
    ("status", "code", "error"),
    [
        (409, "lease-lost", LeaseLost),
        (409, "version-mismatch", VersionMismatch),
        (400, "invalid-message", InvalidMessage),
        (401, "unauthenticated", Rejected),
        (403, "wrong-origin", Rejected),
        (404, "not-found", Rejected),
        (409, "something-new", Rejected),
        (422, None, Rejected),
        (500, "internal", Unavailable),
        (503, "unavailable", ServerUnavailable),
    ],
)
def test_refusals_are_told_apart_by_their_code(
    number: int, status: int, code: str, error: type[IcewrightError]
) -> None:
    client = answering(status, {"code": code, "detail": "because", "hint": "do that"})
    with pytest.raises(error) as caught:
        calls(client)[number]()
    assert type(caught.value) is error
    assert "because" in caught.value.message


@each_case("number", CALLS)
@each_case("status", [200, 302, 404, 502])
def test_what_is_not_json_came_from_somebody_in_between(number: int, status: int) -> None:
    client = server(lambda _request: httpx2.Response(status, text="<html>gateway</html>"))
    with pytest.raises(Unavailable, match=str(status)):
        calls(client)[number]()


@each_case("number", CALLS)
@each_case("body", [[], "no", None, 5])
def test_a_refusal_that_is_no_problem_document_came_from_somebody_in_between(number: int, body: object) -> None:
    with pytest.raises(Unavailable, match="409"):
        calls(answering(409, body))[number]()


@each_case("number", [1, 2, 4])
@each_case("body", [{"unknown": 1}, [], "no", 5, {}])
def test_an_answer_of_another_shape_is_not_guessed_at(number: int, body: object) -> None:
    with pytest.raises(InvalidMessage):
        calls(answering(200, body))[number]()


@each_case("number", CALLS)
@each_case("error", [httpx2.ReadTimeout, httpx2.ConnectError, httpx2.RemoteProtocolError])
def test_no_answer_is_unavailable(number: int, error: type[httpx2.HTTPError]) -> None:
    def answer(_request: httpx2.Request) -> httpx2.Response:
        raise error("nobody")

    with pytest.raises(Unavailable, match="does not answer"):
        calls(server(answer))[number]()


def test_a_refused_connection_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        Server("http://127.0.0.1:1", "token").claim("optimizer-1")


def test_errors_do_not_repeat_the_token() -> None:
    with pytest.raises(Unavailable) as caught:
        answering(500, {"detail": "because"}).claim("optimizer-1")
    assert "the-token" not in str(caught.value)
