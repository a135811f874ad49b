"""Recommendations over HTTP: who sees and decides which, and what accepting one does to its table."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from icewright.core.errors import OutcomeUnknown
from icewright.model.iceberg.names import TableId
from icewright.model.policy.policies import NamedRule, NewRevision, Policies, RuleMatch
from icewright.model.policy.policy import Enforced
from icewright.model.queries.recommendations import Recommendation
from tests.builders.queries import frequent, leave, recommendation
from tests.builders.served import EVENTS, V1, Served, problem
from tests.cases import each_case
from tests.waiting import at_once


def kept(served: Served, number: int = 1, said: Recommendation | None = None, uuid: str | None = None) -> str:
    """A recommendation as an analysis leaves it; its id."""
    table_id = TableId("lake", uuid or served.table())
    store = served.control.recommendations.store
    return store.keep(
        table_id, f"task-{number:032d}", served.clock.now() + number, said or recommendation(EVENTS, "city")
    )


@pytest.fixture
def found(served: Served) -> str:
    return kept(served)


def properties(served: Served) -> Any:
    return served.lake.load(EVENTS).properties


def test_accepting_sets_the_layout_of_the_table_and_of_no_other(served: Served, found: str) -> None:
    other = EVENTS.__class__("lake", ("db",), "other")
    served.table(other)
    before = served.lake.load(other)
    shown = served.get(f"/recommendations/{found}")
    assert shown["properties"]["icewright.layout"] == "sort(city)"
    assert shown["summary"]["state"] == "open"
    accepted = served.post(f"/recommendations/{found}/accept")
    assert accepted["summary"]["state"] == "accepted"
    assert accepted["summary"]["decision"]["by"]
    assert properties(served)["icewright.layout"] == "sort(city)"
    assert served.lake.load(other) == before
    (event,) = served.control.tables.inbox(9)  # the table is looked at, and planned by its layout
    assert event.event.table_name == EVENTS
    assert served.get("/recommendations", open=True)["items"] == []


def test_accepting_again_changes_nothing(served: Served, found: str) -> None:
    first = served.post(f"/recommendations/{found}/accept")
    metadata = served.lake.load(EVENTS)
    assert served.post(f"/recommendations/{found}/accept") == first
    assert served.lake.load(EVENTS) == metadata
    problem(served.http.post(f"{V1}/recommendations/{found}/reject", json={"why": "late"}), 409, "conflict")


def test_what_is_being_accepted_is_rejected_by_nobody(
    served: Served, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer of the catalog is lost: the property may be set, and only accepting again tells."""
    change = served.lake.change

    def lost(*arguments: Any) -> None:
        change(*arguments)
        raise OutcomeUnknown("the connection broke")

    monkeypatch.setattr(served.lake, "change", lost)
    assert served.http.post(f"{V1}/recommendations/{found}/accept").status_code >= 500
    monkeypatch.undo()
    (listed,) = served.get("/recommendations", open=True)["items"]
    assert listed["state"] == "accepting"
    for other, body in (("reject", {"why": "no"}), ("snooze", {"days": 3})):
        problem(served.http.post(f"{V1}/recommendations/{found}/{other}", json=body), 409, "conflict")
    assert served.post(f"/recommendations/{found}/accept")["summary"]["state"] == "accepted"
    assert properties(served)["icewright.layout"] == "sort(city)"


def lost_answer(served: Served, found: str) -> None:
    """Accept one; the answer of the catalog is lost, and nothing was set."""

    def lost(*_arguments: Any) -> None:
        raise OutcomeUnknown("the connection broke")

    with pytest.MonkeyPatch.context() as away:
        away.setattr(served.lake, "change", lost)
        assert served.http.post(f"{V1}/recommendations/{found}/accept").status_code >= 500
    assert served.get(f"/recommendations/{found}")["summary"]["state"] == "accepting"


