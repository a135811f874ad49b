"""Upkeep happens within its maintenance window, is found due without waiting for it, and says what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from icewright.core.times import Window
from icewright.maintenance.dispatch import dispatcher
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Reason
from icewright.model.policy import time_windows as windows
from icewright.model.policy.policy import PolicyRule
from icewright.model.policy.resource_groups import SERVER
from icewright.model.work.tasks import Task, TaskState
from icewright.plans.window import Closed
from tests.builders.lakehouse import AUTO, HOUR_MS, MINUTE_MS, NAME, Lakehouse
from tests.cases import each_case
from tests.narrowing import not_none

DAY_MS = 24 * HOUR_MS
BERLIN = ZoneInfo("Europe/Berlin")
KEPT_UP = {
    **AUTO,
    "icewright.expire-snapshots.enabled": "true",
    "history.expire.max-snapshot-age-ms": str(2 * DAY_MS),
    "history.expire.min-snapshots-to-keep": "2",
    "icewright.maintenance-window.cron": "0 2 * * *",
    "icewright.maintenance-window.time-zone": "Europe/Berlin",
    "icewright.maintenance-window.duration": "PT40M",
}


def lakehouse(changed: Mapping[str, str] | None = None) -> Lakehouse:
    """A table that has snapshots of age, at noon in Berlin."""
    house = Lakehouse(rules=(PolicyRule("lake", (), {**KEPT_UP, **(changed or {})}),))
    house.create()
    house.clock.advance(round(datetime(2026, 3, 20, 12, tzinfo=BERLIN).timestamp() * 1000) - house.clock.now())
    if changed is None:
        house.let_expire_once()
    return house


def live_on(house: Lakehouse, hours: int, *, every_ms: int = MINUTE_MS * 5, round_too: bool = True) -> None:
    """A writer commits every six hours, and the server looks at what is due."""
    for number in range(hours * HOUR_MS // every_ms):
        if number % (6 * HOUR_MS // every_ms) == 0:
            house.append(1)
        if round_too:
            house.control.loop.turn()
            house.control.loop._take((house.control.loop._keep_house,))
        house.pass_time(every_ms)


def expiries(house: Lakehouse) -> list[Task]:
    return [t for t in house.all_tasks() if t.kind is ActionKind.EXPIRE_SNAPSHOTS and not t.was_asked_for]


def said(house: Lakehouse) -> Reason:
    (reason,) = house.control.maintainer.look(NAME, plan_anew=True).upkeep.reasons
    return reason


def test_everything_happens_within_the_window_and_nothing_is_missed() -> None:
    house = lakehouse()
    begun: list[datetime] = []
    for _ in range(8):
        live_on(house, 24)
        begun.extend(datetime.fromtimestamp(task.created_at / 1000, BERLIN) for task in expiries(house)[len(begun) :])
    assert {task.state for task in expiries(house)} == {TaskState.SUCCEEDED}
    assert len(begun) >= 5
    assert {time.hour for time in begun} == {2}
    assert max(time.minute for time in begun) < 40
    days = [time.date() for time in begun]
    assert len(days) == len(set(days))
    # Each night, but for that in which the whole window is skipped.
    left_out = {days[0] + timedelta(days=number) for number in range(len(days) + 1)} - set(days)
    assert {day.isoformat() for day in left_out if day < days[-1]} <= {"2026-03-29"}


def test_a_person_is_told_since_when_what_is_due_and_until_when_it_waits() -> None:
    house = lakehouse()
    live_on(house, 3 * 24, round_too=False)
    house.control.loop.turn()
    house.pass_time(3 * DAY_MS)
    reason = said(house)
    assert reason.code == "window-closed"
    opens = windows.opens_at(window(house), house.clock.now())
    assert reason.figures["opens_at"] == opens
    assert "due since 20" in reason.text
    assert "waits for the window that opens at 2026-03-2" in reason.text
    assert expiries(house) == []
    record = house.record()
    assert record.next_look_at <= house.clock.now() + HOUR_MS


def window(house: Lakehouse) -> Window:
    metadata = house.metadata()
    found = not_none(windows.window_of(house.control.planner.policy(metadata)))
    return windows.spread(found, metadata.table_id)


def test_the_table_is_looked_at_as_its_window_opens_however_quiet_it_is() -> None:
    house = lakehouse()
    live_on(house, 13)  # after one in the morning
    opens = not_none(windows.opens_at(window(house), house.clock.now()))
    assert house.record().next_look_at <= opens
    house.clock.advance(opens - 30_000 - house.clock.now())
    house.control.maintainer.look(NAME)
    assert house.record().next_look_at == opens


def test_a_table_whose_orphans_alone_are_removed_is_looked_at_as_its_window_opens() -> None:
    house = lakehouse({"icewright.expire-snapshots.enabled": "false", "icewright.remove-orphan-files.enabled": "true"})
    live_on(house, 13)
    opens = not_none(windows.opens_at(window(house), house.clock.now()))
    house.clock.advance(opens - 30_000 - house.clock.now())
    looked = house.control.maintainer.look(NAME)
    assert (looked.upkeep.reasons, looked.upkeep.look_at) == ((), opens)
    assert house.record().next_look_at == opens


def test_what_still_waits_when_the_window_closes_is_planned_again_in_the_next_one() -> None:
    house = lakehouse()
    carried_out = dict(house.expiries)
    house.carry_out_nothing()
    live_on(house, 5 * 24)
    assert {task.state for task in expiries(house)} == {TaskState.SUPERSEDED}
    codes = {task.outcome.reason.code for task in expiries(house) if task.outcome is not None}
    assert codes == {"window-closed"}
    house.expiries.update(carried_out)
    house.restart()
    before = len(expiries(house))
    live_on(house, 24)
    assert expiries(house)[before].state is TaskState.SUCCEEDED
    # It was left out, so that its turn comes sooner than by its own time.
    begun = datetime.fromtimestamp(expiries(house)[before].created_at / 1000, BERLIN)
    assert begun.minute <= window(house).delay_ms // MINUTE_MS // 4 + 5


def test_what_is_claimed_too_late_does_not_begin_and_what_has_begun_may_commit() -> None:
    house = lakehouse()
    house.carry_out_nothing()
    live_on(house, 3 * 24)
    while not [task for task in expiries(house) if task.state is TaskState.QUEUED]:
        house.pass_time(MINUTE_MS)
        house.control.loop.turn()
    waiting = expiries(house)[-1]
    leave, metadata = house.control.dispatcher.leave, house.metadata()
    assert leave.obstacle(waiting, metadata) is None
    house.pass_time(HOUR_MS)
    assert not_none(leave.obstacle(waiting, metadata)).code == "window-closed"
    assert leave.veto(waiting) is None
    assert house.control.dispatcher.claim_own(SERVER, frozenset({"lake"})) is None
    assert house.tasks.get(waiting.task_id).state is TaskState.SUPERSEDED


def test_a_claim_is_answered_however_many_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "STALE_MAX", 2)
    house = lakehouse()
    names = [TableName("lake", ("db",), f"t{number}") for number in range(3)]
    for name in names:
        house.create(name)
        house.let_expire_once(name)
    house.carry_out_nothing()
    for _ in range(16):
        for name in names:
            house.append(name=name)
        house.pass_time(6 * HOUR_MS)
        for name in names:
            house.control.maintainer.look(name)
    while len(expiries(house)) < len(names):
        house.pass_time(10 * MINUTE_MS)
        for name in names:
            house.control.maintainer.look(name)
    house.pass_time(HOUR_MS)
    for left in (1, 0):
        assert house.control.dispatcher.claim_own(SERVER, frozenset({"lake"})) is None
        assert sum(task.state is TaskState.QUEUED for task in expiries(house)) == left


def test_a_person_and_work_on_data_files_wait_for_no_window() -> None:
    house = lakehouse()
    live_on(house, 4 * 24, round_too=False)
    plan = house.control.maintainer.plan_asked(NAME, ExpireSnapshotsRequest())
    task = house.control.dispatcher.apply(plan.plan_id)
    house.rounds(2)
    assert house.tasks.get(task.task_id).state is TaskState.SUCCEEDED
    house.append(8)
    house.pass_time(HOUR_MS)
    house.rounds(2)
    assert [one.state for one in house.all_tasks() if one.kind is ActionKind.REWRITE_DATA_FILES] == [TaskState.QUEUED]


@each_case("value", ["0 2 * *", "every night", "0 2 30 2 *"])
def test_a_window_that_cannot_be_read_lets_nothing_happen_and_is_shown(value: str) -> None:
    house = lakehouse({"icewright.maintenance-window.cron": value})
    live_on(house, 4 * 24, every_ms=HOUR_MS)
    assert house.all_tasks() == []
    plan = house.control.maintainer.look(NAME, plan_anew=True).plan
    assert plan.reason.code == "policy-problem"
    assert "icewright.maintenance-window.cron (catalog lake)" in plan.reason.text


def test_tables_of_one_window_are_not_looked_at_together() -> None:
    house = lakehouse()
    names = [TableName("lake", ("db",), f"t{number}") for number in range(20)]
    for name in names:
        house.create(name)
        house.append(name=name)
    for day in (21, 24):  # both times at one minute to two
        house.clock.advance(round(datetime(2026, 3, day, 1, 59, tzinfo=BERLIN).timestamp() * 1000) - house.clock.now())
        for name in names:
            house.control.maintainer.look(name)
    looks = sorted(house.record(name).next_look_at for name in names)
    assert len(set(looks)) == len(names)
    assert looks[-1] - looks[0] > 10 * MINUTE_MS


def test_one_that_never_opens_again_is_said() -> None:
    assert Closed(None).reason().text == "nothing before the window that never opens"
