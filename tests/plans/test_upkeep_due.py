"""What is kept up by itself is done once an hour at most, told by its own tasks alone."""

from __future__ import annotations

from dataclasses import replace

from icewright.core.reasons import Reason
from icewright.model.work import lifecycle
from icewright.model.work.tasks import TERMINAL_STATES, Outcome, Task, TaskState
from icewright.plans.upkeep_due import INTERVAL_MS, last_done, pause, person_wanted
from tests.cases import each_case
from tests.contracts.samples import new_task
from tests.narrowing import not_none

NOW = 1_700_000_000_000


def task(state: TaskState, ago_ms: int = 0, attempt: int = 1) -> Task:
    return replace(
        lifecycle.create(new_task("task-1"), NOW).task, state=state, updated_at=NOW - ago_ms, attempt=attempt
    )


def test_what_was_never_done_is_due() -> None:
    assert pause([], NOW) is None
    assert last_done([]) is None


@each_case("state", sorted(TERMINAL_STATES))
def test_what_was_tried_lately_rests_whatever_came_of_it(state: TaskState) -> None:
    reason = not_none(pause([task(state, INTERVAL_MS - 1)], NOW))
    assert (reason.code, reason.figures) == ("upkeep-lately", {"until": NOW + 1})
    assert pause([task(state, INTERVAL_MS)], NOW) is None


@each_case("state", sorted(frozenset(TaskState) - TERMINAL_STATES))
def test_what_is_under_way_is_not_done_twice_however_long_it_takes(state: TaskState) -> None:
    assert not_none(pause([task(state, 100 * INTERVAL_MS)], NOW)).code == "upkeep-under-way"


def test_what_waits_untried_is_planned_anew_after_an_hour() -> None:
    waiting = task(TaskState.QUEUED, INTERVAL_MS - 1, attempt=0)
    assert "waits for its turn" in not_none(pause([waiting], NOW)).text
    assert pause([waiting], NOW + 1) is None


def test_only_what_succeeded_was_done() -> None:
    latest = [task(TaskState.FAILED), task(TaskState.SUCCEEDED, 5), task(TaskState.SUCCEEDED, 9)]
    assert last_done(latest) == NOW - 5


VERIFIED = Outcome(Reason("verified", "as planned"))


def done(task_id: str, state: TaskState = TaskState.SUCCEEDED, outcome: Outcome | None = VERIFIED) -> Task:
    return replace(task(state), task_id=task_id, outcome=outcome)


@each_case("state", sorted(frozenset(TaskState) - {TaskState.SUCCEEDED}))
def test_x3_nothing_that_came_to_nothing_or_is_under_way_was_the_first_time(state: TaskState) -> None:
    for before in ([], [done("task-1", state)]):
        assert not_none(person_wanted(before, [])).code == "first-expiry"
    assert person_wanted([done("task-2", state), done("task-1")], []) is None


def test_what_cannot_be_compared_any_more_was_a_first_time_all_the_same() -> None:
    """Of a table whose writers trim its log it never can be."""
    assert person_wanted([done("task-1", outcome=Outcome(Reason("unverified", "gone")))], []) is None


@each_case("state", sorted(TaskState))
def test_i12_what_was_taken_back_or_may_have_been_is_a_persons_to_begin_again(state: TaskState) -> None:
    came_to_nothing = state in (TaskState.CANCELLED, TaskState.SUPERSEDED)
    reason = person_wanted([done("task-1")], [done("task-2", state)])
    assert (None if reason is None else reason.code) == (None if came_to_nothing else "taken-back")
    assert person_wanted([done("task-3"), done("task-1")], [done("task-2", state)]) is None
