"""The two clients that we ship, the command line's and the optimizer's, against the very application."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from icewright.api_client.client import Client
from icewright.core.errors import LeaseLost, NotAllowed, NotFound, Unavailable, VersionMismatch
from icewright.model.actions.actions import OPTIMIZER_ACTIONS, ActionKind
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import PROTOCOL_VERSION, Committed, Heartbeat, HeartbeatReply, TableCheck
from icewright.model.work.optimizers import BacklogRequest, Submitting
from icewright.model.work.tasks import Progress, TaskState
from icewright_spark.reports.client import Server
from tests.builders.served import EVENTS, HOST, TOKEN, Served, hello
from tests.narrowing import not_none
from tests.work.tasks.test_api_tasks import carry_out, report


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(f"http://{HOST}", TOKEN, transport=served.http._transport) as client:
        yield client


@pytest.fixture
def server(served: Served) -> Server:
    server = Server(f"http://{HOST}", TOKEN)
    server.close()
    server._http = served.http
    return server


def test_what_the_command_line_asks_for(served: Served, client: Client) -> None:
    uuid = served.table(mode="approve")
    assert client.status()["tasks"]["queued"] == 0
    assert client.table(EVENTS)["uuid"] == uuid
    assert client.tables(limit=1).next_cursor is None
    assert client.partitions(uuid, "lake").items[0]["path"] == "city=city-0"
    plan_id = client.look_at_table(uuid, "lake")["plan"]["plan_id"]
    task_id = client.apply(plan_id)["task_id"]
    assert [t["task_id"] for t in client.tasks(states=(TaskState.QUEUED,), table=client.table(EVENTS)).items] == [
        task_id
    ]
    assert client.cancel(task_id)["state"] == "cancelled"
    assert client.retry(task_id)["state"] == "queued"
    assert [entry["state"] for entry in client.task(task_id)["history"]] == ["queued", "cancelled", "queued"]
    assert client.notify(CommitEvent(EVENTS, 2**62)) == {"accepted": True, "repeated": False}


def test_what_the_server_refuses_arrives_as_the_same_error(served: Served, client: Client) -> None:
    served.table(mode="observe")
    with pytest.raises(NotAllowed, match="observe") as refused:
        client.apply(client.table(EVENTS)["plan"]["plan_id"])
    assert "icewright.mode" in refused.value.hint
    with pytest.raises(NotFound):
        client.task("../../etc/passwd")
    with pytest.raises(NotFound):
        client.table(TableName("lake", ("no`where",), "x\n"))
    served.lake.available = False
    with pytest.raises(Unavailable):
        client.look_at_table(client.table(EVENTS)["uuid"], "lake")


OWN = OPTIMIZER_ACTIONS[ActionKind.REWRITE_DATA_FILES.value]


@pytest.mark.parametrize("version", [None, 0, OWN + 1])
def test_an_optimizer_gets_no_task_whose_action_it_does_not_understand(
    served: Served, server: Server, client: Client, version: int | None
) -> None:
    """One that lacks the action, and one that knows another version of it; the queue says why it waits."""
    uuid = served.table()
    kind = ActionKind.REWRITE_DATA_FILES.value
    others = {name: number for name, number in OPTIMIZER_ACTIONS.items() if name != kind}
    actions = {**others, "of_a_later_release": 7, **({} if version is None else {kind: version})}
    server.hello(replace(hello(), actions=actions))
    assert server.claim("optimizer-1") is None
    (task,) = client.tasks().items
    (wait,) = client.task(task["task_id"])["waits"]
    assert (task["state"], wait["reason"]["code"]) == ("queued", "not-understood")
    knows = "does not know it" if version is None else f"understands version {version}"
    text = f"no optimizer of group default understands version {OWN} of {kind}: optimizer-1 {knows}. "
    assert wait["reason"]["text"] == f"{text}Run one of the server's release"
    (rewrite,) = [one for one in client.why(uuid, "lake")["kinds"] if one["kind"] == kind]
    assert [one["reason"]["code"] for one in rewrite["waits"]] == ["not-understood"]
    server.hello(replace(hello("optimizer-2"), actions={**others, kind: OWN}))
    assert client.task(task["task_id"])["waits"] == []
    assert server.claim("optimizer-1") is None
    spec = not_none(server.claim("optimizer-2"))
    assert (spec.task_id, spec.action.kind, spec.action_version) == (task["task_id"], kind, OWN)


def test_a_submitter_is_told_of_what_its_applications_understand(served: Served, client: Client) -> None:
    served.table()
    kind = ActionKind.REWRITE_DATA_FILES.value
    submitting = Submitting("submitter-1", "edge-1", 0, 4)
    asked = BacklogRequest("default", submitting=submitting, actions=OPTIMIZER_ACTIONS)
    for actions in ({}, {**OPTIMIZER_ACTIONS, kind: OWN + 1}):
        assert client.backlog(replace(asked, actions=actions), ["lake"])["tasks"] == 0
        (task,) = client.tasks().items
        (wait,) = client.task(task["task_id"])["waits"]
        assert wait["reason"]["code"] == "not-understood"
        assert "submitter-1" in wait["reason"]["text"]
    assert client.backlog(asked, ["lake"])["tasks"] == 1
    (wait,) = client.task(task["task_id"])["waits"]
    assert wait["reason"]["code"] == "to-be-submitted"
    for said in ("rewrite_data_files", "rewrite_data_files:x", "a:1\n", "A:1", "a:-1", f"{'a' * 101}:1"):
        refused = served.http.get("/api/v1/backlog", params={"resource_group": "default", "action": said})
        assert refused.status_code == 400, said


def test_what_the_optimizer_asks_for(served: Served, server: Server) -> None:
    served.table()
    with pytest.raises(VersionMismatch, match=str(PROTOCOL_VERSION + 1)):
        server.hello(hello(protocol_version=PROTOCOL_VERSION + 1))
    server.hello(hello())
    spec = not_none(server.claim("optimizer-1"))
    assert server.claim("optimizer-1") is None
    assert server.sees_the_same(TableCheck(spec.table_id, served.lake.metadata_location(EVENTS)))
    assert not server.sees_the_same(TableCheck(spec.table_id, "elsewhere"))
    beat = Heartbeat(spec.fencing_token, Progress("merging", 0, 1))
    assert server.heartbeat(spec.task_id, beat) == HeartbeatReply(spec.lease_ms, cancel=False)
    with pytest.raises(LeaseLost):
        server.heartbeat(spec.task_id, Heartbeat(spec.fencing_token + 1, beat.progress))
    server.report(report(spec, Committed(carry_out(served, spec))))
    with pytest.raises(LeaseLost):
        server.report(report(spec, Committed(1)))
    served.control.loop.round()
    assert served.get(f"/tasks/{spec.task_id}")["task"]["state"] == "succeeded"
