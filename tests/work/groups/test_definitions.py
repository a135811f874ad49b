"""Resource groups as the services go by them: where tasks wait, and on which terms optimizers claim."""

from dataclasses import replace

import pytest

from icewright.core.errors import InvalidMessage
from icewright.core.times import Window
from icewright.model.actions.actions import OPTIMIZER_ACTIONS
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policies import NamedRule, NewRevision, Policies, RuleMatch
from icewright.model.policy.resource_groups import SERVER, Queue, ResourceGroup
from icewright.model.work.admission import Holding, Lane, RefusalKind, Urgency
from icewright.model.work.jobs import ANY_TASK, ClaimRequest, Failed
from icewright.model.work.optimizers import BacklogRequest
from icewright.policy.groups.definitions import closed
from tests.builders.lakehouse import AUTO, HOUR_MS, Lakehouse
from tests.builders.worker import Worker, hello
from tests.cases import each_case
from tests.narrowing import not_none

LAKE = frozenset({"lake"})


def lakehouse(*groups: ResourceGroup, tables: int = 3, **properties: str) -> Lakehouse:
    """A lakehouse in which a task waits for each of some tables."""
    house = Lakehouse(groups=groups)
    for number in range(tables):
        name = TableName("lake", ("db",), f"t{number}")
        house.ready_table(name, {**AUTO, **properties})
    house.rounds(3)
    return house


def claims(house: Lakehouse, times: int, **more: object) -> list[bool]:
    said = replace(hello("optimizer-a"), slots=2, **more)  # type: ignore[arg-type]  # a test's choice of fields
    house.control.dispatcher.hello(said)
    return [house.control.dispatcher.claim("optimizer-a", ANY_TASK) is not None for _ in range(times)]


def test_without_any_group_there_is_one_without_caps() -> None:
    assert claims(lakehouse(), 4) == [True, True, True, False]


def test_an_optimizer_gets_what_its_group_may_hold() -> None:
    house = lakehouse(ResourceGroup("default", cores=8))
    assert claims(house, 3, cores=8) == [True, True, False]
    (task, _) = [task for task in house.all_tasks() if task.lease is not None]
    assert not_none(task.lease).holding == Holding(4, 1 << 29)


def test_an_optimizer_that_does_not_say_what_it_takes_gets_nothing_where_that_counts() -> None:
    assert claims(lakehouse(ResourceGroup("default", cores=8)), 1, cores=None) == [False]


def test_a_batch_takes_what_its_first_task_does() -> None:
    house = lakehouse(ResourceGroup("default", cores=4))
    assert claims(house, 1, cores=8) == [True]
    more = [house.control.dispatcher.claim("optimizer-a", ClaimRequest(1 << 40)) is not None for _ in range(2)]
    assert more == [True, True]
    assert claims(house, 1, cores=8) == [False]


def test_a_task_waits_where_its_table_says() -> None:
    more = {"icewright.resource-group": "etl", "icewright.priority": "-3", "icewright.real-time": "true"}
    house = lakehouse(ResourceGroup("etl"), tables=1, owner="sales", **more)
    (task,) = house.all_tasks()
    assert (task.resource_group, task.priority) == ("etl", -3)
    assert task.lane == Lane(Queue.NORMAL, Urgency.REAL_TIME, "sales")
    assert claims(house, 1) == [False]
    assert claims(house, 2, resource_group="etl") == [True, False]


def test_what_the_server_does_itself_stays_its_own() -> None:
    house = lakehouse(tables=1, **{"icewright.resource-group": "etl"})
    places = house.control.dispatcher._places
    record = next(iter(house.tables.records(limit=1)))
    (task,) = house.all_tasks()
    assert places.of(record.table_id, record.name, task.action).resource_group == "etl"
    plan = house.tables.plan(task.plan_id)
    assert places.new_task("t", plan, priority=1, attempts_max=1).resource_group == "etl"
    assert SERVER not in house.control.dispatcher._groups.present()


def test_a_table_that_is_committed_to_all_the_time_is_real_time_by_itself() -> None:
    house = lakehouse(tables=1, **{"icewright.real-time.commit-interval": "PT1H"})
    (task,) = house.all_tasks()
    record = not_none(house.tables.record(task.table_id))
    urgent = not_none(record.commit_interval_ms) <= HOUR_MS
    assert (task.lane.urgency is Urgency.REAL_TIME) == urgent
    assert urgent


