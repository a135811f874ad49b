"""When to look at a table again without an event: the adaptive interval of the reconcile sweep.

Events are hints that may never come; the sweep finds what was never reported. Busy tables are looked at about as
often as they are written, quiet ones ever more seldom, and all of them at least once an hour.
"""

from __future__ import annotations

from icewright.core.times import Instant

INTERVAL_MIN_MS = 5 * 1000
"""However busy a table is: several commits are then seen with one look, and the catalog is left alone."""

INTERVAL_MAX_MS = 60 * 60 * 1000
"""However quiet a table is: the longest that an unreported commit stays unseen."""

QUIET_DIVISOR = 8
"""A table that has been quiet for t is looked at every t/8: at most an eighth of its quiet time goes unnoticed."""

SPREAD = 0.25
"""Up to this share of the interval is taken off at random, so that tables looked at together drift apart."""


def next_look(
    now: Instant,
    *,
    commit_interval_ms: int | None,
    changed_at: Instant,
    jitter: float,
    look_again_at: Instant | None = None,
) -> Instant:
    """When to look at a table next: between ``INTERVAL_MIN_MS`` and ``INTERVAL_MAX_MS`` from ``now``.

    ``commit_interval_ms`` is the median gap between commits, None when unknown. ``changed_at`` is when the table was
    last seen to change. ``look_again_at`` is when its plan asked to be made again. ``jitter`` in [0, 1).
    """
    quiet_ms = max(now - changed_at, 0) // QUIET_DIVISOR
    wanted_ms = max(quiet_ms, commit_interval_ms or 0)
    # The bound is widened by the spread, so that tables at the lower bound drift apart as well.
    interval_ms = min(max(wanted_ms, int(INTERVAL_MIN_MS / (1 - SPREAD))), INTERVAL_MAX_MS)
    look_at = now + interval_ms - int(interval_ms * SPREAD * jitter)
    if look_again_at is not None:
        look_at = min(look_at, look_again_at)
    return max(look_at, now + INTERVAL_MIN_MS)
