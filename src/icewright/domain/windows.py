"""A window of time that opens again and again, by the clock on somebody's wall. When it is open, planning tells."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """A window: ``delay_ms`` after each time that ``cron`` names until ``duration_ms`` after it.

    ``time_zone`` is a name of the IANA's. The delay is what spreads the tables that have the same window.
    """

    cron: str
    time_zone: str
    duration_ms: int
    delay_ms: int = 0