def test_what_can_no_longer_be_accepted_is_open_again(served: Served, found: str) -> None:
    """Its table has none of it, and a rule is above it: people may decide."""
    lost_answer(served, found)
    rule = NamedRule("central", RuleMatch(("lake.*.*",)), {"icewright.layout": "none"}, enforce=Enforced.YES)
    served.control.policies.apply(NewRevision(Policies((rule,)), "ann"), 0)
    problem(served.http.post(f"{V1}/recommendations/{found}/accept"), 409, "not-allowed")
    assert served.get(f"/recommendations/{found}")["summary"]["state"] == "open"
    assert served.post(f"/recommendations/{found}/reject", {"why": "ruled out"})["summary"]["state"] == "rejected"


def test_who_accepts_while_another_does_changes_nothing_of_it(
    served: Served, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, said = served.lake.change, list[int]()

    def between(*arguments: Any) -> None:
        said.append(served.http.post(f"{V1}/recommendations/{found}/accept").status_code)
        change(*arguments)

    monkeypatch.setattr(served.lake, "change", between)
    assert served.post(f"/recommendations/{found}/accept")["summary"]["state"] == "accepted"
    assert said == [409]
    assert properties(served)["icewright.layout"] == "sort(city)"


def test_level_1_comes_at_a_size_that_the_partitions_reach(served: Served, found: str) -> None:
    served.post(f"/recommendations/{found}/accept")
    assert properties(served)["icewright.level-1.size-bytes"] == "2000000"  # half of 4 MB in one partition


def test_a_size_of_level_1_that_is_smaller_stays(served: Served, found: str) -> None:
    served.lake.change(served.lake.load(EVENTS), {"icewright.level-1.size-bytes": "1000"})
    served.post(f"/recommendations/{found}/accept")
    assert properties(served)["icewright.level-1.size-bytes"] == "1000"


@each_case("second", ["accept", "reject", "snooze"])
def test_what_is_decided_stays_so(second: str) -> None:
    served = Served()
    found = kept(served)
    served.post(f"/recommendations/{found}/reject", {"why": "the table moves"})
    body = {"reject": {"why": "again"}, "snooze": {"days": 3}}.get(second)
    refused = served.http.post(f"{V1}/recommendations/{found}/{second}", json=body)
    assert "rejected" in problem(refused, 409, "conflict")["detail"]
    assert "icewright.layout" not in properties(served)
    assert served.get(f"/recommendations/{found}")["summary"]["decision"]["why"] == "the table moves"


def test_of_two_who_decide_at_once_one_is_heard(served: Served, found: str) -> None:
    def decide(number: int) -> int:
        body = {"why": f"because {number}"}
        return int(served.http.post(f"{V1}/recommendations/{found}/reject", json=body).status_code)

    said = at_once([partial(decide, number) for number in range(4)])
    assert sorted(said) == [200, 409, 409, 409]


def test_a_snooze_ends(served: Served, found: str) -> None:
    assert served.post(f"/recommendations/{found}/snooze", {"days": 2})["summary"]["state"] == "snoozed"
    served.clock.advance(2 * 86_400_000)
    assert served.get(f"/recommendations/{found}")["summary"]["state"] == "open"
    assert served.post(f"/recommendations/{found}/accept")["summary"]["state"] == "accepted"


def test_a_newer_one_replaces_what_nobody_decided_on(served: Served) -> None:
    uuid = served.table()
    first = kept(served, 1, uuid=uuid)
    second = kept(served, 2, uuid=uuid)
    states = {one["recommendation_id"]: one["state"] for one in served.get("/recommendations")["items"]}
    assert states == {first: "replaced", second: "open"}
    problem(served.http.post(f"{V1}/recommendations/{first}/accept"), 409, "conflict")
    assert "icewright.layout" not in properties(served)
    assert kept(served, 1, uuid=uuid) == first  # said again: nothing changes
    assert served.get(f"/recommendations/{second}")["summary"]["state"] == "open"


def test_to_leave_a_table_as_it_is_is_nothing_to_accept(served: Served) -> None:
    found = kept(served, said=leave(EVENTS))
    refused = served.http.post(f"{V1}/recommendations/{found}/accept")
    assert "leave the table" in problem(refused, 409, "not-allowed")["detail"]
    assert served.get("/recommendations", open=True)["items"] == []
    assert len(served.get("/recommendations")["items"]) == 1


def test_a_column_that_went_since_is_refused_and_nothing_is_set(served: Served) -> None:
    found = kept(served, said=recommendation(EVENTS, "gone"))
    refused = served.http.post(f"{V1}/recommendations/{found}/accept")
    assert "no column gone" in problem(refused, 409, "not-allowed")["detail"]
    assert "icewright.layout" not in properties(served)
    assert served.get(f"/recommendations/{found}")["summary"]["state"] == "open"


def test_a_rule_above_the_table_is_said_and_nothing_is_set(served: Served, found: str) -> None:
    rule = NamedRule("central", RuleMatch(("lake.*.*",)), {"icewright.layout": "none"}, enforce=Enforced.YES)
    served.control.policies.apply(NewRevision(Policies((rule,)), "ann"), 0)
    refused = served.http.post(f"{V1}/recommendations/{found}/accept")
    assert "central" in problem(refused, 409, "not-allowed")["detail"]
    assert "icewright.layout" not in properties(served)
    assert served.get(f"/recommendations/{found}")["summary"]["state"] == "open"


def test_what_is_set_already_is_accepted_again_behind_an_answer_that_was_lost(served: Served, found: str) -> None:
    served.lake.change(served.lake.load(EVENTS), {"icewright.layout": "sort(city)"})
    assert served.post(f"/recommendations/{found}/accept")["summary"]["state"] == "accepted"


def test_a_short_id_is_enough_and_an_unknown_one_is_not_found(served: Served, found: str) -> None:
    assert served.get(f"/recommendations/{found[-8:]}")["summary"]["recommendation_id"] == found
    problem(served.http.get(f"{V1}/recommendations/recommendation-nothing"), 404, "not-found")


@pytest.mark.parametrize("body", [{}, {"why": ""}, {"why": "a\nb"}, {"why": "x" * 1_001}, {"more": 1, "why": "x"}])
def test_a_reason_is_a_line_of_text(served: Served, found: str, body: Any) -> None:
    assert served.http.post(f"{V1}/recommendations/{found}/reject", json=body).status_code in (400, 422)
    assert served.get(f"/recommendations/{found}")["summary"]["state"] == "open"


def layout_health(served: Served) -> Any:
    """The part of the health that is about layouts, by a look just now."""
    served.control.maintainer.look(EVENTS)
    uuid = served.control.tables.record_by_name(EVENTS).table_id.uuid  # type: ignore[union-attr] # it is there
    health = served.get(f"/tables/{uuid}/health")
    (found,) = [part for part in health["health"]["parts"] if part["part"] == "layout"]
    return found, health


def test_health_says_what_frequent_queries_open_and_what_would_do(served: Served) -> None:
    uuid = served.table()
    before, _ = layout_health(served)
    assert (before["score"], before["reason"]["code"]) == (100, "fine")
    found = kept(served, said=frequent(recommendation(EVENTS, "city")), uuid=uuid)
    part, health = layout_health(served)
    text = "the 10 most frequent queries open 297 files; 5 would do with sort(city)"
    assert (part["score"], part["reason"]["code"], part["reason"]["text"]) == (1, "queries-open-files", text)
    assert found in part["action"]["text"]
    assert health["change"]["text"].endswith(f"layout 100 -> 1; {text}")


@each_case("decision", ["accept", "reject", "leave", "old", "none", "no-fewer"])
def test_health_goes_by_files_where_queries_say_nothing_to_be_decided(decision: str) -> None:
    served = Served()
    uuid = served.table()
    said = recommendation(EVENTS, "city") if decision != "leave" else leave(EVENTS)
    then = {"leave": 297.0, "no-fewer": 297.0}.get(decision, 5.0)
    found = kept(served, said=said if decision == "none" else frequent(said, then=then), uuid=uuid)
    if decision in ("accept", "reject"):
        served.post(f"/recommendations/{found}/{decision}", {"why": "no"} if decision == "reject" else None)
    if decision == "old":
        served.clock.advance(8 * 7 * 86_400_000 + 1_000)
    part, _ = layout_health(served)
    assert part["reason"]["code"] == ("not-in-order" if decision == "accept" else "fine")
    is_left = (
        part["reason"]["text"]
        == "the 10 most frequent queries open 297 files; nothing that was tried is worth its cost"
    )
    assert is_left is (decision == "leave")
