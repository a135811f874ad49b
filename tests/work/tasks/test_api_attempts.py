"""The tries of a task as a resource of their own: in pages, with how each ended, why, and what it reported."""

from __future__ import annotations

from typing import Any

from icewright.model.access.identity import NewToken
from icewright.model.access.permissions import Role
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import Committed, CommitUnknown, Conflicted, Failed, Heartbeat, Result
from icewright.model.work.tasks import Progress
from tests.builders.served import V1, Served, problem
from tests.cases import each_case
from tests.work.tasks.test_api_tasks import carry_out, claimed, queued, report

HOUR_MS = 3_600_000


def failed_twice(served: Served) -> str:
    """A task that failed by what may be better next time, fell silent, and runs for the third time; its id."""
    spec = claimed(served)
    served.post(f"/tasks/{spec.task_id}/report", report(spec, Failed("out-of-memory", "no heap", retryable=True)))
    served.clock.advance(HOUR_MS)
    spec = claimed(served, "optimizer-2")
    served.clock.advance(spec.lease_ms + 1)
    for _ in range(2):  # its lease is found to have run out, and then that nothing of it is in the table
        served.control.loop.round()
        served.clock.advance(HOUR_MS)
    spec = claimed(served)
    served.post(f"/tasks/{spec.task_id}/heartbeat", Heartbeat(spec.fencing_token, Progress("merging", 0, 1)))
    return spec.task_id


def test_every_try_is_there_with_why_it_came_to_nothing() -> None:
    served = queued()
    task_id = failed_twice(served)
    first, second, third = served.get(f"/tasks/{task_id}/attempts")["items"]
    assert (first["state"], first["cause"], first["optimizer_id"]) == ("failed", "out-of-memory", "optimizer-1")
    assert first["result"]["detail"] == "no heap"
    assert (second["state"], second["cause"], second["result"]) == ("lost", "lost", None)
    assert (third["state"], third["cause"], third["ended_at"]) == ("running", None, None)
    assert third["progress"] == {"phase": "merging", "groups_done": 0, "groups_total": 1}
    assert first["fencing_token"] < second["fencing_token"] < third["fencing_token"]
    assert first["started_at"] <= first["ended_at"] < second["started_at"]


def test_they_come_in_pages_and_link_to_each_one_with_its_report() -> None:
    served = queued()
    task_id = failed_twice(served)
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = served.get(f"/tasks/{task_id}/attempts", limit=2, **({} if cursor is None else {"cursor": cursor}))
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert [one["attempt"] for one in found] == [1, 2, 3]
    for one in found:
        document = served.http.get(one["attempt_at"]).json()
        assert document["attempt"] == one
        assert (document["report"] is None) is (document["measured"] is None) is (one["attempt"] != 1)
        assert served.http.get(one["task_at"]).json()["task"]["task_id"] == task_id
    assert served.http.get(found[0]["attempt_at"]).json()["report"]["result"]["code"] == "out-of-memory"


def test_what_was_committed_has_no_cause_and_says_what_it_took() -> None:
    served = queued()
    spec = claimed(served)
    snapshot_id = carry_out(served, spec)
    served.post(f"/tasks/{spec.task_id}/report", report(spec, Committed(snapshot_id)))
    document = served.get(f"/tasks/{spec.task_id}/attempts/1")
    assert document["attempt"]["result"] == {"kind": "committed", "snapshot_id": snapshot_id}
    assert (document["attempt"]["state"], document["attempt"]["cause"]) == ("committed", None)
    assert document["measured"]["wall_ms"] == 5


@each_case(
    ("result", "cause"),
    [
        (CommitUnknown("the connection broke"), "unknown"),
        (Conflicted("a delete"), "conflict"),
        (Failed("storage-refused", "403", retryable=True), "forbidden"),
        (Failed("file-unreadable", "cut off", retryable=True), "unreadable"),
        (Failed("of-tomorrow", "?", retryable=True), "defect"),
    ],
)
def test_the_cause_is_the_branch_of_the_error_tree(result: Result, cause: str) -> None:
    served = queued()
    spec = claimed(served)
    served.post(f"/tasks/{spec.task_id}/report", report(spec, result))
    (attempt,) = served.get(f"/tasks/{spec.task_id}/attempts")["items"]
    assert attempt["cause"] == cause


def test_what_is_not_there() -> None:
    served = queued()
    (task,) = served.get("/tasks")["items"]
    path = f"{V1}/tasks/{task['task_id']}/attempts"
    assert served.http.get(path).json() == {"items": [], "next_cursor": None}
    problem(served.http.get(f"{path}/1"), 404, "not-found")
    for number in ("0", "-1", "1.5", "x", str(2**31), str(2**70)):
        problem(served.http.get(f"{path}/{number}"), 400, "invalid-request")
    for rest in ("", "/1"):
        problem(served.http.get(f"{V1}/tasks/task-0/attempts{rest}"), 404, "not-found")


def test_those_of_all_tasks_come_last_first_in_pages_by_table_and_state() -> None:
    served = queued()
    task_id = failed_twice(served)
    other = served.table(TableName("lake", ("db",), "other"))
    served.clock.advance(HOUR_MS)
    spec = claimed(served)
    served.post(f"/tasks/{spec.task_id}/report", report(spec, Conflicted("a writer came first")))
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = served.get("/attempts", limit=3, **({} if cursor is None else {"cursor": cursor}))
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert [(one["task_id"], one["attempt"], one["state"]) for one in found] == [
        (spec.task_id, 1, "conflict"),
        (task_id, 3, "running"),
        (task_id, 2, "lost"),
        (task_id, 1, "failed"),
    ]
    first = found[0]
    assert (first["table"], first["uuid"], first["kind"]) == ("lake.db.other", other, "rewrite_data_files")
    assert (first["resource_group"], first["optimizer_id"]) == ("default", "optimizer-1")
    assert first["queued_at"] < first["started_at"] <= first["ended_at"]
    assert served.http.get(first["task_at"]).json()["task"]["uuid"] == other
    assert served.get("/attempts", table=other)["items"] == [first]
    assert served.get("/attempts", state="conflict")["items"] == [first]
    problem(served.http.get(f"{V1}/attempts", params={"table": "x"}), 404, "not-found")
    problem(served.http.get(f"{V1}/attempts", params={"state": "asleep"}), 400, "invalid-request")


def test_those_of_tables_that_one_may_not_read_are_not_there() -> None:
    served = queued()
    claimed(served)
    given = served.access.give_token(NewToken("elsewhere", (Role.VIEWER,), ("lake.elsewhere",)), "owner")
    client = served.client({"Authorization": f"Bearer {given.token}"})
    assert len(served.get("/attempts")["items"]) == 1
    assert client.get(f"{V1}/attempts").json()["items"] == []
