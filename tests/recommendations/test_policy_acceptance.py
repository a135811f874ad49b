"""Recommendations that a policy accepts: what clears its bar, once, and nothing that a person decided on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icewright.audit.model import POLICY
from icewright.core.errors import OutcomeUnknown, Unavailable
from icewright.model.iceberg.layouts import LayoutExpression
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.predicates.comparisons import Literal, LiteralKind, Operator
from icewright.model.iceberg.predicates.cuts import Cut, CutTree
from icewright.model.queries.recommendations import Interval, LayoutChange, Recommendation, Verdict
from icewright.model.work.breaker import DEFAULT_THRESHOLDS
from icewright.recommendations.ledger import STEP_MS, unless_reverted
from icewright.recommendations.policy_acceptance import RETRY_MS
from tests.builders.queries import leave, measurement, recommendation
from tests.builders.served import EVENTS, V1, Served
from tests.cases import each_case
from tests.waiting import at_once

ON = {"icewright.accept-recommendations.enabled": "true"}
RATIO = "icewright.accept-recommendations.min-saved-bytes-ratio"
SECONDS = "icewright.accept-recommendations.min-saved-cpu-seconds-per-day"
DAY_MS = 24 * 3_600_000


def served_with(properties: dict[str, str | None] | None = None, *, mode: str = "auto") -> Served:
    """A table that lets its policy accept, unless ``properties`` say otherwise."""
    served = Served()
    served.table(mode=mode)
    served.lake.change(served.lake.load(EVENTS), {**ON, **(properties or {})})
    return served


def kept(served: Served, number: int = 1, said: Recommendation | None = None) -> str:
    record = served.control.tables.record_by_name(EVENTS)
    assert record is not None
    store, at = served.control.recommendations.store, served.clock.now() + number
    return store.keep(record.table_id, f"task-{number:032d}", at, said or recommendation(EVENTS, "city"))


def look(served: Served) -> None:
    served.control.maintainer.look(EVENTS)


def summary(served: Served, found: str) -> Any:
    return served.get(f"/recommendations/{found}")["summary"]


def layout(served: Served) -> str | None:
    return served.lake.load(EVENTS).properties.get("icewright.layout")


def saving(bytes_high: float = 30.0, saved_s: float = 10.0) -> Recommendation:
    """What reads 1,000 bytes now, and so many at most then."""
    found = recommendation(EVENTS, "city", saved_s=saved_s)
    assert found.chosen is not None
    assert found.chosen.test is not None
    test = replace(found.chosen.test, bytes_read=Interval(10.0, 20.0, bytes_high))
    return replace(found, chosen=replace(found.chosen, test=test))


def test_the_policy_accepts_what_clears_the_bar_and_the_audit_names_it() -> None:
    served = served_with()
    found = kept(served)
    look(served)
    said = summary(served, found)
    assert (said["state"], said["decision"]["by"]) == ("accepted", POLICY)
    assert layout(served) == "sort(city)"
    (entry,) = [one for one in served.audit.entries(limit=100, after=0) if one.action == "recommendation.accepted"]
    assert (entry.principal, entry.resource) == (POLICY, f"recommendation {found}")
    assert served.control.tables.inbox(9)  # the table is looked at, and planned by its layout
    look(served)
    assert len([one for one in served.audit.entries(limit=100, after=0) if one.principal == POLICY]) == 1


@each_case(
    ("properties", "mode"),
    [
        ({"icewright.accept-recommendations.enabled": "false"}, "auto"),
        ({}, "approve"),
        ({}, "observe"),
        ({"icewright.level-2.runs": "many"}, "auto"),
    ],
)
def test_it_is_off_by_default_and_only_in_mode_auto(properties: dict[str, str | None], mode: str) -> None:
    served = served_with(properties, mode=mode)
    found = kept(served)
    look(served)
    assert (summary(served, found)["state"], layout(served)) == ("open", None)


def test_without_the_setting_nothing_is_accepted() -> None:
    served = Served()
    served.table()
    found = kept(served)
    look(served)
    assert (summary(served, found)["state"], layout(served)) == ("open", None)


@each_case(
    ("said", "properties", "state"),
    [
        (saving(bytes_high=700.0), {}, "accepted"),
        (saving(bytes_high=701.0), {}, "open"),
        (saving(bytes_high=900.0), {RATIO: "0.1"}, "accepted"),
        (saving(saved_s=10.0), {SECONDS: "10"}, "accepted"),
        (saving(saved_s=9.99), {SECONDS: "10"}, "open"),
        (saving(bytes_high=float("nan")), {}, "open"),
        (replace(saving(), chosen=None), {}, "open"),
        (leave(EVENTS), {}, "open"),
    ],
)
def test_the_bar_is_the_unfavorable_end_of_the_interval(
    said: Recommendation, properties: dict[str, str | None], state: str
) -> None:
    served = served_with(properties)
    found = kept(served, said=said)
    look(served)
    kept_one = served.control.recommendations.store.get(found)
    assert kept_one.state == state
    assert (layout(served) is not None) is (state == "accepted")


@each_case(("decision", "body"), [("reject", {"why": "no"}), ("snooze", {"days": 1})])
def test_what_a_person_rejected_or_snoozed_stays_so_also_when_it_is_recommended_again(
    decision: str, body: dict[str, Any]
) -> None:
    served = served_with()
    first = kept(served)
    served.post(f"/recommendations/{first}/{decision}", body)
    served.clock.advance(2 * DAY_MS)  # the snooze has ended
    look(served)
    assert layout(served) is None
    again = kept(served, 2)
    look(served)
    assert (summary(served, again)["state"], layout(served)) == ("open", None)
    other = kept(served, 3, recommendation(EVENTS, "id"))
    look(served)
    assert summary(served, other)["state"] == "accepted"


def test_what_was_accepted_and_set_back_is_not_accepted_again() -> None:
    served = served_with()
    kept(served)
    look(served)
    metadata = served.lake.load(EVENTS)
    served.lake.change(metadata, {"icewright.layout": None})
    served.clock.advance(7 * DAY_MS)
    again = kept(served, 2)
    look(served)
    assert (summary(served, again)["state"], layout(served)) == ("open", None)


def test_a_layout_that_the_owner_set_is_not_replaced() -> None:
    served = served_with({"icewright.layout": "sort(id)"})
    found = kept(served)
    look(served)
    assert (summary(served, found)["state"], layout(served)) == ("open", "sort(id)")


def measured(served: Served, of: str, after: int) -> None:
    """A task measured it: queries open so many files of 40, and 4 before."""
    record = served.control.tables.record_by_name(EVENTS)
    assert record is not None
    found = measurement(record.table_id, of, f"task-{50:032d}", served.clock.now(), after=after)
    served.control.recommendations.store.measurements.keep(found)


def test_a_layout_that_was_accepted_gives_way_to_a_better_one_once_it_is_measured() -> None:
    served = served_with()
    first = kept(served)
    look(served)
    served.clock.advance(7 * DAY_MS)
    early = kept(served, 2, recommendation(EVENTS, "id"))
    look(served)
    assert (summary(served, early)["state"], layout(served)) == ("open", "sort(city)")
    measured(served, first, after=2)
    served.clock.advance(7 * DAY_MS)
    better = kept(served, 3, recommendation(EVENTS, "id"))
    look(served)
    assert (summary(served, better)["state"], layout(served)) == ("accepted", "sort(id)")


def test_a_layout_that_its_owner_removed_keeps_no_other_waiting() -> None:
    served = served_with()
    kept(served)
    look(served)
    back = {"icewright.layout": None, "icewright.level-1.size-bytes": None}
    served.lake.change(served.lake.load(EVENTS), back)
    served.clock.advance(7 * DAY_MS)
    other = kept(served, 2, recommendation(EVENTS, "id"))
    look(served)
    assert summary(served, other)["state"] == "accepted"


def cutting(column: str, *values: str) -> Recommendation:
    """Cuts of a column at some values."""
    cuts = [Cut(0, Operator.LT, Literal(LiteralKind.STRING, value)) for value in values]
    tree = CutTree(((column,),), (*(one for cut in cuts for one in (cut, None)), None))
    found = recommendation(EVENTS, column)
    assert found.chosen is not None
    candidate = LayoutChange(LayoutExpression.by_cuts(tree))
    return replace(found, candidate=candidate, chosen=replace(found.chosen, candidate=candidate))


def test_cuts_that_were_taken_back_are_not_accepted_at_other_values() -> None:
    """Each analysis cuts by its own queries: else a table is rewritten, and that taken back, for ever."""
    served = served_with()
    first = kept(served, said=cutting("city", "m"))
    look(served)
    assert layout(served) is not None
    measured(served, first, after=40)
    served.clock.advance(STEP_MS)
    served.control.ledger.keep_ledger()
    assert (summary(served, first)["state"], layout(served)) == ("reverted", None)
    served.clock.advance(7 * DAY_MS)
    again = kept(served, 2, cutting("city", "k", "m"))
    look(served)
    assert (summary(served, again)["state"], layout(served)) == ("open", None)
    record, store = served.control.tables.record_by_name(EVENTS), served.control.recommendations.store
    assert record is not None
    assert unless_reverted(cutting("city", "a"), record.table_id, store).verdict is Verdict.LEAVE
    assert unless_reverted(recommendation(EVENTS, "city"), record.table_id, store).verdict is Verdict.CHANGE


def test_an_answer_that_was_lost_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    served = served_with()
    found = kept(served)
    change = served.lake.change

    def lost(*arguments: Any) -> None:
        change(*arguments)
        raise OutcomeUnknown("the connection broke")

    monkeypatch.setattr(served.lake, "change", lost)
    look(served)
    monkeypatch.undo()
    assert summary(served, found)["state"] == "accepting"
    served.clock.advance(RETRY_MS)
    look(served)
    assert summary(served, found)["state"] == "accepted"


def test_where_the_catalog_is_away_the_next_look_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    served = served_with()
    found = kept(served)

    def away(*_: Any) -> None:
        raise Unavailable("the catalog is away")

    monkeypatch.setattr(served.lake, "change", away)
    look(served)
    monkeypatch.undo()
    assert (summary(served, found)["state"], layout(served)) == ("open", None)
    look(served)
    assert (summary(served, found)["state"], layout(served)) == ("accepted", "sort(city)")


@each_case(("decision", "body", "state"), [("reject", {"why": "no"}, "rejected"), ("snooze", {"days": 1}, "snoozed")])
def test_a_person_who_decides_at_the_last_moment_is_heard(decision: str, body: dict[str, Any], state: str) -> None:
    """Between the policy's look at it and its decision."""
    served = served_with()
    found = kept(served)
    store = served.control.recommendations.store
    decide = store.decide
    with pytest.MonkeyPatch.context() as patch:

        def late(recommendation_id: str, *arguments: Any, **more: Any) -> Any:
            patch.undo()
            served.post(f"/recommendations/{found}/{decision}", body)
            return decide(recommendation_id, *arguments, **more)

        patch.setattr(store, "decide", late)
        look(served)
    assert (summary(served, found)["state"], layout(served)) == (state, None)


