from icewright.core.codec import from_json, to_json
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import PROOF_KEY, TASK_ID_KEY
from icewright.model.work.jobs import (
    ANY_TASK,
    PROTOCOL_VERSION,
    ClaimRequest,
    Committed,
    CommitUnknown,
    Failed,
    Heartbeat,
    HeartbeatReply,
    Result,
    TableCheck,
    TaskReport,
    TaskSpec,
)
from icewright.model.work.tasks import Progress
from tests.builders.served import EVENTS, V1, Served, hello, problem
from tests.cases import each_case
from tests.doubles.lake import MemoryFile


def queued() -> Served:
    served = Served()
    served.table()
    return served


def claimed(served: Served, optimizer_id: str = "optimizer-1", request: ClaimRequest = ANY_TASK) -> TaskSpec:
    served.post("/optimizers", hello(optimizer_id))
    return from_json(TaskSpec, served.post(f"/optimizers/{optimizer_id}/claims", request))


def carry_out(served: Served, spec: TaskSpec) -> int:
    """What an optimizer does to the table, without any bytes; the snapshot that it committed."""
    (group,) = spec.rewrite.groups
    proof = f"memory;groups=1;records={group.record_count};deleted=0;digest=0"
    merged = MemoryFile(f"{spec.task_id}.parquet", group.partition, group.size_bytes, group.record_count)
    return served.lake.commit_rewrite(
        spec.table_name,
        base_snapshot_id=spec.rewrite.base_snapshot_id,
        remove=[file.path for file in group.files],
        add=[merged],
        summary={TASK_ID_KEY: spec.task_id, PROOF_KEY: proof},
    ).snapshot_id


def report(spec: TaskSpec, result: Result, protocol_version: int = PROTOCOL_VERSION) -> TaskReport:
    return TaskReport(protocol_version, spec.task_id, spec.attempt, spec.fencing_token, result, (), (), 5, 4)


def test_from_claim_to_verified() -> None:
    served = queued()
    spec = claimed(served)
    assert served.get("/optimizers")["items"][0]["hello"]["optimizer_id"] == "optimizer-1"
    location = served.lake.metadata_location(EVENTS)
    uuid = spec.table_id.uuid
    assert served.post(f"/tables/{uuid}/check", TableCheck(spec.table_id, location)) == {"agrees": True}
    assert served.post(f"/tables/{uuid}/check", TableCheck(spec.table_id, "elsewhere")) == {"agrees": False}
    beat = Heartbeat(spec.fencing_token, Progress("merging", 0, 1))
    reply = from_json(HeartbeatReply, served.post(f"/tasks/{spec.task_id}/heartbeat", beat))
    assert reply == HeartbeatReply(spec.lease_ms, cancel=False)
    assert served.get(f"/tasks/{spec.task_id}")["task"]["progress"]["phase"] == "merging"
    snapshot_id = carry_out(served, spec)
    served.control.loop._wake.clear()
    served.post(f"/tasks/{spec.task_id}/report", report(spec, Committed(snapshot_id)))
    assert served.control.loop._wake.is_set()
    served.control.loop.round()
    document = served.get(f"/tasks/{spec.task_id}")
    assert document["task"]["state"] == "succeeded"
    figures = document["task"]["outcome"]["reason"]["figures"]
    assert (figures["data_files_removed"], figures["data_files_added"]) == (12, 1)
    assert [entry["state"] for entry in document["history"]] == ["queued", "running", "committed", "succeeded"]
    assert document["measured"]["attempts"] == 1
    (attempt,) = document["attempts"]
    assert attempt["result"] == {"kind": "committed", "snapshot_id": snapshot_id}
    assert "report" not in attempt  # of a task with many groups it is large: each attempt has its own by itself
    (partition,) = served.get(f"/tables/{uuid}/partitions")["items"]
    assert (partition["data_files"], partition["optimized_at"] is None) == (1, False)
    assert served.get("/tables")["items"][0]["optimized_at"] == partition["optimized_at"]


def test_without_work_a_claim_has_no_content(served: Served) -> None:
    served.post("/optimizers", hello())
    response = served.http.post(f"{V1}/optimizers/optimizer-1/claims", json={})
    assert (response.status_code, response.content) == (204, b"")


def test_a_claim_that_fills_a_batch_gets_what_fits() -> None:
    served = queued()
    served.post("/optimizers", hello())
    path = f"{V1}/optimizers/optimizer-1/claims"
    assert served.http.post(path, json={"shareable_bytes_max": 0}).status_code == 204
    problem(served.http.post(path, json={"shareable_bytes_max": "all"}), 400, "invalid-message")
    spec = claimed(served, request=ClaimRequest(shareable_bytes_max=1 << 40))
    assert spec.rewrite.shareable_bytes is not None


def test_an_optimizer_of_another_version_is_refused_with_what_to_do() -> None:
    served = queued()
    body = to_json(hello(protocol_version=PROTOCOL_VERSION + 1))
    refused = problem(served.http.post(f"{V1}/optimizers", json=body), 409, "version-mismatch")
    assert str(PROTOCOL_VERSION + 1) in refused["detail"]
    assert "same release" in refused["hint"]
    problem(served.http.post(f"{V1}/optimizers/optimizer-1/claims", json={}), 409, "not-allowed")
    spec = claimed(served)
    other = to_json(report(spec, Committed(1), PROTOCOL_VERSION + 1))
    problem(served.http.post(f"{V1}/tasks/{spec.task_id}/report", json=other), 409, "version-mismatch")
    assert served.get(f"/tasks/{spec.task_id}")["task"]["state"] == "running"


