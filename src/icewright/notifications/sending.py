"""When a message that did not arrive is sent again, and when it is given up."""

from __future__ import annotations

from typing import Final

from icewright.core.times import Instant

_S: Final = 1_000
BACK_OFF_MS: Final = (5 * _S, 30 * _S, 120 * _S, 600 * _S, 1_800 * _S, 3_600 * _S)
"""How long the next attempt is waited for, after so many failed ones; the last one from then on."""
REFUSALS_MAX: Final = 3
"""How often a receiver may refuse a message: it would not take it the next day either, and others wait behind it."""
GIVE_UP_MS: Final = 24 * 3_600 * _S
"""How long a receiver may be away before what was to be told is given up, message by message."""


def next_try(
    attempts: int, composed_at: Instant, now: Instant, *, is_refused: bool, wait_ms: int = 0
) -> Instant | None:
    """When to send a message again that has failed ``attempts`` times by now; None to give it up.

    ``is_refused``: its receiver does not want it, rather than being away. ``wait_ms`` is what the receiver asked for,
    which counts for as long as the longest wait of our own.
    """
    if (attempts >= REFUSALS_MAX) if is_refused else (now - composed_at >= GIVE_UP_MS):
        return None
    own = BACK_OFF_MS[min(attempts, len(BACK_OFF_MS)) - 1]
    return now + max(own, min(wait_ms, BACK_OFF_MS[-1]))
