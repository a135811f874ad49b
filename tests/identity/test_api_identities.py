"""Tokens as people use them, who approves what, and the audit of what is asked for."""

from typing import Any

import pytest

from icewright.audit.model import GENESIS, AuditEntry, verify
from icewright.core.codec import from_json, to_json
from icewright.core.errors import Unavailable
from icewright.model.access.identity import NewToken, digest
from icewright.model.access.permissions import Role
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.plans.approvals import Approval
from icewright.ports.store import WaitingPlan
from tests.builders.served import EVENTS, V1, Served, TestClient, problem

DAY_MS = 24 * 3_600_000


def given(served: Served, name: str, *roles: Role, scopes: tuple[str, ...] = ("*",), days: int = 1) -> TestClient:
    """A client with a token of its own."""
    answer = served.post("/tokens", NewToken(name, roles, scopes, days * DAY_MS))
    return served.client({"Authorization": f"Bearer {answer['token']}"})


def entries(served: Served) -> list[AuditEntry]:
    return [from_json(AuditEntry, item) for item in served.get("/audit", after=0, limit=1000)["items"]]


def test_a_token_is_shown_once_and_kept_as_its_digest(served: Served) -> None:
    answer = served.post("/tokens", NewToken("ci", (Role.VIEWER,), ("lake.db",), DAY_MS))
    token = answer["token"]
    assert token.startswith("icw_")
    assert len(token) > 40
    assert token.startswith(answer["record"]["hint"])
    assert served.access.identities.token(digest(token)) is not None
    (listed,) = served.get("/tokens")["items"]
    assert token not in str(listed)
    assert token not in str(entries(served))
    client = served.client({"Authorization": f"Bearer {token}"})
    assert client.get(f"{V1}/me").json() == {
        "name": "token:ci",
        "grants": [{"role": "viewer", "scope": {"catalog": "lake", "namespace": ["db"]}}],
        "permissions": ["read"],
        "shown": "",
    }


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_token_that_is_over_opens_nothing(served: Served, how: str) -> None:
    client = given(served, "ci", Role.VIEWER)
    assert client.get(f"{V1}/tables").status_code == 200
    if how == "revoked":
        served.post("/tokens/ci/revoke")
    else:
        served.clock.advance(DAY_MS)
    problem(client.get(f"{V1}/tables"), 401, "unauthenticated")


def test_a_link_gives_no_more_than_the_token_that_it_was_asked_for_with(served: Served) -> None:
    viewer = given(served, "ada", Role.VIEWER, days=30)
    path = viewer.post(f"{V1}/login-codes").json()["path"]
    page = served.client()
    assert page.get(path).status_code == 303
    assert page.get(f"{V1}/me").json()["name"] == "token:ada"
    problem(page.get(f"{V1}/tokens"), 403, "forbidden")
    served.post("/tokens/ada/revoke")
    problem(page.get(f"{V1}/me"), 401, "unauthenticated")


def expiry(client: TestClient, uuid: str) -> str:
    """The id of a plan that somebody asks for, by which snapshots would expire."""
    body = to_json(ExpireSnapshotsRequest("PT0S", 1))
    return str(client.post(f"{V1}/tables/{uuid}/plans", json=body).json()["plan_id"])


def wait(served: Served, plan_id: str) -> None:
    """Let a plan wait for a person."""
    plan = served.control.tables.plan(plan_id)
    served.control.tables.wait(
        WaitingPlan(plan_id, plan.table_id, plan.table_name, ActionKind.EXPIRE_SNAPSHOTS, plan.reason, 0)
    )


def test_nobody_approves_what_they_asked_for_themselves(served: Served) -> None:
    uuid = served.table(mode="approve")
    both = given(served, "ada", Role.POLICY_ADMIN, Role.APPROVER)
    other = given(served, "bob", Role.APPROVER)
    plan_id = expiry(both, uuid)
    wait(served, plan_id)
    approval = {"approved_by": "Somebody Else"}
    refused = problem(both.post(f"{V1}/plans/{plan_id}/approve", json=approval), 403, "forbidden")
    nobody = problem(served.http.get(f"{V1}/plans/{plan_id}/approval"), 404, "not-found")
    assert "is not approved" in nobody["detail"]
    assert "token:ada asked for plan" in refused["detail"]
    assert other.post(f"{V1}/plans/{plan_id}/approve", json=approval).status_code == 202
    (approved,) = [entry for entry in entries(served) if entry.action == "plan.approved"]
    kept = {"approved_by": "token:bob", "plan_id": plan_id, "kind": "expire_snapshots"}
    assert approved.detail == kept, "not what they call themselves"
    found = served.get(f"/plans/{plan_id}/approval")
    assert (found["plan_id"], found["table"], found["approved_by"]) == (plan_id, "lake.db.events", "token:bob")
    assert (found["approved_at"], found["plan_hash"]) == (served.clock.now(), approved.resource.removeprefix("plan "))
    assert found["because"] == to_json(served.control.tables.plan(plan_id).reason), "why it waited"
    assert served.get("/approvals") == {"items": [found], "next_cursor": None}
    assert served.get("/approvals", table=uuid, catalog="lake")["items"] == [found]
    assert given(served, "eve", Role.VIEWER, scopes=("lake.other",)).get(f"{V1}/approvals").json()["items"] == []