def test_an_old_token_has_lost_its_lease() -> None:
    served = queued()
    spec = claimed(served)
    path = f"{V1}/tasks/{spec.task_id}"
    beat = to_json(Heartbeat(spec.fencing_token - 1, Progress("merging", 0, 1)))
    problem(served.http.post(f"{path}/heartbeat", json=beat), 409, "lease-lost")
    served.clock.advance(spec.lease_ms + 1)
    problem(served.http.post(f"{path}/report", json=to_json(report(spec, Committed(1)))), 409, "lease-lost")


def test_a_report_about_another_task_than_the_address_is_refused() -> None:
    served = queued()
    spec = claimed(served)
    body = to_json(report(spec, Committed(1)))
    refused = problem(served.http.post(f"{V1}/tasks/task-0/report", json=body), 400, "invalid-message")
    assert "$.task_id" in refused["detail"]
    check = to_json(TableCheck(spec.table_id, "x"))
    problem(served.http.post(f"{V1}/tables/some-uuid/check", json=check), 400, "invalid-message")


def test_a_check_of_a_table_that_was_dropped_meanwhile_does_not_agree() -> None:
    served = queued()
    spec = claimed(served)
    served.lake.drop(EVENTS)
    check = TableCheck(spec.table_id, "x")
    assert served.post(f"/tables/{spec.table_id.uuid}/check", check) == {"agrees": False}


def test_cancel_and_retry_of_a_waiting_task() -> None:
    served = queued()
    (task,) = served.get("/tasks")["items"]
    path = f"/tasks/{task['task_id']}"
    problem(served.http.post(f"{V1}{path}/retry"), 409, "not-allowed")
    assert served.post(f"{path}/cancel")["state"] == "cancelled"
    problem(served.http.post(f"{V1}{path}/cancel"), 409, "not-allowed")
    assert served.post(f"{path}/retry")["state"] == "queued"
    problem(served.http.post(f"{V1}/tasks/task-0/cancel"), 404, "not-found")
    problem(served.http.get(f"{V1}/tasks/task-0"), 404, "not-found")


def test_a_waiting_task_is_expedited_once_and_a_running_one_is_not() -> None:
    served = queued()
    (task,) = served.get("/tasks")["items"]
    path = f"/tasks/{task['task_id']}"
    assert task["lane"] == {"queue": "normal", "urgency": "real-time", "tenant": ""}  # two commits at once
    assert served.post(f"{path}/expedite")["lane"]["urgency"] == "expedited"
    assert served.post(f"{path}/expedite")["lane"]["urgency"] == "expedited"
    assert served.get(path)["history"][-1]["reason"]["code"] == "expedited"
    claimed(served)
    problem(served.http.post(f"{V1}{path}/expedite"), 409, "not-allowed")
    problem(served.http.post(f"{V1}/tasks/task-0/expedite"), 404, "not-found")


def test_a_running_task_is_asked_to_stop_at_its_next_heartbeat() -> None:
    served = queued()
    spec = claimed(served)
    assert served.post(f"/tasks/{spec.task_id}/cancel")["cancel_requested"]
    beat = Heartbeat(spec.fencing_token, Progress("merging", 0, 1))
    assert served.post(f"/tasks/{spec.task_id}/heartbeat", beat)["cancel"]


@each_case(
    ("result", "state"),
    [
        (CommitUnknown("the connection broke"), "in_doubt"),
        (Failed("proof", "digests differ", retryable=False), "failed"),
        (Failed("engine", "out of memory", retryable=True), "queued"),
    ],
)
def test_what_an_optimizer_reports_decides_what_follows(result: Result, state: str) -> None:
    served = queued()
    spec = claimed(served)
    assert served.post(f"/tasks/{spec.task_id}/report", report(spec, result))["state"] == state


def test_tasks_are_listed_newest_first_in_pages_by_state_and_table(served: Served) -> None:
    uuids = [served.table(TableName("lake", ("db",), f"t{number}")) for number in range(5)]
    seen, cursor = [], None
    while True:
        found = served.get("/tasks", limit=2, **({} if cursor is None else {"cursor": cursor}))
        seen += [item["uuid"] for item in found["items"]]
        cursor = found["next_cursor"]
        if cursor is None:
            break
    assert seen == uuids[::-1]
    assert [t["uuid"] for t in served.get("/tasks", table=uuids[2])["items"]] == [uuids[2]]
    assert served.get("/tasks", state=["running", "failed"])["items"] == []
    assert len(served.get("/tasks", state=["running", "queued"])["items"]) == 5
    problem(served.http.get(f"{V1}/tasks", params={"state": "asleep"}), 400, "invalid-request")


def test_a_task_is_shown_without_its_files_but_with_the_call_that_comes_nearest() -> None:
    served = queued()
    (task,) = served.get("/tasks")["items"]
    assert task["action"]["input_files"] == 12
    assert task["prediction"]["call"].startswith("CALL ")
    assert ".parquet" not in str(task)
