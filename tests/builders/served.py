"""A server over a lake in memory, and what a test needs to talk to it."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI
from sqlalchemy import Engine

from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.audit.sql import SqlAudit
from icewright.core.clock import Clock
from icewright.core.codec import to_json
from icewright.identity.authentication import Access, loopback_hosts
from icewright.identity.sql import SqlIdentities
from icewright.maintenance.dispatch.dispatcher import DispatchLimits
from icewright.model.access.identity import NewCode, digest
from icewright.model.access.permissions import OWNER
from icewright.model.actions.actions import OPTIMIZER_ACTIONS
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import PartitionField
from icewright.model.queries.queries import LiteralPolicy
from icewright.model.work.jobs import PROTOCOL_VERSION, OptimizerHello
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.service import MessageDelivery
from icewright.policy.rules.sql import SqlPolicies
from icewright.queries.service import QueryLog
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.spool import QuerySpool
from icewright.queries.sql import SqlQuerySums
from icewright.recommendations.sql import SqlRecommendations
from icewright.retention.history import HistoryProgress
from icewright.retention.pruning import Keeping
from icewright.retention.prunings_sql import SqlPrunings
from icewright.server.cluster.leading import Leading
from icewright.server.control import ControlPlane, build_control_plane
from icewright.server.http import page
from icewright.server.http.app import create_app
from icewright.server.http.metrics import Shown
from icewright.server.server import listen
from icewright.server.web import web_server
from icewright.web.idempotent_answers_sql import SqlAnswers
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.expiry import MemoryExpiry
from tests.doubles.ids import SequentialIds
from tests.doubles.lake import MemoryFile
from tests.doubles.removals import memory_files, removal_ports
from tests.lakes.stores import new_store
from tests.servers.in_threads import serving_web

PORT = 7077
HOST = f"127.0.0.1:{PORT}"
TOKEN = "the-token-of-this-test"  # noqa: S105 - not a secret
LOGIN_CODE = "the-one-time-code"
V1 = "/api/v1"
RULES = LiteralRules(LiteralPolicy.HASH, b"the key of this test")

EVENTS = TableName("lake", ("db",), "events")
BY_CITY = (PartitionField(source_id=2, field_id=1000, name="city", transform="identity"),)
HOUR_MS = 3_600_000


def with_pages(patch: pytest.MonkeyPatch) -> None:
    """From now on there are web pages, whether or not they are built."""
    built = {page._SHELL: page._built(b"<html>the pages</html>", "text/html")}
    patch.setattr(page, "_ui", lambda: built)
    patch.setattr(page, "_shell", page._shell.__wrapped__)


class TestClient(httpx2.Client):
    """Its requests run on one loop of this process, with its threads, and each is one call there.

    Starlette's makes nine calls for each, which take longer than most of our answers do.
    """

    __test__ = False  # pytest takes its name for that of tests

    def __init__(
        self, app: FastAPI, base_url: str, *, client: tuple[str, int] = ("testclient", 50_000), **rest: Any
    ) -> None:
        super().__init__(transport=_InProcess(app, client), base_url=base_url, trust_env=False, **rest)


class _InProcess(httpx2.BaseTransport):
    """An application as a server; what it raises comes out."""

    def __init__(self, app: FastAPI, client: tuple[str, int]) -> None:
        self._app = httpx2.ASGITransport(app, client=client)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return _portal().call(self._answer, request)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        found = await self._app.handle_async_request(request)
        body = b"".join([part async for part in found.aiter_raw()])
        return httpx2.Response(found.status_code, headers=found.headers.raw, stream=httpx2.ByteStream(body))


@cache
def _portal() -> BlockingPortal:
    at_exit = ExitStack()
    atexit.register(at_exit.close)
    return at_exit.enter_context(start_blocking_portal())


@dataclass
class Served:
    """A control plane over one catalog, served in this process."""

    clock: ManualClock = field(default_factory=ManualClock)
    engine: Engine = field(default_factory=new_store)
    host: str = "127.0.0.1"
    delivery: MessageDelivery | None = None
    history: HistoryProgress | None = None
    login_code: str = LOGIN_CODE
    spool: QuerySpool | None = None
    queries_table: TableName | None = None
    limits: DispatchLimits | None = None

    def __post_init__(self) -> None:
        self.lake = MemoryCatalog("lake", self.clock)
        self.other = MemoryCatalog("other", self.clock)
        engine, clock = self.engine, self.clock
        self.audit = SqlAudit(engine, clock)
        self.prunings = SqlPrunings(engine, clock)
        tables = SqlTableStore(engine, clock)
        self.control: ControlPlane = build_control_plane(
            {"lake": self.lake, "other": self.other},
            tables,
            SqlTaskStore(engine, clock),
            clock,
            SequentialIds(),
            removal_ports(engine, clock, {"lake": memory_files(self.lake, clock)}),
            SqlUndoRecordStore(engine),
            self.delivery or MessageDelivery(SqlMessages(engine, clock)),
            expiries={"lake": MemoryExpiry(self.lake)},
            policies=SqlPolicies(engine, clock),
            keeping=Keeping(prunings=self.prunings, history=self.history),
            recommendations=SqlRecommendations(engine),
            decisions=SqlDecisions(engine, clock),
            limits=self.limits,
            properties={"lake": self.lake},
            queries=QueryLog(
                {"lake", "other"},
                tables,
                clock,
                self.spool,
                SqlQuerySums(engine),
                {"iceberg": "lake"},
                RULES,
                self.queries_table,
            ),
        )
        self.access = access(engine, clock, self.host, PORT)
        self.access.identities.add_code(digest(self.login_code), NewCode(OWNER, 100 * HOUR_MS))
        self.app = create_app(self.control, self.access, Shown(state_dir=Path.cwd()))
        self.app.state.streams.is_ending = lambda: True  # a stream would have no end, and the client here waits for it
        self.http = self.client({"Authorization": f"Bearer {TOKEN}"})

    def client(self, headers: dict[str, str] | None = None) -> TestClient:
        """A client of its own, without credentials unless they are among the headers."""
        return TestClient(self.app, f"http://{HOST}", headers=headers or {})

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


def access(engine: Engine, clock: Clock, host: str, port: int) -> Access:
    """Who comes in by :data:`TOKEN`, or by what is added to the store."""
    identities, answers = SqlIdentities(engine, clock), SqlAnswers(engine, clock)
    return Access(TOKEN, loopback_hosts(host, port), identities, SqlAudit(engine, clock), answers=answers)


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
    return OptimizerHello(
        protocol_version, optimizer_id, "0.1.0", "default", 2, ("lake",), "4.1.4", "1.12.0", actions=OPTIMIZER_ACTIONS
    )


@contextmanager
def at_a_port(control: ControlPlane, port: int = 0, leading: Leading | None = None) -> Iterator[str]:
    """The control plane behind a real socket, for programs of their own; its URL. The token is :data:`TOKEN`."""
    with listen("127.0.0.1", port) as listening:
        taken = int(listening.getsockname()[1])
        app = create_app(control, access(new_store(), control.clock, "127.0.0.1", taken), leading=leading)
        web = web_server(app)
        app.state.streams.is_ending = lambda: web.should_exit  # else a page that is open keeps it for three seconds
        with serving_web(web, listening):
            yield f"http://127.0.0.1:{taken}"
