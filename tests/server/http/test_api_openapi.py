"""The OpenAPI document is true: it is complete, its references resolve, and real answers are as it says."""

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import jsonschema_rs
import pytest
from fastapi.routing import iter_route_contexts

from icewright.actions.remove_files.api import PurgeOfGone
from icewright.actions.remove_files.lost_tables import DeclareGone, DeclareLost
from icewright.core.codec import from_json, to_json
from icewright.identity.sessions_api import OneTimeCode, SessionsOf
from icewright.maintenance.api import ApprovalGiven, RefusalGiven
from icewright.model.access.identity import NewCode, NewToken, digest
from icewright.model.access.permissions import OWNER, Role
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.rewrite_data_files import RewriteDataFilesRequest
from icewright.model.events.feed import Fact, FactKind, FeedEntry
from icewright.model.events.notifications import Mention, Message
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.observation import WorkerAccess
from icewright.model.plans.plans import Migration, Reason
from icewright.model.policy.policies import NamedRule, NewRevision, Policies, RuleMatch
from icewright.model.work.halts import PartKind
from icewright.model.work.jobs import ANY_TASK, ClaimRequest, Committed, Heartbeat, SentReport, TableCheck, TaskSpec
from icewright.model.work.storage import ProbeReport, ProbeReports
from icewright.model.work.tasks import Progress
from icewright.queries.spool import QuerySpool
from icewright.recommendations.api import Reject, Snooze
from icewright.server.http.app import create_app
from icewright.web.examples import EXAMPLES
from icewright.web.schema import schema_of
from icewright.work.autotune.api import WhyDecision
from icewright.work.halts.api import PartAsked
from scripts import write_reference
from tests.builders.mailbox import Mailbox, told
from tests.builders.queries import query, read_of, recommendation
from tests.builders.served import EVENTS, HOST, PORT, TOKEN, V1, Served, TestClient, hello
from tests.builders.specs import log_lines
from tests.contracts.test_decisions_contract import decision
from tests.doubles.clock import ManualClock
from tests.lakes.house import House, litter, own_access
from tests.lakes.sqlite import writer
from tests.work.tasks.test_api_tasks import carry_out, claimed, report


@pytest.fixture(scope="module")
def document() -> Any:
    return Served().get("/openapi.json")


PUBLIC = {("GET", f"{V1}/healthz"), ("POST", f"{V1}/sessions")}
"""What strangers may ask."""


def operations(document: Any) -> Iterator[tuple[str, str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from refs(item)
    elif isinstance(value, list):
        for item in value:
            yield from refs(item)


def test_every_route_of_the_api_is_described_and_no_other(served: Served, document: Any) -> None:
    found = {
        (method, str(route.path))
        for route in iter_route_contexts(served.app.routes)
        for method in route.methods or ()
        if str(route.path).startswith(V1) and not str(route.path).endswith("/openapi.json")
    }
    assert {(method, path) for method, path, _ in operations(document)} == found
    assert document["openapi"].startswith("3.1")


def test_every_reference_resolves(document: Any) -> None:
    for ref in refs(document):
        part, _, name = ref.removeprefix("#/components/").partition("/")
        assert name in document["components"][part], ref


def test_the_stored_document_is_what_the_application_says() -> None:
    assert write_reference.OPENAPI.read_text(encoding="utf-8") == write_reference.stored(), "run `make docs`"


def test_operations_have_names_of_their_own_and_a_tag_that_is_explained(document: Any) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names))
    assert all(re.fullmatch("[a-z][a-z_]*", name) for name in names)
    explained = {tag["name"] for tag in document["tags"]}
    assert {tag for _, _, operation in operations(document) for tag in operation["tags"]} == explained
    assert all(operation["summary"] for _, _, operation in operations(document))


