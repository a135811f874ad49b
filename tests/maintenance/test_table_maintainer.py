"""One look at a table: what is planned, what is queued, what is taken back, and what is kept when it fails."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.core.codec import dumps
from icewright.core.errors import Conflict, NotAllowed, NotFound, Unavailable, Unreadable
from icewright.maintenance import planner as planner_module
from icewright.model.actions.rewrite_manifests import RewriteManifestsRequest
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.inventory import ManifestKey
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import Snapshot, TableMetadata
from icewright.model.plans.plans import Plan, Reason
from icewright.model.work.breaker import FAILURES_MAX, PARKED_MS
from icewright.model.work.jobs import Cancelled, Conflicted
from icewright.model.work.tasks import Task, TaskState
from icewright.observation.sweep import INTERVAL_MAX_MS
from icewright.plans.repository import PlanRejected
from icewright.work.tasks.retry import CONFLICT_BASE_MS
from tests.builders.lakehouse import ALL_AUTO, HOUR_MS, LEASE_MS, MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import FINAL, RETRYABLE, Worker, at_work
from tests.narrowing import not_none
from tests.waiting import at_once

WIDE = TableName("lake", ("db",), "wide")


@pytest.fixture
def house() -> Lakehouse:
    return Lakehouse().with_ready_table()


def set_mode(house: Lakehouse, mode: str) -> None:
    house.catalog.set_properties(NAME, {"icewright.mode": mode})


def test_the_first_look_plans_and_queues(house: Lakehouse) -> None:
    looked = house.control.maintainer.look(NAME)
    assert looked.is_new
    assert not_none(looked.enqueued).created
    assert house.only_task().plan_id == looked.plan.plan_id
    record = house.record()
    assert record.problem is None
    assert house.clock.now() < record.next_look_at <= house.clock.now() + INTERVAL_MAX_MS


def test_a_second_look_changes_nothing(house: Lakehouse) -> None:
    first = house.control.maintainer.look(NAME)
    again = house.control.maintainer.look(NAME)
    assert (again.plan, again.is_new, again.enqueued) == (first.plan, False, None)
    assert house.only_task().version == 1


@pytest.mark.parametrize("mode", ["observe", "approve"])
def test_only_in_mode_auto_does_it_act_by_itself(mode: str) -> None:
    house = Lakehouse().with_ready_table({"icewright.mode": mode})
    looked = house.control.maintainer.look(NAME)
    assert not looked.plan.is_empty
    assert looked.enqueued is None
    assert house.all_tasks() == []


def test_without_any_setting_nothing_is_done() -> None:
    house = Lakehouse(rules=()).with_ready_table({"write.target-file-size-bytes": "67108864"})
    looked = house.control.maintainer.look(NAME)
    assert not looked.plan.is_empty
    assert house.all_tasks() == []


def test_a_changed_table_is_planned_anew_and_its_waiting_task_renewed(house: Lakehouse) -> None:
    first = house.control.maintainer.look(NAME)
    house.append(2)
    house.pass_time(10 * MINUTE_MS)
    second = house.control.maintainer.look(NAME)
    assert second.is_new
    assert second.plan.plan_id != first.plan.plan_id
    assert not_none(second.enqueued).coalesced
    assert house.only_task().rewrite.input_files == 10


def test_a_plan_whose_time_has_come_is_made_again() -> None:
    house = Lakehouse()
    house.create()
    house.append(8)
    waiting = house.control.maintainer.look(NAME)
    assert waiting.plan.reason.code == "waiting"
    assert waiting.plan.look_again_at is not None
    assert house.record().next_look_at <= max(waiting.plan.look_again_at, house.clock.now() + MINUTE_MS)
    house.pass_time(MINUTE_MS - 1)
    assert not house.control.maintainer.look(NAME).is_new
    house.pass_time(1)
    assert house.control.maintainer.look(NAME).enqueued is not None


def test_a_plan_of_which_nothing_became_is_made_again(house: Lakehouse) -> None:
    house.control.planner.plan(NAME)  # as when the server dies between planning and queueing
    house.restart()
    assert house.control.maintainer.look(NAME).enqueued is not None
    task = house.only_task()
    house.control.dispatcher.withdraw(task, Reason("test", "superseded"))
    assert house.control.maintainer.look(NAME).enqueued is not None


def test_a_server_that_dies_after_observing_plans_what_it_observed(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    Worker(house).carry_out()
    house.control.loop.round()
    assert house.control.maintainer.look(NAME).plan.is_empty
    house.append(4)
    house.append(4)
    house.pass_time(10 * MINUTE_MS)
    house.control.observer.observe(NAME)  # the record now knows the new metadata, and still has the old plan
    house.restart()
    assert not house.control.maintainer.look(NAME).plan.is_empty


def test_a_look_that_failed_after_observing_is_made_up_for(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house.control.maintainer.look(NAME)
    Worker(house).carry_out()
    house.control.loop.round()
    house.append(8)
    house.pass_time(10 * MINUTE_MS)
    monkeypatch.setattr(house.catalog, "data_files", _away)
    with pytest.raises(Unavailable):
        house.control.maintainer.look(NAME)
    monkeypatch.undo()
    assert not house.control.maintainer.look(NAME).plan.is_empty


def test_a_changed_configuration_is_noticed_after_a_restart(house: Lakehouse) -> None:
    house.rules = ()
    house.restart()
    assert house.control.maintainer.look(NAME).enqueued is None
    house.rules = (ALL_AUTO,)
    house.restart()
    assert house.control.maintainer.look(NAME).enqueued is not None


def test_a_table_whose_task_runs_gets_no_second_one(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    Worker(house).claimed()
    house.append(8)
    house.pass_time(10 * MINUTE_MS)
    looked = house.control.maintainer.look(NAME)
    assert looked.is_new
    assert looked.enqueued is not None
    assert not looked.enqueued.created
    assert not looked.enqueued.coalesced
    assert house.only_task().state is TaskState.RUNNING


def test_what_came_while_a_task_ran_is_queued_when_it_has_ended(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker, spec = at_work(house)
    house.append(8)
    house.pass_time(LEASE_MS // 2)
    house.control.maintainer.look(NAME)
    house.control.dispatcher.cancel(spec.task_id)
    worker.report(spec, Cancelled("stopped"))
    assert house.control.maintainer.look(NAME).enqueued is not None


# What waits is taken back where it must not run any more.


@pytest.mark.parametrize(("mode", "code"), [("observe", "mode-observe"), ("approve", "mode-approve")])
def test_a_waiting_task_is_taken_back_when_the_owner_changes_the_mode(house: Lakehouse, mode: str, code: str) -> None:
    house.control.maintainer.look(NAME)
    set_mode(house, mode)
    house.control.maintainer.look(NAME)
    task = house.only_task()
    assert (task.state, reason_code(task)) == (TaskState.SUPERSEDED, code)


def test_an_approved_task_stays_while_its_plan_applies(house: Lakehouse) -> None:
    set_mode(house, "approve")
    plan = house.control.maintainer.look(NAME).plan
    task = house.control.dispatcher.apply(plan.plan_id)
    house.append(1)
    house.pass_time(10 * MINUTE_MS)
    house.control.maintainer.look(NAME)
    assert house.tasks.get(task.task_id) == task
    house.catalog.delete(NAME, [house.catalog.live_files(NAME)[0].path])
    house.control.maintainer.look(NAME)
    assert house.tasks.get(task.task_id).state is TaskState.SUPERSEDED


def test_a_waiting_task_is_taken_back_when_the_plan_is_now_to_do_nothing(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    house.catalog.set_properties(NAME, {"icewright.rewrite-data-files.min-input-files": "100"})
    looked = house.control.maintainer.look(NAME)
    assert looked.plan.reason.code == "well-laid-out"
    assert (house.only_task().state, reason_code(house.only_task())) == (TaskState.SUPERSEDED, "replanned")


def test_a_task_to_be_tried_again_makes_room_when_its_files_are_gone(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker = Worker(house)
    worker.report(worker.claimed(), RETRYABLE)
    house.catalog.delete(NAME, [house.catalog.live_files(NAME)[0].path])
    house.pass_time(2 * HOUR_MS)
    assert house.control.maintainer.look(NAME).enqueued is not None
    old, new = house.all_tasks()
    assert (old.state, reason_code(old)) == (TaskState.SUPERSEDED, "files-changed")
    assert new.state is TaskState.QUEUED


def test_a_task_to_be_tried_again_keeps_its_place_while_it_applies(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker = Worker(house)
    tried = worker.report(worker.claimed(), RETRYABLE)
    house.append(1)
    house.control.maintainer.look(NAME)
    assert house.only_task() == tried


def test_a_waiting_task_that_a_zombie_has_committed_is_not_taken_back(house: Lakehouse) -> None:
    """It is not given out either, and ends as what it is: done."""
    house.control.maintainer.look(NAME)
    zombie, worker = Worker(house), Worker(house, "optimizer-b")
    slow = zombie.claimed()
    house.rounds(2, every_ms=LEASE_MS)
    house.rounds(1, every_ms=MINUTE_MS)
    assert house.only_task().state is TaskState.QUEUED
    zombie.commit(slow)
    assert house.control.maintainer.look(NAME).plan.is_empty
    assert house.only_task().state is TaskState.QUEUED
    assert worker.claim_if_any() is None
    house.pass_time(LEASE_MS)
    house.control.loop.round()
    assert house.only_task().state is TaskState.SUCCEEDED


def test_a_task_claimed_in_the_same_moment_runs_on(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house.control.maintainer.look(NAME)
    set_mode(house, "observe")
    withdraw = house.control.dispatcher.withdraw

    def claimed_first(task: Task, reason: Reason) -> Task:
        house.tasks.claim("a", resource_group="default", catalogs=frozenset({"lake"}), lease_ms=LEASE_MS)
        return withdraw(task, reason)

    monkeypatch.setattr(house.control.dispatcher, "withdraw", claimed_first)
    house.control.maintainer.look(NAME)
    assert house.only_task().state is TaskState.RUNNING


# When a look fails.


def test_a_dropped_table_is_marked_so_and_its_task_taken_back(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    table_id = house.record().table_id
    house.catalog.drop(NAME)
    with pytest.raises(NotFound):
        house.control.maintainer.look(NAME)
    assert house.tables.record_by_name(NAME) is None
    assert not_none(house.tables.record(table_id)).dropped_at == house.clock.now()
    assert reason_code(house.only_task()) == "table-gone"


def test_l4_a_replaced_table_is_another_one(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    house.catalog.drop(NAME)
    table_id = house.create()
    looked = house.control.maintainer.look(NAME)
    assert looked.plan.table_id == house.record().table_id == table_id
    assert (house.only_task().state, reason_code(house.only_task())) == (TaskState.SUPERSEDED, "table-gone")


def test_l6_of_two_names_of_one_table_the_one_that_is_known_is_looked_after(house: Lakehouse) -> None:
    """What is kept of a table is kept by its uuid: two names would take turns in one place."""
    house.control.maintainer.look(NAME)
    first = house.record()
    other = TableName("lake", ("db",), "another")
    house.catalog.register(other, house.metadata().metadata_log[-1].location)
    for ask in (
        house.control.maintainer.look,
        lambda name: house.control.maintainer.plan_asked(name, RewriteManifestsRequest()),
    ):
        with pytest.raises(NotAllowed, match=r"has the uuid of lake\.db\.events"):
            ask(other)
    assert (house.record(), house.tables.record_by_name(other)) == (first, None)
    house.catalog.drop(NAME)
    assert house.control.maintainer.look(other).plan.table_name == other
    assert house.record(other).table_id == first.table_id


def test_l6_a_table_that_is_not_shown_once_keeps_its_record(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its other name does not take its place for good: the catalog is asked again."""
    house.control.maintainer.look(NAME)
    other = TableName("lake", ("db",), "another")
    house.catalog.register(other, house.metadata().metadata_log[-1].location)
    with monkeypatch.context() as patched:
        patched.setattr(type(house.catalog), "load", _not_shown)
        with pytest.raises(NotFound):
            house.control.maintainer.look(NAME)
    assert house.tables.record_by_name(NAME) is None
    with pytest.raises(NotAllowed, match=r"has the uuid of lake\.db\.events"):
        house.control.maintainer.look(other)
    house.control.maintainer.look(NAME)
    assert (house.record().name, house.tables.record_by_name(other)) == (NAME, None)


