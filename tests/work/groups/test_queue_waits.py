"""What a queued task waits for: told by the functions that decide it, over what is true."""

from dataclasses import replace

import pytest

from icewright.core.times import Window
from icewright.model.actions.actions import OPTIMIZER_ACTIONS, ActionKind
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Reason
from icewright.model.policy.resource_groups import SERVER, Queue, ResourceGroup, TenantCaps
from icewright.model.work.admission import Lane
from icewright.model.work.halts import HaltState, PartKind
from icewright.model.work.jobs import ANY_TASK
from icewright.model.work.optimizers import BacklogRequest, Submitting
from icewright.model.work.tasks import Task, TaskState
from icewright.model.work.why import Wait
from tests.builders.lakehouse import AUTO, HOUR_MS, MINUTE_MS, Lakehouse
from tests.builders.worker import RETRYABLE, Worker, hello
from tests.contracts.samples import of_kind


def lakehouse(*groups: ResourceGroup, tables: int = 2, **properties: str) -> Lakehouse:
    house = Lakehouse(groups=groups)
    for number in range(tables):
        house.ready_table(TableName("lake", ("db",), f"t{number}"), {**AUTO, **properties})
    house.rounds(3)
    return house


def introduce(house: Lakehouse, **more: object) -> None:
    house.control.dispatcher.hello(replace(hello("optimizer-a"), slots=1, **more))  # type: ignore[arg-type]  # by name


def run_one(house: Lakehouse) -> Task:
    introduce(house)
    spec = house.control.dispatcher.claim("optimizer-a", ANY_TASK)
    assert spec is not None
    return house.tasks.get(spec.task_id)


def waits(house: Lakehouse) -> list[tuple[Wait, ...]]:
    queued = [task for task in house.all_tasks() if task.state is TaskState.QUEUED]
    return [house.control.queue_waits.of(task) for task in sorted(queued, key=lambda task: task.task_id)]


def codes(house: Lakehouse) -> list[list[str]]:
    return [[wait.reason.code for wait in found] for found in waits(house)]


@pytest.fixture
def house() -> Lakehouse:
    return lakehouse(tables=1)


def test_nobody_asks_for_it(house: Lakehouse) -> None:
    assert codes(house) == [["no-optimizer"]]
    introduce(house)
    assert codes(house) == [[]]
    house.clock.advance(6 * MINUTE_MS)
    assert codes(house) == [["no-optimizer"]]


def test_each_halt_that_keeps_it_is_named_the_one_that_lets_least_go_on_first(house: Lakehouse) -> None:
    introduce(house)
    halting, table = house.control.halting, "lake.db.t0"
    halting.halt(halting.part(PartKind.TABLE, table), HaltState.PAUSED, "")
    halting.halt(halting.part(PartKind.GROUP, "default"), HaltState.DRAINING, "")
    assert codes(house) == [["draining", "paused"]]
    halting.resume(halting.part(PartKind.GROUP, "default"), "")
    assert codes(house) == [["paused"]]


def ask(house: Lakehouse, applications: int = 0, catalog: str = "lake", cores: int = 2) -> None:
    """A submitter asks what waits."""
    submitting = Submitting("submitter-1", "edge-1", applications, 2)
    asked = BacklogRequest("default", cores, 2**30, submitting=submitting, actions=OPTIMIZER_ACTIONS)
    house.control.backlogs.of(asked, frozenset({catalog}))


