"""Requests of several threads that are answered together: nobody is left out, and a failure is that of all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from icewright.core.errors import OutcomeUnknown, StoreUnavailable
from icewright.store import group_commit as together
from icewright.store.group_commit import GroupCommit
from tests.cases import each_case
from tests.waiting import until

CALLERS = 6


class Asking:
    """Asks for others: holds the first one until it is told to go on, so that the rest come meanwhile."""

    def __init__(self, answers_max: int = 99) -> None:
        self.go_on = threading.Event()
        self.answers_max = answers_max
        self.asked: list[Sequence[int]] = []
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def ask(self, take: Callable[[], Sequence[int]]) -> Sequence[int]:
        self.before()
        requests = take()
        self.asked.append(requests)
        if len(self.asked) == 1:
            self.go_on.wait()
        else:
            self.after()
        return [10 * number for number in requests[: self.answers_max]]


def parity(one: int, other: int) -> bool:
    return one % 2 == other % 2


def alike(_one: int, _other: int) -> bool:
    return True


def came_behind(pool: ThreadPoolExecutor, asked: GroupCommit[int, int], asking: Asking) -> list[Future[int]]:
    """Number 0 is being asked for; the others wait, in order."""
    calls = [pool.submit(asked.answer, 0)]
    until(lambda: len(asking.asked) == 1)
    for number in range(1, CALLERS):
        calls.append(pool.submit(asked.answer, number))
        until(lambda: asked.waiting == number)  # noqa: B023 - asked before the next number
    return calls


def all_answered(
    may_be_one: Callable[[int, int], bool], asking: Asking | None = None
) -> tuple[GroupCommit[int, int], Asking]:
    """All come while number 0 is being asked for, and each gets its answer."""
    asking = asking or Asking()
    asked = GroupCommit(asking.ask, may_be_one)
    with ThreadPoolExecutor(CALLERS) as pool:
        calls = came_behind(pool, asked, asking)
        asking.go_on.set()
        assert [call.result() for call in calls] == [10 * number for number in range(CALLERS)]
    return asked, asking


def test_who_comes_while_somebody_asks_is_answered_together_in_order() -> None:
    asked, asking = all_answered(alike)
    assert asking.asked == [[0], [1, 2, 3, 4, 5]]
    assert asked.answer(7) == 70  # and nobody is taken for one who still asks
    assert asking.asked[-1] == [7]


def test_what_is_not_alike_is_asked_for_apart() -> None:
    _asked, asking = all_answered(parity)
    assert asking.asked == [[0], [1, 3, 5], [2, 4]]


def test_whoever_got_no_answer_is_asked_for_again_before_those_who_came_later() -> None:
    _asked, asking = all_answered(alike, Asking(answers_max=2))
    assert asking.asked == [[0], [1, 2, 3, 4, 5], [3, 4, 5], [5]]


def test_no_more_than_so_many_are_answered_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "TOGETHER_MAX", 3)
    _asked, asking = all_answered(alike)
    assert asking.asked == [[0], [1, 2, 3], [4, 5]]


@each_case("place", ["before", "after"])
@each_case(
    ("raised", "told"),
    [
        (StoreUnavailable("the store does not answer", hint="wait"), StoreUnavailable),
        (ZeroDivisionError("a mistake"), OutcomeUnknown),
    ],
)
def test_a_failure_is_told_to_all_whom_it_concerns_and_others_go_on(
    place: str, raised: Exception, told: type[Exception]
) -> None:
    def fail() -> None:
        if len(asking.asked) >= 1:
            raise raised

    asking = Asking()
    asked = GroupCommit(asking.ask, alike)
    with ThreadPoolExecutor(CALLERS) as pool:
        calls = came_behind(pool, asked, asking)
        setattr(asking, place, fail)
        asking.go_on.set()
        assert calls[0].result() == 0
        first, *rest = [call.exception() for call in calls[1:]]
    assert first is raised
    assert [type(error) for error in rest] == [told] * (CALLERS - 2)
    assert str(raised) in str(rest[0])
    setattr(asking, place, lambda: None)
    assert asked.waiting == 0
    assert asked.answer(7) == 70


def test_who_waits_too_long_is_told_and_not_asked_for() -> None:
    asking = Asking()
    asked = GroupCommit(asking.ask, alike, wait_s=0.001)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(asked.answer, 0)
        until(lambda: len(asking.asked) == 1)
        with pytest.raises(StoreUnavailable, match="does not answer"):
            asked.answer(1)
        asking.go_on.set()
        assert first.result() == 0
    assert asking.asked == [[0]]


def test_of_what_is_just_asked_nobody_says_that_it_did_not_happen() -> None:
    asking, hold = Asking(), threading.Event()
    asking.after = lambda: until(hold.is_set)
    asked = GroupCommit(asking.ask, alike, wait_s=0.2)
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(asked.answer, 0)]
        until(lambda: len(asking.asked) == 1)
        for number in (1, 2):
            calls.append(pool.submit(asked.answer, number))
            until(lambda: asked.waiting == number)  # noqa: B023 - asked before the next number
        asking.go_on.set()
        until(lambda: len(asking.asked) == 2)
        error = calls[2].exception()
        hold.set()
        assert [call.result() for call in calls[:2]] == [0, 10]
    assert isinstance(error, OutcomeUnknown)
