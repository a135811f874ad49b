"""Analyses that no person asks for: once per interval, earlier when queries drift, and never many at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.actions.analyze_queries import service
from icewright.actions.analyze_queries.plan import Drift, drift_since
from icewright.core import codec
from icewright.maintenance.registry import services
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.analyze_queries import AnalyzeQueriesRequest, Measure
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.queries.recommendations import Recommendation
from icewright.model.queries.templates import (
    OTHER_TEMPLATES,
    WEEK_MS,
    Sums,
    TemplateWeek,
    sums_of,
    template_of,
    week_of,
)
from icewright.model.work.jobs import PROTOCOL_VERSION, Committed, TaskReport
from icewright.model.work.tasks import ListedTask, TaskState
from icewright.model.work.why import Stance, WhyKind
from icewright.ports.store import TaskFilter
from tests.builders.queries import equal, leave, query, read_of
from tests.builders.served import EVENTS, HOUR_MS, Served, hello
from tests.cases import each_case
from tests.narrowing import not_none, of_type

DAY_MS = 24 * HOUR_MS
LOG = TableName("lake", ("icewright",), "queries")
ANALYZE = ActionKind.ANALYZE_QUERIES
OFF = {"icewright.analyze-queries.enabled": "false"}


def served_with_queries(number: int = 40, *, has_log: bool = True, mode: str = "observe") -> Served:
    """A table whose queries are known, and the table of queries; no file of either has to be merged."""
    served = Served(queries_table=LOG)
    served.table(mode=mode, files=4)
    if has_log:
        served.lake.create(LOG)
        served.control.maintainer.look(LOG)
    ran(served, "city", number)
    return served


def ran(served: Served, column: str, number: int, name: TableName = EVENTS) -> None:
    """So many queries were counted just now."""
    record = not_none(served.control.tables.record_by_name(name))
    one = query(1, read_of(name, equal(column, "Bonn")), at=served.clock.now())
    read = one.tables[0]
    sums = Sums()
    for _ in range(number):
        sums += sums_of(one, read)
    log = served.control.queries.sums
    after = log.position("a")
    week = TemplateWeek(record.table_id, week_of(one.started_at), template_of(read), sums)
    assert log.add("a", after, after + number, [week])


def look(served: Served, name: TableName = EVENTS) -> None:
    served.clock.advance(HOUR_MS + 1)  # what was not due is looked into again
    served.control.maintainer.look(name)


def analyses(served: Served, *states: TaskState) -> list[ListedTask]:
    only = TaskFilter(states=frozenset(states) or None, kind=ANALYZE)
    return list(served.control.tasks.listed(only, limit=100))


def analyzed(served: Served, found: Recommendation | None = None) -> str:
    """An optimizer carries the analysis out that waits, and the server verifies its answer; the task's id."""
    served.control.dispatcher.hello(hello())
    spec = not_none(served.control.dispatcher.claim("optimizer-1"))
    assert spec.action.kind == ANALYZE
    answer = codec.dumps(found or leave(spec.table_name))
    report = TaskReport(
        PROTOCOL_VERSION, spec.task_id, spec.attempt, spec.fencing_token, Committed(None), (), (), 1, 1, answer=answer
    )
    served.control.dispatcher.report(report)
    served.control.loop.round()
    assert served.control.tasks.get(spec.task_id).state is TaskState.SUCCEEDED
    return spec.task_id


def said(served: Served) -> WhyKind:
    record = not_none(served.control.tables.record_by_name(EVENTS))
    (found,) = [each for each in served.control.explainer.why(record).kinds if each.kind is ANALYZE]
    return found


@each_case("mode", ["observe", "approve", "auto"])
def test_a_table_whose_queries_are_known_is_analyzed_once_a_week(mode: str) -> None:
    served = served_with_queries(mode=mode)
    look(served)
    (task,) = analyses(served)
    assert (task.priority, task.was_asked_for) == (service.ANALYSIS_PRIORITY, False)
    assert said(served).stance is Stance.QUEUED
    analyzed(served)
    for _ in range(6):
        served.clock.advance(DAY_MS)
        ran(served, "city", 40)
        look(served)
    assert len(analyses(served)) == 1
    answer = said(served)
    assert answer.stance is Stance.NOTHING_TO_DO
    assert not_none(answer.considered).reason.code == "analyzed-lately"
    served.clock.advance(DAY_MS)
    look(served)
    assert len(analyses(served)) == 2


def test_it_comes_sooner_when_the_queries_drift() -> None:
    served = served_with_queries()
    look(served)
    analyzed(served)
    served.clock.advance(HOUR_MS)
    ran(served, "user_id", 100)
    look(served)
    assert len(analyses(served)) == 1  # not within a day
    served.clock.advance(DAY_MS)
    look(served)
    (task, _) = analyses(served)
    assert task.reason.code == "queries-drifted"
    assert "100 of 100 queries" in task.reason.text


@each_case(("column", "number"), [("user_id", 19), ("city", 500)])
def test_few_new_queries_and_more_of_the_known_are_no_drift(column: str, number: int) -> None:
    served = served_with_queries()
    look(served)
    analyzed(served)
    ran(served, column, number)
    served.clock.advance(DAY_MS)
    look(served)
    assert len(analyses(served)) == 1


