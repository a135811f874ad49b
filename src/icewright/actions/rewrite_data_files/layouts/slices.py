"""Slices: in how many of a number of equal files one value of a column may be, where these are in a layout's order.

The layout's curve is walked through the grid of all columns' quantiles, as the Spark side places rows, and cut into
slices of as many rows; a file's bounds are those of its slice. Rows are taken to be spread evenly over the combinations
of values; where columns go together, files are narrower than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Final, TypeAlias

from icewright.actions.rewrite_data_files.layouts.depth import Opened
from icewright.model.iceberg.layouts import KEY_BITS, MAX_COORDINATE_BITS, Curve, hilbert_table

FILES_WALKED: Final = 512
"""Of more files the walk would take long; their number is then told by the power law that all curves come near."""
_FILES_EACH: Final = 64
"""Up to so many files every number is walked; of more, a number of three binary digits, and the rest by that law."""

_FINE: Final = 256
"""A part of the grid that lies across two slices is looked into until it holds this part of a slice's rows."""
_SCATTER: Final = 32
"""Files begin and end this part of a file too early or too late, since a sample says where. Under z-order that costs:
its next cell may lie at the other side of the grid."""

_Range: TypeAlias = tuple[int, int]
_Node: TypeAlias = tuple[tuple[_Range, ...], int, int]
"""Coordinates from and up to before, for each column; how deep it lies; and the state of the Hilbert curve."""


def opened(curve: Curve, distinct: Sequence[int | None], files: int) -> tuple[Opened, ...]:
    """For each column of a layout, of so many equal files. ``distinct`` are the values of each column, None for many.

    Of cuts it is a z-order of their columns, for want of a better one. Walks are remembered, since one of many files
    takes up to a second.
    """
    curve = Curve.ZORDER if curve is Curve.CUTS else curve
    walked = min(files, FILES_WALKED)
    if walked > _FILES_EACH:
        digits = walked.bit_length() - 3
        walked = walked >> digits << digits
    found = []
    for place, one in enumerate(_walked(curve, tuple(distinct), walked)):
        times, least = (files / walked) ** _exponent(curve, place, len(distinct)), files / (distinct[place] or files)
        mean = min(float(files), max(one.mean * times, least))
        found.append(Opened(mean, min(files, max(round(one.worst * times), round(least)))))
    return tuple(found)


@lru_cache(maxsize=256)
def _walked(curve: Curve, distinct: tuple[int | None, ...], files: int) -> tuple[Opened, ...]:
    bits = min(MAX_COORDINATE_BITS, KEY_BITS // len(distinct))
    marks = [min(1 << bits, number or 1 << bits) for number in distinct]
    later, earlier, larger = (_boxes(curve, bits, marks, files, by) for by in ((-1, 1), (1, -1), (1, 1)))
    found = []
    for place, of_column in enumerate(marks):
        mean = sum(box[place][1] - box[place][0] for box in (*earlier, *later)) / (2 * of_column)
        worst = _deepest(box[place] for box in larger)
        found.append(Opened(mean, worst))
    return tuple(found)


def _exponent(curve: Curve, place: int, columns: int) -> float:
    """A lookup by one of k columns opens F to the power of this out of F files."""
    if curve is Curve.SORT:
        return 0.0 if place == 0 else 1.0
    return (columns - 1) / columns


def _boxes(curve: Curve, bits: int, marks: Sequence[int], files: int, by: tuple[int, int]) -> list[list[_Range]]:
    """The marks of each column that lie within the bounds of each slice, from and up to before.

    Slices begin earlier and end later than they should ``by`` so many times what they scatter by.
    """
    early, late = by
    rows, above, boxes = prod(marks), 0, [[(of_column, 0) for of_column in marks] for _ in range(files)]
    stack: list[_Node] = [(((0, 1 << bits),) * len(marks), 0, 0)]
    while stack:
        node = stack.pop()
        inside = [_marks(one, bits, of_column) for one, of_column in zip(node[0], marks, strict=True)]
        its = prod(end - start for start, end in inside)
        if not its:
            continue
        first = (_SCATTER * above * files - late * rows) // (_SCATTER * rows)
        last = (_SCATTER * (above + its) * files + early * rows - 1) // (_SCATTER * rows)
        first, last = min(max(first, 0), files - 1), min(max(last, 0), files - 1)
        if first < last and its > 1 and its * files * _FINE > rows:
            stack.extend(reversed(_parts(curve, node)))
            continue
        for box in boxes[first : last + 1]:
            box[:] = [(min(low, start), max(high, end)) for (low, high), (start, end) in zip(box, inside, strict=True)]
        above += its
    return boxes


def _parts(curve: Curve, node: _Node) -> list[_Node]:
    """The parts of a part of the grid, in the order in which the curve goes through them."""
    ranges, depth, state = node
    if curve is Curve.HILBERT:
        outputs, states = hilbert_table(len(ranges))
        parts: list[_Node] = [node] * len(outputs[state])
        for digits, output in enumerate(outputs[state]):
            halves = tuple(_half(one, digits >> (len(ranges) - 1 - place) & 1) for place, one in enumerate(ranges))
            parts[output] = halves, depth + 1, states[state][digits]
        return parts
    # The bits of z-order take turns; a sort goes by all bits of a column before it comes to the next one.
    if curve is Curve.ZORDER:
        place = depth % len(ranges)
    else:
        place = next(place for place, (start, end) in enumerate(ranges) if end - start > 1)
    return [((*ranges[:place], _half(ranges[place], half), *ranges[place + 1 :]), depth + 1, 0) for half in (0, 1)]


def _half(one: _Range, upper: int) -> _Range:
    start, end = one
    middle = (start + end) // 2
    return (middle, end) if upper else (start, middle)


def _marks(coordinates: _Range, bits: int, marks: int) -> _Range:
    """The marks at some coordinates; each lies in the middle of its share of the side."""
    start, end = (max(0, -(((1 << bits) - 2 * marks * at) // (2 << bits))) for at in coordinates)
    return start, end


def _deepest(ranges: Iterator[_Range]) -> int:
    """The most of these ranges that have a mark in common."""
    changes = sorted(change for start, end in ranges for change in ((start, 1), (end, -1)))
    depth = most = 0
    for _, step in changes:
        depth += step
        most = max(most, depth)
    return most
