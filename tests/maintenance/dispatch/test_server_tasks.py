"""Tasks that the server carries out itself: as any other, whatever happens to the server meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from icewright.actions.expire_snapshots import expirer
from icewright.actions.expire_snapshots.commit import EXPIRY_UNSEEN
from icewright.core.errors import Conflict, IcewrightError, NotAllowed, OutcomeUnknown, StorageUnavailable, Unsupported
from icewright.maintenance.dispatch import server_tasks as housekeeper
from icewright.maintenance.dispatch.task_gate import APPROVED
from icewright.maintenance.dispatch.verification import COMMIT_NOT_FOUND, expired
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshots, ExpireSnapshotsPrediction, ExpiryRule, RefAt
from icewright.model.iceberg.tables import RefKind
from icewright.model.plans.plans import Reason
from icewright.model.policy.resource_groups import SERVER
from icewright.model.work.breaker import UNVERIFIED
from icewright.model.work.jobs import Result
from icewright.model.work.tasks import ASKED_FOR, NewTask, Task, TaskState
from icewright.plans.policy_digest import SETTINGS_DIGEST, plan_digest
from tests.builders.lakehouse import LEASE_MS, MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import Worker, hello
from tests.doubles.expiry import MemoryExpiry
from tests.narrowing import of_type
from tests.waiting import until


@dataclass
class Expirer:
    """Expires snapshots as the server does. ``before`` and ``after`` the commit things may happen."""

    house: Lakehouse
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None
    carried: list[str] = field(default_factory=list)

    def carry_out(self, task: Task, may_commit: Callable[[], None]) -> Result:
        self.before()

        def leave() -> None:
            may_commit()
            self.carried.append(task.task_id)

        result = expirer.Expirer(self.house.expiries, self.house.tasks, self.house.kept).carry_out(task, leave)
        self.after()
        return result


@pytest.fixture
def house() -> Lakehouse:
    made = Lakehouse()
    made.create()
    for _ in range(3):
        made.append(1)
    made.carriers[ActionKind.EXPIRE_SNAPSHOTS] = Expirer(made)
    made.restart()
    made.control.loop.round()
    return made


def of(house: Lakehouse) -> Expirer:
    return of_type(Expirer, house.carriers[ActionKind.EXPIRE_SNAPSHOTS])


def queue(house: Lakehouse) -> str:
    """A task that leaves the current snapshot alone."""
    metadata = house.catalog.load(NAME)
    *older, current = [snapshot.snapshot_id for snapshot in metadata.snapshots]
    action = ExpireSnapshots(
        base_metadata_location=metadata.metadata_location,
        base_snapshot_id=current,
        snapshot_ids=tuple(older),
        refs_removed=(),
        refs_seen=tuple(RefAt.of(ref) for ref in metadata.refs),
        retained_snapshot_ids=(current,),
        rule=ExpiryRule(0, 1),
        as_of=house.clock.now() + 1,
    )
    prediction = ExpireSnapshotsPrediction(3, 1, (), 2, "", can_be_undone=False, undo="")
    digest = plan_digest(ActionKind.EXPIRE_SNAPSHOTS, house.control.planner.policy(metadata))
    applied = Reason("old", "old", {APPROVED: 1, ASKED_FOR: "expire_snapshots", SETTINGS_DIGEST: digest})
    new = NewTask(house.ids.new("task"), metadata.table_id, NAME, "plan-x", action, applied, prediction, 0, SERVER, 3)
    return house.tasks.enqueue(new).task.task_id


def settled(house: Lakehouse, task_id: str) -> Task:
    """The task when it has ended, however long that takes."""
    for _ in range(20):
        house.control.loop.round()
        task = house.tasks.get(task_id)
        if task.state in (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED, TaskState.SUPERSEDED):
            return task
        house.pass_time(MINUTE_MS)
    pytest.fail(f"{task_id} does not end")


def raising(error: Exception) -> Callable[[], None]:
    """Raise it once."""
    left = [error]

    def act() -> None:
        if left:
            raise left.pop()

    return act


def snapshots(house: Lakehouse) -> int:
    return len(house.catalog.load(NAME).snapshots)


def test_it_is_carried_out_and_verified(house: Lakehouse) -> None:
    task = settled(house, queue(house))
    assert task.state is TaskState.SUCCEEDED
    assert task.outcome is not None
    assert task.outcome.reason.text == "2 snapshots expired, 1 left"
    assert (task.outcome.reason.figures["snapshots_removed"], snapshots(house)) == (2, 1)


@pytest.mark.parametrize("error", [RuntimeError("killed"), OutcomeUnknown("the answer was lost")])
def test_a_server_that_dies_behind_the_commit_has_done_it_once(house: Lakehouse, error: Exception) -> None:
    of(house).after = raising(error)
    task = settled(house, queue(house))
    assert (task.state, len(of(house).carried), snapshots(house)) == (TaskState.SUCCEEDED, 1, 1)


@pytest.mark.parametrize("error", [RuntimeError("killed"), StorageUnavailable("no answer")])
def test_what_never_reached_the_table_is_tried_again(house: Lakehouse, error: Exception) -> None:
    of(house).before = raising(error)
    task = settled(house, queue(house))
    assert (task.state, task.attempt, snapshots(house)) == (TaskState.SUCCEEDED, 2, 1)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (Conflict("a ref moved"), TaskState.SUPERSEDED),
        (OutcomeUnknown("the answer was lost, and nothing was done"), TaskState.SUPERSEDED),
        (Unsupported("not here"), TaskState.FAILED),
    ],
)
def test_what_is_refused_ends(house: Lakehouse, error: IcewrightError, state: TaskState) -> None:
    of(house).before = raising(error)
    task = settled(house, queue(house))
    assert (task.state, snapshots(house)) == (state, 3)


def test_the_owner_may_stop_it_up_to_the_commit(house: Lakehouse) -> None:
    task_id = queue(house)
    of(house).before = lambda: house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
    assert settled(house, task_id).state is TaskState.CANCELLED
    assert (of(house).carried, snapshots(house)) == ([], 3)


def test_an_attempt_that_took_too_long_commits_nothing(house: Lakehouse) -> None:
    task_id, late = queue(house), [2 * LEASE_MS]
    of(house).before = lambda: house.pass_time(late.pop() if late else 0)
    task = settled(house, task_id)
    assert (task.state, task.attempt, len(of(house).carried)) == (TaskState.SUCCEEDED, 2, 1)


def test_e6_a_lost_ref_that_was_found_is_told_as_a_failed_verification(house: Lakehouse) -> None:
    house.catalog.set_ref(NAME, "v1", house.catalog.load(NAME).snapshots[-1].snapshot_id, kind=RefKind.TAG)
    task = settled(house, queue(house))
    metadata, action = house.catalog.load(NAME), task.action
    assert isinstance(action, ExpireSnapshots)
    assert expired(action, metadata, None).code == "verified"
    assert expired(action, metadata, Reason("refs-lost", "v1")).code == "verification-failed"
    more = replace(action, snapshot_ids=(metadata.snapshots[0].snapshot_id,))
    assert expired(more, metadata, None).code == COMMIT_NOT_FOUND


def test_servers_and_optimizers_tasks_are_not_mixed_up(house: Lakehouse) -> None:
    del house.carriers[ActionKind.EXPIRE_SNAPSHOTS]
    house.carry_out_nothing()
    task_id = queue(house)
    assert Worker(house).claim_if_any() is None
    house.control.loop.round()
    assert house.tasks.get(task_id).state is TaskState.QUEUED
    with pytest.raises(NotAllowed, match="server's own name"):
        house.control.dispatcher.hello(hello(SERVER))


def test_what_nothing_here_carries_out_fails_and_is_in_nobodys_way(house: Lakehouse) -> None:
    del house.carriers[ActionKind.EXPIRE_SNAPSHOTS]
    house.expiries.clear()
    house.restart()
    task = settled(house, queue(house))
    assert (task.state, task.outcome and task.outcome.reason.code) == (TaskState.FAILED, "not-allowed")


def test_tasks_and_their_steps_are_signs_of_life(house: Lakehouse) -> None:
    pulse, heard_at = house.control.loop._pulse, []

    def long() -> None:
        heard_at.append(pulse.doing[0].heard_at)
        house.clock.advance(LEASE_MS // 2)

    of(house).before = long
    of(house).after = lambda: heard_at.append(pulse.doing[0].heard_at)
    pulse.begin("housekeeper", "keep_house")
    begun_at = house.clock.advance(MINUTE_MS)
    assert settled(house, queue(house)).state is TaskState.SUCCEEDED
    assert heard_at == [begun_at, begun_at + LEASE_MS // 2]
    pulse.end()


def test_a_slow_commit_keeps_nothing_else_from_being_done(house: Lakehouse) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def stay() -> None:
        begun.set()
        assert go_on.wait(60)

    of(house).before = stay
    task_id, loop = queue(house), house.control.loop
    turning = threading.Thread(target=loop.run, args=(0.01,))
    turning.start()
    try:
        assert begun.wait(60)
        house.notify(house.append(1))
        loop.wake()
        until(lambda: not house.tables.inbox(1))
        assert house.tasks.get(task_id).state is TaskState.RUNNING
        assert ("housekeeper", "keep_house") in {(one.thread, one.step) for one in loop.doing}
        go_on.set()
        until(lambda: house.tasks.get(task_id).state is TaskState.SUCCEEDED)
    finally:
        go_on.set()
        loop.stop()
        turning.join()


def other_expiry(house: Lakehouse, task_id: str) -> None:
    """Somebody else removes what a task is to, and a tag besides."""
    house.catalog.drop_ref(NAME, "v1")
    action, table_id = house.tasks.get(task_id).action, house.catalog.load(NAME).table_id
    assert isinstance(action, ExpireSnapshots)
    theirs = replace(action, refs_seen=tuple(ref for ref in action.refs_seen if ref.name != "v1"))
    MemoryExpiry(house.catalog).expire(NAME, table_id, theirs, may_commit=lambda: None, keep=lambda _: None)


@pytest.mark.parametrize("under_way", [False, True])
def test_l8_what_somebody_else_expired_first_is_no_alarm(house: Lakehouse, *, under_way: bool) -> None:
    house.catalog.set_ref(NAME, "v1", house.catalog.load(NAME).snapshots[-1].snapshot_id, kind=RefKind.TAG)
    task_id = queue(house)
    if under_way:
        of(house).before = lambda: other_expiry(house, task_id)
    else:
        other_expiry(house, task_id)
    task = settled(house, task_id)
    assert (task.state, of(house).carried, snapshots(house)) == (TaskState.SUPERSEDED, [], 1)


def test_e6_a_new_ref_of_the_old_name_is_no_alarm_and_neither_is_a_log_that_was_trimmed(house: Lakehouse) -> None:
    current = house.catalog.load(NAME).snapshots[-1].snapshot_id
    house.catalog.set_ref(NAME, "old", current, kind=RefKind.TAG)
    action = of_type(ExpireSnapshots, settled(house, queue(house)).action)
    went = replace(action, refs_removed=(RefAt("old", RefKind.TAG, action.snapshot_ids[0]),))
    metadata = house.catalog.load(NAME)
    assert expired(went, metadata, None).code == "verified"
    assert expired(went, metadata, Reason(EXPIRY_UNSEEN, "nobody can tell")).code == UNVERIFIED


def test_a_slow_catalog_does_not_cost_the_attempt_its_lease(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeper, "BEATS_A_LEASE", 3_000)
    task_id = queue(house)

    def keeps_us_waiting() -> None:
        for _ in range(3):
            house.pass_time(LEASE_MS * 2 // 3)
            deadline = time.monotonic() + 30
            while (lease := house.tasks.get(task_id).lease) is None or lease.expires_at < house.clock.now() + LEASE_MS:
                assert time.monotonic() < deadline, "nobody keeps the lease"
                time.sleep(0.01)

    of(house).before = keeps_us_waiting
    task = settled(house, task_id)
    assert (task.state, task.attempt, len(of(house).carried)) == (TaskState.SUCCEEDED, 1, 1)


def test_what_hangs_is_given_up_in_the_end(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeper, "BEATS_A_LEASE", 3_000)
    monkeypatch.setattr(housekeeper, "LEASES_MAX", 0)
    hangs = [True]

    def hang() -> None:
        for _ in range(3 if hangs else 0):
            house.pass_time(LEASE_MS * 2 // 3)
            time.sleep(0.1)
        hangs.clear()

    of(house).before = hang
    task = settled(house, queue(house))
    assert (task.state, task.attempt, len(of(house).carried)) == (TaskState.SUCCEEDED, 2, 1)


def test_a_catalog_that_does_not_answer_is_not_waited_for(house: Lakehouse) -> None:
    task_id, loop = queue(house), house.control.loop
    loop._outages.pause("lake")
    loop.round()
    assert (house.tasks.get(task_id).state, of(house).carried) == (TaskState.QUEUED, [])
    house.pass_time(MINUTE_MS)
    assert settled(house, task_id).state is TaskState.SUCCEEDED
