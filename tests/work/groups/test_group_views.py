"""Resource groups as they stand: who defines them, what is held of them by the count of claims, what waits, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.core.errors import NotFound
from icewright.core.times import Window
from icewright.model.policy.policies import NewRevision, Policies
from icewright.model.policy.resource_groups import OPEN_DEFAULT, ResourceGroup
from icewright.model.work.admission import Lane
from icewright.model.work.halts import EVERYTHING, HaltState, Part, PartKind
from icewright.policy.groups.definitions import Origin
from icewright.work.groups.views import GroupView, Held
from tests.builders.lakehouse import Lakehouse
from tests.builders.worker import hello
from tests.narrowing import not_none
from tests.work.groups.test_queue_waits import introduce, lakehouse, run_one

NEVER = Window("0 0 29 2 *", "UTC", 60_000)


def by_name(house: Lakehouse) -> dict[str, GroupView]:
    return {view.name: view for view in house.control.group_views.views(limit=99)}


def test_who_says_what_a_group_is() -> None:
    house = lakehouse(ResourceGroup("etl", cores=3), tables=1)
    found = by_name(house)
    assert list(found) == ["default", "etl", "server", "server-files"]
    assert (found["default"].origin, found["default"].definition) == (Origin.DEFAULT, OPEN_DEFAULT)
    assert (found["etl"].origin, found["etl"].definition) == (Origin.CONFIGURATION, ResourceGroup("etl", cores=3))
    assert (found["server"].origin, found["server"].definition, found["server"].refused) == (Origin.SERVER, None, None)
    house.control.dispatcher.hello(replace(hello("optimizer-b"), resource_group="ghost"))
    ghost = by_name(house)["ghost"]
    assert (ghost.origin, ghost.definition, ghost.optimizers) == (Origin.NOBODY, None, 1)
    assert not_none(ghost.refused).code == "no-group"


def test_what_is_applied_is_over_what_is_configured_and_says_its_revision() -> None:
    house = lakehouse(ResourceGroup("etl", cores=3), tables=1)
    applied = ResourceGroup("etl", cores=8)
    house.control.policies.store.apply(NewRevision(Policies((), groups=(applied,)), "Ada"), 0)
    found = by_name(house)["etl"]
    assert (found.origin, found.revision, found.definition) == (Origin.POLICIES, 1, applied)


def test_what_is_held_and_what_waits() -> None:
    house = lakehouse(ResourceGroup("default", cores=3), tables=3)
    before = house.control.group_views.document("default")
    assert (before.group.held, before.group.waiting, before.uses) == (Held(0, 0, 0, 0, 0), 3, ())
    introduce(house, cores=2, memory_bytes=1_000)
    assert house.control.dispatcher.claim("optimizer-a") is not None
    found = house.control.group_views.document("default")
    assert found.group.held == Held(1, 2, 1_000, 1, 1)
    assert (found.group.waiting, found.group.optimizers, found.lanes_left_out) == (2, 1, 0)
    assert [(use.optimizer_id, use.tasks, use.cores) for use in found.uses] == [("optimizer-a", 1, 2)]
    assert [(one.waiting, type(one.lane)) for one in found.lanes] == [(2, Lane)]


def test_a_closed_window_and_halts_say_why_it_takes_nothing() -> None:
    house = lakehouse(ResourceGroup("default", windows=(NEVER,)), ResourceGroup("etl"), tables=1)
    halts = house.tasks.halts
    house.control.halting.halt(Part(PartKind.GROUP, "etl"), HaltState.PAUSED, "a fire")
    found = by_name(house)
    assert not_none(found["default"].refused).code == "window-closed"
    assert found["default"].refused_until is not None
    assert found["default"].halts == ()
    assert [halt.why for halt in found["etl"].halts] == ["a fire"]
    house.control.halting.halt(EVERYTHING, HaltState.STOPPED, "all")
    assert [len(view.halts) for view in by_name(house).values()] == [1, 2, 1, 1]
    assert len(halts.present()) == 2


def test_pages_and_what_is_none() -> None:
    house = lakehouse(ResourceGroup("etl"), tables=1)
    names, after = [], None
    while page := house.control.group_views.views(limit=1, after=after):
        names += [view.name for view in page]
        after = names[-1]
    assert names == ["default", "etl", "server", "server-files"]
    with pytest.raises(NotFound, match="no resource group 'nowhere'"):
        house.control.group_views.document("nowhere")


def test_what_an_optimizer_has_is_counted_once() -> None:
    house = lakehouse(tables=2)
    run_one(house)
    assert house.control.group_views.document("default").group.held.applications == 1
