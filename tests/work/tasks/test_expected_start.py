"""About when a task starts: against queues that are played to their end, and by laws."""

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from icewright.model.policy.resource_groups import Queue
from icewright.model.work.admission import FREE, Facts, InLane, Lane, Line, Urgency
from icewright.work.groups.admission import chosen
from icewright.work.groups.rank import AGED_MS, Candidate, is_aged, rank
from icewright.work.tasks.expected_start import NO_TIME, Spans, before, left, spans, turn_in
from tests.cases import each_case

NOW = 2 * AGED_MS
lanes = st.builds(Lane, st.just(Queue.NORMAL), st.sampled_from(Urgency), st.sampled_from(["", "ops", "sales"]))
waiting = st.builds(Candidate, st.uuids().map(str), st.integers(-10, 11), st.integers(0, NOW), lanes)
queues = st.lists(waiting, min_size=1, max_size=14, unique_by=lambda task: task.task_id)
spans_ms = st.integers(0, 10_000_000)
measured = st.lists(spans_ms, min_size=1, max_size=30)


def line_of(own: Candidate, queue: Sequence[Candidate]) -> Line:
    others = {task.lane for task in queue} - {own.lane}
    return Line(
        sum(task.lane == own.lane and rank(task) < rank(own) for task in queue),
        tuple(
            InLane(
                lane,
                sum(task.lane == lane for task in queue),
                sum(task.lane == lane and is_aged(task, NOW) for task in queue),
            )
            for lane in sorted(others, key=str)
        ),
    )


def of_an_owner(owner: str) -> Lane:
    return Lane(tenant=owner)


@given(queues)
def test_never_more_start_before_it_than_are_told(queue: list[Candidate]) -> None:
    """Nothing runs, and the queue is played: by the very function that claims go by."""
    own = queue[0]
    assume(len({task.lane for task in queue if task.lane.tenant == own.lane.tenant}) == 1)
    order = [task.task_id for task in chosen(FREE, Facts(), queue, NOW)]
    assert order.index(own.task_id) <= before(own.lane, line_of(own, queue), is_aged=is_aged(own, NOW))


@given(queues)
def test_of_one_owner_it_is_told_exactly(queue: list[Candidate]) -> None:
    mine = [Candidate(task.task_id, task.priority, task.created_at, of_an_owner("ops")) for task in queue]
    order = [task.task_id for task in chosen(FREE, Facts(), mine, NOW)]
    assert order.index(mine[0].task_id) == before(mine[0].lane, line_of(mine[0], mine), is_aged=is_aged(mine[0], NOW))


@each_case(
    ("own", "aged", "found"),
    [
        (Lane(urgency=Urgency.EXPEDITED), False, 0),
        (Lane(urgency=Urgency.REAL_TIME), False, 3 + 1),  # of what has aged, ops have one turn
        (Lane(), False, 3 + 4 + 1),
        (Lane(), True, 3 + 1),
    ],
)
def test_what_is_more_urgent_goes_first(own: Lane, *, aged: bool, found: int) -> None:
    others = [InLane(Lane(tenant="ops"), 9, 4)]
    if own.urgency is not Urgency.EXPEDITED:
        others.append(InLane(Lane(urgency=Urgency.EXPEDITED), 3, 0))
    assert before(own, Line(0, tuple(others)), is_aged=aged) == found


def test_owners_take_turns() -> None:
    """Two of its own owner's are before it: so another owner has three turns, however much waits of theirs."""
    assert before(of_an_owner("ops"), Line(2, (InLane(of_an_owner("sales"), 50, 0),)), is_aged=False) == 2 + 3


@each_case(
    ("before_it", "at_work", "slots", "expected"),
    [
        (0, [], 1, 0),
        (0, [4], 1, 6),
        (1, [4], 1, 16),
        (0, [4, 9], 2, 1),
        (1, [4, 9], 2, 6),
        (2, [4, 9], 2, 11),
        (1, [4], 2, 6),
        (3, [], 2, 10),
        (0, [0, 5], 1, 10),  # one slot was taken away: the first that ends is not followed
    ],
)
def test_each_slot_takes_the_next_as_it_is_free(before_it: int, at_work: list[int], slots: int, expected: int) -> None:
    assert turn_in(before_it, at_work, slots, [10, 10, 10]).about_ms == expected


def test_quartiles() -> None:
    assert spans([8, 1, 2, 3]) == Spans(1, 2, 3)
    assert spans([7]) == Spans(7, 7, 7)


def test_what_is_at_work_for_long_takes_as_those_that_took_longer() -> None:
    assert left([1, 2, 10], 5) == Spans(5, 5, 5)
    assert left([1, 2, 3], 5) == spans([1, 2, 3])


def test_a_free_slot_needs_nothing_measured_and_all_else_does() -> None:
    assert turn_in(0, [], 1, []) == NO_TIME
    with pytest.raises(ValueError, match="nothing was measured"):
        turn_in(1, [], 1, [])
    with pytest.raises(ValueError, match="slot"):
        turn_in(0, [], 0, [1])


@given(st.integers(0, 40), st.lists(spans_ms, max_size=8), st.integers(1, 8), measured)
def test_laws(before_it: int, at_work: list[int], slots: int, took: list[int]) -> None:
    found = turn_in(before_it, at_work, slots, took)
    assert 0 <= found.soonest_ms <= found.about_ms <= found.latest_ms
    later = turn_in(before_it + 1, at_work, slots, took)
    assert later.about_ms >= found.about_ms
    # Never longer than one after the other, and never shorter than all slots could make it.
    each = spans(took).about_ms
    assert found.about_ms <= max([0, *(left(took, one).about_ms for one in at_work)]) + before_it * each
    assert turn_in(before_it, at_work, slots + 1, took).about_ms <= found.about_ms