def test_the_share_that_is_drift_and_the_interval_are_settings() -> None:
    served = served_with_queries()
    look(served)
    analyzed(served)
    served.clock.advance(WEEK_MS // 2)
    ran(served, "city", 60)
    ran(served, "user_id", 40)
    look(served)
    assert len(analyses(served)) == 1
    served.lake.change(served.lake.load(EVENTS), {"icewright.analyze-queries.drift": "0.4"})
    look(served)
    assert len(analyses(served)) == 2
    analyzed(served)
    served.lake.change(served.lake.load(EVENTS), {"icewright.analyze-queries.interval": "P1D"})
    served.clock.advance(DAY_MS)
    look(served)
    assert len(analyses(served)) == 3


@each_case(
    ("number", "has_log", "changed", "code"),
    [
        (19, True, {}, "too-few-queries"),
        (40, False, {}, "query-table-missing"),
        (40, True, {"icewright.analyze-queries.interval": "soon"}, "policy-problem"),
    ],
)
def test_what_cannot_be_analyzed_is_explained(
    number: int, changed: dict[str, str | None], code: str, *, has_log: bool
) -> None:
    served = served_with_queries(number, has_log=has_log)
    if changed:
        served.lake.change(served.lake.load(EVENTS), changed)
    look(served)
    assert analyses(served) == []
    assert not_none(said(served).considered).reason.code == code


def test_the_policy_switches_it_off_also_for_what_waits() -> None:
    served = served_with_queries()
    look(served)
    served.lake.change(served.lake.load(EVENTS), dict(OFF))
    look(served)
    (task,) = analyses(served)
    assert task.state is TaskState.SUPERSEDED
    assert said(served).stance is Stance.OFF
    served.clock.advance(WEEK_MS)
    look(served)
    assert len(analyses(served)) == 1


def test_a_server_without_a_table_of_queries_says_nothing_of_analyses(served: Served) -> None:
    served.table(mode="observe")
    record = not_none(served.control.tables.record_by_name(EVENTS))
    assert record.considered == ()
    assert ANALYZE not in {each.kind for each in served.control.explainer.why(record).kinds}


def test_no_more_than_a_few_wait_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    served = served_with_queries()
    rule = replace(service.DUE, waiting_max=2)
    monkeypatch.setitem(services.DUE_RULES, ANALYZE, rule)
    others = [TableName("lake", ("db",), f"other_{number}") for number in range(3)]
    for name in others:
        served.table(name, mode="observe", files=1)
        ran(served, "city", 40, name)
    for name in (*others, EVENTS):
        look(served, name)
    assert [task.table_name for task in reversed(analyses(served))] == others[:2]
    answer = said(served)
    assert (answer.stance, answer.waits[0].reason.code) == (Stance.KEPT_BACK, "queue-full")
    analyzed(served, replace(leave(others[0]), evidence=replace(leave().evidence, bytes=1_000_000)))
    look(served)
    waiting = [task.table_name for task in analyses(served, TaskState.QUEUED)]
    assert (len(waiting), others[0] in waiting) == (2, False)  # one that did not fit has its place


def week(column: str, queries: int, first_at: int, last_at: int) -> TemplateWeek:
    template = OTHER_TEMPLATES if column == "(others)" else template_of(read_of(EVENTS, equal(column, "x")))
    sums = Sums(queries=queries, first_at=first_at, last_at=last_at)
    return TemplateWeek(TableId("lake", "u"), week_of(first_at), template, sums)


@each_case(
    ("weeks", "queries", "share"),
    [
        ([], 0, 0.0),
        ([week("a", 50, 1, 9)], 0, 0.0),
        ([week("a", 50, 1, 9), week("b", 50, 11, 12)], 50, 1.0),
        ([week("a", 50, 1, 11), week("b", 50, 11, 12)], 100, 0.5),
        ([week("a", 50, 1, 9), week("a", 30, 11, 12), week("b", 20, 11, 12)], 50, 0.4),
        ([week("a", 1, 1, 9), week("b", 19, 11, 12)], 19, 0.0),
        ([week("(others)", 90, 11, 12), week("b", 30, 11, 12)], 120, 0.25),
    ],
)
def test_drift_is_the_share_of_queries_that_the_analysis_did_not_see(
    weeks: list[TemplateWeek], queries: int, share: float
) -> None:
    found = of_type(Drift, drift_since(weeks, analyzed_at=10))
    assert (found.queries, found.share) == (queries, share)


def test_a_task_that_measures_an_accepted_recommendation_is_no_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    served = served_with_queries()
    measure = Measure("recommendation-1", 1, 1, 1, 1)
    asked = served.control.maintainer.plan_asked(EVENTS, AnalyzeQueriesRequest(measure=measure))
    code = served.control.dispatcher.apply(asked.plan_id).reason.code
    assert code in service.DUE.other_reasons
    served = served_with_queries()
    look(served)
    task = served.control.tasks.get(analyzed(served))
    served.clock.advance(DAY_MS)
    look(served)
    assert len(analyses(served)) == 1
    others = replace(service.DUE, other_reasons=frozenset({task.reason.code}))
    monkeypatch.setitem(services.DUE_RULES, ANALYZE, others)
    look(served)
    assert len(analyses(served)) == 2
