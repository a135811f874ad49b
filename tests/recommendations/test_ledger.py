"""What did not pay is taken back: by icewright in mode auto, else by who accepts that; never over the owner."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from icewright.core.errors import NotAllowed, OutcomeUnknown, Unavailable
from icewright.core.reasons import Reason
from icewright.model.actions.analyze_queries import AnalyzeQueries, AnalyzeQueriesPrediction, Measure
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.queries.decisions import Decision, RecommendationState
from icewright.model.queries.measurements import Effect, FileSums, Measured, Measurement
from icewright.model.queries.recommendations import JudgedQuery, QueryWindow, Revert, Verdict
from icewright.model.work.tasks import Task
from icewright.recommendations import ledger as module
from icewright.recommendations.ledger import STEP_MS, Measuring, unless_reverted
from tests.builders.queries import AT, leave, measurement, of_format, recommendation
from tests.builders.served import EVENTS, V1, Served, problem
from tests.cases import each_case

DAY_MS = 24 * 3_600_000
LAYOUT, SIZE = "icewright.layout", "icewright.level-1.size-bytes"
CODEC, LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"


def served_in(mode: str) -> tuple[Served, TableId]:
    served = Served()
    return served, TableId("lake", served.table(mode=mode))


def kept(served: Served, table_id: TableId, column: str = "city", number: int = 1) -> str:
    said = recommendation(EVENTS, column)
    return served.control.recommendations.store.keep(table_id, f"task-{number:032d}", served.clock.now(), said)


def accepted(served: Served, table_id: TableId, column: str = "city", number: int = 1) -> str:
    found = kept(served, table_id, column, number)
    served.clock.advance(1_000)
    served.control.recommendations.accept(found, "ann")
    return found


def measured(served: Served, table_id: TableId, of: str, number: int = 50) -> Measurement:
    """As a task measures it, keeps it: ten times as many files as before."""
    found = measurement(table_id, of, f"task-{number:032d}", served.clock.now())
    served.control.recommendations.store.measurements.keep(found)
    return found


def step(served: Served) -> None:
    served.clock.advance(STEP_MS)
    served.control.ledger.keep_ledger()


def properties(served: Served) -> Any:
    return {key: value for key, value in served.lake.load(EVENTS).properties.items() if key in (LAYOUT, SIZE)}


def told(served: Served) -> list[Any]:
    return [
        one.fact for one in served.control.tasks.feed.after(0, 100, FeedFilter(frozenset({FactKind.REGRESSED}))).told
    ]


def test_in_mode_auto_it_is_taken_back_and_said() -> None:
    served, table_id = served_in("auto")
    found = accepted(served, table_id)
    assert properties(served) == {LAYOUT: "sort(city)", SIZE: "2000000"}
    assert measured(served, table_id, found).effect is Effect.WORSE
    step(served)
    assert properties(served) == {}
    assert served.control.recommendations.store.get(found).state is RecommendationState.REVERTED
    (fact,) = told(served)
    assert (fact.table_name, fact.table_id) == (EVENTS, table_id)
    assert "takes it back" in fact.reason.text
    step(served)
    assert len(told(served)) == 1
    assert properties(served) == {}
    record = served.control.tables.record(table_id)
    assert record is not None
    assert any("was taken back; measured: " in line for line in served.control.explainer.why(record).says)


def test_a_change_of_table_properties_is_not_said_to_be_a_layout() -> None:
    served, table_id = served_in("auto")
    store = served.control.recommendations.store
    found = store.keep(table_id, f"task-{1:032d}", served.clock.now(), of_format())
    served.clock.advance(1_000)
    served.control.recommendations.accept(found, "ann")
    measured(served, table_id, found)
    assert served.control.benefit.says(table_id)[0].startswith(
        f"Table properties {CODEC}=zstd, {LEVEL}=9 ({found}) are accepted; measured: "
    )
    step(served)
    (said,) = served.control.benefit.says(table_id)
    assert said.startswith(f"Table properties {CODEC}=zstd, {LEVEL}=9 ({found}) were taken back; measured: ")


def test_elsewhere_it_waits_in_the_inbox_whatever_is_analyzed_meanwhile() -> None:
    served, table_id = served_in("approve")
    found = accepted(served, table_id)
    measured(served, table_id, found)
    step(served)
    step(served)
    assert properties(served)[LAYOUT] == "sort(city)"
    assert len(told(served)) == 1
    kept(served, table_id, "user_id", 2)  # a new analysis replaces open recommendations, but not this one
    kept(served, table_id, "city", 3)
    states = {one["verdict"]: one["recommendation_id"] for one in served.get("/recommendations", open=True)["items"]}
    assert {*states} == {"change", "revert"}
    shown = served.get(f"/recommendations/{states['revert']}")
    assert shown["properties"] == {LAYOUT: None, SIZE: None}
    done = served.post(f"/recommendations/{states['revert']}/accept")
    assert done["summary"]["state"] == "accepted"
    assert properties(served) == {}
    assert served.get(f"/recommendations/{found}")["summary"]["state"] == "reverted"
    assert [fact.reason.code for fact in told(served)] == ["regressed"]


def test_who_rejects_it_keeps_the_layout_and_is_asked_no_more() -> None:
    served, table_id = served_in("approve")
    found = accepted(served, table_id)
    measured(served, table_id, found)
    step(served)
    (revert,) = served.get("/recommendations", open=True)["items"]
    served.post(f"/recommendations/{revert['recommendation_id']}/reject", {"why": "the queries were a test"})
    measured(served, table_id, found, 51)
    step(served)
    assert served.get("/recommendations", open=True)["items"] == []
    assert properties(served)[LAYOUT] == "sort(city)"


@each_case("changes", [{LAYOUT: "sort(id)"}, {LAYOUT: None}])
def test_what_its_owner_changed_since_stays(changes: dict[str, str | None]) -> None:
    served, table_id = served_in("auto")
    found = accepted(served, table_id)
    measured(served, table_id, found)
    served.lake.change(served.lake.load(EVENTS), changes)
    before = properties(served)
    step(served)
    assert properties(served) == before
    assert served.control.recommendations.store.get(found).state is RecommendationState.ACCEPTED
    assert told(served) == []


def test_what_its_owner_had_set_before_is_not_taken_back() -> None:
    served, table_id = served_in("auto")
    own = {LAYOUT: "sort(city)", SIZE: "1500000"}
    served.lake.change(served.lake.load(EVENTS), own)
    found = accepted(served, table_id)
    measured(served, table_id, found)
    step(served)
    assert properties(served) == own
    assert told(served) == []
    assert [one.recommendation_id for one in served.control.recommendations.store.list(limit=9)] == [found]


def test_accepting_to_go_back_leaves_what_its_owner_changed_meanwhile() -> None:
    served, table_id = served_in("approve")
    found = accepted(served, table_id)
    measured(served, table_id, found)
    step(served)
    (revert,) = served.get("/recommendations", open=True)["items"]
    served.lake.change(served.lake.load(EVENTS), {LAYOUT: "sort(id)"})
    served.post(f"/recommendations/{revert['recommendation_id']}/accept")
    assert properties(served) == {LAYOUT: "sort(id)"}  # of the two the size alone was as accepted
    served.lake.change(served.lake.load(EVENTS), {SIZE: "3000000"})


@pytest.mark.parametrize("changed", [{CODEC: "gzip"}, {LEVEL: "19"}], ids=["codec", "level"])
def test_a_codec_and_its_level_go_back_together(changed: dict[str, str | None]) -> None:
    """Else a writer would get a level that its codec does not have."""
    served, table_id = served_in("approve")
    served.lake.change(served.lake.load(EVENTS), {CODEC: "brotli", LEVEL: "11"})
    store = served.control.recommendations.store
    found = store.keep(table_id, f"task-{1:032d}", served.clock.now(), of_format())
    served.clock.advance(1_000)
    served.control.recommendations.accept(found, "ann")
    measured(served, table_id, found)
    step(served)
    (revert,) = served.get("/recommendations", open=True)["items"]
    served.lake.change(served.lake.load(EVENTS), changed)
    own = dict(served.lake.load(EVENTS).properties)
    answer = served.http.post(f"{V1}/recommendations/{revert['recommendation_id']}/accept")
    assert "its owner changed it" in problem(answer, 409, "not-allowed")["detail"]
    assert served.lake.load(EVENTS).properties == own


def test_where_nothing_is_as_accepted_there_is_nothing_to_take_back() -> None:
    served, table_id = served_in("approve")
    found = accepted(served, table_id)
    measured(served, table_id, found)
    step(served)
    (revert,) = served.get("/recommendations", open=True)["items"]
    served.lake.change(served.lake.load(EVENTS), {LAYOUT: "sort(id)", SIZE: "3000000"})
    answer = served.http.post(f"{V1}/recommendations/{revert['recommendation_id']}/accept")
    assert "its owner changed it" in problem(answer, 409, "not-allowed")["detail"]
    assert properties(served) == {LAYOUT: "sort(id)", SIZE: "3000000"}


def test_a_lost_answer_is_settled_by_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was set back, and nobody heard: the next step finds it so, and says so once."""
    served, table_id = served_in("auto")
    found = accepted(served, table_id)
    measured(served, table_id, found)
    change = served.lake.change

    def lost(*arguments: Any) -> None:
        change(*arguments)
        raise OutcomeUnknown("the connection broke")

    monkeypatch.setattr(served.lake, "change", lost)
    step(served)
    monkeypatch.undo()
    assert properties(served) == {}
    step(served)
    store = served.control.recommendations.store
    assert store.get(found).state is RecommendationState.REVERTED
    assert [one.state for one in store.list(limit=9) if one.recommendation.verdict is Verdict.REVERT] == [
        RecommendationState.ACCEPTED
    ]
    assert len(told(served)) == 1


