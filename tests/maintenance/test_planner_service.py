"""A plan that its checker does not accept is kept nowhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.core.errors import Unavailable
from icewright.maintenance import planner as planner_module
from icewright.model.iceberg.tables import MAIN_BRANCH
from icewright.model.plans.plans import Plan
from icewright.plans.repository import PlanRejected
from icewright.policy.effective import KNOWN_WEEKS
from tests.builders.lakehouse import KYOTO, MINUTE_MS, NAME, Lakehouse
from tests.builders.observations import DAY_MS
from tests.builders.queries import CountedQueries
from tests.builders.worker import Worker


@pytest.fixture
def house() -> Lakehouse:
    return Lakehouse().with_ready_table()


def doubled_rows(*args: Any, **kwargs: Any) -> Plan:
    """A planner gone wrong: one of its files has other figures than the manifests say."""
    plan = plan_table(*args, **kwargs)
    (action,) = plan.rewrites
    group = action.groups[0]
    files = (replace(group.files[0], record_count=20), *group.files[1:])
    return replace(plan, actions=(replace(action, groups=(replace(group, files=files),)),))


def strange_file(*args: Any, **kwargs: Any) -> Plan:
    """A planner gone wrong: a file that is not in the table."""
    plan = plan_table(*args, **kwargs)
    (action,) = plan.rewrites
    group = action.groups[0]
    files = (replace(group.files[0], path="elsewhere.parquet"), *group.files[1:])
    return replace(plan, actions=(replace(action, groups=(replace(group, files=files),)),))


def test_a_plan_is_kept_and_becomes_the_tables_present_one(house: Lakehouse) -> None:
    plan = house.control.planner.plan(NAME).plan
    assert not plan.is_empty
    assert house.tables.plan(plan.plan_id) == plan
    assert house.record().plan_id == plan.plan_id


def test_intervals_are_told_by_the_tables_own_commits_also_after_a_restart_and_a_rollback(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, {"icewright.trigger": "mse"})
    before = house.metadata().current_snapshot_id
    assert before is not None
    house.control.maintainer.look(NAME)
    Worker(house).carry_out()
    house.append(2)
    house.append(2, KYOTO)
    house.pass_time(10 * MINUTE_MS)
    house.restart()
    codes = {verdict.path: verdict.reason.code for verdict in house.control.planner.plan(NAME).plan.verdicts}
    assert codes == {"city=Bonn": "interval", "city=Kyoto": "size-error"}
    house.catalog.set_ref(NAME, MAIN_BRANCH, before)
    assert [verdict.reason.code for verdict in house.control.planner.plan(NAME).plan.verdicts] == ["size-error"]


def test_counted_queries_decide_what_a_merge_is_worth(house: Lakehouse) -> None:
    planner, found = house.control.planner, []
    for number in (80, 140):
        planner.queries = queries = CountedQueries(number)
        verdict = planner.plan(NAME).plan.verdicts[0]
        found.append((verdict.reason.code, verdict.reason.figures.get("scans_per_day")))
    (since,) = queries.asked_since
    span_ms = house.clock.now() - since - (KNOWN_WEEKS - 2) * 7 * DAY_MS
    assert 7 * DAY_MS <= span_ms < 14 * DAY_MS
    assert found == [("small-files", None), ("worth-it", 140 * DAY_MS / span_ms)]


@pytest.mark.parametrize("wrong", [doubled_rows, strange_file])
def test_a_wrong_plan_is_refused_and_kept_nowhere(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch, wrong: Any
) -> None:
    monkeypatch.setattr(planner_module, "plan_table", wrong)
    with pytest.raises(PlanRejected, match=r"does not hold: [a-z-]+: "):
        house.control.planner.plan(NAME)
    table_id = house.record().table_id
    assert house.tables.plans(table_id, limit=10) == []
    assert house.record().plan_id is None


def test_without_anything_to_read_no_file_is_read(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, {"icewright.mode": "sometimes"})
    observation = house.control.observer.observe(NAME)
    house.catalog.available = False
    assert house.control.planner.plan_observed(observation).plan.reason.code == "policy-problem"


def test_a_catalog_that_goes_away_in_between_leaves_no_plan(house: Lakehouse) -> None:
    observation = house.control.observer.observe(NAME)
    house.catalog.available = False
    with pytest.raises(Unavailable):
        house.control.planner.plan_observed(observation)
    assert house.record().plan_id is None
