"""Refusing a plan that waits for a person: who may, what comes of it, and how long it holds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from icewright.model.access.permissions import Role
from icewright.model.plans.approvals import REFUSED_MS
from tests.builders.served import EVENTS, V1, Served, TestClient, problem
from tests.identity.test_api_identities import entries, expiry, given, wait


def waiting(served: Served) -> list[str]:
    return [one["plan_id"] for one in served.get("/plans/waiting")["items"]]


def waiting_plan(served: Served) -> str:
    """A table, whose plan waits for a person."""
    served.table(mode="approve")
    (plan_id,) = waiting(served)
    return plan_id


def refused_plan(served: Served) -> str:
    """Such a plan, which the owner has refused."""
    plan_id = waiting_plan(served)
    assert refuse(served.http, plan_id).status_code == 200
    return plan_id


def refuse(client: TestClient, plan_id: str, why: str = "the audit reads these files until Friday") -> Any:
    return client.post(f"{V1}/plans/{plan_id}/refuse", json={"why": why, "refused_by": "Ada"})


def rewrite(served: Served, uuid: str) -> dict[str, Any]:
    """What `why` says of the table's data files."""
    kinds = served.get(f"/tables/{uuid}/why")["kinds"]
    return next(one for one in kinds if one["kind"] == "rewrite_data_files")


def test_a_refused_plan_waits_no_more_and_everybody_is_told_who_refused_it_and_why(served: Served) -> None:
    uuid = served.table(mode="approve")
    (plan_id,) = waiting(served)
    plan = served.get(f"/plans/{plan_id}")
    assert (plan["waits"], plan["refused"]) == (True, None)
    approver = given(served, "bob", Role.APPROVER)
    answer = refuse(approver, plan_id)
    assert answer.status_code == 200, answer.text
    view = answer.json()
    assert (view["refused_by"], view["why"]) == ("token:bob", "the audit reads these files until Friday")
    assert (view["table"], view["kind"], view["refused_at"]) == (
        "lake.db.events",
        "rewrite_data_files",
        served.clock.now(),
    )
    assert view["asked_again_at"] == served.clock.now() + REFUSED_MS
    plan = served.get(f"/plans/{plan_id}")
    assert (plan["waits"], plan["refused"]) == (False, view)
    assert waiting(served) == []
    said = rewrite(served, uuid)
    assert (said["stance"], said["plan_id"], said["expected"]["at"]) == ("kept-back", plan_id, view["asked_again_at"])
    assert f"token:bob refused plan {plan_id}: the audit reads these files until Friday" in " ".join(said["says"])
    (told,) = [fact for fact in served.get("/feed", limit=1000)["items"] if fact["kind"] == "refused"]
    assert (told["plan_id"], told["table"], told["reason"]["figures"]["refused_by"]) == (
        plan_id,
        "lake.db.events",
        "token:bob",
    )
    (entry,) = [entry for entry in entries(served) if entry.action == "plan.refused"]
    assert entry.detail == {
        "refused_by": "token:bob",
        "plan_id": plan_id,
        "kind": "rewrite_data_files",
        "why": "the audit reads these files until Friday",
    }


def test_the_health_does_not_ask_to_approve_what_was_refused(served: Served) -> None:
    uuid = served.table(mode="approve")

    def upkeep() -> tuple[str, str]:
        parts = served.get(f"/tables/{uuid}/health")["health"]["parts"]
        (part,) = [one for one in parts if one["part"] == "upkeep"]
        return part["reason"]["text"], part["action"]["text"]

    assert upkeep()[1] == "Approve the plan"
    (plan_id,) = waiting(served)
    refuse(served.http, plan_id)
    served.control.loop.round()  # the refusal has the table looked at
    said, asks = upkeep()
    assert said == f"owner (Ada) refused plan {plan_id}: the audit reads these files until Friday"
    assert asks == "Change the policy, or review the plan that follows the next commit"
    served.append(EVENTS, "more")
    served.control.maintainer.look(EVENTS)
    assert upkeep()[1] == "Approve the plan"