def test_a_revert_without_an_answer_waits_where_the_owner_has_changed_the_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was not done, and nobody knew: by now icewright may not change this table by itself."""
    served, table_id = served_in("auto")
    found = accepted(served, table_id)
    measured(served, table_id, found)

    def lost(*_: Any) -> None:
        raise OutcomeUnknown("the connection broke")

    with monkeypatch.context() as patch:
        patch.setattr(served.lake, "change", lost)
        step(served)
    served.lake.change(served.lake.load(EVENTS), {"icewright.mode": "observe"})
    before = properties(served)
    assert LAYOUT in before
    step(served)
    assert properties(served) == before
    (revert,) = served.get("/recommendations", open=True)["items"]
    assert (revert["verdict"], revert["state"]) == ("revert", "open")


def test_of_two_accepted_in_a_row_the_last_is_measured_and_gone_back_from() -> None:
    served, table_id = served_in("auto")
    first = accepted(served, table_id, "city", 1)
    second = accepted(served, table_id, "id", 2)
    assert properties(served)[LAYOUT] == "sort(id)"
    measured(served, table_id, first, 50)  # says nothing of now: the files are another layout's
    step(served)
    assert properties(served)[LAYOUT] == "sort(id)"
    measured(served, table_id, second, 51)
    step(served)
    assert properties(served) == {LAYOUT: "sort(city)", SIZE: "2000000"}  # as before the second
    states = {one.recommendation_id: one.state for one in served.control.recommendations.store.list(limit=9)}
    assert (states[first], states[second]) == (RecommendationState.ACCEPTED, RecommendationState.REVERTED)


def test_what_another_accepted_one_set_is_not_taken_back_with_the_first() -> None:
    """Both set the same size of Level 1: it is the second's by now."""
    served, table_id = served_in("approve")
    first = accepted(served, table_id, "city", 1)
    measured(served, table_id, first)
    step(served)
    (revert,) = served.get("/recommendations", open=True)["items"]
    accepted(served, table_id, "id", 2)
    now = properties(served)
    assert now == {LAYOUT: "sort(id)", SIZE: "2000000"}
    with pytest.raises(NotAllowed, match="was accepted after"):
        served.control.recommendations.accept(revert["recommendation_id"], "ann")
    assert properties(served) == now
    assert served.control.recommendations.store.get(first).state is RecommendationState.ACCEPTED


