from hypothesis import example, given
from hypothesis import strategies as st

from icewright.observation.sweep import INTERVAL_MAX_MS, INTERVAL_MIN_MS, next_look

NOW = 1_700_000_000_000
DAY_MS = 24 * 60 * 60 * 1000

intervals = st.none() | st.integers(0, 400 * DAY_MS)
changes = st.integers(0, NOW + DAY_MS)  # also a change in the future: clocks differ
jitters = st.floats(0, 1, exclude_max=True)
looks = st.none() | st.integers(0, NOW + 400 * DAY_MS)


@given(interval=intervals, changed_at=changes, jitter=jitters, again=looks)
def test_never_sooner_than_seconds_never_later_than_an_hour(
    interval: int | None, changed_at: int, jitter: float, again: int | None
) -> None:
    look_at = next_look(NOW, commit_interval_ms=interval, changed_at=changed_at, jitter=jitter, look_again_at=again)
    assert NOW + INTERVAL_MIN_MS <= look_at <= NOW + INTERVAL_MAX_MS


@given(interval=st.integers(0, DAY_MS), more=st.integers(0, DAY_MS), changed_at=changes, jitter=jitters)
def test_a_busier_table_is_looked_at_no_later(interval: int, more: int, changed_at: int, jitter: float) -> None:
    busy = next_look(NOW, commit_interval_ms=interval, changed_at=changed_at, jitter=jitter)
    slow = next_look(NOW, commit_interval_ms=interval + more, changed_at=changed_at, jitter=jitter)
    assert busy <= slow


@given(interval=intervals, changed_at=changes, earlier_ms=st.integers(0, DAY_MS), jitter=jitters)
def test_a_table_that_is_longer_quiet_is_looked_at_no_sooner(
    interval: int | None, changed_at: int, earlier_ms: int, jitter: float
) -> None:
    fresh = next_look(NOW, commit_interval_ms=interval, changed_at=changed_at, jitter=jitter)
    quiet = next_look(NOW, commit_interval_ms=interval, changed_at=changed_at - earlier_ms, jitter=jitter)
    assert fresh <= quiet


@given(interval=intervals, changed_at=changes, jitter=jitters, again=st.integers(NOW + INTERVAL_MIN_MS, NOW + DAY_MS))
def test_a_plan_that_waits_is_made_again_in_time(
    interval: int | None, changed_at: int, jitter: float, again: int
) -> None:
    without = next_look(NOW, commit_interval_ms=interval, changed_at=changed_at, jitter=jitter)
    look_at = next_look(NOW, commit_interval_ms=interval, changed_at=changed_at, jitter=jitter, look_again_at=again)
    assert look_at == min(without, again)


@example(interval=0, changed_at=NOW)  # at the lower bound as well
@given(interval=intervals, changed_at=changes)
def test_tables_looked_at_together_drift_apart(interval: int | None, changed_at: int) -> None:
    looks = {
        next_look(NOW, commit_interval_ms=interval, changed_at=changed_at, jitter=jitter) for jitter in (0, 0.5, 0.99)
    }
    assert len(looks) == 3


def test_busy_seldom_and_quiet_tables() -> None:
    minute = 60_000
    assert next_look(NOW, commit_interval_ms=10 * minute, changed_at=NOW, jitter=0) == NOW + 10 * minute
    assert next_look(NOW, commit_interval_ms=minute, changed_at=NOW - 80 * minute, jitter=0) == NOW + 10 * minute
    assert next_look(NOW, commit_interval_ms=None, changed_at=NOW - DAY_MS, jitter=0) == NOW + INTERVAL_MAX_MS
