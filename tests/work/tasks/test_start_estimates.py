"""About when a queued task starts: by what is known, and where that is too little, it is said what is missing."""

from dataclasses import replace

import pytest

from icewright.core.times import Window
from icewright.model.actions.actions import ActionKind
from icewright.model.policy.resource_groups import Queue, ResourceGroup, TenantCaps
from icewright.model.work.admission import Lane
from icewright.model.work.halts import HaltState, Part, PartKind
from icewright.model.work.jobs import ANY_TASK
from icewright.model.work.tasks import AttemptState, Task, TaskState
from icewright.model.work.why import StartEstimate
from icewright.ports import admissions
from icewright.ports.store import Change
from icewright.work.tasks.expected_start import MEASURED_MIN
from tests.builders.lakehouse import HOUR_MS, MINUTE_MS, SECOND_MS, Lakehouse
from tests.builders.worker import RETRYABLE, Worker
from tests.cases import each_case
from tests.contracts.samples import OF_SLOTS, OUTCOME, new_task
from tests.narrowing import not_none
from tests.work.groups.test_queue_waits import ask, introduce, lakehouse, run_one

TOOK_MS = 4 * MINUTE_MS


def measured(*groups: ResourceGroup, tables: int = 2, took: int = MEASURED_MIN, **properties: str) -> Lakehouse:
    """A lakehouse in which tables wait, and so many tasks of others of the group have ended."""
    house = lakehouse(*groups, tables=tables, **properties)
    past(house, took)
    return house


def past(house: Lakehouse, count: int, group: str = "default") -> None:
    """So many tasks of tables that nobody asks about, each of which took four minutes."""
    for number in range(count):
        new = new_task(f"past-{group}-{number}", table=1_000 + number, catalog="past", resource_group=group)
        house.tasks.enqueue(new)
        task = not_none(house.tasks.claim("o", resource_group=group, catalogs=frozenset({"past"}), lease_ms=HOUR_MS))
        house.clock.advance(TOOK_MS)
        house.tasks.change(Change(task.task_id, task.version, TaskState.FAILED, OUTCOME, AttemptState.FAILED))


def queued(house: Lakehouse) -> list[Task]:
    found = [task for task in house.all_tasks() if task.state is TaskState.QUEUED]
    return sorted(found, key=lambda task: task.task_id)


def starts(house: Lakehouse) -> list[StartEstimate]:
    control = house.control
    found = [control.starts.of(task, control.queue_waits.of(task)) for task in queued(house)]
    return [one for one in found if one is not None]


def in_ms(house: Lakehouse) -> list[int | None]:
    return [None if one.at is None else one.at - house.clock.now() for one in starts(house)]


def test_what_does_not_wait_does_not_start() -> None:
    house = lakehouse(tables=1)
    running = run_one(house)
    assert house.control.starts.of(running, ()) is None


def test_a_free_slot_needs_no_history() -> None:
    house = lakehouse(tables=1)
    introduce(house)
    assert in_ms(house) == [0]
    (one,) = starts(house)
    assert one.reason.code == "estimated"
    assert one.reason.figures == {"before": 0, "at_work": 0, "slots": 1}


def test_one_after_the_other_as_the_last_ones_took() -> None:
    house = measured(tables=3)
    introduce(house)
    assert in_ms(house) == [0, TOOK_MS, 2 * TOOK_MS]
    last = starts(house)[-1]
    assert last.reason.figures == {
        "before": 2,
        "at_work": 0,
        "slots": 1,
        "measured": MEASURED_MIN,
        "since": last.reason.figures["since"],
        "took_ms": TOOK_MS,
        "took_low_ms": TOOK_MS,
        "took_high_ms": TOOK_MS,
    }
    assert "2 tasks rank before it" in last.reason.text
    assert f"the last {MEASURED_MIN} of group default" in last.reason.text


