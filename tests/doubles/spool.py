"""A spool that keeps everything in memory, as one part: for tests, and where there is little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

from icewright.model.actions.orphans import Mention


class MemorySpool:
    """The port over a list."""

    def __init__(self) -> None:
        self._mentions: list[Mention] = []

    def add(self, mention: Mention) -> None:
        """One more mention of a file."""
        self._mentions.append(mention)

    def parts(self) -> Iterator[Iterable[Mention]]:
        """All of them."""
        yield tuple(self._mentions)


def open_memory_spool(expected: int) -> AbstractContextManager[MemorySpool]:
    """The port's opener; there is one part whatever is expected."""
    del expected
    return nullcontext(MemorySpool())
