"""Ids of plans and tasks may be short in any path: where they stand for one alone, of what the caller may see."""

from __future__ import annotations

import pytest

from icewright.core.system_clock import SystemClock, SystemIds
from icewright.model.access.identity import NewToken
from icewright.model.access.permissions import Role
from icewright.model.iceberg.names import TableName
from tests.builders import served as built
from tests.builders.served import V1, Served, problem
from tests.doubles.clock import ManualClock

HERE, THERE = TableName("lake", ("db",), "events"), TableName("lake", ("elsewhere",), "events")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    at_once = ManualClock(SystemClock().now())  # both ids begin alike, whenever this runs
    monkeypatch.setattr(built, "SequentialIds", lambda: SystemIds(at_once))
    served = Served()
    for name in (HERE, THERE):
        served.table(name)
    return served


def task_of(served: Served, name: TableName) -> str:
    (found,) = [task for task in served.get("/tasks")["items"] if task["table"] == str(name)]
    return str(found["task_id"])


def test_the_end_and_the_beginning_stand_for_the_whole_id(served: Served) -> None:
    task_id = task_of(served, HERE)
    plan_id = served.get(f"/tasks/{task_id}")["task"]["plan_id"]
    for short in (task_id[-8:], f"task-{task_id[-8:]}", task_id[:-1], task_id[len("task-") : -2]):
        assert served.get(f"/tasks/{short}")["task"]["task_id"] == task_id
    assert served.get(f"/plans/{plan_id[-8:]}")["plan_id"] == plan_id
    assert served.get(f"/tasks/{task_id[-8:]}/attempts")["items"] == []


def test_an_act_by_a_short_id_is_of_the_whole_one_and_the_audit_says_so(served: Served) -> None:
    task_id = task_of(served, HERE)
    assert served.post(f"/tasks/{task_id[-8:]}/cancel")["task_id"] == task_id
    assert served.get(f"/tasks/{task_id}")["task"]["state"] == "cancelled"
    (entry,) = [one for one in served.get("/audit")["items"] if "/cancel" in str(one)]
    assert f"task_id={task_id}" in str(entry)
    plan_id = served.get(f"/tasks/{task_id}")["task"]["plan_id"]
    assert served.post(f"/plans/{plan_id[-8:]}/apply")["plan_id"] == plan_id


def test_what_stands_for_several_is_refused_and_names_them(served: Served) -> None:
    first, second = sorted((task_of(served, HERE), task_of(served, THERE)), reverse=True)
    both = first[: len("task-") + 8]
    found = problem(served.http.post(f"{V1}/tasks/{both}/cancel"), 404, "not-found")
    assert found["detail"] == f"{both} stands for several ids: {first}, {second}"
    assert {task["state"] for task in served.get("/tasks")["items"]} == {"queued"}


def test_less_than_eight_characters_and_what_is_none_stand_for_nothing(served: Served) -> None:
    task_id = task_of(served, HERE)
    for wrong in (task_id[-7:], task_id[6:20], f"plan-{task_id[-8:]}"[-20:-1], "0" * 8, "%" * 8, "_" * 8, "-" * 8):
        problem(served.http.get(f"{V1}/tasks/{wrong}"), 404, "not-found")


def test_ids_of_others_stand_for_nothing_and_make_none_ambiguous(served: Served) -> None:
    token = served.post("/tokens", NewToken("ci", (Role.VIEWER,), ("lake.db",)))["token"]
    theirs = served.client({"Authorization": f"Bearer {token}"})
    mine, other = task_of(served, HERE), task_of(served, THERE)
    assert theirs.get(f"{V1}/tasks/{mine[: len('task-') + 8]}").json()["task"]["task_id"] == mine
    hidden = problem(theirs.get(f"{V1}/tasks/{other[-8:]}"), 404, "not-found")
    assert hidden["detail"] == "no task of that id, or none that you may see"