def test_what_runs_has_to_end_first() -> None:
    house = measured()
    run_one(house)
    assert in_ms(house) == [TOOK_MS]
    house.clock.advance(MINUTE_MS)
    introduce(house)
    assert in_ms(house) == [TOOK_MS - MINUTE_MS]


def test_all_optimizers_take_tasks_of_it() -> None:
    house = measured(tables=3)
    for name in ("optimizer-a", "optimizer-b"):
        Worker(house, name).introduce()
    assert in_ms(house) == [0, 0, TOOK_MS]


def test_no_more_at_once_than_the_group_may_hold() -> None:
    house = measured(ResourceGroup("default", tasks_max=1), tables=3)
    for name in ("optimizer-a", "optimizer-b"):
        Worker(house, name).introduce()
    assert in_ms(house) == [0, TOOK_MS, 2 * TOOK_MS]


def test_a_cap_ends_when_what_holds_it_ends() -> None:
    house = measured(ResourceGroup("default", cores=3), tables=3)
    run_one(house)
    Worker(house, "optimizer-b").introduce()
    assert in_ms(house) == [TOOK_MS, 2 * TOOK_MS]


def test_a_cap_that_nobody_can_reckon_with_has_no_end() -> None:
    house = measured(ResourceGroup("default", cores=3), tables=1)
    introduce(house, cores=None)
    (one,) = starts(house)
    assert (one.at, one.soonest_at, one.reason.code) == (None, None, "cap")


def test_under_a_cap_of_its_owner_it_waits_for_its_owners_tasks_alone() -> None:
    group = ResourceGroup("default", tenants=(TenantCaps("sales", tasks_max=1),))
    house = measured(group, tables=3, owner="sales")
    for number in range(4):
        other = replace(new_task(f"other-{number}", table=500 + number, catalog="past"), lane=Lane(tenant="ops"))
        house.tasks.enqueue(other)
    run_one(house)
    own = [start for task, start in zip(queued(house), starts(house), strict=True) if task.lane.tenant == "sales"]
    assert [(start.at or 0) - house.clock.now() for start in own] == [TOOK_MS, 2 * TOOK_MS]


def test_other_owners_have_their_turns() -> None:
    house = measured(tables=2)
    for number in range(4):
        other = replace(new_task(f"other-{number}", table=500 + number), lane=Lane(tenant="ops"))
        house.tasks.enqueue(other)
    introduce(house)
    own = [start for task, start in zip(queued(house), starts(house), strict=True) if not task.lane.tenant]
    assert [start.reason.figures["before"] for start in own] == [1, 3]


def test_too_little_was_measured() -> None:
    house = measured(took=MEASURED_MIN - 1)
    introduce(house)
    one = starts(house)[-1]
    assert (one.at, one.soonest_at, one.reason.code) == (None, house.clock.now(), "not-measured")
    assert one.reason.figures == {"before": 1, "measured": MEASURED_MIN - 1}


def test_another_group_tells_nothing() -> None:
    house = lakehouse()
    past(house, MEASURED_MIN, group="etl")
    introduce(house)
    assert starts(house)[-1].reason.code == "not-measured"


@each_case("state", HaltState)
def test_nobody_knows_when_a_person_resumes(state: HaltState) -> None:
    house = measured(tables=1)
    introduce(house)
    house.control.halting.halt(Part(PartKind.GROUP, "default"), state, "a move")
    (one,) = starts(house)
    assert (one.at, one.reason.code) == (None, state.value)
    assert one.reason.text.endswith(": a move")


def test_nobody_knows_when_an_optimizer_comes_or_takes_its_queue() -> None:
    house = measured(tables=1)
    assert [one.reason.code for one in starts(house)] == ["no-optimizer"]
    introduce(house, queues=(Queue.LARGE,))
    assert [one.reason.code for one in starts(house)] == ["queue"]
    assert in_ms(house) == [None]


def test_a_submitter_runs_as_many_at_once_as_it_may() -> None:
    house = measured(tables=4)
    ask(house)
    assert in_ms(house) == [0, 0, TOOK_MS, TOOK_MS]
    assert starts(house)[0].reason.text.endswith("until its application is up was not measured, and is not in it")