def test_nobody_approves_or_applies_what_was_refused_and_the_first_refusal_stays(served: Served) -> None:
    plan_id = waiting_plan(served)
    first = refuse(served.http, plan_id).json()
    for path, body in (("approve", {"approved_by": "Eve"}), ("apply", None)):
        refused = problem(served.http.post(f"{V1}/plans/{plan_id}/{path}", json=body), 409, "conflict")
        assert "was refused by owner (Ada)" in refused["detail"]
    assert refuse(given(served, "bob", Role.APPROVER), plan_id, "another reason").json() == first
    problem(served.http.get(f"{V1}/plans/{plan_id}/approval"), 404, "not-found")
    assert served.get("/tasks")["items"] == []


def test_what_was_approved_or_waits_for_nobody_cannot_be_refused(served: Served) -> None:
    uuid = served.table(mode="approve")
    (plan_id,) = waiting(served)
    served.post(f"/plans/{plan_id}/approve", {"approved_by": "Eve"})
    refused = problem(refuse(served.http, plan_id), 409, "conflict")
    assert "was approved by owner (Eve)" in refused["detail"]
    asked = problem(refuse(served.http, expiry(served.http, uuid)), 409, "conflict")
    assert "does not wait" in asked["detail"]
    problem(refuse(served.http, "plan-of-nobody"), 404, "not-found")
    assert len(served.get("/tasks")["items"]) == 1
    assert not [entry for entry in entries(served) if entry.action == "plan.refused"]


def test_what_was_approved_and_cancelled_waits_again_and_can_be_refused(served: Served) -> None:
    plan_id = waiting_plan(served)
    task_id = served.post(f"/plans/{plan_id}/approve", {"approved_by": "Eve"})["task_id"]
    served.post(f"/tasks/{task_id}/cancel")
    served.control.maintainer.look(EVENTS)
    assert waiting(served) == [plan_id]
    assert refuse(served.http, plan_id).status_code == 200
    assert waiting(served) == []
    refused = problem(served.http.post(f"{V1}/plans/{plan_id}/approve", json={"approved_by": "Eve"}), 409, "conflict")
    assert "was refused by owner (Ada)" in refused["detail"]
    refused = problem(served.http.post(f"{V1}/tasks/{task_id}/retry"), 409, "conflict")
    assert "was refused by owner (Ada)" in refused["detail"], "nor does its task go again"
    assert [task["state"] for task in served.get("/tasks")["items"]] == ["cancelled"]


def test_of_two_who_decide_at_once_one_wins_and_the_other_is_told(served: Served) -> None:
    plan_id = waiting_plan(served)
    ada, bob = given(served, "ada", Role.APPROVER), given(served, "bob", Role.APPROVER)
    with ThreadPoolExecutor(2) as pool:
        approved = pool.submit(ada.post, f"{V1}/plans/{plan_id}/approve", json={"approved_by": "Ada"})
        refused = pool.submit(refuse, bob, plan_id)
        answers = approved.result(), refused.result()
    assert [answer.status_code for answer in answers] in ([202, 409], [409, 200])
    is_refused = answers[1].status_code == 200
    assert len(served.get("/tasks")["items"]) == (0 if is_refused else 1)
    acts = [entry.action for entry in entries(served) if entry.action in ("plan.approved", "plan.refused")]
    assert acts == ["plan.refused" if is_refused else "plan.approved"]


@pytest.mark.parametrize(
    ("role", "scope", "status"),
    [
        (Role.VIEWER, "*", 403),
        (Role.OPERATOR, "*", 403),
        (Role.POLICY_ADMIN, "*", 403),
        (Role.PLATFORM_ADMIN, "*", 403),
        (Role.APPROVER, "lake.other", 404),
        (Role.APPROVER, "other", 404),
        (Role.APPROVER, "lake.db", 200),
    ],
)
def test_those_who_may_approve_may_refuse_and_nobody_else(served: Served, role: Role, scope: str, status: int) -> None:
    plan_id = waiting_plan(served)
    answer = refuse(given(served, "ada", role, scopes=(scope,)), plan_id)
    assert answer.status_code == status, answer.text
    assert waiting(served) == ([] if status == 200 else [plan_id])


