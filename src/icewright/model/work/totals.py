"""Sums over everything that ever happened, kept by the store: metrics must not fall when tasks are forgotten.

They are written in the transaction of the change that they count, so they are right with several servers, and after
any death.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Total(StrEnum):
    """What is summed. Milliseconds and bytes are whole numbers."""

    CHANGES = "changes"
    """Tasks that came into a state, by kind and state."""
    ATTEMPTS = "attempts"
    """Attempts that ended, by kind and how."""
    READ_BYTES = "read_bytes"
    """What attempts read of tables, as they reported it, by kind."""
    WRITTEN_BYTES = "written_bytes"
    """What attempts wrote, as they reported it, by kind."""
    WAIT_MS = "wait_ms"
    """How long tasks that could have run waited for their attempt, by kind."""
    WAITED = "waited"
    """Attempts by kind and the least bound (a key of :data:`BOUNDS_MS`, in words) that their wait did not go beyond."""
    ATTEMPT_MS = "attempt_ms"
    """How long attempts took, by kind."""
    TOOK = "took"
    """Attempts by kind and the least bound that they did not go beyond."""
    TURNAROUND_MS = "turnaround_ms"
    """How long tasks took from being queued to being verified, by kind."""
    TURNED = "turned"
    """Tasks that were verified, by kind and the least bound that they did not go beyond."""


class TotalKey(NamedTuple):
    """One sum: what, of which kind of action, and the state, the end or the bound where it is counted by one."""

    total: Total
    kind: str
    by: str = ""


_S: Final = 1_000
BOUNDS_MS: Final = (
    1 * _S,
    5 * _S,
    15 * _S,
    60 * _S,
    5 * 60 * _S,
    15 * 60 * _S,
    3600 * _S,
    4 * 3600 * _S,
    24 * 3600 * _S,
)
"""The bounds of durations: from a small task of a quiet server to what waits for a maintenance window."""
BEYOND: Final = "+Inf"
"""The bound of what goes beyond them all."""


def bound_of(span_ms: int) -> str:
    """The least bound that a span does not go beyond, as a total is kept by it."""
    return next((str(bound) for bound in BOUNDS_MS if span_ms <= bound), BEYOND)
