"""Figures as the commands print them."""

from __future__ import annotations

from icewright.core import wording
from icewright.core.times import Instant
from icewright.core.wording import about, count, duration, ratio, size

__all__ = ["about", "count", "duration", "instant", "number", "ratio", "seconds", "share", "size"]


def number(value: int) -> str:
    """``1,204``."""
    return f"{value:,}"


def share(part: int, whole: int) -> str:
    """``37 %`` of a whole; a dash where there is no whole. Rounded towards the middle: 0 and 100 mean exactly that."""
    if whole == 0:
        return "-"
    percent = round(100 * part / whole)
    if 0 < part < whole:
        percent = min(99, max(1, percent))
    return f"{percent} %"


def instant(at: Instant | None) -> str:
    """``2013-01-31 23:59:59 UTC``, or a dash."""
    return "-" if at is None else wording.instant(at)


def seconds(span_ms: int) -> str:
    """``1,204.0 s``."""
    return f"{span_ms / 1000:,.1f} s"
