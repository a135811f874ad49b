"""The two clients that we ship, the command line's and the optimizer's, against the very application."""

from collections.abc import Iterator

import pytest

from icewright.api_client.client import Client
from icewright.core.errors import LeaseLost, NotAllowed, NotFound, Unavailable, VersionMismatch
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import PROTOCOL_VERSION, Committed, Heartbeat, HeartbeatReply, TableCheck
from icewright.model.work.tasks import Progress, TaskState
from icewright_spark.reports.client import Server
from tests.builders.served import EVENTS, HOST, TOKEN, Served, hello
from tests.work.tasks.test_api_tasks import carry_out, report


@pytest.fixture
def served() -> Served:
    return Served()


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
    plan_id = client.plan_table(uuid, "lake")["plan"]["plan_id"]
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
        client.plan_table(client.table(EVENTS)["uuid"], "lake")


def test_what_the_optimizer_asks_for(served: Served, server: Server) -> None:
    served.table()
    with pytest.raises(VersionMismatch, match=str(PROTOCOL_VERSION + 1)):
        server.hello(hello(protocol_version=PROTOCOL_VERSION + 1))
    server.hello(hello())
    spec = server.claim("optimizer-1")
    assert spec is not None
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
