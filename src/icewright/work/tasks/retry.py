"""What follows on an attempt that did not commit: another try, a new plan, or the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import TypeAlias

from icewright.core.errors import Cause
from icewright.model.work.tasks import TERMINAL_STATES, TaskHead, TaskState

BACKOFF_BASE_MS = 30 * 1000
"""The longest wait before the second try: about what a catalog or a Spark session takes to start again."""

BACKOFF_MAX_MS = 30 * 60 * 1000
"""The longest wait before any try: after half an hour something else is wrong than a passing outage."""


CONFLICT_BASE_MS = 5 * 1000
"""The longest wait after a first conflict."""

CONFLICT_MAX_MS = 5 * 60 * 1000
"""The longest wait after any number of them; the breaker parks a table soon after."""

PUT_OFF_BASE_MS = 10 * 60 * 1000
"""How long the files of a group that failed are left out of plans the first time."""

PUT_OFF_MAX_MS = 24 * 60 * 60 * 1000
"""The longest time that they are left out."""


class End(StrEnum):
    """How an attempt ended that surely committed nothing. Doubts are settled by a look into the table before this."""

    CONFLICT = "conflict"
    """The table refused the commit: the plan is stale."""
    ABSENT = "absent"
    """The optimizer could not tell whether it committed; the table says it did not."""
    LOST = "lost"
    """The lease ran out, and the table has no commit of the task."""
    RETRYABLE = "retryable"
    """The same work may do better next time."""
    FINAL = "final"
    """The same work will fail again."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Try the same task again after this long."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class PlanAgain:
    """Observe the table anew; the task is superseded."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The task has failed; a person may look, and retry."""


Decision: TypeAlias = Retry | PlanAgain | GiveUp


def decide(attempt: int, attempts_max: int, end: End, *, jitter: float) -> Decision:
    """What to do after try number ``attempt`` (from 1); ``jitter`` in [0, 1) comes from the caller.

    A lost lease counts as a try rather than asking for a new plan: work that kills its optimizer would otherwise
    come back as a new task for ever.
    """
    match end:
        case End.CONFLICT | End.ABSENT:
            return PlanAgain()
        case End.FINAL:
            return GiveUp()
        case End.RETRYABLE | End.LOST:
            return Retry(backoff_ms(attempt, jitter=jitter)) if attempt < attempts_max else GiveUp()


def put_off_ms(failures: int) -> int:
    """How long the files of a group that failed by itself are left out of plans, after that many failures (from 1).

    Doubled each time, so that a damaged file costs less and less, and one that was mended is taken up within a day.
    """
    doublings = min(max(failures - 1, 0), PUT_OFF_MAX_MS.bit_length())  # more would only be cut off by the cap
    return min(PUT_OFF_BASE_MS << doublings, PUT_OFF_MAX_MS)


def backoff_ms(attempt: int, *, jitter: float) -> int:
    """How long to wait after try number ``attempt`` (from 1).

    Capped exponential back-off with full jitter: what failed together is spread over the whole of the time
    (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
    """
    return _spread_ms(BACKOFF_BASE_MS, BACKOFF_MAX_MS, attempt, jitter)


def conflicts_in_a_row(latest: Sequence[TaskHead]) -> int:
    """How many of a table's last tasks of one kind, newest first, ended by a conflict since one did not."""
    ended = (task for task in latest if task.state in TERMINAL_STATES)
    return sum(1 for _ in takewhile(_met_another_commit, ended))


def _met_another_commit(task: TaskHead) -> bool:
    said = task.outcome
    return task.state is TaskState.SUPERSEDED and said is not None and said.cause is Cause.CONFLICT


def conflict_backoff_ms(conflicts: int, *, jitter: float) -> int:
    """How long a table's new plan waits before its first try, after that many conflicts in a row (from 1).

    Sooner than after a failure, since nothing is out of order: a writer was faster. Longer each time, since a writer
    who was faster twice will be again.
    """
    return _spread_ms(CONFLICT_BASE_MS, CONFLICT_MAX_MS, conflicts, jitter)


def _spread_ms(base_ms: int, max_ms: int, times: int, jitter: float) -> int:
    doublings = min(max(times - 1, 0), max_ms.bit_length())  # more would only be cut off by the cap
    return int(min(base_ms << doublings, max_ms) * jitter)