def test_each_recommendation_counts_once_by_what_was_measured_last() -> None:
    served, table_id = served_in("observe")
    first, second = accepted(served, table_id, "city", 1), accepted(served, table_id, "id", 2)
    store = served.control.recommendations.store.measurements
    for number, of, after in ((50, first, 1_000), (51, first, 0), (52, second, 1_000), (53, second, 1_000)):
        store.keep(measurement(table_id, of, f"task-{number:032d}", served.clock.now(), after=after))
    assert store.effects() == {Effect.BETTER: 1, Effect.WORSE: 1}
    assert {one: found.task_id[-2:] for one, found in store.newest_of_table(table_id).items()} == {
        first: "51",
        second: "53",
    }
    assert [found.task_id[-2:] for found in store.of_recommendation(first)] == ["51", "50"]


def test_what_was_set_before_is_remembered_across_a_lost_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    served, table_id = served_in("auto")
    served.lake.change(served.lake.load(EVENTS), {LAYOUT: "sort(id)"})
    found, change = kept(served, table_id), served.lake.change

    def lost(*arguments: Any) -> None:
        change(*arguments)
        raise OutcomeUnknown("the connection broke")

    monkeypatch.setattr(served.lake, "change", lost)
    with pytest.raises(OutcomeUnknown):
        served.control.recommendations.accept(found, "ann")
    monkeypatch.undo()
    decision = served.control.recommendations.accept(found, "ann").decision
    assert decision is not None
    assert decision.was == {LAYOUT: "sort(id)", SIZE: None}
    measured(served, table_id, found)
    step(served)
    assert properties(served) == {LAYOUT: "sort(id)"}


