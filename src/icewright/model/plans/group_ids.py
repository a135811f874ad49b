"""Which groups of an action a commit is of, as its snapshot summary says it: ``0-2,5``.

A summary is anybody's to write. So a text only counts where it is the one that the groups of the action give.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise

_RANGES = re.compile(r"\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*", re.ASCII)


def group_ids_text(group_ids: Collection[int]) -> str:
    """The ids in order, neighbours as a range; ids are not negative."""
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in _ranges(group_ids))


def read_group_ids(text: str, known: Collection[int]) -> frozenset[int] | None:
    """The ids that a text says, None where it is not what :func:`group_ids_text` gives for some of the known ones.

    However far a range reaches, nothing but the known ids is looked at.
    """
    if _RANGES.fullmatch(text) is None:
        return None
    said = [tuple(map(int, part.split("-"))) for part in text.split(",")]
    ids = frozenset(number for number in known if any(part[0] <= number <= part[-1] for part in said))
    return ids if group_ids_text(ids) == text else None


def _ranges(group_ids: Collection[int]) -> Iterator[tuple[int, int]]:
    ordered = sorted(set(group_ids))
    if not ordered:
        return
    first = ordered[0]
    for number, following in pairwise(ordered):
        if following != number + 1:
            yield first, number
            first = following
    yield first, ordered[-1]