def test_of_the_policy_and_people_who_accept_at_once_one_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    served = served_with()
    found = kept(served)
    changes: list[Any] = []
    change = served.lake.change

    def counted(metadata: Any, wanted: Any) -> None:
        changes.append(wanted)
        change(metadata, wanted)

    monkeypatch.setattr(served.lake, "change", counted)
    metadata = served.lake.load(EVENTS)
    policy = served.control.planner.policy(metadata)
    codes: list[int] = []

    def by_policy() -> None:
        found = served.control.tables.before_look(EVENTS)
        served.control.maintainer._want_pass(metadata, policy, DEFAULT_THRESHOLDS, found)

    def by_person() -> None:
        codes.append(served.http.post(f"{V1}/recommendations/{found}/accept").status_code)

    at_once([by_policy, by_policy, by_person, by_person])
    assert set(codes) <= {200, 409}
    assert summary(served, found)["state"] == "accepted"
    assert len(changes) == 1
    assert layout(served) == "sort(city)"


def test_another_table_is_not_touched() -> None:
    served = served_with()
    other = EVENTS.__class__("lake", ("db",), "other")
    uuid = served.table(other)
    store = served.control.recommendations.store
    found = store.keep(TableId("lake", uuid), f"task-{7:032d}", served.clock.now(), recommendation(other, "city"))
    look(served)
    served.control.maintainer.look(other)
    assert store.get(found).state == "open"


