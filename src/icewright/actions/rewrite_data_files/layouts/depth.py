"""Overlap depth: how many files of a set may hold the same value, told by bounds; one or two where they are in order.

The depth that Snowflake calls "clustering depth", at its highest instead of its average: how many files a lookup has to
open where that is worst.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from icewright.model.iceberg.files import Span

IN_ORDER_DEPTH: Final = 2
"""Files up to this depth are in order: neighbours may share the value at which one ends and the next one begins."""


@dataclass(frozen=True, slots=True)
class Opened:
    """How many files of a set a lookup of one value opens: on the mean, and at worst."""

    mean: float
    worst: int


def opened_by_bounds(spans: Iterable[Span | None]) -> Opened:
    """By the spans of files; the mean over all values at which one of them begins or ends.

    Files whose spans are not known may have any value. Takes O(n log n).
    """
    listed = list(spans)
    known = [span for span in listed if span is not None]
    ranks = {end: rank for rank, end in enumerate(sorted({end for span in known for end in span}))}
    held = sum(ranks[span[1]] - ranks[span[0]] + 1 for span in known)
    mean = held / len(ranks) if ranks else 0.0
    return Opened(mean + len(listed) - len(known), overlap_depth(listed))


def overlap_depth(spans: Iterable[Span | None]) -> int:
    """The most spans that have a value in common, both ends included; one that is not known (None) may have them all.

    Takes O(n log n).
    """
    unknown, events = 0, []
    for span in spans:
        if span is None:
            unknown += 1
        else:
            events += [(span[0], 0, 1), (span[1], 1, -1)]
    # At one value spans begin before others end, so that those that merely touch are counted together.
    events.sort(key=lambda event: event[:2])
    return unknown + max(accumulate(step for _, _, step in events), default=0)
