"""Finding the commit that did something, in a table's log of metadata files: by halving, a handful of reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def commit_in_log(
    places: Sequence[str], base: str, now: T, state: Callable[[str], T], is_done: Callable[[T], bool]
) -> tuple[T | None, T]:
    """The state that the commit was made on, and the one that it made.

    ``places`` are the earlier metadata files, the oldest first; ``base`` the one in which it was not done yet. Where
    that is not among them any more, and it was done in the oldest of them, there is no state before. ``now`` is the
    state after the last of them, in which it is done; ``state`` reads one, and what it raises passes through.
    """
    first = places.index(base) if base in places else -1
    states: dict[int, T] = {len(places): now}
    last = len(places)
    while last - first > 1:
        middle = (first + last) // 2
        states[middle] = state(places[middle])
        if is_done(states[middle]):
            last = middle
        else:
            first = middle
    before = None if first < 0 else states[first] if first in states else state(places[first])
    return before, states[last]
