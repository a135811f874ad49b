from hypothesis import given
from hypothesis import strategies as st

from icewright.scheduling.rank import AGEING_MS, Candidate, rank, ranked_at

instants = st.integers(0, 2**42)
priorities = st.integers(-100, 100)
candidates = st.builds(Candidate, st.text("0123456789abcdef", min_size=1, max_size=6), priorities, instants)


@given(candidates, candidates, instants, instants)
def test_two_waiting_tasks_never_change_places(one: Candidate, other: Candidate, now: int, later: int) -> None:
    assert (rank(one, now) < rank(other, now)) == (rank(one, later) < rank(other, later))


@given(candidates, candidates, instants)
def test_the_order_is_the_one_that_a_store_can_keep_in_an_index(one: Candidate, other: Candidate, now: int) -> None:
    stored = [(ranked_at(task.priority, task.created_at), task.task_id) for task in (one, other)]
    assert (rank(one, now) < rank(other, now)) == (stored[0] < stored[1])


@given(candidates, st.integers(1, 50), instants)
def test_higher_priority_goes_first_among_the_equally_old(task: Candidate, more: int, now: int) -> None:
    higher = Candidate(task.task_id, task.priority + more, task.created_at)
    assert rank(higher, now) < rank(task, now)


@given(candidates, st.integers(1, 2**30), instants)
def test_the_older_goes_first_among_equals(task: Candidate, later_ms: int, now: int) -> None:
    younger = Candidate(task.task_id, task.priority, task.created_at + later_ms)
    assert rank(task, now) < rank(younger, now)


@given(candidates, st.integers(0, 50), st.integers(1, 2**30), instants)
def test_nothing_is_overtaken_for_longer_than_its_distance_in_points(
    task: Candidate, points: int, extra_ms: int, now: int
) -> None:
    better = Candidate("0", task.priority + points, task.created_at + points * AGEING_MS + extra_ms)
    assert rank(task, now) < rank(better, now)


def test_ties_go_to_the_smaller_id() -> None:
    assert rank(Candidate("a", 1, 5), 9) < rank(Candidate("b", 1, 5), 9)