def test_a_layout_that_was_taken_back_is_not_recommended_by_the_same_queries() -> None:
    served, table_id = served_in("auto")
    found = accepted(served, table_id)
    measured(served, table_id, found)
    step(served)
    store, said = served.control.recommendations.store, recommendation(EVENTS, "city")
    again = unless_reverted(said, table_id, store)
    assert (again.verdict, again.reason.code) == (Verdict.LEAVE, "reverted-before")
    assert unless_reverted(recommendation(EVENTS, "id"), table_id, store).verdict is Verdict.CHANGE
    assert unless_reverted(said, TableId("lake", "another"), store) == said
    later = QueryWindow(served.clock.now() + 1, served.clock.now() + DAY_MS, 100, 100)
    new = replace(said, evidence=replace(said.evidence, test=later))
    assert unless_reverted(new, table_id, store) == new


def test_what_judged_a_recommendation_is_kept_apart_and_goes_with_it() -> None:
    served, table_id = served_in("auto")
    store = served.control.recommendations.store
    judged = (JudgedQuery("a", 2, 3, 4),)
    found = store.keep(table_id, "task-1", AT, replace(recommendation(EVENTS), judged=judged))
    assert store.get(found).recommendation.judged == ()
    assert store.measurements.judged(found) == {"a": judged[0]}
    measured(served, table_id, found)
    assert store.prune(AT + 1, 10) == 1
    assert store.measurements.judged(found) == {}
    assert store.measurements.newest_of_table(table_id) == {}


def test_a_measurement_is_shown_with_its_rows() -> None:
    served, table_id = served_in("auto")
    found = accepted(served, table_id)
    expected = measured(served, table_id, found)
    (shown,) = served.get(f"/recommendations/{found}/measurements")["items"]
    assert shown["effect"] == "worse"
    assert len(shown["planned"]["rows"]) == len(expected.planned.rows) == 30
    before = sum(row["weight"] * row["bytes_before"] for row in shown["planned"]["rows"])
    after = sum(row["weight"] * row["bytes"] for row in shown["planned"]["rows"])
    assert shown["planned"]["change"]["mean"] == after / before - 1


def test_going_back_says_what_it_sets() -> None:
    back = Revert("recommendation-1", {LAYOUT: "sort(id)", SIZE: None})
    assert str(back) == f"go back: {LAYOUT}=sort(id), unset {SIZE}"
    assert Reason("regressed", str(back)).text


def accepted_of(served: Served, tables: int) -> list[TableName]:
    """So many tables, each with a recommendation that was accepted; the last accepted first."""
    names = [replace(EVENTS, name=f"events_{number}") for number in range(tables)]
    for number, name in enumerate(names):
        table_id = TableId("lake", served.table(name, mode="auto"))
        store = served.control.recommendations.store
        found = store.keep(table_id, f"task-{number:032d}", served.clock.now(), recommendation(name, "city"))
        served.clock.advance(1_000)
        served.control.recommendations.accept(found, "ann")
        store.measurements.keep(measurement(table_id, found, f"task-{100 + number:032d}", served.clock.now()))
    return names[::-1]


