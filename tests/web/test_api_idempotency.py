"""Requests with an ``Idempotency-Key`` are carried out once, for whoever may ask for them."""

import json
import threading
from typing import Any

import httpx2
import pytest

from icewright.api_client.client import Client
from icewright.core.codec import to_json
from icewright.core.errors import IcewrightError, OutcomeUnknown, Unavailable
from icewright.model.access.identity import NewToken, digest
from icewright.model.access.permissions import Role
from icewright.model.policy.policies import NewRevision, Policies
from icewright.web.idempotency import BYTES_MAX
from tests.builders.served import HOST, TOKEN, V1, Served, TestClient, problem
from tests.cases import each_case

KEY = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}


@pytest.fixture
def task_id(served: Served) -> str:
    served.table()
    return str(served.get("/tasks")["items"][0]["task_id"])


def asked(served: Served) -> list[str]:
    return [entry.resource for entry in served.audit.entries(limit=99, after=0) if entry.action == "api"]


def test_the_same_again_is_answered_the_same_and_not_carried_out(served: Served, task_id: str) -> None:
    first = served.http.post(f"{V1}/tasks/{task_id}/cancel", headers=KEY)
    served.post(f"/tasks/{task_id}/retry")
    second = served.http.post(f"{V1}/tasks/{task_id}/cancel", headers=KEY)
    assert (second.status_code, second.content) == (200, first.content)
    assert (second.headers["etag"], second.headers["content-type"]) == (first.headers["etag"], "application/json")
    assert second.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert served.get(f"/tasks/{task_id}")["task"]["state"] == "queued"
    assert len(asked(served)) == 2  # what was not carried out is not said to have been


def test_refusals_are_answered_the_same_as_well(served: Served, task_id: str) -> None:
    refused = served.http.post(f"{V1}/tasks/{task_id}/retry", headers=KEY)
    problem(refused, 409, "not-allowed")
    served.post(f"/tasks/{task_id}/cancel")
    again = served.http.post(f"{V1}/tasks/{task_id}/retry", headers=KEY)
    assert (again.status_code, again.json()) == (409, refused.json())


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/policies", NewRevision(Policies(()), "Bob"), {"If-Match": '"0"'}),
        ("/policies", NewRevision(Policies(()), "Ada"), {"If-Match": '"1"'}),
        ("/tokens", NewToken("ci", (Role.VIEWER,), ("*",)), {}),
    ],
)
def test_a_key_that_came_with_another_request_is_refused(
    served: Served, path: str, body: Any, headers: dict[str, str]
) -> None:
    first = to_json(NewRevision(Policies(()), "Ada"))
    assert served.http.post(f"{V1}/policies", json=first, headers={"If-Match": '"0"', **KEY}).status_code == 201
    problem(served.http.post(V1 + path, json=to_json(body), headers={**headers, **KEY}), 422, "key-reused")
    assert served.get("/policies")["number"] == 1
    assert served.get("/tokens")["items"] == []


def test_the_query_belongs_to_the_request_of_a_key(served: Served) -> None:
    path = f"{V1}/tables/{served.table()}/look"
    assert served.http.post(path, headers=KEY).status_code == 200
    assert served.http.post(path, headers=KEY).headers["Idempotency-Replayed"] == "true"
    problem(served.http.post(f"{path}?catalog=lake", headers=KEY), 422, "key-reused")


