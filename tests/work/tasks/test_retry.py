from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import Cause
from icewright.model.work import lifecycle
from icewright.model.work.tasks import Outcome, Task, TaskState
from icewright.work.tasks.retry import (
    BACKOFF_BASE_MS,
    BACKOFF_MAX_MS,
    CONFLICT_BASE_MS,
    CONFLICT_MAX_MS,
    PUT_OFF_BASE_MS,
    PUT_OFF_MAX_MS,
    End,
    GiveUp,
    PlanAgain,
    Retry,
    backoff_ms,
    conflict_backoff_ms,
    conflicts_in_a_row,
    decide,
    put_off_ms,
)
from tests.contracts.samples import REASON, new_task

tries = st.integers(1, 10_000)
jitters = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize("end", [End.CONFLICT, End.ABSENT])
@given(attempt=tries, attempts_max=tries, jitter=jitters)
def test_a_stale_plan_is_never_tried_again(end: End, attempt: int, attempts_max: int, jitter: float) -> None:
    assert decide(attempt, attempts_max, end, jitter=jitter) == PlanAgain()


@given(attempt=tries, attempts_max=tries, jitter=jitters)
def test_what_will_fail_again_is_given_up(attempt: int, attempts_max: int, jitter: float) -> None:
    assert decide(attempt, attempts_max, End.FINAL, jitter=jitter) == GiveUp()


@pytest.mark.parametrize("end", [End.RETRYABLE, End.LOST])
@given(attempt=tries, attempts_max=tries, jitter=jitters)
def test_the_rest_is_tried_as_often_as_allowed(end: End, attempt: int, attempts_max: int, jitter: float) -> None:
    decision = decide(attempt, attempts_max, end, jitter=jitter)
    expected = Retry(backoff_ms(attempt, jitter=jitter)) if attempt < attempts_max else GiveUp()
    assert decision == expected


@pytest.mark.parametrize(
    ("wait", "base_ms", "max_ms"),
    [(backoff_ms, BACKOFF_BASE_MS, BACKOFF_MAX_MS), (conflict_backoff_ms, CONFLICT_BASE_MS, CONFLICT_MAX_MS)],
)
@given(attempt=tries, jitter=jitters)
def test_a_wait_is_any_part_of_one_that_doubles_up_to_its_bound(
    wait: Callable[..., int], base_ms: int, max_ms: int, attempt: int, jitter: float
) -> None:
    longest_ms = min(base_ms * 2 ** min(attempt - 1, 20), max_ms)
    assert wait(attempt, jitter=jitter) == int(longest_ms * jitter)
    assert wait(attempt, jitter=0.0) == 0


@given(times=tries, jitter=jitters)
def test_a_conflict_is_tried_again_sooner_than_a_failure(times: int, jitter: float) -> None:
    assert conflict_backoff_ms(times, jitter=jitter) <= backoff_ms(times, jitter=jitter)


@given(attempt=tries, jitter=jitters)
def test_a_later_try_never_waits_shorter(attempt: int, jitter: float) -> None:
    assert backoff_ms(attempt, jitter=jitter) <= backoff_ms(attempt + 1, jitter=jitter)


@given(attempt=tries, jitter=jitters, more=jitters)
def test_chance_only_ever_lengthens(attempt: int, jitter: float, more: float) -> None:
    assert (jitter <= more) <= (backoff_ms(attempt, jitter=jitter) <= backoff_ms(attempt, jitter=more))


def test_files_that_fail_are_put_off_for_longer_each_time_and_for_a_day_at_most() -> None:
    spans = [put_off_ms(times) for times in range(1, 100)]
    assert spans[0] == PUT_OFF_BASE_MS
    assert spans == sorted(spans)
    assert spans[1] == 2 * spans[0]
    assert spans[-1] == PUT_OFF_MAX_MS


def ended(state: TaskState, cause: Cause | None) -> Task:
    task = lifecycle.create(new_task("task-1"), 0).task
    return replace(task, state=state, outcome=Outcome(REASON, cause=cause))


def test_conflicts_are_counted_back_to_the_last_task_that_met_none() -> None:
    met, waits = ended(TaskState.SUPERSEDED, Cause.CONFLICT), ended(TaskState.QUEUED, None)
    others = [ended(TaskState.SUCCEEDED, None), ended(TaskState.FAILED, Cause.AWAY), ended(TaskState.SUPERSEDED, None)]
    assert conflicts_in_a_row([]) == 0
    assert conflicts_in_a_row([waits, met, met]) == 2
    for other in others:
        assert conflicts_in_a_row([met, other, met]) == 1
        assert conflicts_in_a_row([other, met]) == 0
