"""A migration on demand: planned by a person, kept, applied, and not taken back by what is planned by itself."""

from __future__ import annotations

import pytest

from icewright.core.errors import NotAllowed
from icewright.model.actions.rewrite_data_files import RewriteDataFilesRequest
from icewright.model.iceberg.layouts import Level
from icewright.model.iceberg.tables import PartitionField
from icewright.model.plans.plans import Migration
from icewright.model.work.tasks import TaskState
from tests.builders.lakehouse import BONN, HOUR_MS, MIB, NAME, Lakehouse
from tests.builders.worker import Worker

BY_BUCKET = (PartitionField(1, 1001, "id_bucket", "bucket[2]"),)


@pytest.fixture
def house() -> Lakehouse:
    """A table with three large files of an older spec, which nothing is to be done to by itself."""
    house = Lakehouse()
    house.create()
    house.catalog.append(NAME, house.files(3, BONN, 64 * MIB))
    house.catalog.set_spec(NAME, BY_BUCKET)
    house.pass_time(2 * HOUR_MS)
    return house


def test_a_migration_is_planned_applied_and_verified(house: Lakehouse) -> None:
    assert house.control.maintainer.look(NAME).plan.is_empty
    plan = house.control.maintainer.plan_asked(NAME, RewriteDataFilesRequest(Migration.SPEC))
    assert house.all_tasks() == []  # mode auto, and not queued by itself
    assert house.tables.plan(plan.plan_id) == plan
    house.control.dispatcher.apply(plan.plan_id)
    task = house.control.verifier.verify(Worker(house).carry_out())
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert {file.partition.spec_id for file in house.catalog.live_files(NAME)} == {1}
    again = house.control.maintainer.plan_asked(NAME, RewriteDataFilesRequest(Migration.SPEC))
    assert again.reason.code == "nothing-to-migrate"
    with pytest.raises(NotAllowed):
        house.control.dispatcher.apply(again.plan_id)


def test_what_happens_by_itself_stands_beside_what_is_asked_for(house: Lakehouse) -> None:
    standing = house.control.maintainer.look(NAME).plan
    asked = house.control.maintainer.plan_asked(NAME, RewriteDataFilesRequest(Migration.ALL))
    assert house.tables.plan(asked.plan_id) == asked
    looked = house.control.maintainer.look(NAME)
    assert (looked.is_new, looked.plan) == (False, standing)


@pytest.mark.parametrize("more", [0, 8])
def test_a_task_that_was_asked_for_is_neither_withdrawn_nor_replaced(house: Lakehouse, more: int) -> None:
    """Neither where nothing else is to be done, nor where small files could be merged."""
    plan = house.control.maintainer.plan_asked(NAME, RewriteDataFilesRequest(Migration.SPEC))
    task = house.control.dispatcher.apply(plan.plan_id)
    if more:
        house.append(more)
        house.pass_time(HOUR_MS)
    house.control.maintainer.look(NAME, plan_anew=True)
    (waiting,) = house.all_tasks()
    assert (waiting.task_id, waiting.state, waiting.plan_id) == (task.task_id, TaskState.QUEUED, plan.plan_id)
    assert house.control.verifier.verify(Worker(house).carry_out()).state is TaskState.SUCCEEDED


def test_it_takes_the_place_of_a_task_that_waits(house: Lakehouse) -> None:
    house.append(8)
    house.pass_time(HOUR_MS)
    assert house.control.maintainer.look(NAME).enqueued is not None
    plan = house.control.maintainer.plan_asked(NAME, RewriteDataFilesRequest(Migration.SPEC))
    house.control.dispatcher.apply(plan.plan_id)
    assert house.only_task().plan_id == plan.plan_id


def test_in_mode_observe_it_is_shown_and_not_applied(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
    plan = house.control.maintainer.plan_asked(NAME, RewriteDataFilesRequest(Migration.SPEC))
    assert not plan.is_empty
    with pytest.raises(NotAllowed):
        house.control.dispatcher.apply(plan.plan_id)


def test_no_level_has_its_turn(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, {"icewright.layout": "sort(id)", "icewright.level-1.size-bytes": str(MIB)})
    assert [action.level for action in house.control.maintainer.look(NAME).plan.rewrites] == [Level.LEVEL_1]
    (action,) = house.control.maintainer.plan_asked(NAME, RewriteDataFilesRequest(Migration.SPEC)).rewrites
    assert (action.level, action.layout) == (Level.LEVEL_0, None)
    assert [group.output_spec_id for group in action.groups] == [1]
