"""Several servers over one store: looks at one table from any of them, and what one finds out is known to all."""

from __future__ import annotations

import pytest

from icewright.core.errors import LookLost
from icewright.maintenance.table_maintainer import LOOKS_MAX
from icewright.model.plans.plans import Plan
from icewright.model.work.jobs import Conflicted
from icewright.model.work.tasks import TaskState
from icewright.ports.store import AT_ONCE, InventoryUpdate
from tests.builders.lakehouse import NAME, SECOND_MS, Lakehouse
from tests.builders.worker import at_work


@pytest.fixture
def house() -> Lakehouse:
    house = Lakehouse().with_ready_table()
    house.control.maintainer.look(NAME)
    return house


def looked_meanwhile(house: Lakehouse, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """So often, another server looks at the table right before a look of this one is written; and writers go on."""
    apply, left = house.tables.apply_inventory, [times]

    def late(update: InventoryUpdate) -> None:
        if left[0]:
            left[0] -= 1
            monkeypatch.setattr(house.tables, "apply_inventory", apply)
            other = house.restart()
            house.append(4)
            other.maintainer.look(NAME)
            house.append(4)
            monkeypatch.setattr(house.tables, "apply_inventory", late)
        apply(update)

    monkeypatch.setattr(house.tables, "apply_inventory", late)


def data_files(house: Lakehouse) -> int:
    return sum(one.counts.data_files for one in house.tables.partitions(house.record().table_id))


def test_q1_of_two_looks_by_two_servers_the_late_one_writes_no_wrong_sum(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written all the same, its sums would be those of an earlier snapshot beside the manifests of the later one.

    No later look would find out: no manifest comes or goes.
    """
    first = house.control
    house.append(4)
    looked_meanwhile(house, monkeypatch, times=1)
    first.maintainer.look(NAME)
    assert data_files(house) == len(house.catalog.live_files(NAME)) == 20
    assert house.record().snapshot_id == house.metadata().current_snapshot_id
    house.restart().maintainer.look(NAME)
    assert data_files(house) == 20


def test_q1_a_look_that_loses_again_and_again_is_put_off(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    first = house.control
    house.append(4)
    looked_meanwhile(house, monkeypatch, times=LOOKS_MAX)
    with pytest.raises(LookLost):
        first.maintainer.look(NAME)
    assert data_files(house) == len(house.catalog.live_files(NAME)) - 4
    assert house.record().problem is None
    house.append(4)
    looked_meanwhile(house, monkeypatch, times=LOOKS_MAX)
    event = house.catalog.load(NAME).current_snapshot
    assert event is not None
    house.notify(event)
    first.loop.turn()
    assert len(house.tables.inbox(9)) == 1, "whoever asked for a look asks again"
    first.loop.turn()
    assert house.tables.inbox(9) == []
    assert data_files(house) == len(house.catalog.live_files(NAME))


def test_q2_a_plan_of_another_server_is_not_taken_for_ones_own(house: Lakehouse) -> None:
    """Each server knows what its own plans were made from, and of no other."""
    first = house.control
    mine = first.maintainer.look(NAME).plan
    other = house.restart().maintainer.look(NAME)
    assert other.is_new
    again = first.maintainer.look(NAME)
    assert again.is_new
    assert again.plan.plan_id not in {mine.plan_id, other.plan.plan_id}


def test_q2_a_table_that_moved_on_is_looked_at_by_whoever_leads(house: Lakehouse) -> None:
    """A report comes in at one server; another one turns the loop."""
    worker, spec = at_work(house)
    first, leader = house.control, house.restart()
    house.control = first
    house.pass_time(SECOND_MS)
    assert worker.report(spec, Conflicted("somebody was faster")).state is TaskState.SUPERSEDED
    assert [record.name for record in house.tables.due(AT_ONCE, 9)] == [NAME]
    observed_at = house.record().observed_at
    leader.loop.turn()
    assert house.record().observed_at > observed_at
    assert house.tables.due(AT_ONCE, 9) == []


def test_q2_a_wish_during_a_look_is_not_forgotten(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look is taken anew; where wishes come in each, the table is looked at later."""
    house.tables.look_at_once(NAME)
    save, saved = house.tables.save_plan, list[str]()

    def saved_and_wished(plan: Plan, *, is_present: bool = True) -> None:
        save(plan, is_present=is_present)
        saved.append(plan.plan_id)
        if len(saved) != 2:
            house.tables.look_at_once(NAME)

    monkeypatch.setattr(house.tables, "save_plan", saved_and_wished)
    assert house.control.maintainer.look(NAME, plan_anew=True).plan.plan_id == saved[-1]
    assert len(saved) == 2
    assert house.tables.due(AT_ONCE, 9) == []
    with pytest.raises(LookLost):
        house.control.maintainer.look(NAME, plan_anew=True)
    assert [record.name for record in house.tables.due(AT_ONCE, 9)] == [NAME]
