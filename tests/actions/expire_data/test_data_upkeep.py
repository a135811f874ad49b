"""Automatic expiry of data where its owner lets it, a little at a time, and never what somebody took back."""

from __future__ import annotations

import pytest

from icewright.core.errors import Conflict
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_data import TAG_AGE_MS, ExpireData, ExpiringFile
from icewright.model.work.jobs import Heartbeat
from icewright.model.work.tasks import COMMITTING, Progress, Task, TaskState
from icewright.plans.upkeep_due import UPKEEP_PRIORITY
from tests.actions.expire_data.test_data_service import DAY_MS, day, delete, house, plan, tag
from tests.builders.lakehouse import HOUR_MS, MIB, NAME, Lakehouse
from tests.builders.worker import Worker, verified

__all__ = ["house"]
ENABLED = {"icewright.expire-data.enabled": "true"}


def tasks(house: Lakehouse) -> list[Task]:
    return [task for task in house.all_tasks() if task.kind is ActionKind.EXPIRE_DATA]


def said(house: Lakehouse) -> str:
    (reason,) = house.control.maintainer.look(NAME, plan_anew=True).upkeep.reasons
    assert reason.text.startswith("Automatic expiry of data: ")
    return reason.code


def expiring(task: Task) -> tuple[ExpiringFile, ...]:
    assert isinstance(task.action, ExpireData)
    return task.action.files


def begin(house: Lakehouse) -> Task:
    """The first time it waits for a person, who lets it go."""
    house.control.loop.round()
    assert (tasks(house), said(house)) == ([], "first-expiry")
    (task,) = house.approve_all()
    assert (task.state, task.was_asked_for, len(house.tables.waiting(limit=9))) == (TaskState.QUEUED, False, 0)
    assert isinstance(task.action, ExpireData)
    assert len(task.action.partitions) == 2
    return task


def expire(house: Lakehouse, *, age_ms: int = TAG_AGE_MS) -> Task:
    spec = Worker(house).claimed()
    tag(house, spec, age_ms=age_ms)
    return verified(house, spec, delete(house, spec))


def test_x1_it_expires_once_and_not_again_before_it_is_old(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, ENABLED)
    begin(house)
    assert expire(house).state is TaskState.SUCCEEDED
    assert said(house) == "upkeep-lately"
    house.pass_time(2 * HOUR_MS)
    assert said(house) == "expired-lately"
    house.pass_time(20 * HOUR_MS)
    assert said(house) == "nothing-expires"
    house.pass_time(11 * DAY_MS)
    house.append(1, day(house, 0))
    house.control.loop.round()
    (task, _) = sorted(tasks(house), key=lambda each: each.task_id, reverse=True)
    assert (task.state, task.priority, task.was_asked_for) == (TaskState.QUEUED, UPKEEP_PRIORITY, False)
    assert isinstance(task.action, ExpireData)
    assert len(task.action.partitions) == 1


def test_x3_nothing_goes_by_itself_unless_its_owner_says_so(house: Lakehouse) -> None:
    house.control.loop.round()
    assert tasks(house) == []
    house.catalog.set_properties(NAME, {**ENABLED, "icewright.mode": "approve"})
    house.pass_time(2 * HOUR_MS)
    house.rounds(3, every_ms=HOUR_MS)
    assert tasks(house) == []


def test_x3_what_was_approved_does_not_go_once_its_owner_switches_it_off(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, ENABLED)
    task = begin(house)
    files = house.catalog.live_files(NAME)
    house.catalog.set_properties(NAME, {"icewright.expire-data.enabled": "false"})
    assert Worker(house).claim_if_any() is None
    ended = house.tasks.get(task.task_id)
    assert (ended.state, ended.outcome and ended.outcome.reason.code) == (TaskState.SUPERSEDED, "upkeep-off")
    assert house.catalog.live_files(NAME) == files


def test_x3_nor_does_it_when_they_do_so_between_its_claim_and_its_commit(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, ENABLED)
    begin(house)
    spec = Worker(house).claimed()
    commits = Heartbeat(spec.fencing_token, Progress(COMMITTING, 0, 1))
    house.catalog.set_properties(NAME, {"icewright.expire-data.enabled": "false"})
    assert house.control.dispatcher.heartbeat(spec.task_id, commits).cancel
    stopped = house.tasks.get(spec.task_id)
    assert stopped.cancel_requested


def test_x3_what_a_person_asked_for_goes_whether_or_not_it_happens_by_itself(house: Lakehouse) -> None:
    house.control.dispatcher.apply(plan(house).plan_id)
    assert expire(house).state is TaskState.SUCCEEDED


def test_x1_more_than_a_tenth_waits_for_a_person(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, {**ENABLED, "icewright.expire-data.older-than": "P10D"})
    house.control.loop.round()
    assert tasks(house) == []
    assert said(house) == "beyond-budget"


def test_x1_a_server_that_is_ahead_of_its_store_lets_nothing_expire(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, ENABLED)
    house.server_clock.ahead_ms = 5 * HOUR_MS
    assert said(house) == "clock-ahead"
    assert tasks(house) == []