def test_what_an_owner_has_again_after_a_revert_is_the_owners() -> None:
    """A person accepted over a layout of the owner's, and icewright took that back: the policy leaves it alone."""
    served = served_with({"icewright.layout": "sort(id)"})
    found = kept(served)
    served.control.recommendations.accept(found, "ann")
    measured(served, found, after=40)
    served.clock.advance(STEP_MS)
    served.control.ledger.keep_ledger()
    assert layout(served) == "sort(id)"
    served.clock.advance(7 * DAY_MS)
    other = kept(served, 2, recommendation(EVENTS, "city", "id"))
    look(served)
    assert (summary(served, other)["state"], layout(served)) == ("open", "sort(id)")


def test_what_an_owner_had_set_before_it_was_recommended_is_the_owners() -> None:
    served = served_with({"icewright.layout": "sort(city)"})
    first = kept(served)
    served.control.recommendations.accept(first, "ann")  # nothing to change: the owner had it so
    served.clock.advance(7 * DAY_MS)
    other = kept(served, 2, recommendation(EVENTS, "id"))
    look(served)
    assert (summary(served, other)["state"], layout(served)) == ("open", "sort(city)")


@each_case(
    ("changes", "layout_then"),
    [
        ({"icewright.layout": "sort(id)"}, "sort(id)"),
        ({"icewright.accept-recommendations.enabled": "false"}, None),
        ({"icewright.mode": "observe"}, None),
        ({RATIO: "0.99"}, None),
    ],
)
def test_an_owner_who_changes_the_table_after_the_look_is_heard(
    changes: dict[str, str | None], layout_then: str | None
) -> None:
    """The look is at metadata that was loaded before: what counts is the table when its properties are set."""
    served = served_with()
    found = kept(served)
    maintainer, metadata = served.control.maintainer, served.lake.load(EVENTS)
    policy = served.control.planner.policy(metadata)
    served.lake.change(metadata, changes)
    maintainer._want_pass(metadata, policy, DEFAULT_THRESHOLDS, served.control.tables.before_look(EVENTS))
    assert (summary(served, found)["state"], layout(served)) == ("open", layout_then)
