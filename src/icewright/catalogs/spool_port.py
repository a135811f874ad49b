"""A place for more files than memory should hold, while each of them is looked for among the others."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from icewright.model.actions.orphans import Mention


class Spool(Protocol):
    """Files in, and out again in parts: all mentions of one path, and of all paths like it, are in the same part.

    Paths are alike as :func:`icewright.model.iceberg.path_aliasing.comparison_key` says. The checksum of a file
    (:func:`icewright.model.iceberg.locations.checksummed`) is in the part of the file.
    """

    def add(self, mention: Mention) -> None:
        """One more mention of a file."""
        ...

    def parts(self) -> Iterator[Iterable[Mention]]:
        """All that was added, part by part, each mention once, in the order in which those of a part were added.

        May be asked for again; ends the adding.
        """
        ...


class OpenSpool(Protocol):
    """Opens spools. What they hold is gone when they are closed."""

    def __call__(self, expected: int) -> AbstractContextManager[Spool]:
        """An empty spool for about so many mentions, which decides how many parts there are: one where 0 are expected.

        That one holds whatever is added all the same.
        """
        ...