def test_i12_what_was_rolled_back_does_not_expire_again_by_itself(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, ENABLED)
    begin(house)
    task = expire(house)
    before = house.metadata().snapshots[-2].snapshot_id
    house.catalog.set_ref(NAME, "main", before)
    house.pass_time(2 * HOUR_MS)
    assert said(house) == "taken-back"
    house.rounds(3, every_ms=HOUR_MS)
    assert [each.task_id for each in tasks(house)] == [task.task_id]


def test_i12_nor_does_it_when_the_snapshot_that_it_went_with_has_expired(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, ENABLED)
    begin(house)
    task = expire(house)
    *_, before, made = house.metadata().snapshots
    house.catalog.set_ref(NAME, "main", before.snapshot_id)
    house.catalog.expire(NAME, [made.snapshot_id])
    house.pass_time(2 * DAY_MS)
    files = house.catalog.live_files(NAME)
    assert said(house) == "taken-back"
    house.rounds(3, every_ms=HOUR_MS)
    assert [each.task_id for each in tasks(house)] == [task.task_id]
    assert house.catalog.live_files(NAME) == files
    (waiting,) = house.tables.waiting(limit=9)
    house.rounds(15, every_ms=HOUR_MS)
    assert list(house.tables.waiting(limit=9)) == [waiting]  # planned anew once a day, as what waits for the first time
    house.rounds(6, every_ms=HOUR_MS)
    assert [one.plan_id == waiting.plan_id for one in house.tables.waiting(limit=9)] == [False]
    # A person may want it all the same, and from then on it goes on by itself.
    house.control.dispatcher.apply(plan(house).plan_id)
    assert expire(house, age_ms=20 * DAY_MS).state is TaskState.SUCCEEDED
    house.pass_time(2 * DAY_MS)
    assert said(house) == "nothing-expires"


def test_i12_what_came_back_and_was_rewritten_since_waits_for_a_person_too(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, ENABLED)
    begin(house)
    gone = expire(house)
    house.control.dispatcher.apply(house.control.undoer.plan(gone.task_id).plan_id)
    house.rounds(3)
    *_, made = house.metadata().snapshots
    house.catalog.expire(NAME, [made.snapshot_id])
    came = [file.path for file in expiring(gone)]
    house.catalog.overwrite(NAME, add=house.files(1, day(house, 40), 600 * MIB), remove=came)
    house.pass_time(2 * DAY_MS)
    files = house.catalog.live_files(NAME)
    assert set(files).isdisjoint(came)
    assert said(house) == "taken-back"
    house.rounds(30, every_ms=HOUR_MS)
    assert (len(tasks(house)), house.catalog.live_files(NAME)) == (1, files)
    (waiting,) = house.tables.waiting(limit=9)
    assert (waiting.kind, waiting.reason.code) == (ActionKind.EXPIRE_DATA, "taken-back")


def test_i12_what_came_back_and_is_gone_since_waits_no_more(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, ENABLED)
    begin(house)
    expire(house)
    *_, before, made = house.metadata().snapshots
    house.catalog.set_ref(NAME, "main", before.snapshot_id)
    house.catalog.expire(NAME, [made.snapshot_id])
    house.pass_time(2 * DAY_MS)
    house.control.loop.round()
    (waiting,) = house.tables.waiting(limit=9)
    (action,) = house.tables.plan(waiting.plan_id).actions
    assert isinstance(action, ExpireData)
    house.catalog.overwrite(NAME, add=[], remove=[file.path for file in action.files])
    house.rounds(24, every_ms=HOUR_MS)
    assert (said(house), list(house.tables.waiting(limit=9))) == ("nothing-expires", [])


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"icewright.expire-data.older-than": "P45D"}, "upkeep-changed"),
        ({"icewright.expire-data.enabled": "false"}, "upkeep-off"),
    ],
)
def test_x3_an_owner_is_heard_by_what_is_queued_and_by_what_waits(
    house: Lakehouse, changed: dict[str, str], code: str
) -> None:
    house.catalog.set_properties(NAME, ENABLED)
    house.control.loop.round()
    house.catalog.set_properties(NAME, changed)
    with pytest.raises(Conflict, match="the policy"):
        house.approve_all()
    assert (tasks(house), list(house.tables.waiting(limit=9))) == ([], [])  # it does not wait to be refused again
    house.catalog.set_properties(NAME, {**ENABLED, "icewright.expire-data.older-than": "P30D"})
    house.pass_time(HOUR_MS)
    house.control.loop.round()
    house.approve_all()
    expire(house)
    house.pass_time(12 * DAY_MS)
    house.append(1, day(house, 0))
    house.control.loop.round()
    assert [task.state for task in tasks(house)] == [TaskState.SUCCEEDED, TaskState.QUEUED]
    house.catalog.set_properties(NAME, changed)
    assert Worker(house).claim_if_any() is None
    task = tasks(house)[-1]
    assert (task.state, task.outcome and task.outcome.reason.code) == (TaskState.SUPERSEDED, code)