class TestSubmitters:
    """Who starts an application for each task is nobody's optimizer, and starts one."""

    def test_a_submitter_that_asked_lately_starts_one(self, house: Lakehouse) -> None:
        ask(house)
        house.clock.advance(3_000)
        for _ in range(2):
            ((wait,),) = waits(house)
            assert wait.reason.code == "to-be-submitted"
            assert "submitter submitter-1 on edge-1, which asked what waits 3.0 s ago" in wait.reason.text
            assert wait.reason.text.endswith("and has 0 of at most 2 applications, starts one for it")
            house.restart()  # the next server knows of it as well
        house.clock.advance(5 * MINUTE_MS)
        assert codes(house) == [["no-optimizer"]]

    def test_one_that_may_start_no_more_has_to_see_one_end(self, house: Lakehouse) -> None:
        ask(house, applications=2)
        ((wait,),) = waits(house)
        assert wait.reason.text.endswith("starts one for it when one of these has ended")
        assert (wait.reason.figures["applications"], wait.reason.figures["applications_max"]) == (2, 2)

    def test_it_comes_beside_the_place_in_line(self) -> None:
        house = lakehouse(tables=2)
        ask(house)
        assert codes(house) == [["to-be-submitted"], ["line", "to-be-submitted"]]

    def test_one_of_another_catalog_starts_none(self, house: Lakehouse) -> None:
        ask(house, catalog="other")
        assert codes(house) == [["no-optimizer"]]

    def test_its_applications_are_held_to_the_caps(self) -> None:
        house = lakehouse(ResourceGroup("default", cores=3), tables=1)
        ask(house, cores=4)
        assert codes(house) == [["cap"]]

    def test_an_optimizer_that_stays_takes_it_at_once(self, house: Lakehouse) -> None:
        ask(house)
        introduce(house)
        assert codes(house) == [[]]

    def test_an_application_of_its_that_was_heard_of_has_another_task(self, house: Lakehouse) -> None:
        introduce(house, is_resident=False)
        assert codes(house) == [[]]
        ask(house)
        assert codes(house) == [["to-be-submitted"]]

    def test_its_group_can_be_halted(self, house: Lakehouse) -> None:
        submitting = Submitting("submitter-1", "edge-1", 0, 2)
        house.control.backlogs.of(
            BacklogRequest("etl", submitting=submitting, actions=OPTIMIZER_ACTIONS), frozenset({"lake"})
        )
        assert "etl" in house.control.halting.groups()

    def test_what_is_said_again_is_noted_every_ten_seconds_alone(self, house: Lakehouse) -> None:
        noted = house.control.tables.submitters.noted
        ask(house)
        first = noted()
        house.clock.advance(9_000)
        ask(house)
        assert noted() == first
        ask(house, applications=1)
        assert noted()[0].asked_at == house.clock.now()
        house.clock.advance(10_000)
        ask(house, applications=1)
        assert noted()[0].asked_at == house.clock.now()

    def test_who_does_not_say_who_it_is_is_not_noted(self, house: Lakehouse) -> None:
        house.control.backlogs.of(BacklogRequest("default", actions=OPTIMIZER_ACTIONS), frozenset({"lake"}))
        assert house.control.tables.submitters.noted() == []


def test_what_runs_waits_for_nothing(house: Lakehouse) -> None:
    assert house.control.queue_waits.of(run_one(house)) == ()


def test_a_cap_and_which_tasks_hold_it() -> None:
    house = lakehouse(ResourceGroup("default", cores=3))
    running = run_one(house)
    ((wait,),) = waits(house)
    assert wait.reason.code == "cap"
    assert wait.reason.figures == {"cap": 3, "held": 2, "needs": 2, "of": "cores", "held_by": running.task_id}
    assert running.task_id in wait.reason.text


def test_a_cap_of_the_owner() -> None:
    house = lakehouse(ResourceGroup("default", tenants=(TenantCaps("sales", tasks_max=1),)), owner="sales")
    running = run_one(house)
    ((wait,),) = waits(house)
    assert (wait.reason.code, wait.reason.figures["held_by"]) == ("tenant-cap", running.task_id)


def test_its_place_in_line() -> None:
    house = lakehouse(tables=3)
    introduce(house)
    assert codes(house) == [[], ["line"], ["line"]]
    assert [wait.reason.figures["place"] for found in waits(house) for wait in found] == [2, 3]