def test_while_the_first_one_is_under_way_the_second_is_a_conflict(
    served: Served, task_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, go_on, cancel = threading.Event(), threading.Event(), served.control.tasks.request_cancel

    def slow(*args: Any) -> Any:
        inside.set()
        assert go_on.wait(30)
        return cancel(*args)

    monkeypatch.setattr(served.control.tasks, "request_cancel", slow)
    found: list[httpx2.Response] = []
    first = threading.Thread(
        target=lambda: found.append(
            served.client({"Authorization": f"Bearer {TOKEN}"}).post(f"{V1}/tasks/{task_id}/cancel", headers=KEY)
        )
    )
    first.start()
    assert inside.wait(30)
    problem(served.http.post(f"{V1}/tasks/{task_id}/cancel", headers=KEY), 409, "in-progress")
    go_on.set()
    first.join()
    assert found[0].status_code == 200
    assert served.http.post(f"{V1}/tasks/{task_id}/cancel", headers=KEY).content == found[0].content


@pytest.mark.parametrize(("error", "is_carried_out"), [(Unavailable("away"), True), (OutcomeUnknown("lost"), False)])
def test_what_changed_nothing_may_be_asked_for_again_and_what_nobody_knows_may_not(
    served: Served, task_id: str, monkeypatch: pytest.MonkeyPatch, error: IcewrightError, *, is_carried_out: bool
) -> None:
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(served.control.tasks, "request_cancel", fail)
        problem(served.http.post(f"{V1}/tasks/{task_id}/cancel", headers=KEY), 503, error.code)
    again = served.http.post(f"{V1}/tasks/{task_id}/cancel", headers=KEY)
    assert again.is_success is is_carried_out
    assert (served.get(f"/tasks/{task_id}")["task"]["state"] == "cancelled") is is_carried_out


def test_a_defect_of_ours_is_not_tried_again(served: Served, task_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a defect")

    with monkeypatch.context() as patched:
        patched.setattr(served.control.tasks, "request_cancel", fail)
        problem(served.http.post(f"{V1}/tasks/{task_id}/cancel", headers=KEY), 500, "internal")
    problem(served.http.post(f"{V1}/tasks/{task_id}/cancel", headers=KEY), 409, "not-kept")
    assert served.get(f"/tasks/{task_id}")["task"]["state"] == "queued"


def test_t5_a_token_that_was_given_is_kept_nowhere_and_not_given_again(served: Served) -> None:
    body = to_json(NewToken("ci", (Role.VIEWER,), ("*",)))
    given = served.http.post(f"{V1}/tokens", json=body, headers=KEY)
    assert given.status_code == 201
    again = served.http.post(f"{V1}/tokens", json=body, headers=KEY)
    assert "201" in problem(again, 409, "not-kept")["detail"]
    assert served.access.answers is not None
    assert given.json()["token"] not in repr(vars(served.access.answers))


def test_t2_an_answer_is_for_whoever_may_ask_and_for_nobody_else(served: Served, task_id: str) -> None:
    operator = served.access.give_token(NewToken("op", (Role.OPERATOR,), ("*",)), "owner").token
    viewer = served.access.give_token(NewToken("view", (Role.VIEWER,), ("*",)), "owner").token
    path = f"{V1}/tasks/{task_id}/cancel"
    first = served.client({"Authorization": f"Bearer {operator}"}).post(path, headers=KEY)
    assert first.status_code == 200
    problem(served.client({"Authorization": f"Bearer {viewer}"}).post(path, headers=KEY), 403, "forbidden")
    problem(served.client().post(path, headers=KEY), 401, "unauthenticated")
    served.access.identities.revoke("op")
    problem(served.client({"Authorization": f"Bearer {operator}"}).post(path, headers=KEY), 401, "unauthenticated")
    other = served.http.post(path, headers=KEY)  # the owner's key of that name is another one
    problem(other, 409, "not-allowed")


@each_case(
    "key", ["", '""', "a b", '"a', 'a"', '"a\\"b"', "x" * 256, "caf\u00e9".encode("latin-1"), '"a", "b"', "a\tb"]
)
def test_keys_that_are_none(served: Served, task_id: str, key: str | bytes) -> None:
    headers = {b"Idempotency-Key": key if isinstance(key, bytes) else key.encode("ascii")}
    problem(served.http.post(f"{V1}/tasks/{task_id}/cancel", headers=headers), 400, "invalid-request")
    assert served.get(f"/tasks/{task_id}")["task"]["state"] == "queued"


def test_several_keys_and_bodies_without_end_are_refused(served: Served) -> None:
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "a")]
    problem(served.http.post(f"{V1}/policies", content=b"{}", headers=twice), 400, "invalid-request")
    long = b" " * (BYTES_MAX + 1)
    problem(served.http.post(f"{V1}/policies", content=long, headers=KEY), 413, "too-large")


def test_a_bare_word_is_the_same_key_as_a_string(served: Served, task_id: str) -> None:
    bare = {"Idempotency-Key": KEY["Idempotency-Key"].strip('"')}
    first = served.http.post(f"{V1}/tasks/{task_id}/cancel", headers=bare)
    assert served.http.post(f"{V1}/tasks/{task_id}/cancel", headers=KEY).content == first.content


def test_what_changes_nothing_by_itself_takes_no_notice_of_keys(served: Served) -> None:
    codes = [served.http.post(f"{V1}/login-codes", headers=KEY).json()["path"] for _ in range(2)]
    assert codes[0] != codes[1]
    assert served.access.identities.log_in(digest(codes[0].partition("=")[2]), "s") is not None


class Cut(httpx2.BaseTransport):
    """A network that loses the first answers, after the server has carried out what was asked for."""

    def __init__(self, inner: httpx2.BaseTransport, lost: int) -> None:
        self._inner, self.lost = inner, lost

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._inner.handle_request(request)
        if self.lost:
            self.lost -= 1
            response.read()
            raise httpx2.RemoteProtocolError("peer closed connection without a complete answer")
        return response


@pytest.fixture
def pauses() -> list[float]:
    return []


def client_of(http: TestClient, lost: int, pauses: list[float]) -> Client:
    return Client(f"http://{HOST}", TOKEN, transport=Cut(http._transport, lost), pause=pauses.append)


def test_a_lost_answer_is_asked_for_again_and_nothing_happens_twice(
    served: Served, task_id: str, pauses: list[float]
) -> None:
    with client_of(served.http, 2, pauses) as client:
        assert client.cancel(task_id)["state"] == "cancelled"
        assert len(pauses) == 2
        assert client.retry(task_id)["state"] == "queued"
        assert client.cancel(task_id)["state"] == "cancelled"  # each call has a key of its own
    assert len(asked(served)) == 3


def test_a_server_that_never_answers_is_away(served: Served, task_id: str, pauses: list[float]) -> None:
    with client_of(served.http, 99, pauses) as client, pytest.raises(Unavailable, match="peer closed"):
        client.cancel(task_id)
    assert len(pauses) == 3


def test_a_request_that_is_under_way_is_waited_for(pauses: list[float]) -> None:
    waiting = iter([409, 409, 200])

    def answer(request: httpx2.Request) -> httpx2.Response:
        status = next(waiting)
        keys.append(request.headers["idempotency-key"])
        return httpx2.Response(status, content=json.dumps({"code": "in-progress"} if status != 200 else {"a": 1}))

    keys: list[str] = []
    with Client(f"http://{HOST}", TOKEN, transport=httpx2.MockTransport(answer), pause=pauses.append) as client:
        assert client.cancel("x") == {"a": 1}
    assert len(set(keys)) == 1
    assert len(pauses) == 2
