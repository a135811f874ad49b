"""Policies over the API: nobody applies what they have not seen the difference of."""

from __future__ import annotations

import pytest

from icewright.core.codec import to_json
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policies import NamedRule, NewRevision, Policies, RuleMatch
from tests.builders.served import EVENTS, HOUR_MS, V1, Served, problem

MODE = "icewright.mode"
OTHER = TableName("lake", ("db",), "other")


def policies(mode: str = "auto", pattern: str = "lake.db.events", name: str = "a") -> Policies:
    return Policies((NamedRule(name, RuleMatch((pattern,)), {MODE: mode}),))


def apply(served: Served, wanted: Policies, revision: int) -> None:
    new = to_json(NewRevision(wanted, "alice", "ticket 7"))
    response = served.http.post(f"{V1}/policies", json=new, headers={"If-Match": f'"{revision}"'})
    assert (response.status_code, response.headers["etag"]) == (201, f'"{revision + 1}"')


@pytest.fixture
def served() -> Served:
    served = Served()
    for name in (EVENTS, OTHER):
        served.lake.create(name)
        served.append(name, "f")
        served.control.maintainer.look(name)
    return served


def test_before_anything_is_applied_there_is_revision_0(served: Served) -> None:
    response = served.http.get(f"{V1}/policies")
    assert response.headers["etag"] == '"0"'
    assert response.json()["policies"] == {"rules": [], "groups": []}
    assert served.get("/policies/revisions") == {"items": [], "next_cursor": None}


def test_what_would_change_is_told_and_nothing_changes(served: Served) -> None:
    found = served.post("/policies/preview", policies())
    assert (found["revision"], found["tables_known"], found["tables_changed"]) == (0, 2, 1)
    assert [table["table"] for table in found["tables"]] == ["lake.db.events"]
    assert [warning["code"] for warning in found["warnings"]] == ["becomes-auto"]
    assert served.get("/policies")["number"] == 0


def test_revisions_are_kept_and_listed(served: Served) -> None:
    apply(served, policies(), 0)
    apply(served, policies("approve"), 1)
    assert served.get("/policies")["policies"] == to_json(policies("approve"))
    assert served.get("/policies/revisions/1")["policies"] == to_json(policies())
    first = served.get("/policies/revisions", limit=1)
    assert [one["number"] for one in first["items"]] == [2]
    assert first["items"][0]["note"] == "ticket 7"
    (second,) = served.get("/policies/revisions", limit=1, cursor=first["next_cursor"])["items"]
    assert (second["number"], second["rules"], second["applied_by"]) == (1, 1, "owner (alice)")


def test_x3_a_table_is_planned_by_what_is_applied_and_looked_at_at_once(served: Served) -> None:
    record = served.control.tables.record_by_name
    served.clock.advance(HOUR_MS)
    before = {name: record(name).next_look_at for name in (EVENTS, OTHER)}  # type: ignore[union-attr]  # both are known
    apply(served, policies(), 0)
    after = {name: record(name).next_look_at for name in (EVENTS, OTHER)}  # type: ignore[union-attr]  # see above
    assert after == {EVENTS: min(before[EVENTS], served.clock.now()), OTHER: before[OTHER]}
    looked = served.control.maintainer.look(EVENTS)
    assert (looked.is_new, looked.plan.mode) == (True, "auto")
    assert not served.control.maintainer.look(EVENTS).is_new
    listed = {item["name"]: item["mode"] for item in served.get("/tables")["items"]}
    assert listed == {"lake.db.events": "auto", "lake.db.other": "observe"}


def test_x3_nobody_applies_over_what_they_have_not_seen(served: Served) -> None:
    apply(served, policies(), 0)
    new = to_json(NewRevision(policies("observe"), "bob"))
    response = served.http.post(f"{V1}/policies", json=new, headers={"If-Match": '"0"'})
    problem(response, 412, "conflict")
    for headers in ({}, {"If-Match": "*"}, {"If-Match": "x"}, {"If-Match": '"-1"'}, {"If-Match": '"' + "9" * 30 + '"'}):
        problem(served.http.post(f"{V1}/policies", json=new, headers=headers), 428, "invalid-request")
    assert served.get("/policies")["number"] == 1


@pytest.mark.parametrize("wanted", [policies("often"), policies(pattern="lake.d?.x"), policies(name="a b")])
def test_what_cannot_be_used_is_refused_before_it_is_kept(served: Served, wanted: Policies) -> None:
    problem(served.http.post(f"{V1}/policies/preview", json=to_json(wanted)), 422, "invalid-configuration")
    new = to_json(NewRevision(wanted, "bob"))
    response = served.http.post(f"{V1}/policies", json=new, headers={"If-Match": '"0"'})
    problem(response, 422, "invalid-configuration")
    assert served.get("/policies")["number"] == 0


@pytest.mark.parametrize(
    ("by", "note", "status", "code"),
    [
        ("", "", 400, "invalid-message"),
        ("x" * 1_001, "", 422, "invalid-configuration"),
        ("x", "y" * 1_001, 422, "invalid-configuration"),
    ],
)
def test_who_applies_has_a_name_that_can_be_kept(served: Served, by: str, note: str, status: int, code: str) -> None:
    new = to_json(NewRevision(policies(), by, note))
    response = served.http.post(f"{V1}/policies", json=new, headers={"If-Match": '"0"'})
    problem(response, status, code)


def test_other_revisions_are_not_found(served: Served) -> None:
    problem(served.http.get(f"{V1}/policies/revisions/7"), 404, "not-found")
    problem(served.http.get(f"{V1}/policies/revisions/x"), 400, "invalid-request")