def test_a_group_lets_no_more_applications_run_than_it_says() -> None:
    house = measured(ResourceGroup("default", applications_max=1), tables=2)
    ask(house)
    assert in_ms(house) == [0, TOOK_MS]


def test_not_before_a_pause_is_over() -> None:
    house = measured(tables=1)
    worker = Worker(house, "optimizer-b")
    worker.introduce()
    worker.report(worker.claimed(), RETRYABLE)
    (task,), (one,) = queued(house), starts(house)
    assert task.not_before_at > house.clock.now()
    assert one.at == task.not_before_at


def test_a_window_opens_before_the_queue_moves() -> None:
    house = measured(tables=2)
    hour = house.clock.now() // HOUR_MS
    house.groups = (ResourceGroup("default", windows=(Window(f"0 {(hour + 3) % 24} * * *", "UTC", HOUR_MS),)),)
    house.restart()
    introduce(house)
    opens_at = (hour + 3) * HOUR_MS
    assert [one.at for one in starts(house)] == [opens_at, opens_at + TOOK_MS]


def test_its_table_has_to_be_free() -> None:
    house = measured(tables=1)
    worker = Worker(house)
    worker.introduce()
    worker.claimed()
    (running,) = [task for task in house.all_tasks() if task.state is TaskState.RUNNING]
    house.clock.advance(SECOND_MS)
    other = replace(running, task_id="other", state=TaskState.QUEUED, lease=None, resource_group="server")
    house.tasks._tasks["other"] = other  # type: ignore[attr-defined]  # of the table that is at work, in the server's own group
    waits = house.control.queue_waits.of(other)
    one = not_none(house.control.starts.of(other, waits))
    assert (one.at or 0) - house.clock.now() == TOOK_MS - SECOND_MS
    assert one.reason.figures["busy_ms"] == TOOK_MS - SECOND_MS


def test_where_it_wants_both_slots_both_have_to_be_free() -> None:
    house = measured(tables=1)
    worker = Worker(house)
    worker.introduce()
    worker.claimed()
    (running,) = [task for task in house.all_tasks() if task.state is TaskState.RUNNING]
    house.clock.advance(SECOND_MS)
    action, prediction = OF_SLOTS[ActionKind.COMPUTE_STATISTICS]
    later = replace(running, task_id="later", action=action, prediction=prediction, updated_at=house.clock.now())
    action, prediction = OF_SLOTS[ActionKind.EXPIRE_SNAPSHOTS]
    other = replace(
        running,
        task_id="other",
        action=action,
        prediction=prediction,
        state=TaskState.QUEUED,
        lease=None,
        resource_group="server",
    )
    house.tasks._tasks.update(later=later, other=other)  # type: ignore[attr-defined]  # beside the one that is at work
    one = not_none(house.control.starts.of(other, house.control.queue_waits.of(other)))
    assert one.reason.figures["busy_ms"] == TOOK_MS


def test_a_line_that_is_too_long_to_count_tells_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    house = measured(tables=3)
    introduce(house)
    monkeypatch.setattr("tests.doubles.task_store.AHEAD_MAX", 1)
    one = starts(house)[-1]
    assert (one.at, one.latest_at) == (None, None)
    assert one.soonest_at == house.clock.now() + TOOK_MS
    assert "1 task or more rank before it" in one.reason.text
    assert admissions.AHEAD_MAX > admissions.TOOK_MAX


def test_a_claim_bears_it_out() -> None:
    """What is told to start first does, and what is told to wait does not start before that has ended."""
    house = measured(tables=2)
    introduce(house)
    first, second = queued(house)
    assert in_ms(house) == [0, TOOK_MS]
    spec = not_none(house.control.dispatcher.claim("optimizer-a", ANY_TASK))
    assert (spec.task_id, house.tasks.get(second.task_id).state) == (first.task_id, TaskState.QUEUED)
