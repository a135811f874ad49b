"""Pausing, draining, stopping and resuming over HTTP: who may, who sees it, and what is said of it elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from icewright.model.access.identity import NewToken
from icewright.model.access.permissions import Role
from icewright.model.work.jobs import ANY_TASK
from tests.builders.served import EVENTS, V1, Served, hello, problem
from tests.cases import each_case

ALL = {"part": "all", "name": ""}
TABLE = {"part": "table", "name": str(EVENTS)}
LAKE = {"part": "catalog", "name": "lake"}
GROUP = {"part": "group", "name": "default"}


@pytest.fixture
def served() -> Served:
    served = Served()
    served.table()
    return served


def halted(served: Served, headers: dict[str, str] | None = None) -> list[tuple[str, str | None, str]]:
    found = served.client(headers).get(f"{V1}/queue") if headers else served.http.get(f"{V1}/queue")
    return [(one["kind"], one["name"], one["state"]) for one in found.json()["halts"]]


def of(served: Served, role: Role, scope: str) -> dict[str, str]:
    """The headers of somebody with a token of their own."""
    name = f"{role}-at-{scope.replace('*', 'all')}"
    made = served.access.give_token(NewToken(name, (role,), (scope,)), "owner")
    return {"Authorization": f"Bearer {made.token}"}


@pytest.mark.parametrize("asked", [ALL, TABLE, LAKE, GROUP])
@pytest.mark.parametrize(("verb", "state"), [("pause", "paused"), ("drain", "draining"), ("stop", "stopped")])
def test_a_part_of_the_queue_is_halted_and_resumed(
    served: Served, asked: dict[str, str], verb: str, state: str
) -> None:
    halt = served.post(f"/queue/{verb}", {**asked, "reason": "a fire"})
    assert (halt["kind"], halt["state"], halt["why"], halt["by"]) == (asked["part"], state, "a fire", "owner")
    assert halted(served) == [(asked["part"], asked["name"] or None, state)]
    (seen,) = served.get("/status")["halts"]
    assert (seen["catalog"], seen["uuid"] is None) == (("lake", False) if asked is TABLE else (None, True))
    served.post("/optimizers", hello())
    assert served.post("/optimizers/optimizer-1/claims", ANY_TASK) is None
    answer = served.post("/queue/resume", asked)
    assert answer == {"resumed": True, "halts": []}
    assert served.post("/queue/resume", asked) == {"resumed": False, "halts": []}
    assert served.post("/optimizers/optimizer-1/claims", ANY_TASK)["task_id"]


def test_what_runs_is_told_of_and_hears_of_a_stop(served: Served) -> None:
    served.post("/optimizers", hello())
    spec = served.post("/optimizers/optimizer-1/claims", ANY_TASK)
    assert served.post("/queue/pause", ALL)["running"] == 1
    beat = {
        "fencing_token": spec["fencing_token"],
        "progress": {"phase": "merging", "groups_done": 0, "groups_total": 1},
    }
    assert not served.post(f"/tasks/{spec['task_id']}/heartbeat", beat)["cancel"]
    assert served.post("/queue/stop", ALL)["running"] == 1
    assert served.post(f"/tasks/{spec['task_id']}/heartbeat", beat)["cancel"]


def test_status_metrics_and_readiness_tell_of_it_and_the_server_stays_ready(served: Served) -> None:
    assert served.get("/status")["halts"] == []
    served.post("/queue/stop", {**LAKE, "reason": "a fire"})
    assert [one["why"] for one in served.get("/status")["halts"]] == ["a fire"]
    assert 'icewright_queue_halts{part="catalog",state="stopped"} 1.0' in served.http.get(f"{V1}/metrics").text
    ready = served.get("/readyz")
    assert ready["status"] == "ready"
    (part,) = [one for one in ready["parts"] if one["name"] == "queue"]
    assert part == {"name": "queue", "is_required": False, "is_well": False, "detail": "catalog lake stopped"}


def test_the_feed_and_the_audit_tell_who_did_it(served: Served) -> None:
    served.post("/queue/stop", {**TABLE, "reason": "a fire"})
    served.post("/queue/resume", TABLE)
    told = served.get("/feed", kind=["paused", "resumed"])["items"]
    assert [(one["kind"], one["table"], one["do"]) for one in told] == [
        ("paused", str(EVENTS), "icewright queue"),
        ("resumed", str(EVENTS), "icewright queue"),
    ]
    assert "stopped, by owner: a fire" in told[0]["reason"]["text"]
    actions = [one["action"] for one in served.get("/audit")["items"]]
    assert {"queue.stopped", "queue.resumed"} <= set(actions)


@pytest.mark.parametrize("verb", ["pause", "drain", "stop", "resume"])
@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("*", [ALL, GROUP, LAKE, TABLE]),
        ("lake", [LAKE, TABLE]),
        ("lake.db", [TABLE]),
        ("lake.other", []),
        ("other", []),
    ],
)
def test_t2_one_halts_in_ones_own_scope_alone(
    served: Served, verb: str, scope: str, allowed: list[dict[str, str]]
) -> None:
    http = served.client(of(served, Role.OPERATOR, scope))
    for asked in (ALL, GROUP, LAKE, TABLE):
        response = http.post(f"{V1}/queue/{verb}", json=asked)
        if asked in allowed:
            assert response.status_code == 200, response.text
        else:
            problem(response, 403, "forbidden")


@each_case("role", sorted(set(Role) - {Role.OPERATOR, Role.POLICY_ADMIN}))
def test_t2_who_may_not_operate_halts_nothing(served: Served, role: Role) -> None:
    http = served.client(of(served, role, "*"))
    for asked in (ALL, TABLE):
        problem(http.post(f"{V1}/queue/stop", json=asked), 403, "forbidden")
    assert served.control.tasks.halts.present() == []


def test_t2_one_sees_what_concerns_oneself(served: Served) -> None:
    for asked in (ALL, GROUP, LAKE, TABLE, {"part": "catalog", "name": "other"}):
        served.post("/queue/pause", asked)
    everybody = [("all", None, "paused"), ("group", "default", "paused")]
    lake, table = ("catalog", "lake", "paused"), ("table", str(EVENTS), "paused")
    for scope, more in (
        ("lake", [lake, table]),
        ("lake.db", [lake, table]),
        ("lake.other", [lake]),
        ("lake.db.events", [lake]),
    ):
        found = halted(served, of(served, Role.VIEWER, scope))
        assert sorted(map(str, found)) == sorted(map(str, [*everybody, *more]))


@each_case(
    ("asked", "status", "code"),
    [
        ({"part": "group", "name": "defautl"}, 404, "not-found"),
        ({"part": "catalog", "name": "laek"}, 404, "not-found"),
        ({"part": "table", "name": "lake.db.nothing"}, 404, "not-found"),
        ({"part": "table", "name": "events"}, 400, "invalid-name"),
        ({"part": "table", "name": ""}, 400, "invalid-message"),
        ({"part": "all", "name": "lake"}, 400, "invalid-message"),
        ({"part": "some"}, 400, "invalid-message"),
        ({**ALL, "reason": "x" * 1001}, 400, "invalid-message"),
        ({**ALL, "reason": 7}, 400, "invalid-message"),
        ([], 400, "invalid-message"),
    ],
)
def test_what_is_no_part_of_the_queue_is_refused(served: Served, asked: Any, status: int, code: str) -> None:
    problem(served.http.post(f"{V1}/queue/pause", json=asked), status, code)
    assert served.control.tasks.halts.present() == []
