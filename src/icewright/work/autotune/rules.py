"""What the rules of all subjects have in common: one decision stands, a held one stays, what is followed is done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.work.autotune.model import STANDING, DecisionState, NewDecision, TuneDecision

DAY_MS: Final = 24 * 3_600_000
DOUBLINGS_MAX: Final = 6
"""How often a span doubles at most: 15 minutes become 16 hours."""
FOLLOWED: Final = "followed"
LAPSED: Final = "lapsed"


@dataclass(frozen=True, slots=True)
class Ended:
    """A standing decision is over, since somebody did the same or its reason has gone."""

    decision: TuneDecision
    state: DecisionState
    effect: Reason


Verdict = NewDecision | Ended


class Rule(ABC):
    """What all subjects have in common: ``past`` are their decisions, the newest first."""

    def __init__(self, past: Sequence[TuneDecision], now: Instant) -> None:
        self._past, self._now = past, now
        self._today = [one for one in past if one.made_at > now - DAY_MS]

    def verdict(self) -> Verdict | None:
        """At most one: what is held, or under way, stays as it is."""
        standing = next((one for one in self._past if one.state in STANDING), None)
        if any(one.hold is not None for one in self._past) or (standing and standing.state is DecisionState.BEGUN):
            return None
        if standing is None:
            return next((need for need in self._needs() if self._may_follow(need)), None)
        if self._came_true(standing):
            return Ended(standing, DecisionState.DONE, Reason(FOLLOWED, "this has been done by hand"))
        if not self._is_called_for(standing):
            return Ended(standing, DecisionState.LAPSED, Reason(LAPSED, "the reason has gone"))
        return None

    @abstractmethod
    def _needs(self) -> Iterator[NewDecision]: ...

    @abstractmethod
    def _may_follow(self, need: NewDecision) -> bool: ...

    @abstractmethod
    def _came_true(self, standing: TuneDecision) -> bool: ...

    @abstractmethod
    def _is_called_for(self, standing: TuneDecision) -> bool: ...

    def _rested(self, span_ms: int) -> bool:
        """Whether the last decision is so long ago."""
        last = max((max(one.made_at, one.ended_at or 0) for one in self._past), default=None)
        return last is None or self._now - last >= span_ms


def doubled(span_ms: int, times: int) -> int:
    """A span that doubles with each of so many times, within :data:`DOUBLINGS_MAX`."""
    return span_ms << max(0, min(times, DOUBLINGS_MAX))
