"""Figures as people read them, so that all reasons are worded alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from icewright.core.times import Instant

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KIB = 1024
_PLAIN = re.compile(r"[\w.-]{1,100}")
_QUOTED_LENGTH_MAX = 100
_SECOND_MS = 1_000
_UNITS_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (_SECOND_MS, "s"))


def size(size_bytes: int) -> str:
    """``38.2 MiB``: binary units, one decimal."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < _KIB:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= _KIB
    return f"{value:,.1f} PiB"


def count(number: int, singular: str, plural: str | None = None) -> str:
    """``1,204 files`` or ``1 file``."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def shortened(texts: Sequence[str], most: int = 5) -> str:
    """``a, b and 3 more``: the first of many."""
    return ", ".join(texts[:most]) + (f" and {len(texts) - most:,} more" if len(texts) > most else "")


def ratio(value: float) -> str:
    """A ratio in (0, 1] as a percentage; 100 means exactly that."""
    return f"{100 if value >= 1 else min(99, round(100 * value))} %"


def instant(at: Instant) -> str:
    """``2013-01-31 23:59:59 UTC``; clocks of strangers may say anything, so what no calendar has stays a number."""
    try:
        return (_EPOCH + timedelta(milliseconds=at)).strftime("%Y-%m-%d %H:%M:%S UTC")
    except OverflowError:
        return f"{at} ms since 1970"


def duration(span_ms: int) -> str:
    """``90 s``, ``3 h``: the largest unit that keeps it whole, else milliseconds."""
    for unit_ms, unit in _UNITS_MS:
        if span_ms >= unit_ms and span_ms % unit_ms == 0:
            return f"{span_ms // unit_ms:,} {unit}"
    return f"{span_ms / _SECOND_MS:,.1f} s" if span_ms >= _SECOND_MS else f"{span_ms} ms"


def about(span_ms: float) -> str:
    """``2.5 s``, ``4.0 min``, ``3.2 h``, ``12.0 days``: a span that nobody knows exactly."""
    for unit_ms, unit, least_ms in (
        (86_400_000, "days", 172_800_000),
        (3_600_000, "h", 7_200_000),
        (60_000, "min", 120_000),
    ):
        if span_ms >= least_ms:
            return f"{span_ms / unit_ms:,.1f} {unit}"
    return f"{span_ms / _SECOND_MS:.1f} s"


def place(path: str) -> str:
    """A partition's path, or what to call the one partition of an unpartitioned table."""
    return path or "(unpartitioned)"


def quoted(text: str) -> str:
    """Text of strangers: ``repr`` shows line breaks and the like for what they are; hostile lengths are cut."""
    return repr(cut(text))


def safe(text: str) -> str:
    r"""``text`` with everything that does not print as an escape: ``\x1b``, ``\n``, ``\u202e``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def cut(text: str) -> str:
    """Text of hostile length, cut."""
    return text if len(text) <= _QUOTED_LENGTH_MAX else text[:_QUOTED_LENGTH_MAX] + "..."


def name(text: str) -> str:
    """A key or a word of strangers: bare when it is plain, else :func:`quoted`."""
    return text if _PLAIN.fullmatch(text) else quoted(text)


def grouped(items: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Items of which the same is to be said, by their keys, in the order of the first of each."""
    found: dict[Hashable, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return list(found.values())


def example(number: int, path: str) -> str:
    """``2,000 partitions, e.g. day=2026-01-01``; of one partition its path."""
    return place(path) if number == 1 else f"{count(number, 'partition')}, e.g. {place(path)}"
