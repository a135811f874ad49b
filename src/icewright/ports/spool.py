"""A place for more files than memory should hold, while each of them is looked for among the others."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from icewright.domain.reachable import ReachableFile


class Spool(Protocol):
    """Files in, and out again in parts: all mentions of one path are in the same part."""

    def add(self, file: ReachableFile) -> None:
        """One more mention of a file."""
        ...

    def parts(self) -> Iterator[Iterable[ReachableFile]]:
        """All that was added, part by part, each mention once. May be asked for again; ends the adding."""
        ...


class OpenSpool(Protocol):
    """Opens spools. What they hold is gone when they are closed."""

    def __call__(self, expected: int) -> AbstractContextManager[Spool]:
        """An empty spool for about so many mentions, which decides how many parts there are."""
        ...
