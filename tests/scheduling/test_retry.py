import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.scheduling.retry import (
    BACKOFF_BASE_MS,
    BACKOFF_MAX_MS,
    PUT_OFF_BASE_MS,
    PUT_OFF_MAX_MS,
    End,
    GiveUp,
    PlanAgain,
    Retry,
    backoff_ms,
    decide,
    put_off_ms,
)

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


@given(attempt=tries, jitter=jitters)
def test_a_wait_is_bounded_and_its_longest_doubles(attempt: int, jitter: float) -> None:
    longest_ms = min(BACKOFF_BASE_MS * 2 ** min(attempt - 1, 20), BACKOFF_MAX_MS)
    assert longest_ms // 2 <= backoff_ms(attempt, jitter=jitter) <= longest_ms <= BACKOFF_MAX_MS


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