def _not_shown(_catalog: object, name: TableName) -> TableMetadata:
    raise NotFound(f"no table {name}")


def test_l6_a_name_that_went_to_another_known_table_leaves_nothing_of_its_own(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    gone = house.record()
    house.create(WIDE)
    house.append(1, name=WIDE)
    house.control.maintainer.look(WIDE)
    kept = house.record(WIDE)
    house.catalog.drop(NAME)
    house.catalog.register(NAME, house.metadata(WIDE).metadata_log[-1].location)
    with pytest.raises(NotAllowed, match=r"has the uuid of lake\.db\.wide"):
        house.control.maintainer.look(NAME)
    assert (house.tables.record_by_name(NAME), house.record(WIDE)) == (None, kept)
    assert not_none(house.tables.record(gone.table_id)).dropped_at == house.clock.now()
    (task,) = [task for task in house.all_tasks() if task.table_id == gone.table_id]
    assert (task.state, reason_code(task)) == (TaskState.SUPERSEDED, "table-gone")


def test_a_renamed_table_is_the_same_one_under_another_name(house: Lakehouse) -> None:
    table_id = house.control.maintainer.look(NAME).plan.table_id
    other = TableName("lake", ("db",), "renamed")
    house.catalog.rename(NAME, other)
    looked = house.control.maintainer.look(other)
    assert looked.plan.table_id == table_id
    task = house.only_task()
    assert (task.state, task.table_name) == (TaskState.QUEUED, other)


def test_what_a_person_applied_under_the_old_name_of_a_table_is_taken_back(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, {"icewright.mode": "approve"})
    task = house.control.dispatcher.apply(house.control.maintainer.look(NAME).plan.plan_id)
    house.catalog.rename(NAME, other := TableName("lake", ("db",), "renamed"))
    house.control.maintainer.look(other)
    taken_back = house.tasks.get(task.task_id)
    assert (taken_back.state, reason_code(taken_back)) == (TaskState.SUPERSEDED, "table-renamed")


def test_an_unreadable_table_keeps_the_reason_and_waits(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    house.append(1)
    house.catalog.damage(house.metadata().metadata_location)
    with pytest.raises(Unreadable):
        house.control.maintainer.look(NAME)
    record = house.record()
    assert record.problem is not None
    assert (record.problem.code, record.problem.figures["since"]) == ("unreadable", house.clock.now())
    assert record.next_look_at == house.clock.now() + INTERVAL_MAX_MS
    house.pass_time(HOUR_MS)
    with pytest.raises(Unreadable):
        house.control.maintainer.look(NAME)
    assert house.record().problem == record.problem, "since when is kept"


def test_a_refused_plan_keeps_the_reason_on_what_was_observed(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner_module, "plan_table", _empty_handed)
    with pytest.raises(PlanRejected):
        house.control.maintainer.look(NAME)  # the first look at all: there was no record before it
    record = house.record()
    assert not_none(record.problem).code == "plan-refused"
    assert record.next_look_at == house.clock.now() + INTERVAL_MAX_MS
    house.append(1)
    with pytest.raises(PlanRejected):
        house.control.maintainer.look(NAME)
    assert house.record().snapshot_id == house.metadata().current_snapshot_id


def test_a_refused_plan_does_not_bring_a_replaced_table_back(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house.control.maintainer.look(NAME)
    house.catalog.drop(NAME)
    table_id = house.ready_table()
    monkeypatch.setattr(planner_module, "plan_table", _empty_handed)
    with pytest.raises(PlanRejected):
        house.control.maintainer.look(NAME)
    assert house.record().table_id == table_id


def test_once_mended_a_table_is_planned(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house.control.maintainer.look(NAME)
    house.append(1)
    monkeypatch.setattr(planner_module, "plan_table", _empty_handed)
    with pytest.raises(PlanRejected):
        house.control.maintainer.look(NAME)
    monkeypatch.undo()
    looked = house.control.maintainer.look(NAME)
    assert looked.is_new
    assert house.record().problem is None


def test_a_catalog_that_is_away_or_not_configured_drops_no_table(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    known = house.record()
    house.catalog.available = False
    with pytest.raises(Unavailable):
        house.control.maintainer.look(NAME)
    assert house.record() == known
    house.restart(without=frozenset({"lake"}))
    with pytest.raises(NotFound):
        house.control.maintainer.look(NAME)
    assert house.record().dropped_at is None
    assert house.only_task().state is TaskState.QUEUED


def test_what_cannot_be_planned_for_another_reason_passes_through(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.control.maintainer.look(NAME)
    known = house.record()

    def moved(*_args: Any) -> Any:
        raise Conflict("the table moved")

    monkeypatch.setattr(house.catalog, "manifests", moved)
    with pytest.raises(Conflict):
        house.control.maintainer.look(NAME)
    assert house.record() == known


# The breaker.


def fail_once(house: Lakehouse) -> Task:
    house.append(1)
    house.pass_time(HOUR_MS)
    house.control.maintainer.look(NAME)
    worker = Worker(house)
    return worker.report(worker.claimed(), FINAL)


def test_five_failures_park_a_table_for_a_day(house: Lakehouse) -> None:
    for _ in range(FAILURES_MAX):
        fail_once(house)
    failed_at = house.clock.now()
    house.append(1)
    looked = house.control.maintainer.look(NAME)
    assert not looked.plan.is_empty
    assert looked.enqueued is None
    problem = not_none(house.record().problem)
    assert problem.code == "parked"
    assert FINAL.detail in problem.text
    assert not house.control.maintainer.look(NAME).is_new
    (told,) = house.tasks.feed.after(0, 1_000, FeedFilter(frozenset({FactKind.PARKED}))).told
    assert told.fact.reason == problem
    house.pass_time(failed_at + PARKED_MS - house.clock.now())
    assert house.control.maintainer.look(NAME).enqueued is not None
    assert house.record().problem is None


def test_a_person_may_act_on_a_parked_table(house: Lakehouse) -> None:
    for _ in range(FAILURES_MAX):
        fail_once(house)
    plan = house.control.maintainer.look(NAME).plan
    house.append(1)
    plan = house.control.maintainer.look(NAME, plan_anew=True).plan
    task = house.control.dispatcher.apply(plan.plan_id)
    house.control.maintainer.look(NAME)
    assert house.tasks.get(task.task_id).state is TaskState.QUEUED


def test_rows_that_were_not_kept_park_a_table_at_once(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    Worker(house, lost_rows=1).carry_out()
    house.control.loop.round()
    assert reason_code(house.only_task()) == "verification-failed"
    house.append(8)
    house.pass_time(HOUR_MS)
    assert house.control.maintainer.look(NAME).enqueued is None
    assert not_none(house.record().problem).code == "parked"


def test_put_off_and_put_aside_are_harmless_for_unknown_tables(house: Lakehouse) -> None:
    unknown = TableName("lake", ("db",), "unknown")
    house.control.maintainer.postpone(unknown, 0)
    house.control.maintainer.put_aside(unknown, Reason("x", "y"))
    assert house.tables.record_by_name(unknown) is None


def reason_code(task: Task) -> str:
    return not_none(task.outcome).reason.code


def _empty_handed(*args: Any, **kwargs: Any) -> Plan:
    """A planner gone wrong: a plan without a reason."""
    plan = plan_table(*args, **kwargs)
    return replace(plan, reason=Reason("", ""))


def _away(*_args: Any) -> Any:
    raise Unavailable("the catalog does not answer")


def test_two_looks_at_one_table_never_overlap(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """The inventory moves forward from what is stored: done twice at once, files would be counted twice."""
    manifests = house.catalog.manifests
    inside, most = 0, 0
    pause = threading.Event()

    def slow(table: TableMetadata, snapshot: Snapshot) -> Sequence[ManifestKey]:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        pause.wait(0.05)
        inside -= 1
        return manifests(table, snapshot)

    monkeypatch.setattr(house.catalog, "manifests", slow)
    at_once([partial(house.control.maintainer.look, NAME)] * 2)
    assert most == 1
    assert house.tables.partitions(house.record().table_id)[0].counts.data_files == 8


def test_a_table_of_ten_thousand_partitions(house: Lakehouse) -> None:
    """One of them is worth it; none of the others is forgotten, and no list of them is kept in the plan."""
    many = [Partition(0, f'["city {number}"]') for number in range(10_000)]
    house.create(WIDE)
    house.catalog.append(WIDE, [house.files(1, partition)[0] for partition in many])
    for _ in range(2):
        house.append(4, many[4711], WIDE)
        house.pass_time(10 * MINUTE_MS)
    looked = house.control.maintainer.look(WIDE)
    assert looked.enqueued is not None
    assert [group.partition for group in looked.enqueued.task.rewrite.groups] == [many[4711]]
    assert len(house.tables.partitions(house.record(WIDE).table_id)) == 10_000
    assert len(dumps(looked.plan)) < 100_000


def test_the_next_task_waits_longer_with_each_conflict_in_a_row_and_not_after_a_success() -> None:
    house = Lakehouse().with_ready_table()
    house.control.maintainer._chance = lambda: 0.5
    worker, waits = Worker(house), []
    for _ in range(3):
        house.control.maintainer.look(NAME)
        house.pass_time(house.all_tasks()[-1].not_before_at - house.clock.now())
        worker.report(worker.claimed(), Conflicted("a writer was faster"))
        house.control.maintainer.look(NAME)
        waits.append(house.all_tasks()[-1].not_before_at - house.clock.now())
    assert waits == [CONFLICT_BASE_MS // 2, CONFLICT_BASE_MS, CONFLICT_BASE_MS * 2]


def come_to_nothing(house: Lakehouse, worker: Worker, times: int) -> None:
    """So many tasks fail for good on the first try."""
    for _ in range(times):
        house.control.maintainer.look(NAME, plan_anew=True)
        worker.report(worker.claimed(), FINAL)


def test_a_table_that_is_unparked_is_worked_on_at_once_and_forgets_what_was() -> None:
    house = Lakehouse().with_ready_table()
    worker = Worker(house)
    come_to_nothing(house, worker, FAILURES_MAX)
    assert house.control.maintainer.look(NAME, plan_anew=True).enqueued is None
    assert house.record().problem is not None
    house.control.maintainer.unpark(house.record().table_id)
    looked = house.control.maintainer.look(NAME, plan_anew=True)
    assert looked.enqueued is not None
    assert house.record().problem is None
    worker.report(worker.claimed(), FINAL)
    assert house.control.maintainer.look(NAME, plan_anew=True).enqueued is not None


def test_behind_its_time_the_next_task_has_one_try_which_opens_or_closes_the_breaker() -> None:
    house = Lakehouse().with_ready_table()
    worker = Worker(house)
    come_to_nothing(house, worker, FAILURES_MAX)
    house.pass_time(PARKED_MS)
    enqueued = not_none(house.control.maintainer.look(NAME).enqueued)
    assert enqueued.task.attempts_max == 1
    assert house.control.maintainer.look(NAME).enqueued is None  # it waits already
    assert worker.report(worker.claimed(), RETRYABLE).state is TaskState.FAILED
    assert house.control.maintainer.look(NAME).enqueued is None
    house.pass_time(PARKED_MS)
    house.control.maintainer.look(NAME)
    worker.carry_out()
    house.rounds(1)
    house.append(8)
    house.pass_time(10 * MINUTE_MS)
    enqueued = not_none(house.control.maintainer.look(NAME).enqueued)
    assert enqueued.task.attempts_max > 1


def test_thresholds_are_the_owners() -> None:
    house = Lakehouse().with_ready_table({"icewright.breaker.failures": "2", "icewright.breaker.conflicts": "1"})
    come_to_nothing(house, Worker(house), 2)
    assert house.control.maintainer.look(NAME, plan_anew=True).enqueued is None


def test_of_a_table_that_is_gone_nothing_is_unparked() -> None:
    house = Lakehouse()
    with pytest.raises(NotFound):
        house.control.maintainer.unpark(TableId("lake", "x"))
