"""A server that is away, as its clients see it: when they tell of that, and how long they wait before the next try."""

from __future__ import annotations

from typing import Final

LOG_INTERVAL_S: Final = 60.0
"""How often it is told that it still lasts."""
PAUSE_S_MAX: Final = 5.0
"""The longest pause between two tries: the first one after the server is back comes this late at most."""
_DOUBLED_MAX: Final = 20


class Outage:
    """Failures in a row of one who is asked again and again."""

    def __init__(self) -> None:
        self._failures = 0
        self._told_at_s = 0.0

    def failed(self, now_s: float) -> int | None:
        """Another try came to nothing. How many did by now, where that is to be told: the first, then once a minute."""
        self._failures += 1
        if self._failures > 1 and now_s - self._told_at_s < LOG_INTERVAL_S:
            return None
        self._told_at_s = now_s
        return self._failures

    def over(self) -> int:
        """A try succeeded. How many came to nothing before it."""
        failures, self._failures = self._failures, 0
        return failures

    def pause_s(self, least_s: float) -> float:
        """How long to wait before the next try: doubled with each failure, up to :data:`PAUSE_S_MAX`."""
        return max(least_s, min(PAUSE_S_MAX, least_s * 2.0 ** min(self._failures, _DOUBLED_MAX)))