def test_credentials_are_those_that_are_taken(served: Served, document: Any) -> None:
    assert set(document["components"]["securitySchemes"]) == {"token", "session"}
    public = {(method, path) for method, path, operation in operations(document) if operation.get("security") == []}
    assert public == PUBLIC
    cookie = document["components"]["securitySchemes"]["session"]["name"]
    session = served.access.log_in(served.access.new_login_code())
    assert served.client({"Cookie": f"{cookie}={session}"}).get(f"{V1}/me").json()["name"] == "owner"


def test_examples_of_bodies_are_taken(document: Any) -> None:
    by_name = {operation["operationId"]: operation for _, _, operation in operations(document)}
    assert set(EXAMPLES) <= set(by_name)
    for name, examples in EXAMPLES.items():
        content = by_name[name]["requestBody"]["content"]["application/json"]
        validator = jsonschema_rs.validator_for({**content["schema"], "components": document["components"]})
        for value in examples.values():
            validator.validate(value)
    assert from_json(NewToken, EXAMPLES["create_token"]["for a scheduler"]).grants()
    for body in EXAMPLES["receive_commit"].values():
        assert Served().http.post(f"{V1}/events/commits", json=body).status_code == 202


def test_keys_and_tags_are_said_where_they_are_taken(document: Any) -> None:
    keyed, tagged = set(), set()
    for method, path, operation in operations(document):
        said = {one.get("$ref", "").rpartition("/")[2] for one in operation.get("parameters", ())}
        keyed |= {(method, path)} if "IdempotencyKey" in said else set()
        tagged |= {(method, path)} if "IfNoneMatch" in said else set()
    assert ("POST", f"{V1}/plans/{{plan_id}}/apply") in keyed
    assert ("POST", f"{V1}/login-codes") not in keyed  # what one needs only to read for is not carried out by key
    assert ("POST", f"{V1}/optimizers/{{optimizer_id}}/claims") not in keyed
    assert {method for method, _ in keyed} == {"POST"}
    assert ("GET", f"{V1}/tables/{{uuid}}") in tagged
    assert ("GET", f"{V1}/metrics") not in tagged


def test_what_is_required_is_said_once(document: Any) -> None:
    for name, schema in document["components"]["schemas"].items():
        required = schema.get("required", [])
        assert len(required) == len(set(required)), name


def test_every_operation_says_what_it_is_and_how_it_fails(document: Any) -> None:
    for method, path, operation in operations(document):
        assert operation["description"], (method, path)
        problem = operation["responses"]["4XX"]["content"]["application/problem+json"]["schema"]
        assert problem == {"$ref": "#/components/schemas/ProblemDocument"}
        assert "422" not in operation["responses"]
        if (method, path) not in PUBLIC:
            assert "security" not in operation  # the document's own holds: the token


def test_every_code_that_is_answered_is_documented(document: Any) -> None:
    said = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", document["info"]["description"]))
    served = Served()
    for path, code in (("/tables?limit=0", "invalid-request"), ("/tables/x", "not-found"), ("/x", "not-found")):
        assert served.http.get(V1 + path).json()["code"] == code
        assert code in said


def test_real_answers_are_as_the_document_says(document: Any, tmp_path: Path) -> None:
    described = {(method, path): operation for method, path, operation in operations(document)}
    seen = set()
    clock = ManualClock()
    with_spool = Served(clock, spool=QuerySpool(tmp_path / "queries.db", 1 << 20, clock))
    for method, path, response in (
        *a_life(Served()),
        *some_queries(with_spool),
        *some_tables(Served()),
        *some_events(Served()),
        *a_company(Served()),
        *some_policies(Served()),
        *some_halts(Served()),
        *some_messages(),
        *a_removal(House(tmp_path)),
    ):
        seen.add((method, path))
        operation = described[method, path]
        said = operation["responses"][str(response.status_code)]
        if response.status_code == 204:
            assert "content" not in said
            continue
        if "application/json" not in said["content"]:
            assert response.headers["content-type"].startswith(next(iter(said["content"])))
            continue
        schema = {**said["content"]["application/json"]["schema"], "components": document["components"]}
        jsonschema_rs.validator_for(schema).validate(response.json())
    streams = {
        key for key, operation in described.items() if "text/event-stream" in str(operation["responses"].get("200"))
    }
    # They have no end: see test_api_feed.py and test_api_lists.py.
    assert streams == {("GET", f"{V1}/feed/stream"), ("GET", f"{V1}/tables/stream")}
    assert seen == set(described) - streams


