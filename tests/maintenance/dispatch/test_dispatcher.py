"""The way of a task from plan to report: what is let through, what is refused, and what each report comes to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.core.errors import Cause, Conflict, LeaseLost, NotAllowed, NotFound, Unavailable, VersionMismatch
from icewright.maintenance.dispatch.dispatcher import Dispatcher
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Mode
from icewright.model.work.breaker import FAILURES_MAX
from icewright.model.work.jobs import PROTOCOL_VERSION, Committed, CommitUnknown, Conflicted, Failed, Result, TaskReport
from icewright.model.work.tasks import AttemptState, Task, TaskState
from icewright.work.tasks.retry import BACKOFF_BASE_MS, BACKOFF_MAX_MS
from tests.builders.lakehouse import HOUR_MS, LEASE_MS, MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import FINAL, RETRYABLE, STOPPED, Worker, at_work, hello
from tests.narrowing import not_none


@pytest.fixture
def house() -> Lakehouse:
    return Lakehouse().with_ready_table()


def dispatcher(house: Lakehouse) -> Dispatcher:
    return house.control.dispatcher


def planned(house: Lakehouse, mode: str) -> Plan:
    house.catalog.set_properties(NAME, {"icewright.mode": mode})
    return house.control.maintainer.look(NAME).plan


def last_attempt(house: Lakehouse, task: Task) -> AttemptState:
    return house.tasks.attempts(task.task_id)[-1].state


# A person applies a plan.


def test_x4_exactly_the_plan_that_was_looked_at_is_queued(house: Lakehouse) -> None:
    plan = planned(house, "approve")
    task = dispatcher(house).apply(plan.plan_id)
    assert (task.state, task.plan_id, task.rewrite) == (TaskState.QUEUED, plan.plan_id, plan.rewrites[0])
    assert dispatcher(house).apply(plan.plan_id).task_id == task.task_id  # twice is once


def test_a_plan_still_applies_after_appends(house: Lakehouse) -> None:
    plan = planned(house, "approve")
    house.append(3)
    assert dispatcher(house).apply(plan.plan_id).plan_id == plan.plan_id


def test_an_approval_counts_whenever_the_plan_was_made(house: Lakehouse) -> None:
    """Planned in mode auto; then its owner wants to approve, and does."""
    plan = house.control.maintainer.look(NAME).plan
    house.catalog.set_properties(NAME, {"icewright.mode": "approve"})
    task = dispatcher(house).apply(plan.plan_id)
    assert house.control.maintainer.look(NAME).plan.mode is Mode.APPROVE
    spec = Worker(house).claimed()
    assert (spec.task_id, spec.rewrite) == (task.task_id, plan.rewrites[0])
    assert not Worker(house).beat(spec, "committing").cancel


def test_x4_an_approval_is_of_one_plan_and_not_of_what_takes_its_place(house: Lakehouse) -> None:
    task = dispatcher(house).apply(house.control.maintainer.look(NAME).plan.plan_id)
    house.append(2)
    house.pass_time(10 * MINUTE_MS)
    enqueued = not_none(house.control.maintainer.look(NAME).enqueued)
    assert (enqueued.coalesced, enqueued.task.task_id) == (True, task.task_id)
    house.catalog.set_properties(NAME, {"icewright.mode": "approve"})
    assert Worker(house).claim_if_any() is None
    assert house.only_task().state is TaskState.SUPERSEDED


def test_in_mode_observe_nothing_is_applied(house: Lakehouse) -> None:
    plan = planned(house, "observe")
    with pytest.raises(NotAllowed, match="mode observe") as refused:
        dispatcher(house).apply(plan.plan_id)
    assert "icewright.mode" in refused.value.hint
    assert house.all_tasks() == []


def test_the_mode_that_counts_is_the_one_of_now(house: Lakehouse) -> None:
    plan = planned(house, "approve")
    house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
    with pytest.raises(NotAllowed, match="mode observe"):
        dispatcher(house).apply(plan.plan_id)


def test_a_mode_that_cannot_be_read_is_observe(house: Lakehouse) -> None:
    plan = planned(house, "approve")
    house.catalog.set_properties(NAME, {"icewright.mode": "of course"})
    with pytest.raises(NotAllowed):
        dispatcher(house).apply(plan.plan_id)


def test_a_plan_to_do_nothing_is_not_applied() -> None:
    house = Lakehouse()
    house.create()
    plan = house.control.maintainer.look(NAME).plan
    with pytest.raises(NotAllowed, match="nothing has been committed"):
        dispatcher(house).apply(plan.plan_id)


def test_x4_a_stale_plan_is_refused(house: Lakehouse) -> None:
    plan = planned(house, "approve")
    house.catalog.delete(NAME, [house.catalog.live_files(NAME)[0].path])
    with pytest.raises(Conflict, match="does not hold any more") as refused:
        dispatcher(house).apply(plan.plan_id)
    assert refused.value.hint == "plan again"
    assert house.all_tasks() == []


def test_l4_a_plan_for_a_table_that_was_replaced_is_refused(house: Lakehouse) -> None:
    plan = planned(house, "approve")
    house.catalog.drop(NAME)
    with pytest.raises(NotFound):
        dispatcher(house).apply(plan.plan_id)
    house.create(properties={"icewright.mode": "approve"})
    with pytest.raises(Conflict, match="another table"):
        dispatcher(house).apply(plan.plan_id)


def test_a_plan_is_refused_while_another_task_runs(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    Worker(house).claimed()
    house.append(8)
    house.pass_time(10 * MINUTE_MS)
    plan = house.control.maintainer.look(NAME).plan
    with pytest.raises(Conflict, match="under way already"):
        dispatcher(house).apply(plan.plan_id)


def test_unknown_plans_and_tasks_are_not_found(house: Lakehouse) -> None:
    for call in (dispatcher(house).apply, dispatcher(house).cancel, dispatcher(house).retry):
        with pytest.raises(NotFound):
            call("nothing-1")


def test_a_catalog_that_is_away_leaves_the_plan_for_later(house: Lakehouse) -> None:
    plan = planned(house, "approve")
    house.catalog.available = False
    with pytest.raises(Unavailable):
        dispatcher(house).apply(plan.plan_id)
    house.catalog.available = True
    assert dispatcher(house).apply(plan.plan_id).state is TaskState.QUEUED


# Optimizers ask for work.


def test_who_has_not_said_hello_gets_no_work(house: Lakehouse) -> None:
    with pytest.raises(NotAllowed, match="has not introduced itself"):
        dispatcher(house).claim("optimizer-a")


def test_another_version_is_refused(house: Lakehouse) -> None:
    with pytest.raises(VersionMismatch):
        dispatcher(house).hello(hello("optimizer-a", protocol=PROTOCOL_VERSION + 1))
    assert house.tables.optimizers() == []


def test_an_optimizer_that_a_server_of_another_version_knew_is_refused(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    house.tables.optimizer_seen(hello("optimizer-a", protocol=PROTOCOL_VERSION - 1))
    with pytest.raises(VersionMismatch):
        dispatcher(house).claim("optimizer-a")
    assert house.only_task().state is TaskState.QUEUED


def test_a_claim_gives_all_that_an_attempt_needs(house: Lakehouse) -> None:
    looked = house.control.maintainer.look(NAME)
    spec = Worker(house).claimed()
    task = house.only_task()
    assert task.lease is not None
    assert (spec.task_id, spec.attempt, spec.fencing_token) == (task.task_id, 1, task.lease.fencing_token)
    assert (spec.table_id, spec.table_name, spec.rewrite) == (task.table_id, NAME, looked.plan.rewrites[0])
    assert spec.lease_ms == LEASE_MS == dispatcher(house).lease_ms
    assert Worker(house, "optimizer-b").claim_if_any() is None


def test_what_an_owner_approved_is_given_out(house: Lakehouse) -> None:
    plan = planned(house, "approve")
    dispatcher(house).apply(plan.plan_id)
    assert Worker(house).claimed().action == plan.rewrites[0]


def test_stale_work_is_not_given_out_and_planned_again(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    house.catalog.delete(NAME, [house.catalog.live_files(NAME)[0].path])
    assert Worker(house).claim_if_any() is None
    house.pass_time(2 * HOUR_MS)
    assert house.control.maintainer.look(NAME).enqueued is not None
    assert Worker(house).claimed().rewrite.input_files == 7


def test_claims_of_stale_work_do_not_park_a_table(house: Lakehouse) -> None:
    for _ in range(FAILURES_MAX):
        house.control.maintainer.look(NAME, plan_anew=True)
        house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
        assert Worker(house).claim_if_any() is None
        house.catalog.set_properties(NAME, {"icewright.mode": "auto"})
    assert [task.state for task in house.all_tasks()] == [TaskState.SUPERSEDED] * FAILURES_MAX
    assert house.control.maintainer.look(NAME).enqueued is not None
    assert house.record().problem is None


def test_work_behind_stale_work_is_given_out(house: Lakehouse) -> None:
    other = TableName("lake", ("db",), "other")
    house.ready_table(other)
    house.control.maintainer.look(NAME)
    house.control.maintainer.look(other)
    house.catalog.drop(NAME)
    assert Worker(house).claimed().table_name == other
    assert {task.state for task in house.all_tasks()} == {TaskState.SUPERSEDED, TaskState.RUNNING}


def test_of_a_catalog_that_is_away_what_is_known_counts(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    task = house.only_task()
    house.catalog.available = False
    spec = Worker(house).claimed()
    Worker(house).report(spec, RETRYABLE)
    house.catalog.available = True
    house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
    house.control.planner.plan(NAME)
    house.catalog.available = False
    house.pass_time(BACKOFF_MAX_MS)
    assert Worker(house).claim_if_any() is None
    assert house.tasks.get(task.task_id).state is TaskState.SUPERSEDED


def test_work_of_a_catalog_that_is_not_configured_any_more_waits(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    house.restart(without=frozenset({"lake"}))
    assert Worker(house).claim_if_any() is None
    assert house.only_task().state is TaskState.QUEUED


def test_work_of_catalogs_out_of_reach_is_not_given_out(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker = Worker(house)
    worker.introduce("elsewhere")
    assert worker.claim() is None


def test_a_heartbeat_extends_the_lease_and_hears_of_a_cancel(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker, spec = at_work(house)
    for _ in range(5):
        house.pass_time(LEASE_MS - 1)
        assert not worker.beat(spec).cancel
    dispatcher(house).cancel(spec.task_id)
    assert worker.beat(spec).cancel
    house.pass_time(LEASE_MS)
    with pytest.raises(LeaseLost):
        worker.beat(spec)


# The owner's will between the plan and the commit.

VETOES = [
    ({"icewright.mode": "observe"}, "mode-observe"),
    ({"icewright.mode": "approve"}, "mode-approve"),
    ({"icewright.rewrite-data-files.min-input-files": "none"}, "policy-problem"),
    ({"self-optimizing.enabled": "true"}, "other-optimizer"),
    ({"write.parquet.bloom-filter-enabled.column.id": "true"}, "bloom-filters"),
]


@pytest.mark.parametrize(("properties", "code"), VETOES)
def test_what_the_owner_does_not_want_any_more_is_not_committed(
    house: Lakehouse, properties: dict[str, str], code: str
) -> None:
    house.control.maintainer.look(NAME)
    worker, spec = at_work(house)
    assert not worker.beat(spec, "committing").cancel
    house.catalog.set_properties(NAME, properties)
    assert not worker.beat(spec).cancel  # the table is only asked when it matters
    assert worker.beat(spec, "committing").cancel
    assert worker.beat(spec, "committing").cancel
    assert house.tasks.history(spec.task_id)[-1].reason.code == code
    assert worker.report(spec, STOPPED).state is TaskState.CANCELLED


@pytest.mark.parametrize(("properties", "code"), VETOES)
def test_what_the_owner_does_not_want_any_more_is_not_begun(
    house: Lakehouse, properties: dict[str, str], code: str
) -> None:
    house.control.maintainer.look(NAME)
    house.catalog.set_properties(NAME, properties)
    assert Worker(house).claim_if_any() is None
    task = house.only_task()
    assert (task.state, not_none(task.outcome).reason.code) == (TaskState.SUPERSEDED, code)
    assert last_attempt(house, task) is AttemptState.CANCELLED


@pytest.mark.parametrize(("properties", "code"), VETOES[2:-1])
def test_what_the_owner_does_not_want_any_more_is_not_applied(
    house: Lakehouse, properties: dict[str, str], code: str
) -> None:
    plan = planned(house, "approve")
    house.catalog.set_properties(NAME, properties)
    with pytest.raises(Conflict, match="does not hold any more"):
        dispatcher(house).apply(plan.plan_id)
    assert code in str(house.control.maintainer.look(NAME).plan.reason)


def test_what_its_executor_cannot_do_any_more_is_not_applied(house: Lakehouse) -> None:
    plan = planned(house, "approve")
    house.catalog.set_properties(NAME, {"write.parquet.bloom-filter-enabled.column.id": "true"})
    with pytest.raises(Conflict, match="a bloom filter, which a merge would drop"):
        dispatcher(house).apply(plan.plan_id)
    assert house.control.maintainer.look(NAME).plan.reason.text.endswith("staged for Spark")


def test_without_a_word_from_the_catalog_nothing_is_committed(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker, spec = at_work(house)
    house.catalog.available = False
    with pytest.raises(Unavailable):
        worker.beat(spec, "committing")
    house.catalog.available = True
    assert not worker.beat(spec, "committing").cancel


def test_whether_the_table_fits_is_left_to_the_commit(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker, spec = at_work(house)
    house.catalog.delete(NAME, [house.catalog.live_files(NAME)[0].path])
    assert not worker.beat(spec, "committing").cancel
    house.catalog.drop(NAME)
    assert not worker.beat(spec, "committing").cancel
    house.create(properties={"icewright.mode": "observe"})
    assert not worker.beat(spec, "committing").cancel


def test_what_an_earlier_attempt_committed_and_the_owner_rolled_back_does_not_come_again(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    zombie, worker = Worker(house), Worker(house, "optimizer-b")
    slow = zombie.claimed()
    lose_attempt(house)
    spec = worker.claimed()
    zombie.commit(slow)
    assert not worker.beat(spec, "committing").cancel  # the commit itself finds its files gone
    house.catalog.set_ref(NAME, "main", spec.rewrite.base_snapshot_id)
    assert worker.beat(spec, "committing").cancel
    assert house.tasks.history(spec.task_id)[-1].reason.code == "rolled-back"


# What each report comes to.


@pytest.mark.parametrize(
    ("result", "state", "attempt", "code"),
    [
        (Committed(17), TaskState.COMMITTED, AttemptState.COMMITTED, "committed"),
        (Conflicted("deletes came first"), TaskState.SUPERSEDED, AttemptState.CONFLICT, "conflict"),
        (CommitUnknown("no answer"), TaskState.IN_DOUBT, AttemptState.UNKNOWN, "commit-unknown"),
        (RETRYABLE, TaskState.QUEUED, AttemptState.FAILED, "engine"),
        (FINAL, TaskState.FAILED, AttemptState.FAILED, "proof-failed"),
        (STOPPED, TaskState.CANCELLED, AttemptState.CANCELLED, "cancelled"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_reports_of_a_first_attempt(
    house: Lakehouse, result: Result, state: TaskState, attempt: AttemptState, code: str
) -> None:
    house.control.maintainer.look(NAME)
    worker, spec = at_work(house)
    if result is STOPPED:
        dispatcher(house).cancel(spec.task_id)
    task = worker.report(spec, result)
    assert task.outcome is not None
    assert (task.state, last_attempt(house, task), task.outcome.reason.code) == (state, attempt, code)
    assert result.kind in not_none(house.tasks.attempts(task.task_id)[-1].report_json)


@pytest.mark.parametrize(
    ("code", "state", "cause"),
    [
        ("unavailable", TaskState.QUEUED, Cause.AWAY),
        ("storage-away", TaskState.QUEUED, Cause.AWAY),
        ("out-of-memory", TaskState.QUEUED, Cause.OUT_OF_MEMORY),
        ("lease-lost", TaskState.QUEUED, Cause.LOST),
        ("engine", TaskState.QUEUED, Cause.DEFECT),
        ("what-nobody-knows", TaskState.QUEUED, Cause.DEFECT),
        ("storage-refused", TaskState.SUPERSEDED, Cause.FORBIDDEN),
        ("not-stitchable", TaskState.SUPERSEDED, Cause.REJECTED),
        ("conflict", TaskState.SUPERSEDED, Cause.CONFLICT),
        ("forbidden", TaskState.FAILED, Cause.FORBIDDEN),
        ("file-unreadable", TaskState.FAILED, Cause.UNREADABLE),
        ("unreadable", TaskState.FAILED, Cause.UNREADABLE),
        ("unsupported", TaskState.FAILED, Cause.REJECTED),
    ],
)
@pytest.mark.parametrize("tries", [1, 2])
def test_a_failure_comes_to_what_the_error_tree_says_on_whichever_try(
    house: Lakehouse, tries: int, code: str, state: TaskState, cause: Cause
) -> None:
    """An attempt may always say that the same might do better. On a later try the table is looked at first."""
    house.control.maintainer.look(NAME)
    worker = Worker(house)
    for _ in range(tries - 1):
        worker.claimed()
        lose_attempt(house)
    task = worker.report(worker.claimed(), Failed(code, "so it is", retryable=True))
    if tries > 1 and state is not TaskState.QUEUED:
        assert task.state is TaskState.IN_DOUBT
        house.pass_time(LEASE_MS)
        task = house.control.verifier.settle(task)
    assert task.outcome is not None
    assert (task.state, task.outcome.cause, task.outcome.reason.code) == (state, cause, code)


def test_a_last_try_that_might_do_better_was_the_last_all_the_same(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker = Worker(house)
    for _ in range(2):
        worker.claimed()
        lose_attempt(house)
    task = worker.report(worker.claimed(), RETRYABLE)
    house.pass_time(LEASE_MS)
    task = house.control.verifier.settle(task)
    assert (task.attempt, task.state) == (3, TaskState.FAILED)


@pytest.mark.parametrize("result", [Conflicted("gone"), FINAL, STOPPED], ids=lambda result: result.kind)
def test_no_later_attempt_ends_a_task_by_its_report_alone(house: Lakehouse, result: Result) -> None:
    """The first attempt, thought dead, may have been faster than the second."""
    house.control.maintainer.look(NAME)
    zombie, worker = Worker(house), Worker(house, "optimizer-b")
    slow = zombie.claimed()
    lose_attempt(house)
    spec = worker.claimed()
    zombie.commit(slow)
    if result is STOPPED:
        dispatcher(house).cancel(spec.task_id)
    task = worker.report(spec, result)
    assert task.state is TaskState.IN_DOUBT
    house.pass_time(LEASE_MS)
    house.control.loop.round()
    assert house.tasks.get(task.task_id).state is TaskState.SUCCEEDED


def test_a_retryable_failure_is_tried_again_after_a_while_and_not_for_ever(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker = Worker(house)
    for attempt in (1, 2):
        task = worker.report(worker.claimed(), RETRYABLE)
        assert (task.state, task.attempt) == (TaskState.QUEUED, attempt)
        assert BACKOFF_BASE_MS // 2 <= task.not_before_at - house.clock.now() <= BACKOFF_MAX_MS
        assert worker.claim() is None
        house.pass_time(task.not_before_at - house.clock.now())
    worker.report(worker.claimed(), RETRYABLE)
    house.pass_time(LEASE_MS)
    house.control.loop.round()
    task = house.only_task()
    assert (task.state, not_none(task.outcome).reason.code) == (TaskState.FAILED, "engine")


def test_a_failure_of_a_task_that_was_asked_to_stop_is_its_end(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker, spec = at_work(house)
    dispatcher(house).cancel(spec.task_id)
    assert worker.report(spec, RETRYABLE).state is TaskState.CANCELLED


def test_a_report_after_the_lease_is_lost(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker, spec = at_work(house)
    house.pass_time(LEASE_MS)
    with pytest.raises(LeaseLost):
        worker.report(spec, Committed(1))  # nobody has noticed yet that the lease ran out
    house.control.loop.round()
    with pytest.raises(LeaseLost):
        worker.report(spec, Committed(1))
    assert house.only_task().state is TaskState.IN_DOUBT


def test_a_report_of_a_former_attempt_is_lost(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    first, second = Worker(house), Worker(house, "optimizer-b")
    old = first.claimed()
    lose_attempt(house)
    new = second.claimed()
    assert new.fencing_token > old.fencing_token
    with pytest.raises(LeaseLost):
        first.report(old, Committed(1))
    with pytest.raises(LeaseLost):
        first.beat(old)
    assert house.only_task().state is TaskState.RUNNING


def test_a_report_of_another_version_is_refused(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    spec = Worker(house).claimed()
    with pytest.raises(VersionMismatch):
        dispatcher(house).report(
            TaskReport(PROTOCOL_VERSION + 1, spec.task_id, 1, spec.fencing_token, Committed(1), (), (), 1, 1)
        )
    assert house.only_task().state is TaskState.RUNNING


def test_a_task_that_changes_while_its_report_is_read_is_lost(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.control.maintainer.look(NAME)
    worker, spec = at_work(house)
    check_lease = house.tasks.check_lease

    def cancelled_behind_it(task_id: str, fencing_token: int) -> Task:
        task = check_lease(task_id, fencing_token)
        dispatcher(house).cancel(task_id)
        return task

    monkeypatch.setattr(house.tasks, "check_lease", cancelled_behind_it)
    with pytest.raises(LeaseLost, match="changed meanwhile"):
        worker.report(spec, Committed(1))


# What a person asks for.


def test_a_waiting_task_is_cancelled_at_once(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    task = dispatcher(house).cancel(house.only_task().task_id)
    assert task.state is TaskState.CANCELLED
    assert Worker(house).claim_if_any() is None
    with pytest.raises(NotAllowed):
        dispatcher(house).cancel(task.task_id)


def test_a_cancelled_task_stays_so_until_the_table_changes(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    dispatcher(house).cancel(house.only_task().task_id)
    assert house.control.maintainer.look(NAME).enqueued is None
    house.append(1)
    assert house.control.maintainer.look(NAME).enqueued is not None


def test_a_failed_or_cancelled_task_can_be_queued_again(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker = Worker(house)
    failed = worker.report(worker.claimed(), FINAL)
    assert dispatcher(house).retry(failed.task_id).state is TaskState.QUEUED
    dispatcher(house).cancel(failed.task_id)
    assert dispatcher(house).retry(failed.task_id).state is TaskState.QUEUED
    worker.carry_out()
    house.control.loop.round()
    assert house.only_task().state is TaskState.SUCCEEDED
    with pytest.raises(NotAllowed):
        dispatcher(house).retry(failed.task_id)


def test_a_waiting_task_that_is_taken_back_is_superseded(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    task = dispatcher(house).withdraw(house.only_task(), Reason("why", "because"))
    assert task.state is TaskState.SUPERSEDED
    with pytest.raises(Conflict):
        dispatcher(house).withdraw(replace(task, version=task.version - 1), Reason("why", "because"))


def lose_attempt(house: Lakehouse) -> None:
    """The optimizer is not heard of any more; the table is looked into; the task is queued again."""
    house.pass_time(LEASE_MS)
    house.control.loop.round()
    house.pass_time(LEASE_MS)
    house.control.loop.round()
    house.pass_time(BACKOFF_MAX_MS)
    assert house.only_task().state is TaskState.QUEUED