def test_whoever_asked_for_a_plan_may_refuse_it_though_not_approve_it(served: Served) -> None:
    uuid = served.table(mode="approve")
    both = given(served, "ada", Role.POLICY_ADMIN, Role.APPROVER)
    plan_id = expiry(both, uuid)
    wait(served, plan_id)
    assert refuse(both, plan_id).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"why": " ", "refused_by": "Ada"},
        {"why": "x" * 1_001, "refused_by": "Ada"},
        {"why": "two\nlines", "refused_by": "Ada"},
        {"why": "no", "refused_by": "token:ada"},
        {"why": "no", "refused_by": ""},
        {"why": "no"},
        {"refused_by": "Ada"},
    ],
)
def test_a_refusal_has_a_reason_and_a_name(served: Served, body: dict[str, str]) -> None:
    plan_id = waiting_plan(served)
    problem(served.http.post(f"{V1}/plans/{plan_id}/refuse", json=body), 400, "invalid-message")
    assert waiting(served) == [plan_id]


def test_a_plan_of_a_table_that_is_gone_is_refused_to_nobody_s_harm(served: Served) -> None:
    plan_id = waiting_plan(served)
    served.lake.drop(EVENTS)
    with pytest.raises(Exception, match="events"):
        served.control.maintainer.look(EVENTS)
    problem(refuse(served.http, plan_id), 409, "conflict")
    assert waiting(served) == []


class TestHowLongItHolds:
    """Of work on data files: until the table or its policy changes, and for a week at most."""

    def test_the_same_table_is_planned_again_and_nobody_is_asked(self, served: Served) -> None:
        uuid = served.table(mode="approve")
        (plan_id,) = waiting(served)
        refuse(served.http, plan_id)
        assert served.control.maintainer.look(EVENTS, plan_anew=True).plan.plan_id != plan_id
        assert waiting(served) == []
        assert rewrite(served, uuid)["plan_id"] == plan_id

    def test_it_holds_by_a_clock_that_is_behind_the_one_of_who_refused(self, served: Served) -> None:
        refused_plan(served)
        served.clock.advance(-60_000)
        served.control.maintainer.look(EVENTS, plan_anew=True)
        assert waiting(served) == []

    def test_a_commit_has_a_person_asked_again(self, served: Served) -> None:
        uuid = served.table(mode="approve")
        (plan_id,) = waiting(served)
        refuse(served.http, plan_id)
        served.append(EVENTS, "more")
        served.control.maintainer.look(EVENTS)
        (other,) = waiting(served)
        assert other != plan_id
        assert rewrite(served, uuid)["stance"] == "for-a-person"
        told = [fact["plan_id"] for fact in served.get("/feed", limit=1000)["items"] if "waits" in fact["kind"]]
        assert told == [plan_id, other]
        refused = problem(served.http.post(f"{V1}/plans/{plan_id}/approve", json={"approved_by": "E"}), 409, "conflict")
        assert "was refused" in refused["detail"], "whatever waits by now"

    def test_a_table_whose_owner_lets_it_go_by_itself_is_worked_on(self, served: Served) -> None:
        plan_id = refused_plan(served)
        served.lake.set_properties(EVENTS, {"icewright.mode": "auto"})
        served.control.maintainer.look(EVENTS)
        (task,) = served.get("/tasks")["items"]
        assert task["plan_id"] != plan_id

    def test_a_change_of_the_policy_has_a_person_asked_again(self, served: Served) -> None:
        plan_id = refused_plan(served)
        served.lake.set_properties(EVENTS, {"write.target-file-size-bytes": str(256 << 20)})
        served.control.maintainer.look(EVENTS)
        (other,) = waiting(served)
        assert other != plan_id

    def test_after_a_week_the_plan_waits_again_and_may_be_approved(self, served: Served) -> None:
        refused_plan(served)
        served.clock.advance(REFUSED_MS - 1)
        served.control.maintainer.look(EVENTS)
        assert waiting(served) == []
        served.clock.advance(1)
        served.control.maintainer.look(EVENTS)
        (again,) = waiting(served)
        answer = served.http.post(f"{V1}/plans/{again}/approve", json={"approved_by": "Eve"})
        assert answer.status_code == 202, answer.text
