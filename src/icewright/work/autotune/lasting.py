"""Since when something is so without a break: remembered by the server that leads, and by no store."""

from __future__ import annotations

from dataclasses import dataclass, field

from icewright.core.times import Instant


@dataclass
class Lasting:
    """Since when each of some things is so."""

    since: dict[tuple[str, ...], Instant] = field(default_factory=dict)

    def lasting_ms(self, key: tuple[str, ...], now: Instant, *, is_so: bool) -> int:
        """For how long something has been so; 0 where it is not."""
        if not is_so:
            self.since.pop(key, None)
            return 0
        self.since[key] = min(now, self.since.get(key, now))
        return now - self.since[key]