def test_a_window_and_when_it_opens(house: Lakehouse) -> None:
    now = house.clock.now()
    hour = now // HOUR_MS % 24
    shut = ResourceGroup("default", windows=(Window(f"0 {(hour + 3) % 24} * * *", "UTC", HOUR_MS),))
    house.groups = (shut,)
    house.restart()
    for _ in range(2):
        ((*_, wait),) = waits(house)
        assert (wait.reason.code, wait.until) == ("window-closed", (now // HOUR_MS + 3) * HOUR_MS)
        introduce(house)  # whether anybody asks or not


def test_a_group_that_nobody_defines() -> None:
    house = lakehouse(tables=1, **{"icewright.resource-group": "etl"})
    assert codes(house) == [["no-optimizer", "no-group"]]
    introduce(house, resource_group="etl")
    assert codes(house) == [["no-group"]]


def test_no_optimizer_takes_its_queue(house: Lakehouse) -> None:
    introduce(house, queues=(Queue.LARGE,))
    assert codes(house) == [["queue"]]


def test_a_pause_after_a_try(house: Lakehouse) -> None:
    worker = Worker(house, "optimizer-b")
    worker.introduce()
    worker.report(worker.claimed(), RETRYABLE)
    ((wait,),) = waits(house)
    (task,) = house.all_tasks()
    assert (wait.reason.code, wait.until) == ("back-off", task.not_before_at)


def test_another_task_of_the_table(house: Lakehouse) -> None:
    run_one(house)
    (running,) = house.all_tasks()
    manifests = replace(of_kind("other", ActionKind.REWRITE_MANIFESTS, table=1), table_id=running.table_id)
    waiting = house.tasks.enqueue(manifests).task
    assert house.control.queue_waits.of(waiting)[0].reason == Reason(
        "table-busy",
        f"task {running.task_id} (rewrite_data_files) of the same table is at work: one at a time",
        {"task_id": running.task_id},
    )


def test_a_task_that_needs_the_table_alone_and_goes_first(house: Lakehouse) -> None:
    introduce(house)
    (rewrite,) = house.all_tasks()
    expiry = replace(
        of_kind("expiry", ActionKind.EXPIRE_SNAPSHOTS, table=1), table_id=rewrite.table_id, resource_group=SERVER
    )
    house.tasks.enqueue(expiry)
    house.clock.advance(1)
    statistics = replace(of_kind("statistics", ActionKind.COMPUTE_STATISTICS, table=1), table_id=rewrite.table_id)
    ((wait),) = house.control.queue_waits.of(house.tasks.enqueue(statistics).task)
    assert wait.reason == Reason(
        "table-reserved",
        "task expiry (expire_snapshots) of the same table waits for longer and runs alone: it starts first",
        {"task_id": "expiry"},
    )


def test_no_share_is_kept_for_large_tasks_that_no_optimizer_understands() -> None:
    """Of two tasks at once, half are the large queue's: kept for a kind that somebody understands, and for no other."""
    rewrites = {ActionKind.REWRITE_DATA_FILES.value: OPTIMIZER_ACTIONS[ActionKind.REWRITE_DATA_FILES.value]}
    house = lakehouse(ResourceGroup("default", tasks_max=2, large_share=0.5), tables=2)
    large = of_kind("large", ActionKind.REWRITE_MANIFESTS, table=9)
    house.tasks.enqueue(replace(large, lane=Lane(Queue.LARGE)))
    introduce(house, actions=rewrites)
    others = replace(hello("optimizer-b"), actions=OPTIMIZER_ACTIONS)
    house.control.dispatcher.hello(others)
    assert house.control.dispatcher.claim("optimizer-a", ANY_TASK) is not None
    assert house.control.dispatcher.claim("optimizer-a", ANY_TASK) is None
    assert [found[0].reason.code for found in waits(house) if found] == ["large-share"]
    house.clock.advance(4 * MINUTE_MS)
    introduce(house, actions=rewrites)
    house.clock.advance(2 * MINUTE_MS)  # the other one was not heard of for six minutes
    assert [found[0].reason.code for found in waits(house) if found] == ["not-understood"]
    assert house.control.dispatcher.claim("optimizer-a", ANY_TASK) is not None
