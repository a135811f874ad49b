"""When tasks of a table wait in the large queue, and when they come back."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from icewright.model.plans.plans import Reason
from icewright.model.policy.resource_groups import Queue
from icewright.model.work import lifecycle
from icewright.model.work.admission import Lane
from icewright.model.work.lifecycle import queue_after
from icewright.model.work.tasks import ListedTask, Outcome, TaskState
from tests.cases import each_case
from tests.contracts.samples import new_task

OOM = Outcome(Reason("out-of-memory", "a worker was killed"))
OTHER = Outcome(Reason("verified", "all well"))
WAITING = lifecycle.create(new_task("task-1"), 1).task


def ended(word: str) -> ListedTask:
    """``N+``: succeeded in the normal queue; ``L-``: came to nothing in the large one; ``N!``: ran out of memory."""
    queue = Queue.LARGE if word[0] == "L" else Queue.NORMAL
    state = TaskState.SUCCEEDED if word[1] == "+" else TaskState.FAILED
    task = replace(WAITING, state=state, lane=Lane(queue), outcome=OOM if word[1] == "!" else OTHER)
    return task.listed()


@each_case(
    ("history", "queue"),
    [
        ("", Queue.NORMAL),
        ("N+", Queue.NORMAL),
        ("N-", Queue.NORMAL),
        ("N!", Queue.LARGE),
        ("N+ N! L+", Queue.LARGE),
        ("N+ L+", Queue.LARGE),  # it ran out of memory at its first try, and succeeded in the large queue
        ("N+ N! L+ L+", Queue.LARGE),
        ("N+ N! L+ L+ L+", Queue.NORMAL),
        ("N+ N! L+ L- L+ L+", Queue.NORMAL),
        ("N+ N! L+ L- L+", Queue.LARGE),
        ("N! L+ L+ L! L+ L+", Queue.LARGE),
        ("N! L+ L+ L+ N+", Queue.NORMAL),
        ("N! L+ L+ L+ N-", Queue.NORMAL),
        ("N! L+ L+ L+ N!", Queue.LARGE),
        ("L-", Queue.LARGE),
    ],
)
def test_a_table_goes_to_the_large_queue_and_comes_back(history: str, queue: Queue) -> None:
    assert queue_after([ended(word) for word in reversed(history.split())], 3) is queue


@given(st.lists(st.sampled_from(["+", "-", "!"]), max_size=30), st.integers(1, 4))
def test_it_comes_back_after_so_many_successes_and_no_sooner(ends: list[str], successes: int) -> None:
    """As a counter would say it, that is set when memory runs out and counts what succeeds."""
    history, missing = list[ListedTask](), 0
    for end in ends:
        queue = queue_after(reversed(history), successes)
        assert queue is (Queue.LARGE if missing else Queue.NORMAL)
        history.append(ended(("L" if queue is Queue.LARGE else "N") + end))
        if end == "!":
            missing = successes
        elif end == "+" and missing:
            missing -= 1