def test_two_classes_of_one_name_are_refused_since_the_document_has_room_for_one() -> None:
    stranger = dataclasses.make_dataclass("ProblemDocument", [("other", int)], frozen=True)
    with pytest.raises(TypeError, match="ProblemDocument"):
        schema_of(stranger)


def test_a_refusal_is_as_the_document_says(document: Any) -> None:
    schema = {**document["components"]["schemas"]["ProblemDocument"], "components": document["components"]}
    validator = jsonschema_rs.validator_for(schema)
    served = Served()
    for response in (
        served.http.get(f"{V1}/tables/x"),
        served.client().get(f"{V1}/status"),
        served.http.post(f"{V1}/events/commits", content=b"{"),
    ):
        validator.validate(response.json())


def test_request_bodies_that_are_sent_are_as_the_document_says(served: Served, document: Any) -> None:
    served.table()
    spec = claimed(served)
    bodies = {
        "/optimizers": hello(),
        "/optimizers/{optimizer_id}/claims": ClaimRequest(shareable_bytes_max=2**40),
        "/tasks/{task_id}/heartbeat": Heartbeat(1, Progress("merging", 0, 1), log_lines("began")),
        "/tasks/{task_id}/report": SentReport.of(report(spec, Committed(2**62)), log_lines("ended")),
        "/optimizers/{optimizer_id}/probe-reports": ProbeReports((probe_report(spec.table_id, WorkerAccess.REFUSED),)),
        "/tables/{uuid}/check": TableCheck(spec.table_id, "x"),
        "/tables/{uuid}/plans": RewriteDataFilesRequest(Migration.SPEC),
        "/tokens": NewToken("ci", (Role.OPERATOR,), ("lake.db",), 1_000),
        "/sessions": OneTimeCode("icc_x"),
        "/sessions/end": SessionsOf("ada"),
        "/plans/{plan_id}/approve": ApprovalGiven("Ada"),
        "/plans/{plan_id}/refuse": RefusalGiven("not now", "Ada"),
        "/policies/preview": Policies(()),
        "/policies": NewRevision(Policies(()), "Ada"),
        **{
            f"/queue/{verb}": PartAsked(PartKind.CATALOG, "lake", "why")
            for verb in ("pause", "drain", "stop", "resume")
        },
        "/quarantine/{task_id}/purge-of-gone-table": PurgeOfGone("Ada"),
        "/lost-tables/{name}": DeclareLost("Ada"),
        "/gone-tables/{name}/{uuid}": DeclareGone(in_no_catalog=True, declared_by="Ada"),
        "/queries": {"queries": [query(1)]},
        "/queries/trino": {"metadata": {}, "statistics": {}, "createTime": "x", "endTime": "x"},
        "/autotune/{decision_id}/hold": WhyDecision("not now"),
        "/autotune/{decision_id}/release": WhyDecision(""),
        "/recommendations/{recommendation_id}/reject": Reject("not now"),
        "/recommendations/{recommendation_id}/snooze": Snooze(7),
        "/events/commits": {"table_name": to_json(EVENTS), "snapshot_id": "1"},
        "/events/commits/batch": {"events": [{"table_name": to_json(EVENTS)}], "channel": "outbox"},
    }
    accepting = {path for method, path, operation in operations(document) if "requestBody" in operation}
    assert accepting == {V1 + path for path in bodies}
    for path, body in bodies.items():
        declared = document["paths"][V1 + path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        validator = jsonschema_rs.validator_for({**declared, "components": document["components"]})
        validator.validate(json.loads(json.dumps(to_json(body))))
        assert validator.is_valid({}) == path.endswith(("/claims", "/lost-tables/{name}")), (
            "a claim may ask for anything, and a principal may need no name; the others say something"
        )
        if path != "/queries/trino":  # another program's, which has whatever it has
            assert not validator.is_valid({**to_json(body), "unknown": 1})


ROOT = "s3://bucket/events/data"


def probe_report(table_id: TableId, access: WorkerAccess) -> ProbeReport:
    return ProbeReport(table_id, EVENTS, ROOT, access, "")


def expired(served: Served, uuid: str) -> str:
    """A task by which snapshots of the table expired."""
    plan = served.post(f"/tables/{uuid}/plans", ExpireSnapshotsRequest("PT0S", 1))
    task_id: str = served.post(f"/plans/{plan['plan_id']}/apply")["task_id"]
    served.control.loop.round()
    assert served.get(f"/tasks/{task_id}")["task"]["state"] == "succeeded"
    return task_id


def a_removal(house: House) -> Iterator[tuple[str, str, Any]]:
    """The operations that take files away, on a table with garbage."""
    app = create_app(house.control, own_access(house, TOKEN, PORT))
    client = TestClient(app, f"http://{HOST}", headers={"Authorization": f"Bearer {TOKEN}"})

    def call(method: str, template: str, body: Any = None, **values: str) -> tuple[str, str, Any]:
        content = None if body is None else to_json(body)
        response = client.request(method, V1 + template.format(**values), json=content)
        assert response.is_success, response.text
        return method, V1 + template, response

    table = house.table()
    litter(table, "aborted.parquet")
    house.days(10)
    waiting = call("GET", "/plans/waiting")
    yield waiting
    plan_id = waiting[2].json()["items"][0]["plan_id"]
    yield call("GET", "/plans/{plan_id}/files", plan_id=plan_id)
    approved = call("POST", "/plans/{plan_id}/approve", ApprovalGiven("Ada"), plan_id=plan_id)
    yield approved
    yield call("GET", "/plans/{plan_id}/approval", plan_id=plan_id)
    house.round()
    yield call("GET", "/quarantine")
    yield call("GET", "/tables/{uuid}/unneeded", uuid=str(table.metadata.table_uuid))
    task_id = approved[2].json()["task_id"]
    yield call("GET", "/quarantine/{task_id}", task_id=task_id)
    yield call("GET", "/quarantine/{task_id}/files", task_id=task_id)
    yield call("POST", "/quarantine/{task_id}/purge", task_id=task_id)
    writer(house.entry).drop_table(("db", "events"))
    yield call("POST", "/quarantine/{task_id}/purge-of-gone-table", PurgeOfGone("Ada"), task_id=task_id)


def some_events(served: Served) -> Iterator[tuple[str, str, Any]]:
    """The operations of events beside those of a table's life."""
    batch = {"events": [{"table_name": str(EVENTS), "snapshot_id": 1}]}
    yield "POST", f"{V1}/events/commits/batch", served.http.post(f"{V1}/events/commits/batch", json=batch)
    for path in ("figures", "inbox"):
        yield "GET", f"{V1}/events/{path}", served.http.get(f"{V1}/events/{path}")
    event_id = served.get("/events/inbox")["items"][0]["event_id"]
    yield "DELETE", f"{V1}/events/inbox/{{event_id}}", served.http.delete(f"{V1}/events/inbox/{event_id}")


def a_company(served: Served) -> Iterator[tuple[str, str, Any]]:
    """The operations on who comes in, and on what they did."""
    token = NewToken("ci", (Role.OPERATOR,), ("lake.db",), 1_000)
    for session in ("s1", "s2", "s3"):
        served.access.identities.open_session(session, OWNER)
    served.access.identities.add_code(digest("icc_x"), NewCode(OWNER, 60_000, is_program=True))
    for method, path, body in (
        ("GET", "/me", None),
        ("GET", "/me/sessions", None),
        ("GET", "/sessions", None),
        ("POST", "/sessions", OneTimeCode("icc_x")),
        ("POST", "/sessions/{session_id}/end", None),
        ("POST", "/sessions/end", SessionsOf("owner")),
        ("POST", "/me/sessions/end", None),
        ("POST", "/logout", None),
        ("POST", "/tokens", token),
        ("GET", "/tokens", None),
        ("POST", "/tokens/{name}/revoke", None),
        ("GET", "/audit", None),
        ("GET", "/audit/head", None),
    ):
        content = None if body is None else to_json(body)
        response = served.http.request(method, V1 + path.format(name="ci", session_id="s1"), json=content)
        assert response.is_success, response.text
        yield method, V1 + path, response


def some_halts(served: Served) -> Iterator[tuple[str, str, Any]]:
    """A table is unparked, and a part of the queue is halted in every way and resumed."""
    uuid, part = served.table(), PartAsked(PartKind.TABLE, str(EVENTS), "a fire")
    yield "POST", f"{V1}/tables/{{uuid}}/unpark", served.http.post(f"{V1}/tables/{uuid}/unpark")
    lost = TableName("lake", ("db",), "lost")
    served.lake.create(lost)
    served.lake.damage(served.lake.load(lost).metadata_location)
    said, declare = {"declared_by": "Ada"}, f"{V1}/lost-tables/lake.db.lost"
    yield "POST", f"{V1}/lost-tables/{{name}}", served.http.post(declare, json=said)
    yield "GET", f"{V1}/lost-tables", served.http.get(f"{V1}/lost-tables")
    yield "POST", f"{V1}/lost-tables/{{name}}/withdraw", served.http.post(f"{declare}/withdraw")
    declare = f"{V1}/gone-tables/{EVENTS}/{UUID(int=7)}"
    gone = to_json(DeclareGone(in_no_catalog=True, declared_by="Ada"))
    yield "POST", f"{V1}/gone-tables/{{name}}/{{uuid}}", served.http.post(declare, json=gone)
    yield "GET", f"{V1}/gone-tables", served.http.get(f"{V1}/gone-tables")
    yield "POST", f"{V1}/gone-tables/{{name}}/{{uuid}}/withdraw", served.http.post(f"{declare}/withdraw")
    for verb in ("pause", "drain", "stop"):
        yield "POST", f"{V1}/queue/{verb}", served.http.post(f"{V1}/queue/{verb}", json=to_json(part))
        yield "GET", f"{V1}/queue", served.http.get(f"{V1}/queue")
    yield "GET", f"{V1}/groups", served.http.get(f"{V1}/groups")
    assert served.control.autotune.make(decision(1, served.clock))
    for verb in ("hold", "release"):
        url = f"{V1}/autotune/tune-1/{verb}"
        yield "POST", f"{V1}/autotune/{{decision_id}}/{verb}", served.http.post(url, json={"why": "not now"})
    yield "GET", f"{V1}/autotune/{{decision_id}}", served.http.get(f"{V1}/autotune/tune-1")
    yield "GET", f"{V1}/autotune", served.http.get(f"{V1}/autotune")
    yield "GET", f"{V1}/cluster", served.http.get(f"{V1}/cluster")
    yield "GET", f"{V1}/groups/{{name}}", served.http.get(f"{V1}/groups/default")
    yield "POST", f"{V1}/queue/resume", served.http.post(f"{V1}/queue/resume", json=to_json(part))


def some_messages() -> Iterator[tuple[str, str, Any]]:
    """The operations on notifications."""
    clock, mailbox = ManualClock(), Mailbox()
    delivery = told(mailbox, clock)
    fact = Fact(FactKind.CATALOG_AWAY, "lake", Reason("unavailable", "no answer"))
    message = Message("msg_1", "team", None, (Mention(FeedEntry(1, 1, fact), None),), {"catalog-away": 1}, 0, 1, 1)
    delivery.store.compose("team", None, 0, [message])
    delivery.store.failed("msg_1", "status 400", None)
    served = Served(clock, delivery=delivery)
    head = f"{V1}/notifications"
    yield "GET", head, served.http.get(head)
    yield "GET", f"{head}/dead-letters", served.http.get(f"{head}/dead-letters")
    path = "dead-letters/{message_id}/retry"
    yield "POST", f"{head}/{path}", served.http.post(f"{head}/{path.format(message_id='msg_1')}")
    yield "POST", f"{head}/receivers/{{name}}/test", served.http.post(f"{head}/receivers/team/test")


def some_policies(served: Served) -> Iterator[tuple[str, str, Any]]:
    """The operations on policies."""
    served.table()
    policies = Policies((NamedRule("a", RuleMatch(("lake.**",)), {"icewright.level-2.runs": "4"}),))
    for method, path, body, headers in (
        ("POST", "/policies/preview", policies, {}),
        ("POST", "/policies", NewRevision(policies, "Ada"), {"If-Match": '"0"'}),
        ("GET", "/policies", None, {}),
        ("GET", "/policies/revisions", None, {}),
        ("GET", "/policies/revisions/{number}", None, {}),
    ):
        content = None if body is None else to_json(body)
        response = served.http.request(method, V1 + path.format(number="1"), json=content, headers=headers)
        assert response.is_success, response.text
        yield method, V1 + path, response


def some_tables(served: Served) -> Iterator[tuple[str, str, Any]]:
    """What there is to see of tables, and of what one is made of."""
    uuid = served.table()
    column = served.get(f"/tables/{uuid}/metadata")["columns"][0]["name"]
    for path in ("/tables/totals", "/catalogs", "/namespaces"):
        yield "GET", V1 + path, served.http.get(V1 + path)
    yield "POST", f"{V1}/catalogs/{{catalog}}/check", served.http.post(f"{V1}/catalogs/lake/check")
    for part in ("health", "series", "files", "manifests", "metadata", "histogram", "storage"):
        yield "GET", f"{V1}/tables/{{uuid}}/{part}", served.http.get(f"{V1}/tables/{uuid}/{part}")
    yield "GET", f"{V1}/tables/{{uuid}}/bounds", served.http.get(f"{V1}/tables/{uuid}/bounds?column={column}")


def some_queries(served: Served) -> Iterator[tuple[str, str, Any]]:
    """Queries that come in, and what is recommended and decided."""

    def call(method: str, template: str, body: Any = None, **values: str) -> tuple[str, str, Any]:
        content = None if body is None else to_json(body)
        response = served.http.request(method, V1 + template.format(**values), json=content)
        assert response.is_success, response.text
        return method, V1 + template, response

    uuid, store = served.table(), served.control.recommendations.store
    at = served.clock.now()
    yield call("POST", "/queries", {"queries": [query(1, read_of(EVENTS), at=at)]})
    yield call("POST", "/queries/trino", {"metadata": {}, "statistics": {}, "createTime": "x", "endTime": "x"})
    served.control.queries.count()
    yield call("GET", "/queries")
    yield call("GET", "/tables/{uuid}/queries", uuid=uuid)
    for number, (decided, body) in enumerate((("reject", Reject("no")), ("snooze", Snooze(1)), ("accept", None))):
        said = recommendation(EVENTS, "city")
        one = store.keep(TableId("lake", uuid), f"task-{number}", at, said)
        yield call("GET", "/recommendations/{recommendation_id}", recommendation_id=one)
        yield call("POST", f"/recommendations/{{recommendation_id}}/{decided}", body, recommendation_id=one)
    yield call("GET", "/recommendations/{recommendation_id}/measurements", recommendation_id=one)
    yield call("GET", "/recommendations")
    yield call("GET", "/tables/{uuid}/benefit", uuid=uuid)
    yield call("GET", "/benefit")


def a_life(served: Served) -> Iterator[tuple[str, str, Any]]:
    """Each operation at least once, on a table that goes the whole way."""

    def call(method: str, template: str, body: Any = None, **values: str) -> tuple[str, str, Any]:
        path = V1 + template.format(**values)
        content = None if body is None else to_json(body)
        response = served.http.request(method, path, json=content)
        assert response.is_success, response.text
        return method, V1 + template, response

    uuid = served.table(mode="approve")
    for method, path in (("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics"), ("POST", "/login-codes")):
        yield call(method, path)
    waiting = served.get("/plans/waiting")["items"][0]["plan_id"]
    yield call("POST", "/plans/{plan_id}/refuse", RefusalGiven("not now", "Ada"), plan_id=waiting)
    yield call("GET", "/plans/{plan_id}", plan_id=waiting)
    looked = call("POST", "/tables/{uuid}/look", uuid=uuid)
    yield looked
    plan_id = looked[2].json()["plan"]["plan_id"]
    yield call("GET", "/plans/{plan_id}", plan_id=plan_id)
    yield call("POST", "/tables/{uuid}/plans", RewriteDataFilesRequest(Migration.ALL), uuid=uuid)
    yield call("POST", "/plans/{plan_id}/apply", plan_id=plan_id)
    task_id = served.get("/tasks")["items"][0]["task_id"]
    for change in ("cancel", "retry", "expedite"):
        yield call("POST", f"/tasks/{{task_id}}/{change}", task_id=task_id)
    yield call("POST", "/optimizers", hello())
    claim = call("POST", "/optimizers/{optimizer_id}/claims", ANY_TASK, optimizer_id="optimizer-1")
    yield claim
    yield call("POST", "/optimizers/{optimizer_id}/claims", ANY_TASK, optimizer_id="optimizer-1")
    served.post("/optimizers", hello("optimizer-2"))
    spec = from_json(TaskSpec, claim[2].json())
    beat = Heartbeat(spec.fencing_token, Progress("merging", 0, 1), log_lines("began"))
    yield call("POST", "/tasks/{task_id}/heartbeat", beat, task_id=task_id)
    yield call("POST", "/tables/{uuid}/check", TableCheck(spec.table_id, "x"), uuid=uuid)
    for part in ("", "/attempts", "/attempts/{number}", "/logs"):
        yield call("GET", f"/tasks/{{task_id}}{part}", task_id=task_id, number="1")
    done = report(spec, Committed(carry_out(served, spec)))
    yield call("POST", "/tasks/{task_id}/report", done, task_id=task_id)
    yield call("POST", "/events/commits", {"table_name": str(EVENTS), "snapshot_id": 1})
    served.control.loop.round()
    yield call("POST", "/optimizers/{optimizer_id}/probes", optimizer_id="optimizer-1")
    served.lake.set_properties(EVENTS, {"write.data.path": ROOT})
    served.control.maintainer.look(EVENTS)
    yield call("POST", "/optimizers/{optimizer_id}/probes", optimizer_id="optimizer-1")
    found = ProbeReports((probe_report(spec.table_id, WorkerAccess.PROVED),))
    yield call("POST", "/optimizers/{optimizer_id}/probe-reports", found, optimizer_id="optimizer-1")
    expiry_id = expired(served, uuid)
    undo = call("POST", "/tasks/{task_id}/undo", task_id=expiry_id)
    yield undo
    served.post(f"/plans/{undo[2].json()['plan_id']}/apply")
    yield call("GET", "/tasks/{task_id}", task_id=expiry_id)
    for path in ("/status", "/tables", "/tasks", "/attempts", "/optimizers", "/feed", "/approvals"):
        yield call("GET", path)
    method, path, response = call(
        "GET", "/backlog?resource_group=default&catalog=lake&submitter_id=submitter-1&host=edge-1"
    )
    yield method, path.partition("?")[0], response
    for path in ("", "/summary", "/observations", "/partitions", "/snapshots", "/refs", "/place"):
        yield call("GET", f"/tables/{{uuid}}{path}", uuid=uuid)
    for path in ("/why", "/policy-test", "/plans"):
        yield call("GET", f"/tables/{{uuid}}{path}", uuid=uuid)
    for part in ("", "/attempts", "/attempts/{number}", "/logs"):
        yield call("GET", f"/tasks/{{task_id}}{part}", task_id=task_id, number="1")
