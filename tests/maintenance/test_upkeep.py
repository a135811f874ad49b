"""What is kept up of a table by itself: snapshots expire when the owner lets them, and behind work on files."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from icewright.actions.expire_snapshots import gain as expiry_gain
from icewright.actions.expire_snapshots import service as expiry_planner
from icewright.actions.expire_snapshots.plan import ExpiryDecision, decide_expiry
from icewright.core.fault_points import Fault, arm
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.iceberg.tables import RefKind
from icewright.model.plans.plans import RewritePrediction
from icewright.model.policy.policy import PolicyRule
from icewright.model.work.tasks import Task, TaskState
from icewright.ports.store import TaskFilter
from tests.builders.lakehouse import AUTO, BONN, HOUR_MS, MIB, MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import FINAL, Worker, at_work
from tests.cases import each_case
from tests.narrowing import not_none

REWRITE = RewritePrediction(1, 1, 1, 1, 1, 1)
DAY_MS = 24 * HOUR_MS
KEPT_UP = {
    **AUTO,
    "icewright.expire-snapshots.enabled": "true",
    "history.expire.max-snapshot-age-ms": str(2 * DAY_MS),
    "history.expire.min-snapshots-to-keep": "2",
}


def lakehouse(properties: dict[str, str] | None = None) -> Lakehouse:
    made = Lakehouse(rules=(PolicyRule("lake", (), KEPT_UP if properties is None else properties),))
    made.create()
    if properties is None:
        made.let_expire_once()
    return made


def live_on(house: Lakehouse, hours: int, *, commits_every_h: int = 6) -> None:
    """A writer commits now and then, and the server looks at the table every hour."""
    for hour in range(hours):
        if hour % commits_every_h == 0:
            house.append(1)
        house.control.loop.round()
        house.pass_time(HOUR_MS)


def expiries(house: Lakehouse) -> list[Task]:
    found = house.tasks.tasks(TaskFilter(), limit=1000)
    return [t for t in reversed(found) if t.kind is ActionKind.EXPIRE_SNAPSHOTS and not t.was_asked_for]


def ages_h(house: Lakehouse) -> list[int]:
    now = house.clock.now()
    return [(now - one.committed_at) // HOUR_MS for one in house.catalog.load(NAME).snapshots]


def test_snapshots_expire_by_themselves_as_they_come_of_age() -> None:
    house = lakehouse()
    live_on(house, 10 * 24)
    assert {task.state for task in expiries(house)} == {TaskState.SUCCEEDED}
    assert len(expiries(house)) > 5
    # Two days and what the marks may be late by, one look, and one commit of the writer.
    assert 40 <= max(ages_h(house)) <= 48 + 12 + 2 + 6
    assert len(house.catalog.load(NAME).snapshots) >= 8


def test_it_is_once_an_hour_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry_gain, "LEAST", 1)
    house = lakehouse()
    for _ in range(3 * 24 * 6):
        house.catalog.append(NAME, house.files(1, BONN, 600 * MIB))  # too large to be merged
        house.pass_time(10 * MINUTE_MS)
        house.control.loop.round()
    done = [task.created_at for task in expiries(house)]
    assert len(done) > 10
    assert min(later - earlier for earlier, later in pairwise(done)) >= HOUR_MS


def test_a_table_is_not_touched_every_hour_for_a_single_snapshot_and_none_stays_for_ever() -> None:
    house = lakehouse()
    live_on(house, 8 * 24, commits_every_h=1)
    done = [task.created_at for task in expiries(house)]
    assert len(done) >= 5
    assert min(later - earlier for earlier, later in pairwise(done)) >= expiry_gain.LONGEST_MS
    assert max(ages_h(house)) <= 48 + 2 + 24 + 2  # of age, by marks that may be late, a day later, and at a look
    looked = house.control.maintainer.look(NAME, plan_anew=True)
    (said,) = looked.upkeep.reasons
    assert said.code in {"too-little-yet", "upkeep-lately"}
    assert said.text.startswith("Automatic expiry of snapshots: ")


def test_a_look_that_found_nothing_is_not_repeated_at_each_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    house = lakehouse()
    live_on(house, 3 * 24, commits_every_h=1)
    asked_at: set[int] = set()  # twice by one look where something may expire: without and with what tasks hold
    right = decide_expiry

    def counted(*args: Any, **more: Any) -> ExpiryDecision:
        asked_at.add(house.clock.now())
        return right(*args, **more)

    monkeypatch.setattr(expiry_planner, "decide_expiry", counted)
    for _ in range(3 * 60):
        house.append(1)
        house.pass_time(MINUTE_MS)
        house.control.maintainer.look(NAME)
    assert 2 <= len(asked_at) <= 4
    house.pass_time(MINUTE_MS)
    house.control.maintainer.look(NAME, plan_anew=True)  # a person asks
    assert house.clock.now() in asked_at


@each_case(
    "changed",
    [
        {"icewright.expire-snapshots.enabled": "false"},
        {"icewright.mode": "approve"},
        {"icewright.mode": "observe"},
        {"gc.enabled": "false"},
    ],
)
def test_nothing_expires_by_itself_where_the_owner_does_not_let_it(changed: dict[str, str]) -> None:
    house = lakehouse({})
    house.catalog.set_properties(NAME, {**KEPT_UP, **changed})
    live_on(house, 6 * 24)
    assert expiries(house) == []


def test_it_is_off_until_somebody_wants_it() -> None:
    house = lakehouse({**AUTO, "history.expire.max-snapshot-age-ms": str(DAY_MS)})
    live_on(house, 6 * 24)
    assert expiries(house) == []


@pytest.mark.parametrize("back_ms", [50 * 365 * DAY_MS, 3 * DAY_MS])
def test_l3_a_writer_whose_clock_is_behind_loses_nothing(back_ms: int) -> None:
    house = lakehouse()
    house.writers_clock.ahead_ms = -min(back_ms, house.clock.now() - 1)
    live_on(house, 36)
    assert expiries(house) == []


def test_e11_l3_a_table_that_was_never_seen_before_is_left_alone_for_its_age() -> None:
    house = lakehouse(KEPT_UP)
    for _ in range(20):
        house.append(1)
        house.pass_time(DAY_MS)
    live_on(house, 36, commits_every_h=100)
    assert (expiries(house), house.tables.waiting(limit=9)) == ([], [])
    live_on(house, 24, commits_every_h=100)
    (task,) = house.approve_all()
    house.rounds(2)
    assert [(one.task_id, one.state) for one in expiries(house)] == [(task.task_id, TaskState.SUCCEEDED)]


def test_e5_a_tag_and_a_rollback_keep_what_they_need() -> None:
    house = lakehouse()
    live_on(house, 12)
    tagged = house.catalog.load(NAME).snapshots[0].snapshot_id
    house.catalog.set_ref(NAME, "v1", tagged, kind=RefKind.TAG)
    live_on(house, 6 * 24)
    assert tagged in {one.snapshot_id for one in house.catalog.load(NAME).snapshots}
    assert {task.state for task in expiries(house)} == {TaskState.SUCCEEDED}


def test_a_waiting_expiry_is_withdrawn_when_the_owner_turns_it_off() -> None:
    house = lakehouse()
    house.carry_out_nothing()
    live_on(house, 4 * 24)
    (waiting,) = [task for task in expiries(house) if task.state is TaskState.QUEUED]
    house.catalog.set_properties(NAME, {"icewright.expire-snapshots.enabled": "false"})
    house.pass_time(2 * HOUR_MS)
    house.control.loop.round()
    task = house.tasks.get(waiting.task_id)
    assert task.state is TaskState.SUPERSEDED
    assert not_none(task.outcome).reason.code == "upkeep-off"


def test_work_on_files_comes_first_and_is_not_disturbed() -> None:
    house = lakehouse()
    live_on(house, 3 * 24)
    house.append(12)
    house.pass_time(10 * MINUTE_MS)
    house.control.loop.round()
    worker, spec = at_work(house)
    house.pass_time(HOUR_MS // 60)
    for _ in range(3):
        house.control.loop.round()
    assert spec.rewrite.base_snapshot_id in {one.snapshot_id for one in house.catalog.load(NAME).snapshots}
    assert worker.commit(spec) is not None


OF_THE_HOUSEKEEPER = [point for point in Fault if point.startswith("housekeeper.")]


@each_case("point", OF_THE_HOUSEKEEPER)
def test_a_server_that_dies_there_has_expired_once_and_the_right_snapshots(point: Fault) -> None:
    house, quiet = lakehouse(), lakehouse()
    deaths: list[Fault] = []

    def die(at: Fault) -> None:
        if at is point and not deaths:
            deaths.append(at)
            raise SystemExit(at.value)

    arm(die)
    try:
        with pytest.raises(SystemExit):
            live_on(house, 4 * 24)
    finally:
        arm(None)
    died_at = house.clock.now()
    house.restart()
    live_on(quiet, 4 * 24)
    live_on(house, (quiet.clock.now() - died_at) // HOUR_MS, commits_every_h=1_000)
    assert deaths == [point]
    assert {task.state for task in expiries(house)} == {TaskState.SUCCEEDED}
    gone = [one for task in expiries(house) for one in expired_by(task)]
    assert len(gone) == len(set(gone)) > 0
    assert set(gone).isdisjoint(one.snapshot_id for one in house.catalog.load(NAME).snapshots)


def expired_by(task: Task) -> tuple[int, ...]:
    assert isinstance(task.action, ExpireSnapshots)
    return task.action.snapshot_ids


def test_a_waiting_expiry_is_withdrawn_when_the_owner_wants_more_to_stay() -> None:
    for changed in (
        {"history.expire.max-snapshot-age-ms": str(30 * DAY_MS)},
        {"history.expire.min-snapshots-to-keep": "50"},
        {"icewright.expire-snapshots.max-hold": "P90D"},
    ):
        house = lakehouse()
        house.carry_out_nothing()
        live_on(house, 4 * 24)
        (waiting,) = [task for task in expiries(house) if task.state is TaskState.QUEUED]
        house.catalog.set_properties(NAME, changed)
        house.pass_time(2 * HOUR_MS)
        house.control.loop.round()
        assert not_none(house.tasks.get(waiting.task_id).outcome).reason.code == "upkeep-changed"


def test_a_refused_plan_is_said_and_the_table_waits_for_its_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    house = lakehouse()
    monkeypatch.setattr(expiry_planner, "check_expiry", lambda *_, **__: (("wrong", "it is wrong"),))
    live_on(house, 4 * 24)
    house.control.loop.round()
    record = not_none(house.tables.record_by_name(NAME))
    assert "it is wrong" in not_none(record.problem).text
    assert record.next_look_at > house.clock.now()
    assert expiries(house) == []


def test_w9_rewrites_that_come_to_nothing_are_parked_although_expiries_succeed_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expiry_gain, "LEAST", 1)
    house = lakehouse()
    live_on(house, 3 * 24)
    worker, rewrites = Worker(house), 0
    for _ in range(48):
        house.append(6)
        house.pass_time(HOUR_MS)
        house.control.loop.round()
        spec = worker.claim_if_any()
        if spec is not None:
            rewrites += 1
            worker.report(spec, FINAL)
    assert len(expiries(house)) > 5
    assert rewrites <= 5 + 2  # one more for each day that it is let through
    record = not_none(house.tables.record_by_name(NAME))
    assert not_none(record.problem).code == "parked"


def test_many_rewrites_do_not_hide_when_it_was_last_done() -> None:
    house = lakehouse()
    live_on(house, 3 * 24)
    (*_, last) = expiries(house)
    metadata = house.catalog.load(NAME)
    rewrites = [
        replace(last, task_id=f"task-9{number:05d}", prediction=REWRITE, state=TaskState.SUPERSEDED)
        for number in range(40)
    ]
    keeper = house.control.maintainer
    mixed = [*reversed(rewrites), *reversed(expiries(house))][:20]
    assert keeper._of_kind(mixed, metadata.table_id, ActionKind.EXPIRE_SNAPSHOTS)[0].task_id == last.task_id
    assert len(keeper._of_kind(mixed[:3], metadata.table_id, ActionKind.REWRITE_DATA_FILES)) == 3
