"""Levels through the services: what is in order outlives restarts, expiry, rollbacks and other people's rewrites."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from icewright.model.iceberg.layouts import Level
from icewright.model.iceberg.tables import MAIN_BRANCH, SortField
from icewright.model.plans.plans import Plan
from icewright.model.work.tasks import TaskState
from tests.builders.lakehouse import MIB, MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import Worker
from tests.predictions import estimated

SMALL = {"icewright.level-1.size-bytes": str(16 * MIB), "icewright.level-2.runs": "3"}
SORTED = {**SMALL, "icewright.layout": "sort(id)", "write.target-file-size-bytes": str(8 * MIB)}


def laid_out(properties: Mapping[str, str] = SORTED, files: int = 20) -> Lakehouse:
    house = Lakehouse()
    house.create(properties=properties)
    grow(house, files)
    return house


def grow(house: Lakehouse, files: int = 20) -> None:
    house.append(files)
    house.pass_time(5 * MINUTE_MS)


def planned(house: Lakehouse) -> Plan:
    return house.control.planner.plan(NAME).plan


def level_of(plan: Plan) -> Level | None:
    return plan.rewrites[0].level if plan.rewrites else None


def work(house: Lakehouse) -> list[Level]:
    """Plans are carried out until there is nothing to do; the levels of the tasks."""
    levels: list[Level] = []
    worker = Worker(house)
    house.control.maintainer.look(NAME, plan_anew=True)
    while (spec := worker.claim_if_any()) is not None:
        action = spec.rewrite
        levels.append(action.level)
        task = house.control.verifier.verify(worker.report(spec, worker.try_commit(spec)))
        assert task.state is TaskState.SUCCEEDED, task.outcome
        house.pass_time(2 * MINUTE_MS)
        house.control.maintainer.look(NAME, plan_anew=True)
    return levels


def test_levels_follow_each_other_and_come_to_an_end() -> None:
    house = laid_out()
    assert work(house) == [Level.LEVEL_1]
    grow(house)
    assert work(house) == [Level.LEVEL_1]
    grow(house)
    assert work(house) == [Level.LEVEL_1, Level.LEVEL_2]
    assert sum(file.record_count for file in house.catalog.live_files(NAME)) == 600


def test_a_partition_larger_than_a_task_has_level_2_by_regions_under_a_curve() -> None:
    curved = {**SORTED, "icewright.layout": "hilbert(id, city)"}
    house = laid_out({**curved, "icewright.rewrite-data-files.max-task-size-bytes": str(24 * MIB)})
    assert work(house) == [Level.LEVEL_1]
    grow(house)
    assert work(house) == [Level.LEVEL_1]
    grow(house)
    # Of sixty MiB a task reads twenty-four: the first region is all of one run and more, and two runs are too few.
    assert work(house) == [Level.LEVEL_1, Level.LEVEL_2]
    plan = planned(house)
    assert plan.is_empty
    assert sum(file.record_count for file in house.catalog.live_files(NAME)) == 600


def test_lookups_are_measured_beside_what_was_predicted() -> None:
    house = laid_out({**SORTED, "icewright.layout": "zorder(id, city)", "write.target-file-size-bytes": str(MIB)})
    assert work(house) == [Level.LEVEL_1]
    task = house.only_task()
    assert task.outcome is not None
    assert [one.column for one in estimated(task).lookups] == ["id", "city"]
    made = task.rewrite.output_files
    assert made > 1
    # This lake's files have no bounds, so that all of them may have any value; and so it was predicted.
    assert {one.files_after for one in estimated(task).lookups} == {made}
    found = {key: figure for key, figure in task.outcome.reason.figures.items() if key.startswith("lookup_")}
    assert found == {"lookup_1_files": made, "lookup_1_mean": made, "lookup_2_files": made, "lookup_2_mean": made}


def test_what_is_in_order_is_known_after_a_restart_and_after_its_snapshots_have_expired() -> None:
    house = laid_out()
    work(house)
    house.append(1)
    house.control.observer.observe(NAME)
    current = house.metadata().current_snapshot_id
    house.catalog.expire(NAME, [s.snapshot_id for s in house.metadata().snapshots if s.snapshot_id != current])
    house.catalog.rewrite_manifests(NAME)
    house.pass_time(5 * MINUTE_MS)
    house.restart()
    assert level_of(planned(house)) is None


def test_a_rollback_to_before_level_1_makes_it_due_again() -> None:
    house = laid_out()
    before = house.metadata().current_snapshot_id
    assert before is not None
    work(house)
    assert level_of(planned(house)) is None
    house.catalog.set_ref(NAME, MAIN_BRANCH, before)
    assert level_of(planned(house)) is Level.LEVEL_1


def test_files_that_somebody_else_rewrote_are_in_no_order_any_more() -> None:
    house = laid_out()
    work(house)
    live = [file.path for file in house.catalog.live_files(NAME)]
    house.catalog.overwrite(NAME, add=house.files(3, size_bytes=8 * MIB), remove=live)
    house.pass_time(90 * MINUTE_MS)
    assert level_of(planned(house)) is Level.LEVEL_1


def test_another_layout_starts_anew_and_the_former_one_is_remembered() -> None:
    house = laid_out()
    work(house)
    house.catalog.set_properties(NAME, {"icewright.layout": "zorder(id, city)"})
    assert level_of(planned(house)) is Level.LEVEL_1
    house.catalog.set_properties(NAME, {"icewright.layout": "sort(id)"})
    assert level_of(planned(house)) is None


def test_the_tables_own_sort_order_is_a_layout() -> None:
    house = Lakehouse()
    order = SortField(1, "identity", "asc", "nulls-first")
    house.catalog.create(NAME, sort_fields=[order], properties=SMALL)
    house.append(20)
    house.pass_time(5 * MINUTE_MS)
    (action,) = planned(house).rewrites
    assert action.layout is not None
    assert (action.level, action.layout.fields, action.layout.sort_order_id) == (Level.LEVEL_1, (order,), 1)


@pytest.mark.parametrize("properties", [SMALL, {**SORTED, "icewright.layout": "none"}])
def test_without_a_layout_there_is_level_0_alone(properties: Mapping[str, str]) -> None:
    assert level_of(planned(laid_out(properties))) is Level.LEVEL_0


def test_a_layout_whose_column_is_gone_is_said_and_level_0_goes_on() -> None:
    house = laid_out({**SORTED, "icewright.layout": "sort(dropped)"})
    plan = planned(house)
    assert level_of(plan) is Level.LEVEL_0
    assert "nothing is put in order, because the layout sort(dropped) names dropped" in plan.reason.text
    assert plan.reason.figures["layout_obstacle"] == "layout-column-missing"
