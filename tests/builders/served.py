"""A server over a lake in memory, and what a test needs to talk to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from fastapi.testclient import TestClient

from icewright.core.codec import to_json
from icewright.identity.authentication import Access, loopback_hosts
from icewright.model.access.identity import NewCode, digest
from icewright.model.access.permissions import OWNER
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import PartitionField
from icewright.model.work.jobs import PROTOCOL_VERSION, OptimizerHello
from icewright.notifications.service import Telling
from icewright.ports.store import TableStore, TaskStore
from icewright.retention.history import HistoryProgress
from icewright.retention.pruning import Keeping
from icewright.server.control import ControlPlane, build_control_plane
from icewright.server.http.app import create_app
from icewright.server.http.metrics import Shown
from icewright.server.server import listen
from icewright.server.web import web_server
from tests.doubles.answers import MemoryAnswers
from tests.doubles.audit import MemoryAudit
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.expiry import MemoryExpiry
from tests.doubles.identity import MemoryIdentities
from tests.doubles.ids import SequentialIds
from tests.doubles.kept import MemoryKept
from tests.doubles.lake import MemoryFile
from tests.doubles.names import MemoryNames
from tests.doubles.policies import MemoryPolicies
from tests.doubles.prunings import MemoryPrunings
from tests.doubles.removals import memory_files, memory_removals
from tests.doubles.table_store import MemoryTableStore
from tests.doubles.task_store import MemoryTaskStore

PORT = 7077
HOST = f"127.0.0.1:{PORT}"
TOKEN = "the-token-of-this-test"  # noqa: S105 - not a secret
LOGIN_CODE = "the-one-time-code"
V1 = "/api/v1"

EVENTS = TableName("lake", ("db",), "events")
BY_CITY = (PartitionField(source_id=2, field_id=1000, name="city", transform="identity"),)
HOUR_MS = 3_600_000


@dataclass
class Served:
    """A control plane over one catalog, served in this process."""

    clock: ManualClock = field(default_factory=ManualClock)
    stores: tuple[TableStore, TaskStore] | None = None
    host: str = "127.0.0.1"
    telling: Telling | None = None
    history: HistoryProgress | None = None

    def __post_init__(self) -> None:
        self.lake = MemoryCatalog("lake", self.clock)
        self.other = MemoryCatalog("other", self.clock)
        self.audit = MemoryAudit(self.clock)
        names = MemoryNames()
        queue = MemoryTaskStore(self.clock, self.audit, names)
        tables, tasks = self.stores or (MemoryTableStore(self.clock, queue), queue)
        self.prunings = MemoryPrunings(self.clock, self.audit)
        self.control: ControlPlane = build_control_plane(
            {"lake": self.lake, "other": self.other},
            tables,
            tasks,
            self.clock,
            SequentialIds(),
            memory_removals(self.clock, {"lake": memory_files(self.lake, self.clock)}, self.audit, names),
            expiries={"lake": MemoryExpiry(self.lake)},
            kept=MemoryKept(),
            policies=MemoryPolicies(self.clock),
            telling=self.telling,
            keeping=Keeping(prunings=self.prunings, history=self.history),
        )
        self.access = Access(
            TOKEN,
            loopback_hosts(self.host, PORT),
            MemoryIdentities(self.clock, self.audit),
            self.audit,
            answers=MemoryAnswers(self.clock),
        )
        self.access.identities.add_code(digest(LOGIN_CODE), NewCode(OWNER, 100 * HOUR_MS))
        self.app = create_app(self.control, self.access, Shown(state_dir=Path.cwd()))
        self.app.state.streams.is_ending = lambda: True  # a stream would have no end, and the client here waits for it
        self.http = self.client({"Authorization": f"Bearer {TOKEN}"})

    def client(self, headers: dict[str, str] | None = None) -> TestClient:
        """A client of its own, without credentials unless they are among the headers."""
        return TestClient(self.app, f"http://{HOST}", headers=headers or {}, follow_redirects=False)

    def table(self, name: TableName = EVENTS, *, mode: str = "auto", cities: int = 1, files: int = 12) -> str:
        """A table with small files, old enough to be merged, seen by the loop; its uuid."""
        table_id = self.lake.create(name, partition_fields=BY_CITY, properties={"icewright.mode": mode})
        for number in range(files):
            self.append(name, f"{name}-{number}", cities)
        self.clock.advance(48 * HOUR_MS)
        self.control.maintainer.look(name)
        return table_id.uuid

    def append(self, name: TableName, prefix: str, cities: int = 1) -> int:
        """One commit with a file per city; its snapshot id."""
        self.clock.advance(60_000)
        files = [
            MemoryFile(f"{prefix}-{city}.parquet", Partition(0, f'["city-{city}"]'), 1_000_000, 100)
            for city in range(cities)
        ]
        return self.lake.append(name, files).snapshot_id

    def get(self, path: str, **params: Any) -> Any:
        """The JSON of a successful GET."""
        return answer(self.http.get(V1 + path, params=params))

    def post(self, path: str, body: Any = None) -> Any:
        """The JSON of a successful POST; ``body`` may be a domain value."""
        return answer(self.http.post(V1 + path, json=None if body is None else to_json(body)))


def answer(response: httpx2.Response) -> Any:
    assert response.is_success, (response.status_code, response.text)
    return None if response.status_code == 204 else response.json()


def problem(response: httpx2.Response, status: int, code: str) -> Any:
    """The problem document of a refusal, checked for its form."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    document = response.json()
    assert (response.status_code, document["code"]) == (status, code), document
    assert set(document) == {"type", "title", "status", "detail", "code", "hint", "instance"}
    assert document["status"] == status
    return document


def hello(optimizer_id: str = "optimizer-1", *, protocol_version: int = PROTOCOL_VERSION) -> OptimizerHello:
    return OptimizerHello(protocol_version, optimizer_id, "0.1.0", "default", 2, ("lake",), "4.1.4", "1.12.0")


@contextmanager
def at_a_port(control: ControlPlane, port: int = 0) -> Iterator[str]:
    """The control plane behind a real socket, for programs of their own; its URL. The token is :data:`TOKEN`."""
    with listen("127.0.0.1", port) as listening:
        taken = int(listening.getsockname()[1])
        identities, audit = MemoryIdentities(control.clock), MemoryAudit(control.clock)
        hosts, answers = loopback_hosts("127.0.0.1", taken), MemoryAnswers(control.clock)
        app = create_app(control, Access(TOKEN, hosts, identities, audit, answers=answers))
        web = web_server(app)
        thread = threading.Thread(target=web.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{taken}"
        finally:
            web.should_exit = True
            thread.join()
