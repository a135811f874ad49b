"""Figures as the commands print them."""

from __future__ import annotations

from icewright.core import wording
from icewright.core.times import Instant


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


def ratio(value: float) -> str:
    """A ratio in (0, 1] as a percentage; 100 means exactly that."""
    return wording.ratio(value)


def instant(at: Instant | None) -> str:
    """``2013-01-31 23:59:59 UTC``, or a dash."""
    return "-" if at is None else wording.instant(at)


def about(span_ms: int) -> str:
    """``4.0 min``."""
    return wording.about(span_ms)


def duration(span_ms: int) -> str:
    """``5 d``."""
    return wording.duration(span_ms)


def seconds(span_ms: int) -> str:
    """``1,204.0 s``."""
    return f"{span_ms / 1000:,.1f} s"


def count(number: int, singular: str) -> str:
    """``3 groups``."""
    return wording.count(number, singular)


def size(size_bytes: int) -> str:
    """``38.2 MiB``."""
    return wording.size(size_bytes)