def test_approvals_come_in_pages_the_latest_first(served: Served) -> None:
    for number in range(3):
        served.control.deletions.approve(Approval(f"hash-{number}", "Ada", number))
    first = served.get("/approvals", limit=2)
    assert [one["plan_hash"] for one in first["items"]] == ["hash-2", "hash-1"]
    second = served.get("/approvals", limit=2, cursor=first["next_cursor"])
    assert ([one["plan_hash"] for one in second["items"]], second["next_cursor"]) == (["hash-0"], None)


def test_the_owner_approves_nothing_of_their_own_by_another_name_and_never_as_a_token(served: Served) -> None:
    uuid = served.table(mode="approve")
    own, other = expiry(served.http, uuid), expiry(given(served, "ada", Role.POLICY_ADMIN), uuid)
    wait(served, own)
    for name in ("Ada", "owner"):
        refused = problem(served.http.post(f"{V1}/plans/{own}/approve", json={"approved_by": name}), 403, "forbidden")
        assert "owner asked for plan" in refused["detail"]
    wait(served, other)
    for name in ("token:ada", " token:bob", " ", ""):
        answer = served.http.post(f"{V1}/plans/{other}/approve", json={"approved_by": name})
        problem(answer, 400, "invalid-message")
    assert served.http.post(f"{V1}/plans/{other}/approve", json={"approved_by": "Ada"}).status_code == 202
    (approved,) = [entry for entry in entries(served) if entry.action == "plan.approved"]
    assert approved.detail["approved_by"] == "owner (Ada)"


def test_t2_an_approver_queues_nothing_that_waits_for_no_approval(served: Served) -> None:
    uuid = served.table(mode="auto")
    operator, approver = given(served, "ada", Role.OPERATOR), given(served, "bob", Role.APPROVER)
    rewrite = operator.post(f"{V1}/tables/{uuid}/look").json()["plan"]["plan_id"]
    first, second = expiry(operator, uuid), expiry(operator, uuid)
    wait(served, second)  # of the same table and kind as the first one
    for plan_id in (rewrite, first):
        problem(approver.post(f"{V1}/plans/{plan_id}/apply"), 403, "forbidden")
        refused = problem(approver.post(f"{V1}/plans/{plan_id}/approve", json={"approved_by": "x"}), 409, "not-allowed")
        assert ("needs no approval" in refused["detail"], "icewright apply" in refused["hint"]) == (True, True)
    assert {first, second}.isdisjoint(task["plan_id"] for task in served.get("/tasks")["items"])
    assert not [entry for entry in entries(served) if entry.action == "plan.approved"]
    assert approver.post(f"{V1}/plans/{second}/approve", json={"approved_by": "x"}).status_code == 202


