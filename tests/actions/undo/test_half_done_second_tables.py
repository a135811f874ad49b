"""A second table that is registered, and what ends its task before both tables say that nothing may be deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from icewright.core.errors import Conflict, NotAllowed, NotFound
from icewright.model.actions.undo import UNDO_WINDOW_MS
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Plan
from icewright.model.work.tasks import Task, TaskState
from tests.actions.expire_snapshots.test_expiry_service import ended
from tests.actions.undo.test_second_tables_service import GC, Died, dying, guarded, lakehouse, planned, said, second_of
from tests.actions.undo.test_undo_service import code, expired, table, undone
from tests.builders.lakehouse import ALL_AUTO, NAME, Lakehouse
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.second_tables import MemorySecondTables


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Lakehouse:
    """A table with five snapshots, an hour apart, in a catalog that takes none back."""
    return lakehouse(monkeypatch, ALL_AUTO)


def died_behind_registering(house: Lakehouse, plan: Plan) -> Task:
    """The server is gone right behind the registration, and another one is there."""
    dying(house, 1, behind=True)
    task = house.control.dispatcher.apply(plan.plan_id)
    with pytest.raises(Died):
        house.control.loop.round()
    assert GC not in house.catalog.load(second_of(plan)).properties
    house.restart()
    return task


def test_w11_it_is_never_too_late_to_guard_what_is_registered(house: Lakehouse) -> None:
    plan = planned(house, expired(house))
    task = died_behind_registering(house, plan)
    house.pass_time(UNDO_WINDOW_MS)
    task = ended(house, task)
    assert (task.state, code(task), guarded(house, second_of(plan))) == (TaskState.SUCCEEDED, "verified", True)


def test_too_late_nothing_is_registered(house: Lakehouse) -> None:
    plan = planned(house, expired(house))
    door = dying(house)
    task = house.control.dispatcher.apply(plan.plan_id)
    house.pass_time(UNDO_WINDOW_MS + 1)
    task = ended(house, task)
    assert (task.state, "can no longer be undone" in said(task), door.calls) == (TaskState.SUPERSEDED, True, [])


def test_l6_a_third_name_is_said_once_what_is_registered_is_guarded(house: Lakehouse) -> None:
    plan = planned(house, expired(house))
    task = died_behind_registering(house, plan)
    third = replace(NAME, name="other")
    house.catalog.register(third, table(house).metadata_log[-1].location)
    house.control.registry.saw(house.catalog.load(third))
    task = ended(house, task)
    assert (task.state, guarded(house, second_of(plan))) == (TaskState.SUPERSEDED, True)
    assert "also known as lake.db.other" in said(task)


def test_l6_a_second_that_may_not_be_changed_leaves_the_first_guarded(house: Lakehouse) -> None:
    """Registering was granted, and altering was not."""
    expiry = expired(house)
    plan = planned(house, expiry)
    door, second = dying(house), second_of(plan)

    class ReadOnly(MemorySecondTables):
        def say(self, name: TableName, table_id: TableId, properties: Mapping[str, str]) -> None:
            if name == second:
                raise NotAllowed("403 Forbidden")
            super().say(name, table_id, properties)

    door.real = ReadOnly(house.catalog)
    task = undone(house, plan)
    assert (task.state, task.attempt) == (TaskState.FAILED, 3)
    assert said(task) == f"{second} is registered, and not all that follows is done: 403 Forbidden"
    assert table(house).properties[GC] == "false"
    door.real = MemorySecondTables(house.catalog)
    assert undone(house, planned(house, expiry)).state is TaskState.SUCCEEDED
    assert (guarded(house, second), door.registered) == (True, [second])


@pytest.mark.parametrize("answer", ["done", "taken"])
def test_c1_a_table_that_is_not_shown_at_once_is_looked_for_again(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """Another server of the catalog answers, which lags behind."""
    plan = planned(house, expired(house))
    second, load = second_of(plan), MemoryCatalog.load
    lagging: list[None] = []

    def lags(catalog: MemoryCatalog, name: TableName) -> TableMetadata:
        if name == second and lagging:
            lagging.pop()
            raise NotFound(f"no table {name}")
        return load(catalog, name)

    class Lagging(MemorySecondTables):
        def register(self, name: TableName, metadata_location: str) -> None:
            super().register(name, metadata_location)
            lagging.extend([None] * 2)
            if answer == "taken":
                raise Conflict("it was asked twice on the way")

    monkeypatch.setattr(MemoryCatalog, "load", lags)
    dying(house).real = Lagging(house.catalog)
    task = house.control.dispatcher.apply(plan.plan_id)
    house.control.loop.round()
    assert house.tasks.get(task.task_id).state is TaskState.QUEUED
    assert (table(house).properties.get(GC) == "false") is (answer == "done")
    lagging.clear()
    task = ended(house, task)
    assert (task.state, code(task), task.attempt) == (TaskState.SUCCEEDED, "verified", 2)
    assert guarded(house, second)


def test_i3_what_was_half_done_is_asked_for_its_files_once_it_is_guarded(house: Lakehouse) -> None:
    """Another tool removed as orphans what had returned: they are in no snapshot of the first."""
    live = [file.path for file in house.catalog.live_files(NAME)]
    house.catalog.overwrite(NAME, add=house.files(1), remove=live)
    lists, expiry = [one.manifest_list for one in table(house).snapshots], expired(house)
    plan = planned(house, expiry)
    assert plan.prediction is not None
    house.catalog.register(second_of(plan), plan.prediction.second.metadata_location)  # type: ignore[attr-defined]  # known
    house.catalog.damage(lists[1])
    task = undone(house, planned(house, expiry))
    assert (task.state, guarded(house, second_of(plan))) == (TaskState.SUPERSEDED, True)
    assert said(task).startswith(f"{second_of(plan)} is registered")
    assert lists[1] in said(task)