def test_a_group_that_nobody_defines_starts_nothing_and_says_so() -> None:
    house = lakehouse(tables=1, **{"icewright.resource-group": "etl"})
    assert claims(house, 1, resource_group="etl") == [False]
    terms = house.control.dispatcher._groups.terms("etl", Holding(), frozenset(Queue), house.tasks.now)
    assert not_none(terms.refused).kind is RefusalKind.NO_GROUP


def test_groups_that_are_applied_stand_over_those_of_the_configuration_without_a_restart() -> None:
    house = lakehouse(ResourceGroup("default", tasks_max=3))
    assert claims(house, 1) == [True]
    rules = (NamedRule("r", RuleMatch(("**",)), {"icewright.mode": "auto"}),)
    house.policies.apply(NewRevision(Policies(rules, (ResourceGroup("default", tasks_max=1),)), "me"), 0)
    assert claims(house, 1) == [False]
    house.policies.apply(NewRevision(Policies(rules), "me"), 1)
    assert claims(house, 3) == [True, True, False]


def test_tasks_start_while_a_window_is_open() -> None:
    # The clock begins at midnight of some day, in UTC.
    house = lakehouse(ResourceGroup("default", windows=(Window("0 3 * * *", "UTC", HOUR_MS),)), tables=1)
    group = ResourceGroup("g", windows=(Window("0 3 * * *", "UTC", HOUR_MS), Window("0 9 * * *", "UTC", HOUR_MS)))
    day = house.clock.now() // (24 * HOUR_MS) * 24 * HOUR_MS
    shut = not_none(closed(group, day))
    assert (shut.kind, shut.until) == (RefusalKind.WINDOW, day + 3 * HOUR_MS)
    assert closed(group, day + 3 * HOUR_MS) is None
    assert closed(group, day + 4 * HOUR_MS - 1) is None
    assert not_none(closed(group, day + 4 * HOUR_MS)).until == day + 9 * HOUR_MS
    while closed(ResourceGroup("g", windows=group.windows[:1]), house.clock.now()) is None:
        house.clock.advance(HOUR_MS)
    assert claims(house, 1) == [False]
    while closed(ResourceGroup("g", windows=group.windows[:1]), house.clock.now()) is not None:
        house.clock.advance(HOUR_MS // 2)
    assert claims(house, 1) == [True]


def test_the_backlog_goes_by_the_same_caps() -> None:
    house = lakehouse(ResourceGroup("default", cores=8, applications_max=2))
    backlogs = house.control.backlogs
    assert backlogs.of(BacklogRequest("default", 4, 0, actions=OPTIMIZER_ACTIONS), LAKE).tasks == 2
    assert backlogs.of(BacklogRequest("default", 5, 0, actions=OPTIMIZER_ACTIONS), LAKE).tasks == 1
    assert backlogs.of(BacklogRequest("default", actions=OPTIMIZER_ACTIONS), LAKE).tasks == 0
    assert backlogs.of(BacklogRequest("default", 1, 0, (Queue.LARGE,), actions=OPTIMIZER_ACTIONS), LAKE).tasks == 0
    assert backlogs.of(BacklogRequest("nobody-s", 1, 0, actions=OPTIMIZER_ACTIONS), LAKE).tasks == 0


@each_case("wrong", [{"slots": 0}, {"cores": -1}, {"memory_bytes": -1}])
def test_an_optimizer_cannot_make_room_by_what_it_says_of_itself(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidMessage):
        replace(hello("optimizer-a"), **wrong)  # type: ignore[arg-type]  # by name


def test_a_table_whose_task_ran_out_of_memory_waits_in_the_large_queue() -> None:
    house = lakehouse(ResourceGroup("default"), tables=1)
    worker = Worker(house, "optimizer-b")
    worker.introduce()
    worker.report(worker.claimed(), Failed("out-of-memory", "a worker was killed", retryable=False))
    (failed,) = house.all_tasks()
    places = house.control.dispatcher._places
    assert places.of(failed.table_id, failed.table_name, failed.action).lane.queue is Queue.LARGE
    other = replace(failed.table_id, uuid="00000000-0000-4000-8000-000000000099")
    assert places.of(other, failed.table_name, failed.action).lane.queue is Queue.NORMAL