class TestModeApprove:
    """Approve approves: a plan of a table in mode approve waits in the same list as all others."""

    def test_the_plan_waits_until_it_is_approved_and_that_queues_it(self, served: Served) -> None:
        served.table(mode="approve")
        (waiting,) = served.get("/plans/waiting")["items"]
        assert (waiting["kind"], waiting["reason"]["code"]) == ("rewrite_data_files", "mode-approve")
        plan_id = waiting["plan_id"]
        assert served.get(f"/plans/{plan_id}")["to_approve"]["code"] == "mode-approve"
        approver = given(served, "bob", Role.APPROVER)
        assert approver.post(f"{V1}/plans/{plan_id}/approve", json={"approved_by": "x"}).status_code == 202
        (task,) = served.get("/tasks")["items"]
        assert (task["plan_id"], task["state"]) == (plan_id, "queued")
        assert served.get("/plans/waiting")["items"] == []
        served.control.maintainer.look(EVENTS, plan_anew=True)
        assert served.get("/plans/waiting")["items"] == [], "none waits beside a task that has not ended"

    def test_a_newer_plan_takes_its_place_and_is_no_news(self, served: Served) -> None:
        served.table(mode="approve")
        (first,) = served.get("/plans/waiting")["items"]
        served.append(EVENTS, "more")
        served.control.maintainer.look(EVENTS)
        (second,) = served.get("/plans/waiting")["items"]
        assert first["plan_id"] != second["plan_id"]
        told = [fact for fact in served.get("/feed", limit=1000)["items"] if fact["kind"] == "waits-for-approval"]
        assert [fact["plan_id"] for fact in told] == [first["plan_id"]]

    @pytest.mark.parametrize("mode", ["observe", "auto"])
    def test_in_another_mode_it_waits_no_more(self, served: Served, mode: str) -> None:
        served.table(mode="approve")
        assert served.get("/plans/waiting")["items"]
        served.lake.set_properties(EVENTS, {"icewright.mode": mode})
        served.control.maintainer.look(EVENTS)
        assert served.get("/plans/waiting")["items"] == []

    def test_what_somebody_asked_for_is_applied_and_waits_for_nobody(self, served: Served) -> None:
        uuid = served.table(mode="approve")
        asked = served.get(f"/plans/{expiry(served.http, uuid)}")
        assert asked["to_approve"] is None
        assert len(served.get("/plans/waiting")["items"]) == 1


def test_t12_every_change_that_is_asked_for_is_in_the_audit_with_who_asked(served: Served) -> None:
    uuid = served.table(mode="approve")
    ada = given(served, "ada", Role.OPERATOR)
    begun = len(entries(served))
    plan_id = ada.post(f"{V1}/tables/{uuid}/look").json()["plan"]["plan_id"]
    task_id = ada.post(f"{V1}/plans/{plan_id}/apply").json()["task_id"]
    ada.post(f"{V1}/tasks/{task_id}/cancel")
    ada.get(f"{V1}/tasks/{task_id}")
    problem(ada.get(f"{V1}/tokens"), 403, "forbidden")
    found = entries(served)
    assert [(one.principal, one.action, one.resource, one.detail.get("of")) for one in found[begun:]] == [
        ("token:ada", "api", "POST /tables/{uuid}/look", f"uuid={uuid}"),
        ("token:ada", "api", "POST /plans/{plan_id}/apply", f"plan_id={plan_id}"),
        ("token:ada", "task.queued", f"task {task_id}", None),
        ("token:ada", "api", "POST /tasks/{task_id}/cancel", f"task_id={task_id}"),
        ("token:ada", "task.cancelled", f"task {task_id}", None),
    ]
    assert verify(found, GENESIS, [served.audit.head()]).broken_at is None


def test_t12_nothing_is_done_that_cannot_be_written_down(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    uuid = served.table(mode="approve")
    plan_id = served.post(f"/tables/{uuid}/look")["plan"]["plan_id"]

    def full(*_: Any) -> None:
        raise Unavailable("the disk is full")

    monkeypatch.setattr("icewright.audit.sql.acting", full)
    problem(served.http.post(f"{V1}/plans/{plan_id}/apply"), 503, "unavailable")
    assert served.get("/tasks")["items"] == []


def test_t13_whoever_may_only_read_does_not_fill_the_audit(served: Served) -> None:
    viewer = given(served, "ada", Role.VIEWER)
    begun = len(entries(served))
    for _ in range(5):
        assert viewer.post(f"{V1}/logout").status_code == 200
        path = viewer.post(f"{V1}/login-codes").json()["path"]
    assert len(entries(served)) == begun
    assert served.client().get(path).status_code == 303
    assert [entry.action for entry in entries(served)[begun:]] == ["session.opened"]


def test_the_audit_is_read_from_either_end(served: Served) -> None:
    for name in ("a", "b", "c"):
        served.post("/tokens", NewToken(name, (Role.VIEWER,), ("*",)))
    numbers = [item["number"] for item in served.get("/audit", limit=4)["items"]]
    assert numbers == [6, 5, 4, 3]
    cursor = served.get("/audit", limit=4)["next_cursor"]
    assert [item["number"] for item in served.get("/audit", limit=4, cursor=cursor)["items"]] == [2, 1]
    assert [item["number"] for item in served.get("/audit", limit=2, after=1)["items"]] == [2, 3]
    assert served.get("/audit/head")["head"]["number"] == 6
