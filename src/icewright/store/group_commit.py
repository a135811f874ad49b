"""Callers in several threads whose requests are answered together: one transaction instead of one for each.

Whoever comes first asks for all that have come until its transaction begins. Who comes meanwhile waits, and is asked
for by the first of those.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, Generic, TypeVar

from icewright.core.errors import IcewrightError, OutcomeUnknown, StoreUnavailable

TOGETHER_MAX: Final = 32
"""So many requests are answered by one transaction: it has others wait."""
WAIT_S_MAX: Final = 120.0
"""Longer than anybody should take to ask: what limits that is how long the database is waited for."""

Q = TypeVar("Q")
A = TypeVar("A")


class _Caller(Generic[Q, A]):
    """Somebody who waits; ``woken`` with an answer, with a failure, or to ask for all who wait by then."""

    def __init__(self, request: Q) -> None:
        self.request = request
        self.woken = threading.Event()
        self.answer: tuple[A] | None = None
        self.failure: IcewrightError | None = None


class GroupCommit(Generic[Q, A]):
    """One who asks for all.

    ``ask`` is given a function that takes what was requested by then, and calls it when its transaction has begun. It
    has an answer for the first of these at least, in their order; those behind are asked for once more. ``alike`` says
    which requests may be answered together. What it raises is raised to all whose requests it took, and to all who
    wait where it took none.
    """

    def __init__(
        self,
        ask: Callable[[Callable[[], Sequence[Q]]], Sequence[A]],
        alike: Callable[[Q, Q], bool],
        wait_s: float = WAIT_S_MAX,
    ) -> None:
        self._ask, self._alike, self._wait_s = ask, alike, wait_s
        self._guard = threading.Lock()
        self._somebody_asks = False
        self._waiting: deque[_Caller[Q, A]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait at this moment that nobody asks for yet."""
        with self._guard:
            return len(self._waiting)

    def answer(self, request: Q) -> A:
        """The answer to a request. Raises what asking for it raised."""
        mine = _Caller[Q, A](request)
        with self._guard:
            self._waiting.append(mine)
            asks, self._somebody_asks = not self._somebody_asks, True
        if not asks and not mine.woken.wait(self._wait_s):
            self._leave(mine)
        if mine.answer is None and mine.failure is None:
            self._ask_for_all()
        if mine.failure is not None:
            raise type(mine.failure)(mine.failure.message, hint=mine.failure.hint) from mine.failure
        if mine.answer is None:
            raise RuntimeError("the caller has an answer for the first of them")
        return mine.answer[0]

    def _ask_for_all(self) -> None:
        taken: list[_Caller[Q, A]] = []
        try:
            answers = self._ask(lambda: self._take(taken))
        except IcewrightError as error:
            self._end(taken, (), error)
            raise
        except BaseException as error:
            self._end(taken, (), OutcomeUnknown(f"it was asked for together with others, which failed: {error!r}"))
            raise
        self._end(taken, answers, None)

    def _take(self, taken: list[_Caller[Q, A]]) -> Sequence[Q]:
        with self._guard:
            first = self._waiting[0]
            alike = (one for one in self._waiting if self._alike(first.request, one.request))
            taken.extend(islice(alike, TOGETHER_MAX))
            for one in taken:
                self._waiting.remove(one)
        return [one.request for one in taken]

    def _end(self, taken: Sequence[_Caller[Q, A]], answers: Sequence[A], failure: IcewrightError | None) -> None:
        """Tell those who were asked for, and have the first of those who wait ask next."""
        with self._guard:
            if failure is not None and not taken:
                taken = tuple(self._waiting)
                self._waiting.clear()
            for one, answer in zip(taken, answers, strict=False):
                one.answer = (answer,)
            if failure is None:
                self._waiting.extendleft(reversed(taken[len(answers) :]))
            else:
                for one in taken:
                    one.failure = failure
            for one in taken:
                if one.answer is not None or one.failure is not None:
                    one.woken.set()
            if self._waiting:
                self._waiting[0].woken.set()
            else:
                self._somebody_asks = False

    def _leave(self, mine: _Caller[Q, A]) -> None:
        """Wait no more. Raises ``StoreUnavailable``, or ``OutcomeUnknown`` where somebody is just asking for it."""
        with self._guard:
            if mine.woken.is_set():
                return
            if mine not in self._waiting:
                hint = "check the outcome before you retry"
                raise OutcomeUnknown(f"no answer came within {self._wait_s:,.0f} s", hint=hint)
            self._waiting.remove(mine)
        raise StoreUnavailable(f"the store does not answer: others have been asking it for over {self._wait_s:,.0f} s")
