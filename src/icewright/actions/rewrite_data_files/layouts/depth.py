"""Overlap depth: how many files of a set may hold the same value, told by bounds; one or two where they are in order.

The depth that Snowflake calls "clustering depth", at its highest instead of its average: how many files a lookup has to
open where that is worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, TypeAlias

from icewright.model.iceberg.files import Span

IN_ORDER_DEPTH: Final = 2
"""Files up to this depth are in order: neighbours may share the value at which one ends and the next one begins."""


Ranks: TypeAlias = tuple[int, int]
"""From the rank of the least value to that of the greatest."""


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


def opened_by_both(spans: Sequence[tuple[Span | None, Span | None]]) -> Opened:
    """How many files a lookup of a value of each of two columns opens, by the spans of both.

    The mean over all pairs of values at which a file begins or ends in its column. Takes O(n log n).
    """
    across, width = _by_rank([one for one, _ in spans])
    up, height = _by_rank([other for _, other in spans])
    held = sum((x[1] - x[0] + 1) * (y[1] - y[0] + 1) for x, y in zip(across, up, strict=True))
    # Files begin before others end at one value, as in overlap_depth.
    events = [(x[0], 0, 1, y) for x, y in zip(across, up, strict=True)]
    events += [(x[1], 1, -1, y) for x, y in zip(across, up, strict=True)]
    column, worst = _Column(height), 0
    for _, _, step, ranks in sorted(events, key=lambda event: event[:2]):
        column.add(ranks, step)
        worst = max(worst, column.most)
    return Opened(held / (width * height), worst)


def _by_rank(spans: Sequence[Span | None]) -> tuple[Sequence[Ranks], int]:
    """Spans by the ranks of their ends, and how many ranks there are; one that is not known (None) has them all."""
    ends: list[Any] = sorted({end for span in spans if span is not None for end in span})
    ranks, count = {end: rank for rank, end in enumerate(ends)}, max(1, len(ends))
    return [(0, count - 1) if span is None else (ranks[span[0]], ranks[span[1]]) for span in spans], count


class _Column:
    """Counts over the ranks of a column: adds to some that follow each other, and knows the greatest."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._most, self._added = [0] * (2 * size), [0] * size

    @property
    def most(self) -> int:
        """The greatest count."""
        return self._most[1]

    def add(self, ranks: Ranks, step: int) -> None:
        """Add to the counts from one rank to another, both included."""
        left, right = ranks[0] + self._size, ranks[1] + self._size + 1
        ends = left, right - 1
        while left < right:
            if left % 2:
                self._apply(left, step)
                left += 1
            if right % 2:
                right -= 1
                self._apply(right, step)
            left, right = left // 2, right // 2
        for end in ends:
            node = end // 2
            while node >= 1:
                below = max(self._most[2 * node], self._most[2 * node + 1])
                self._most[node] = below + self._added[node]
                node //= 2

    def _apply(self, node: int, step: int) -> None:
        self._most[node] += step
        if node < self._size:
            self._added[node] += step
