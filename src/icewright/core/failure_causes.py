"""Why an attempt came to nothing, by what should be done about it: a branch of the error tree each.

It stays on the task that the attempt was of: for the queue, for the breaker, and for people.
"""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """Which of the ways in which work comes to nothing it was."""

    AWAY = "away"
    """Something that it depends on did not answer."""
    OUT_OF_MEMORY = "out-of-memory"
    """A process at work got no more memory: a larger one may do."""
    CONFLICT = "conflict"
    """The table moved on before the commit."""
    FORBIDDEN = "forbidden"
    """Somebody did not let us."""
    UNREADABLE = "unreadable"
    """A file is missing, truncated or damaged."""
    REJECTED = "rejected"
    """It cannot be carried out as it is."""
    UNKNOWN = "unknown"
    """Nobody could tell whether it was committed; it was not."""
    LOST = "lost"
    """The attempt was not heard of any more."""
    DEFECT = "defect"
    """What nobody foresaw, such as a proof that does not hold, or a crash of the engine."""
