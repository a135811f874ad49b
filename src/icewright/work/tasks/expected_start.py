"""About when a waiting task starts, told by its place in the queue and by how long tasks of its group took lately.

The arithmetic alone. It knows a queue that only gets shorter: what comes later and is more urgent, what fails and is
tried again, and windows that close before the turn has come are not in it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icewright.model.work.admission import InLane, Lane, Line, Urgency
from icewright.work.groups.rank import band

MEASURED_MIN: Final = 5
"""So many tasks of a group have to have ended before anything is told by them."""
_SOONEST, _USUAL, _LATEST = 0.25, 0.5, 0.75


@dataclass(frozen=True, slots=True)
class Spans:
    """The same span, in ms, as the quickest quarter, the half and the slowest quarter of what was measured make it."""

    soonest_ms: int
    about_ms: int
    latest_ms: int


NO_TIME: Final = Spans(0, 0, 0)


def before(lane: Lane, line: Line, *, is_aged: bool) -> int:
    """How many tasks of its queue start before a task of a lane at the most, of those that wait now.

    What is more urgent goes first. Of the equally urgent each owner has a turn for each turn of the task's own owner,
    as :func:`icewright.work.groups.rank.turn` has it.
    """
    own = band(lane.urgency, is_aged=is_aged)
    found = line.ahead
    for other in line.others:
        bands = _bands(other)
        found += sum(count for rank, count in bands.items() if rank < own)
        found += min(bands.get(own, 0), line.ahead + 1)
    return found


def spans(took_ms: Sequence[int]) -> Spans:
    """The quartiles of what was measured, of which there is something."""
    return Spans(_quantile(took_ms, _SOONEST), _quantile(took_ms, _USUAL), _quantile(took_ms, _LATEST))


def left(took_ms: Sequence[int], at_work_ms: int) -> Spans:
    """How much longer a task takes that is at work for so long: as those that took longer, and else as one anew."""
    longer = [one - at_work_ms for one in took_ms if one > at_work_ms]
    return spans(longer or took_ms)


def turn_in(before_it: int, at_work_ms: Sequence[int], slots: int, took_ms: Sequence[int]) -> Spans:
    """How long it takes until a task starts that has so many before it, where at most ``slots`` run at once.

    ``at_work_ms`` says how long those that run are at it. Each slot takes the next task as soon as it is free. Raises
    :class:`ValueError` where there is no slot, or where nothing was measured and the answer depends on it.
    """
    if slots < 1:
        raise ValueError("nothing starts without a slot")
    if before_it + len(at_work_ms) < slots:
        return NO_TIME
    if not took_ms:
        raise ValueError("nothing was measured")
    of_each, remaining = spans(took_ms), [left(took_ms, one) for one in at_work_ms]
    return Spans(
        _turn_in(before_it, slots, [one.soonest_ms for one in remaining], of_each.soonest_ms),
        _turn_in(before_it, slots, [one.about_ms for one in remaining], of_each.about_ms),
        _turn_in(before_it, slots, [one.latest_ms for one in remaining], of_each.latest_ms),
    )


def _turn_in(before_it: int, slots: int, remaining_ms: Sequence[int], each_ms: int) -> int:
    free_at = [*remaining_ms, *([0] * (slots - len(remaining_ms)))]
    # More may be at work than there are slots, since some were taken away: those that end first are not filled again.
    free_at = sorted(free_at)[max(0, len(free_at) - slots) :]
    heapq.heapify(free_at)
    for _ in range(before_it):
        heapq.heapreplace(free_at, free_at[0] + each_ms)
    return free_at[0]


def _quantile(values: Sequence[int], share: float) -> int:
    """The smallest value that at least such a share of all values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def _bands(other: InLane) -> dict[int, int]:
    if other.lane.urgency is not Urgency.NORMAL:
        return {band(other.lane.urgency, is_aged=False): other.waiting}
    return {1: other.aged, 2: other.waiting - other.aged}
