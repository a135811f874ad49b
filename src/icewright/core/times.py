"""Instants, and windows of time that open again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

Instant: TypeAlias = int
"""Milliseconds since the Unix epoch, UTC."""
NEVER: Final[Instant] = 2**62
"""Later than all that is compared with it."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window: ``delay_ms`` after each time that ``cron`` names until ``duration_ms`` after it.

    ``time_zone`` is a name of the IANA's. The delay is what spreads the tables that have the same window.
    """

    cron: str
    time_zone: str
    duration_ms: int
    delay_ms: int = 0
