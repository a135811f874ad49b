"""Time and fresh ids come in through a port, so that services can be tested and simulated."""

from typing import Protocol

from icewright.core.times import Instant


class Clock(Protocol):
    """The wall clock of this process. Leases use the store's own clock instead."""

    def now(self) -> Instant:
        """Milliseconds since the Unix epoch, UTC."""


class Ids(Protocol):
    """Fresh identifiers: unique for ever, sortable by the time they were made, of ``[0-9a-z-]`` only."""

    def new(self, prefix: str) -> str:
        """A new id that begins with ``prefix``, such as ``task-019...``."""
