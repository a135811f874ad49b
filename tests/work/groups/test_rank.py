"""Whose turn it is, compared with a second statement of the order, and the bound by which nothing starves."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.model.policy.resource_groups import Queue
from icewright.model.work.admission import NO_LANE, Lane, Urgency
from icewright.work.groups.rank import AGED_MS, AGEING_MS, Candidate, Served, rank, ranked_at, turn

instants = st.integers(0, 2**42)
priorities = st.integers(-100, 100)
candidates = st.builds(Candidate, st.text("0123456789abcdef", min_size=1, max_size=6), priorities, instants)

SPAN_MS = 3 * AGED_MS
lanes = st.builds(Lane, st.sampled_from(Queue), st.sampled_from(Urgency), st.sampled_from(["", "ops", "sales"]))
waiting = st.builds(Candidate, st.uuids().map(str), st.integers(-10, 11), st.integers(0, SPAN_MS), lanes)
counts = st.dictionaries(st.sampled_from(["", "ops", "sales"]), st.integers(0, 4))
had = st.builds(Served, counts, counts)


@given(candidates, candidates)
def test_the_order_is_the_one_that_a_store_can_keep_in_an_index(one: Candidate, other: Candidate) -> None:
    stored = [(ranked_at(task.priority, task.created_at), task.task_id) for task in (one, other)]
    assert (rank(one) < rank(other)) == (stored[0] < stored[1])


@given(candidates, st.integers(1, 50))
def test_higher_priority_goes_first_among_the_equally_old(task: Candidate, more: int) -> None:
    assert rank(Candidate(task.task_id, task.priority + more, task.created_at)) < rank(task)


@given(candidates, st.integers(1, 2**30))
def test_the_older_goes_first_among_equals(task: Candidate, later_ms: int) -> None:
    assert rank(task) < rank(Candidate(task.task_id, task.priority, task.created_at + later_ms))


@given(candidates, st.integers(0, 50), st.integers(1, 2**30))
def test_nothing_is_overtaken_for_longer_than_its_distance_in_points(
    task: Candidate, points: int, extra_ms: int
) -> None:
    better = Candidate("0", task.priority + points, task.created_at + points * AGEING_MS + extra_ms)
    assert rank(task) < rank(better)


def test_ties_go_to_the_smaller_id() -> None:
    assert rank(Candidate("a", 1, 5)) < rank(Candidate("b", 1, 5))


def before(one: Candidate, other: Candidate, served: Served, now: int) -> bool:
    """The order once more, sentence by sentence, sharing nothing with the one that is tested."""

    def urgent(task: Candidate) -> bool:
        waited_ms = now - task.created_at + task.priority * 600_000
        return task.lane.urgency is Urgency.REAL_TIME or waited_ms >= 21_600_000

    wished = [task.lane.urgency is Urgency.EXPEDITED for task in (one, other)]
    if wished[0] != wished[1]:
        return wished[0]
    if not wished[0] and urgent(one) != urgent(other):
        return urgent(one)
    for had_by in (served.running, served.last):
        shares = [had_by.get(task.lane.tenant, 0) for task in (one, other)]
        if shares[0] != shares[1]:
            return shares[0] < shares[1]
    since = [task.created_at - 600_000 * task.priority for task in (one, other)]
    return since[0] < since[1] if since[0] != since[1] else one.task_id < other.task_id


@given(st.lists(waiting, min_size=2, max_size=8, unique_by=lambda task: task.task_id), had, st.integers(0, SPAN_MS))
def test_the_order_is_that_of_the_other_statement(tasks: Sequence[Candidate], served: Served, now: int) -> None:
    first = min(tasks, key=lambda task: turn(task, served, now))
    assert all(before(first, other, served, now) for other in tasks if other is not first)


@given(st.lists(waiting, min_size=1, max_size=9), had, st.integers(0, SPAN_MS))
def test_the_best_of_each_lane_is_enough_to_find_the_best(tasks: Sequence[Candidate], served: Served, now: int) -> None:
    heads = [min((task for task in tasks if task.lane == lane), key=rank) for lane in {task.lane for task in tasks}]
    assert min(turn(task, served, now) for task in heads) == min(turn(task, served, now) for task in tasks)


TENANTS = ("", "ops", "sales")


@given(
    slots=st.integers(1, 4),
    took=st.integers(1, 5),
    crowd=st.lists(
        st.tuples(st.sampled_from(TENANTS), st.sampled_from([Urgency.REAL_TIME, Urgency.NORMAL]), st.integers(-10, 11)),
        max_size=12,
    ),
    mine=st.integers(-10, 11),
    before_it=st.integers(0, 3),
)
def test_nothing_starves(
    slots: int, took: int, crowd: Sequence[tuple[str, Urgency, int]], mine: int, before_it: int
) -> None:
    """Whatever comes, and however much: a task that has aged starts when each tenant has had so many turns.

    All the time as many new ones come as there are in the crowd, and whatever starts runs for ``took`` steps.
    """
    step_ms = 600_000
    left = {f"a{n}": Candidate(f"a{n}", 11, 0, Lane(tenant="victim")) for n in range(before_it)}
    left["victim"] = Candidate("victim", mine, 0, Lane(tenant="victim"))
    running, last, made = list[tuple[str, int]](), dict[str, int](), 0
    aged = (AGED_MS - mine * AGEING_MS) // step_ms
    turns_until = (before_it + 1) * (len(TENANTS) + 1)
    for step in range(aged + turns_until * took + 1):
        now = step * step_ms
        for tenant, urgency, priority in crowd:
            made += 1
            left[f"{made:06d}"] = Candidate(f"{made:06d}", priority, now, Lane(Queue.NORMAL, urgency, tenant))
        running = [(tenant, until) for tenant, until in running if until > step]
        while left and len(running) < slots:
            served = Served(Counter(tenant for tenant, _ in running), last)
            best = min(left.values(), key=lambda task: turn(task, served, now))
            if best.task_id == "victim":
                return
            del left[best.task_id]
            last[best.lane.tenant] = max(last.values(), default=0) + 1
            running.append((best.lane.tenant, step + took))
    raise AssertionError("it still waits")


def test_what_a_person_wants_is_first_however_long_others_have_waited() -> None:
    old = Candidate("a", 11, 0, Lane(urgency=Urgency.REAL_TIME))
    wished = Candidate("z", -10, SPAN_MS, Lane(urgency=Urgency.EXPEDITED, tenant="greedy"))
    served = Served({"greedy": 9}, {"greedy": 9})
    assert turn(wished, served, SPAN_MS) < turn(old, served, SPAN_MS)


@pytest.mark.parametrize("ends_at_once", [True, False])
def test_owners_share_what_there_is_however_much_one_of_them_wants(*, ends_at_once: bool) -> None:
    tasks = {f"{n:03d}": Candidate(f"{n:03d}", 0, n, Lane(tenant="greedy")) for n in range(100)}
    tasks |= {f"z{n}": Candidate(f"z{n}", 0, 10_000, Lane(tenant="modest")) for n in range(5)}
    started: list[str] = []
    for _ in range(8):
        last = {tenant: number for number, tenant in enumerate(started, start=1)}
        served = Served({} if ends_at_once else Counter(started), last)
        best = min(tasks.values(), key=lambda task: turn(task, served, 20_000))
        started.append(tasks.pop(best.task_id).lane.tenant)
    assert started == ["greedy", "modest"] * 4


def test_a_lane_is_nobodys_unless_somebody_says_so() -> None:
    assert Lane(Queue.NORMAL, Urgency.NORMAL, "") == NO_LANE