def test_changes_are_told_by_what_became_of_them_however_many() -> None:
    served = Served()
    names = accepted_of(served, 3)
    store, waiting = served.control.recommendations.store, TableId("lake", served.table(replace(EVENTS, name="other")))
    kept(served, waiting, number=90)  # is open
    left = store.keep(waiting, f"task-{91:032d}", served.clock.now(), leave(EVENTS))
    store.decide(left, Decision(RecommendationState.ACCEPTED, "ann", 1))  # recommends nothing
    found = store.decided(RecommendationState.ACCEPTED)
    assert [store.get(one.recommendation_id).recommendation.table for one in found] == names
    assert [one.at for one in found] == sorted((one.at for one in found), reverse=True)
    assert store.decided(RecommendationState.REVERTED) == []
    assert len(store.decided(RecommendationState.REVERTED, RecommendationState.ACCEPTED)) == 3


def loading(served: Served, monkeypatch: pytest.MonkeyPatch, trouble: Exception, *of: TableName) -> list[TableName]:
    """Which tables the ledger loads, of which some make trouble."""
    loaded: list[TableName] = []
    load = served.lake.load

    def counted(name: TableName) -> Any:
        loaded.append(name)
        if name in of:
            raise trouble
        return load(name)

    monkeypatch.setattr(served.lake, "load", counted)
    return loaded


def test_a_defect_at_one_table_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served()
    first, second = accepted_of(served, 2)
    with monkeypatch.context() as patch:
        loading(served, patch, ValueError("a defect"), first)
        with pytest.raises(ValueError, match="a defect"):
            step(served)  # the loop logs it, and takes its next turn
        served.control.ledger.keep_ledger()
    assert LAYOUT in served.lake.load(first).properties
    assert LAYOUT not in served.lake.load(second).properties


def test_a_catalog_that_does_not_answer_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served()
    names = accepted_of(served, 3)
    with monkeypatch.context() as patch:
        loaded = loading(served, patch, Unavailable("no answer"), *names)
        step(served)
        assert loaded == names[:1]
    step(served)
    assert not any(LAYOUT in served.lake.load(name).properties for name in names)


def test_many_tables_are_looked_at_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served()
    names = accepted_of(served, 3)
    monkeypatch.setattr(module, "AT_ONCE", 2)
    step(served)
    assert [LAYOUT in served.lake.load(name).properties for name in names] == [False, False, True]
    served.control.ledger.keep_ledger()
    assert LAYOUT not in served.lake.load(names[2]).properties


@each_case(
    ("state", "later_than"),
    [(RecommendationState.ACCEPTED, 0), (RecommendationState.REVERTED, None), (RecommendationState.REJECTED, None)],
)
def test_what_was_decided_otherwise_or_asked_otherwise_is_not_measured(
    state: RecommendationState, later_than: int | None
) -> None:
    """No alarm, and no measurement: a plan may name any recommendation, and an owner may change his mind meanwhile."""
    served, table_id = served_in("auto")
    found = accepted(served, table_id)
    store = served.control.recommendations.store
    decision = store.get(found).decision
    assert decision is not None
    store.decide(found, replace(decision, state=state), of=(RecommendationState.ACCEPTED,))
    asked = Measure(found, decision.snapshot_id or 0, AT, AT + 1_000, later_than or served.clock.now())
    action = AnalyzeQueries(7, EVENTS, AT, 1, 1, 1, None, asked)
    answer = Measured(found, 7, FileSums(1, 1), None)
    task = SimpleNamespace(
        task_id="task-m",
        table_id=table_id,
        table_name=EVENTS,
        prediction=AnalyzeQueriesPrediction(1, 1, 1, 1),
    )
    measuring = Measuring(store, served.control.tasks, served.control.tables, served.control.queries, served.clock)
    said = measuring.keep(cast("Task", task), action, answer, served.lake.load(EVENTS))
    assert isinstance(said, Reason)
    assert said.code == "not-measured"
    assert store.measurements.newest_of_table(table_id) == {}
    gone = replace(action, measure=replace(asked, recommendation_id="recommendation-gone"))
    nothing = measuring.keep(cast("Task", task), gone, answer, served.lake.load(EVENTS))
    assert isinstance(nothing, Reason)
    assert nothing.code == "not-measured"
