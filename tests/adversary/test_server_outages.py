"""Outages of the server and its store: what an optimizer could not help costs its task no try."""

from __future__ import annotations

import pytest

from icewright.core.errors import LeaseLost, ServerUnavailable
from icewright.model.work.jobs import Failed
from icewright.model.work.tasks import Progress, Task, TaskState
from icewright_spark.optimizer.attempt import result_of
from icewright_spark.optimizer.lease import LeaseRenewer
from icewright_spark.reports.client import Server
from tests.builders.lakehouse import HOUR_MS, LEASE_MS, Lakehouse
from tests.builders.worker import Worker
from tests.e2e.processes import free_port

OUTAGES, ATTEMPTS_MAX = 10, 3


@pytest.fixture
def house() -> Lakehouse:
    house = Lakehouse()
    house.ready_table()
    house.rounds(2)
    house.control.dispatcher.answers()
    return house


def first_task(house: Lakehouse) -> Task:
    """Behind one that failed, its table is planned anew."""
    return min(house.all_tasks(), key=lambda task: task.task_id)


def settled(house: Lakehouse) -> Task:
    """What becomes of a task whose attempt was lost, hours later."""
    house.rounds(1)
    house.pass_time(HOUR_MS)
    house.rounds(1)
    house.pass_time(HOUR_MS)  # it waits before it is tried again
    return first_task(house)


def test_s8_a_server_that_is_away_while_attempts_run_costs_them_no_try(house: Lakehouse) -> None:
    for _ in range(OUTAGES):
        Worker(house).claimed()
        house.pass_time(2 * LEASE_MS)
        house.restart()
        house.control.dispatcher.answers()
        task = settled(house)
        assert task.state is TaskState.QUEUED
        assert task.outcome is not None
        assert task.outcome.reason.code == ServerUnavailable.code
        assert "the server or its store was away" in task.outcome.reason.text
    assert first_task(house).attempt == OUTAGES


def test_s8_what_an_optimizer_could_not_ask_the_server_costs_no_try(house: Lakehouse) -> None:
    for _ in range(OUTAGES):
        worker = Worker(house)
        worker.report(worker.claimed(), Failed(ServerUnavailable.code, "the server does not answer", retryable=True))
        assert settled(house).state is TaskState.QUEUED


def test_s8_attempts_that_are_lost_while_the_server_answers_cost_tries_before_and_after(house: Lakehouse) -> None:
    for number in range(ATTEMPTS_MAX):
        Worker(house).claimed()
        house.pass_time(2 * LEASE_MS)
        task = settled(house)
        assert task.state is (TaskState.FAILED if number == ATTEMPTS_MAX - 1 else TaskState.QUEUED)
        if number == 0:
            Worker(house).claimed()
            house.pass_time(2 * LEASE_MS)
            house.restart()
            house.control.dispatcher.answers()
            settled(house)
    assert first_task(house).attempt == ATTEMPTS_MAX + 1


def test_s8_an_optimizer_says_that_the_server_was_away_and_not_that_its_attempt_failed() -> None:
    house = Lakehouse()
    house.ready_table()
    house.rounds(2)
    spec, now_s = Worker(house).claimed(), [0.0]

    def pause(seconds: float) -> None:
        now_s[0] += seconds

    server = Server(f"http://127.0.0.1:{free_port()}", "t" * 43)
    keeper = LeaseRenewer(server, spec, lambda: Progress("merging", 0, 1), lambda: None, lambda: now_s[0], pause=pause)
    with pytest.raises(LeaseLost) as lost:
        keeper.may_commit()
    result = result_of(lost.value, cancelled=False, lost=keeper.lost, lost_code=keeper.lost_code)
    assert isinstance(result, Failed)
    assert (result.code, result.retryable) == (ServerUnavailable.code, True)
    server.close()
