"""The clock and fresh ids as ports, so that services can be tested and simulated; and whether a clock jumped.

A clock that is set ahead by eight days makes a file of two minutes ago look old enough to go. What a machine counts
since it was started nobody sets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

from icewright.core.times import Instant

JUMP_MS_MIN: Final = 5 * 60_000
"""How far a clock may be from what the machine has counted; daylight saving moves no clock in UTC."""
UNPROVEN_MS_MAX: Final = 2 * 24 * 3_600_000
"""How much time may pass that no machine has counted: over a restart of it, or until another one goes on."""


class Clock(Protocol):
    """The wall clock of this process. Leases use the store's own clock instead."""

    def now(self) -> Instant:
        """Milliseconds since the Unix epoch, UTC."""


class Ids(Protocol):
    """Fresh identifiers: unique for ever, sortable by the time they were made, of ``[0-9a-z-]`` only."""

    def new(self, prefix: str) -> str:
        """A new id that begins with ``prefix``, such as ``task-019...``."""


@dataclass(frozen=True, slots=True)
class Uptime:
    """How long a machine has been up, sleep included, and since which of its starts."""

    ms: int
    boot: int


@dataclass(frozen=True, slots=True)
class ClockNote:
    """What the clock and the machine said at one time. ``graces_since`` is when the clock jumped last, 0 for never.

    Ages are counted from then on at the earliest: what was noted before it tells nothing.
    """

    at: Instant
    uptime: Uptime
    graces_since: Instant = 0


def noted(before: ClockNote | None, now: Instant, uptime: Uptime) -> ClockNote:
    """The next note; the graces begin again where the clock went further, or less far, than time can have."""
    if before is None:
        return ClockNote(now, uptime)
    passed_ms = now - before.at
    if uptime.boot == before.uptime.boot:
        jumped = abs(passed_ms - (uptime.ms - before.uptime.ms)) > JUMP_MS_MIN
    else:
        jumped = not -JUMP_MS_MIN <= passed_ms <= UNPROVEN_MS_MAX
    return replace(before, at=now, uptime=uptime, graces_since=now if jumped else before.graces_since)
