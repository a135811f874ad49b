"""What follows on an attempt that did not commit: another try, a new plan, or the end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

BACKOFF_BASE_MS = 30 * 1000
"""The longest wait before the second try. Half a minute outlives a restart of a catalog or of a Spark session."""

BACKOFF_MAX_MS = 30 * 60 * 1000
"""The longest wait before any try: after half an hour something else is wrong than a passing outage."""


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

    Capped exponential back-off with equal jitter: half of the wait is fixed, half is spread
    (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
    """
    doublings = min(max(attempt - 1, 0), BACKOFF_MAX_MS.bit_length())  # more would only be cut off by the cap
    longest_ms = min(BACKOFF_BASE_MS << doublings, BACKOFF_MAX_MS)
    return longest_ms // 2 + int(longest_ms / 2 * jitter)
