"""G11: every cell of roles x routes x scopes, against a table that is written down here once more."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import pytest
from fastapi import APIRouter, FastAPI

from icewright.approvals.service import approval_hash
from icewright.identity.authentication import Access, loopback_hosts
from icewright.identity.authorization import Declared, On, Public, declarations, needs, require_declarations
from icewright.identity.sql import SqlIdentities
from icewright.model.access.identity import NewToken
from icewright.model.access.permissions import OWNER, Grant, Permission, Principal, Role, Scope
from icewright.model.actions.deletion import Cause, DeletionRun
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.events.events import CommitEvent
from icewright.model.events.notifications import Message
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.approvals import Approval
from icewright.model.work.jobs import ANY_TASK
from icewright.ownership.model import GoneUuid
from icewright.ports.inbox import EventFilter
from icewright.ports.store import TableStore
from icewright.server.http.app import create_app
from tests.builders.mailbox import Mailbox, told
from tests.builders.queries import recommendation
from tests.builders.served import EVENTS, HOST, PORT, TOKEN, V1, Served, TestClient, hello, problem
from tests.conftest import CAMPAIGN
from tests.contracts.test_decisions_contract import decision
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store

READERS = {"viewer", "operator", "policy-admin", "approver", "platform-admin"}
OPERATORS = {"operator", "policy-admin"}
UNDOERS = READERS - {"viewer"}
REMOVERS, APPROVERS, WORKERS = {"policy-admin"}, {"approver"}, {"optimizer"}
GOVERNORS = {"policy-admin"}

ALL, SOME, TABLE = "everything", "anywhere", "table"
PUBLIC_ROUTES = {
    ("GET", "/"),
    ("GET", "/ui/{path:path}"),
    ("GET", "/docs"),
    ("GET", "/login"),
    ("GET", "/login/program"),
    ("GET", "/login/callback"),
    ("GET", f"{V1}/healthz"),
    ("POST", f"{V1}/sessions"),
}

# Who may call what, and whether that needs a grant for everything, for anything, or for the table in question.
MAY: Mapping[tuple[str, str], tuple[set[str], str]] = {
    ("GET", "/openapi.json"): (READERS, SOME),
    ("GET", "/status"): (READERS, SOME),
    ("GET", "/metrics"): (READERS, ALL),
    ("GET", "/readyz"): (READERS, ALL),
    ("GET", "/me"): (READERS, SOME),
    ("POST", "/logout"): (READERS, SOME),
    ("GET", "/tokens"): ({"platform-admin"}, ALL),
    ("POST", "/tokens"): ({"platform-admin"}, ALL),
    ("POST", "/tokens/{token}/revoke"): ({"platform-admin"}, ALL),
    ("GET", "/sessions"): ({"platform-admin"}, ALL),
    ("POST", "/sessions/{session}/end"): ({"platform-admin"}, ALL),
    ("POST", "/sessions/end"): ({"platform-admin"}, ALL),
    ("GET", "/me/sessions"): (READERS, SOME),
    ("POST", "/me/sessions/end"): (READERS, SOME),
    ("GET", "/audit"): ({"policy-admin", "approver", "platform-admin"}, ALL),
    ("GET", "/audit/head"): ({"policy-admin", "approver", "platform-admin"}, ALL),
    ("POST", "/login-codes"): (READERS, SOME),
    ("GET", "/tables"): (READERS, SOME),
    ("GET", "/tables/totals"): (READERS, SOME),
    ("GET", "/tables/stream"): (READERS, SOME),
    ("GET", "/catalogs"): (READERS, SOME),
    ("POST", "/catalogs/{catalog}/check"): ({"platform-admin"}, ALL),
    ("GET", "/namespaces"): (READERS, SOME),
    ("GET", "/tables/{uuid}"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/summary"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/health"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/series"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/files"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/manifests"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/metadata"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/histogram"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/bounds"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/storage"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/observations"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/partitions"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/snapshots"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/refs"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/place"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/unneeded"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/why"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/policy-test"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/plans"): (READERS, TABLE),
    ("POST", "/tables/{uuid}/look"): (OPERATORS, TABLE),
    ("POST", "/tables/{uuid}/unpark"): (OPERATORS, TABLE),
    ("POST", "/tables/{uuid}/plans"): (OPERATORS, TABLE),
    ("POST", "/tables/{uuid}/check"): (WORKERS, ALL),
    ("GET", "/plans/waiting"): (READERS, SOME),
    ("GET", "/plans/{rewrite}"): (READERS, TABLE),
    ("GET", "/plans/{rewrite}/files"): (READERS, TABLE),
    ("GET", "/plans/{expiry}/approval"): (READERS, TABLE),
    ("POST", "/plans/{rewrite}/apply"): (OPERATORS, TABLE),
    ("POST", "/plans/{expiry}/apply"): (REMOVERS, TABLE),
    ("POST", "/plans/{rewrite}/approve"): (APPROVERS, TABLE),
    ("POST", "/plans/{rewrite}/refuse"): (APPROVERS, TABLE),
    ("GET", "/approvals"): (READERS, SOME),
    ("GET", "/tables/{uuid}/queries"): (READERS, TABLE),
    ("GET", "/tables/{uuid}/benefit"): (READERS, TABLE),
    ("GET", "/benefit"): (READERS, SOME),
    ("GET", "/recommendations/{recommendation}/measurements"): (READERS, TABLE),
    ("GET", "/queries"): (READERS, SOME),
    ("POST", "/queries"): (OPERATORS | {"reporter"}, SOME),
    ("POST", "/queries/trino"): (OPERATORS | {"reporter"}, SOME),
    ("GET", "/recommendations"): (READERS, SOME),
    ("GET", "/recommendations/{recommendation}"): (READERS, TABLE),
    ("POST", "/recommendations/{recommendation}/accept"): (APPROVERS, TABLE),
    ("POST", "/recommendations/{recommendation}/reject"): (APPROVERS, TABLE),
    ("POST", "/recommendations/{recommendation}/snooze"): (APPROVERS, TABLE),
    ("GET", "/policies"): (READERS, ALL),
    ("GET", "/policies/revisions"): (READERS, ALL),
    ("GET", "/policies/revisions/{number}"): (READERS, ALL),
    ("POST", "/policies/preview"): (READERS, ALL),
    ("POST", "/policies"): (GOVERNORS, ALL),
    ("GET", "/tasks"): (READERS, SOME),
    ("GET", "/attempts"): (READERS, SOME),
    ("GET", "/tasks/{task}"): (READERS, TABLE),
    ("GET", "/tasks/{task}/attempts"): (READERS, TABLE),
    ("GET", "/tasks/{task}/logs"): (READERS, TABLE),
    ("GET", "/tasks/{task}/attempts/{try}"): (READERS, TABLE),
    ("POST", "/tasks/{task}/cancel"): (OPERATORS, TABLE),
    ("POST", "/tasks/{task}/expedite"): (OPERATORS, TABLE),
    ("POST", "/tasks/{task}/retry"): (OPERATORS, TABLE),
    ("POST", "/tasks/{removing}/retry"): (REMOVERS, TABLE),
    ("POST", "/tasks/{task}/undo"): (UNDOERS, TABLE),
    ("POST", "/tasks/{task}/heartbeat"): (WORKERS, ALL),
    ("POST", "/tasks/{task}/report"): (WORKERS, ALL),
    ("GET", "/queue"): (READERS, SOME),
    ("GET", "/groups"): (READERS, ALL),
    ("GET", "/autotune"): (READERS, ALL),
    ("GET", "/cluster"): (READERS, ALL),
    ("GET", "/autotune/{decision}"): (READERS, ALL),
    ("POST", "/autotune/{decision}/hold"): (OPERATORS, ALL),
    ("POST", "/autotune/{decision}/release"): (OPERATORS, ALL),
    ("GET", "/groups/{group}"): (READERS, ALL),
    ("POST", "/queue/pause"): (OPERATORS, SOME),
    ("POST", "/queue/drain"): (OPERATORS, SOME),
    ("POST", "/queue/stop"): (OPERATORS, SOME),
    ("POST", "/queue/resume"): (OPERATORS, SOME),
    ("GET", "/quarantine"): (READERS, SOME),
    ("GET", "/quarantine/{run}"): (READERS, TABLE),
    ("GET", "/quarantine/{run}/files"): (READERS, TABLE),
    ("POST", "/quarantine/{run}/purge"): (REMOVERS, TABLE),
    ("POST", "/quarantine/{run}/purge-of-gone-table"): (APPROVERS, TABLE),
    ("GET", "/lost-tables"): (READERS, ALL),
    ("POST", "/lost-tables/{lost}"): ({"platform-admin"}, ALL),
    ("POST", "/lost-tables/{lost}/withdraw"): ({"platform-admin"}, ALL),
    ("GET", "/gone-tables"): (READERS, ALL),
    ("POST", "/gone-tables/{anew}/{before}"): ({"platform-admin"}, ALL),
    ("POST", "/gone-tables/{anew}/{before}/withdraw"): ({"platform-admin"}, ALL),
    ("GET", "/notifications"): (READERS, ALL),
    ("GET", "/notifications/dead-letters"): (READERS, ALL),
    ("POST", "/notifications/dead-letters/{letter}/retry"): ({"platform-admin"}, ALL),
    ("POST", "/notifications/receivers/{receiver}/test"): ({"platform-admin"}, ALL),
    ("GET", "/feed"): (READERS, SOME),
    ("GET", "/feed/stream"): (READERS, SOME),
    ("POST", "/events/commits"): (OPERATORS | {"reporter"}, SOME),
    ("POST", "/events/commits/batch"): (OPERATORS | {"reporter"}, SOME),
    ("GET", "/events/figures"): (READERS, SOME),
    ("GET", "/events/inbox"): (READERS, SOME),
    ("DELETE", "/events/inbox/{event}"): (OPERATORS, TABLE),
    ("POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"): (OPERATORS | {"reporter"}, SOME),
    ("POST", "/v1/namespaces/{namespace}/tables/{table}/metrics"): (OPERATORS | {"reporter"}, SOME),
    ("GET", "/optimizers"): (READERS, SOME),
    ("POST", "/optimizers"): (WORKERS, ALL),
    ("GET", "/backlog"): (WORKERS, ALL),
    ("POST", "/optimizers/{optimizer}/claims"): (WORKERS, ALL),
    ("POST", "/optimizers/{optimizer}/probes"): (WORKERS, ALL),
    ("POST", "/optimizers/{optimizer}/probe-reports"): (WORKERS, ALL),
}
SCOPES = {
    "*": {ALL, SOME, TABLE},
    "lake": {SOME, TABLE},
    "lake.db": {SOME, TABLE},
    "lake.db.events": {SOME},
    "lake.other": {SOME},
    "other": {SOME},
}
PARAMETERS = {"rewrite": "plan_id", "expiry": "plan_id", "task": "task_id", "removing": "task_id", "run": "task_id"}
PARAMETERS |= {
    "optimizer": "optimizer_id",
    "recommendation": "recommendation_id",
    "decision": "decision_id",
    "token": "name",
    "receiver": "name",
    "letter": "message_id",
    "session": "session_id",
    "try": "number",
    "group": "name",
    "event": "event_id",
    "lost": "name",
    "anew": "name",
    "before": "uuid",
}
BARE = ("/assets", "/v1/")
"""Where addresses begin that are not below that of the API."""


class Everybody(Access):
    """Knows a token for each role in each scope: ``role@scope``."""

    def of_token(self, presented: str) -> Principal | None:
        """Who presents it."""
        role, at, scope = presented.partition("@")
        if not at:
            return super().of_token(presented)
        return Principal(presented, (Grant(Role(role), Scope.parse(scope)),))


@dataclass
class World:
    """A server where everything that a path may name is there."""

    http: TestClient
    ids: Mapping[str, str]
    tables: TableStore

    def event(self) -> str:
        """The id of an event of the table, which may have been deleted since it came in first."""
        self.tables.receive(CommitEvent(EVENTS, 1))
        return str(self.tables.received(EventFilter(table_name=EVENTS), limit=1)[0].event_id)

    def call(self, method: str, path: str, token: str) -> tuple[int, str]:
        """The status and the code of the answer; a body that is none is refused behind the door at the earliest."""
        found = self.http.request(method, path, headers={"Authorization": f"Bearer {token}"})
        code = found.json()["code"] if found.headers.get("content-type") == "application/problem+json" else ""
        return found.status_code, code


@pytest.fixture(scope="module")
def world() -> World:
    clock = ManualClock()
    delivery = told(Mailbox(), clock)
    delivery.store.compose("team", None, 0, [Message("msg_1", "team", None, (), {"failed": 1}, 1, 0, 0)])
    delivery.store.failed("msg_1", "status 400", None)
    served = Served(clock, delivery=delivery)
    uuid = served.table(mode="approve")
    rewrite = served.post(f"/tables/{uuid}/look")["plan"]["plan_id"]
    expiry = served.post(f"/tables/{uuid}/plans", ExpireSnapshotsRequest("PT0S", 1))["plan_id"]
    task = served.post(f"/plans/{rewrite}/apply")["task_id"]
    removing = served.post(f"/plans/{expiry}/apply")["task_id"]
    served.post("/optimizers", hello())
    assert served.post("/optimizers/optimizer-1/claims", ANY_TASK)["task_id"] == task
    table_id, store = TableId("lake", uuid), served.control.deletions
    store.approve(Approval(approval_hash(served.control.tables.plan(expiry)), "Ada", 1))
    run = DeletionRun(
        "run-1", "plan-1", "hash", table_id, EVENTS, "s3://x", Cause.ORPHAN, 1, store.epoch(), 1, None, 1, 1
    )
    store.begin(run, [])
    access = Everybody(TOKEN, loopback_hosts("127.0.0.1", PORT), SqlIdentities(new_store(), served.clock), served.audit)
    app = create_app(served.control, access)
    app.state.streams.is_ending = lambda: True  # or the answer would have no end
    ids = {"uuid": uuid, "name": "ci", "optimizer": "x", "token": "ci", "run": "run-1", "number": "0"}
    ids |= {"catalog": "lake", "receiver": "team", "letter": "msg_1", "session": "s1"}
    ids |= {"prefix": "lake", "namespace": "db", "table": "events"}
    ids |= {"rewrite": rewrite, "expiry": expiry, "task": task, "removing": removing}
    ids |= {"lost": "lake.db.lost", "anew": str(EVENTS), "before": str(UUID(int=7))}
    book = served.control.registry.book()
    seen = book.get(EVENTS)
    assert seen is not None
    book.put(replace(seen, gone=(GoneUuid(ids["before"], 1, "Ada", ()),)))
    lost = TableName.parse(ids["lost"])
    served.lake.create(lost)
    served.lake.damage(served.lake.load(lost).metadata_location)
    served.control.registry.declare_lost(lost, "Ada")
    ids |= {"try": "1", "group": "default"}
    recommended = served.control.recommendations.store.keep(table_id, "task-1", 1, recommendation(EVENTS, "city"))
    ids |= {"recommendation": recommended}
    assert served.control.autotune.make(decision(1, clock))
    ids |= {"decision": "tune-1"}
    access.give_token(NewToken("ci", (Role.VIEWER,), ("*",)), "owner")
    access.identities.open_session("s1", OWNER)
    return World(TestClient(app, f"http://{HOST}"), ids, served.control.tables)


def cells() -> Iterator[tuple[str, str, str, str, bool]]:
    """Every cell in the campaign. In CI each role everywhere, one that may in each scope, one that may not in one."""
    for number, ((method, template), (roles, on)) in enumerate(MAY.items()):
        may, may_not = sorted(roles), sorted({role.value for role in Role} - roles)
        chosen = {(may[number % len(may)], scope) for scope in SCOPES}
        chosen |= {(may_not[number % len(may_not)], [*SCOPES][number % len(SCOPES)])} if may_not else set()
        for role in Role:
            for scope, covered in SCOPES.items():
                if CAMPAIGN or scope == "*" or (role.value, scope) in chosen:
                    yield method, template, role.value, scope, role.value in roles and on in covered


def test_g11_i24_t1_every_route_is_in_the_table_and_declares_what_it_needs() -> None:
    app = Served().app
    found = {(method, path) for method, path, _ in declarations(app)}
    declared = {(method, path): one for method, path, one in declarations(app)}
    assert {cell for cell, one in declared.items() if isinstance(one, Public)} == PUBLIC_ROUTES
    assert all(isinstance(one, Declared | Public) for one in declared.values())

    def as_served(template: str) -> str:
        for here, there in PARAMETERS.items():
            template = template.replace(f"{{{here}}}", f"{{{there}}}")
        for part in ("prefix", "namespace", "table"):
            template = template.replace(f"{{{part}}}", f"{{{part}:path}}")
        return template if template.startswith(BARE) else V1 + template

    assert {(method, as_served(path)) for method, path in MAY} == found - PUBLIC_ROUTES


def test_g11_t2_every_cell_of_roles_routes_and_scopes_is_as_the_table_says(world: World) -> None:
    wrong, seen = [], set[tuple[str, str, str, str]]()
    for method, template, role, scope, may in cells():
        prefix = "" if template.startswith(BARE) else V1
        ids = {**world.ids, "event": world.event()} if "{event}" in template else world.ids
        status, code = world.call(method, prefix + template.format(**ids), f"{role}@{scope}")
        refused = code in {"forbidden", "not-found", "unauthenticated"}
        assert status < 500, (method, template, role, scope)
        seen.add((method, template, role, scope))
        if refused == may:
            wrong.append((method, template, role, scope, status, code))
    assert wrong == []
    every = {(*route, role.value, scope) for route in MAY for role in Role for scope in SCOPES}
    assert seen == every or not CAMPAIGN
    for pair in itertools.combinations((slice(0, 2), slice(2, 3), slice(3, 4)), 2):  # routes, roles, scopes
        assert {tuple(cell[one] for one in pair) for cell in seen} == {
            tuple(cell[one] for one in pair) for cell in every
        }


def test_t2_what_somebody_may_not_see_is_answered_as_what_is_not_there(world: World) -> None:
    for path, other in (
        ("/tables/{uuid}", "/tables/x"),
        ("/plans/{rewrite}", "/plans/x"),
        ("/tasks/{task}", "/tasks/x"),
    ):
        said = []
        for asked in (path.format(**world.ids), other):
            response = world.http.get(V1 + asked, headers={"Authorization": "Bearer viewer@lake.other"})
            document = problem(response, 404, "not-found")
            said.append((document["detail"], document["hint"]))
        assert said[0] == said[1]


def test_t2_the_feed_tells_of_ones_own_scopes_alone(world: World) -> None:
    for scope, tables in (("*", {"lake.db.events"}), ("lake.db", {"lake.db.events"}), ("lake.db.events", set())):
        for path in ("/feed", "/feed?under=lake.db.events", "/feed?under=lake"):
            found = world.http.get(V1 + path, headers={"Authorization": f"Bearer viewer@{scope}"}).json()["items"]
            assert {fact["table"] for fact in found if fact["kind"] != "tuned"} == tables
            # What is decided of optimizers is of no catalog, so that whoever may read everything is told.
            assert ("tuned" in {fact["kind"] for fact in found}) == (scope == "*" and path == "/feed")


def test_t2_a_refusal_says_which_permission_is_missing(world: World) -> None:
    response = world.http.post(
        f"{V1}/tasks/{world.ids['task']}/cancel", headers={"Authorization": "Bearer viewer@lake.db"}
    )
    document = problem(response, 403, "forbidden")
    assert "`operate` on lake.db" in document["detail"]
    assert "operator" in document["hint"]


def test_t2_a_commit_is_reported_in_ones_own_scope_alone(world: World) -> None:
    for scope, status in (("lake.db", 202), ("lake.other", 403), ("other", 403)):
        response = world.http.post(
            f"{V1}/events/commits",
            json={"table_name": str(EVENTS), "snapshot_id": 1},
            headers={"Authorization": f"Bearer reporter@{scope}"},
        )
        assert response.status_code == status


def test_t1_an_application_with_a_route_that_declares_nothing_or_twice_is_none() -> None:
    for dependencies in ([], [needs(Permission.READ, On.ANYWHERE), needs(Permission.WORK, On.ANYWHERE)]):
        app, router = FastAPI(openapi_url=None, docs_url=None, redoc_url=None), APIRouter()
        router.add_api_route("/forgotten", lambda: None, dependencies=dependencies)
        app.include_router(router)
        with pytest.raises(ValueError, match="GET /forgotten"):
            require_declarations(app)


@pytest.mark.parametrize("mounted", ["/docs", "/mounted"])
def test_t1_nor_one_with_something_that_cannot_declare(mounted: str) -> None:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    if mounted == "/docs":
        app = FastAPI()
    else:
        app.mount(mounted, FastAPI())
    with pytest.raises(ValueError, match=mounted):
        require_declarations(app)
