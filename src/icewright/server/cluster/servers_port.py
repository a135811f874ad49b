"""The port of the book in which the servers of a store find each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from icewright.core.servers import SeenServer, Server


class Servers(Protocol):
    """Who is there. Every method is one transaction; instants are by the store's own clock.

    What stands here gives nobody any right: who may lead, the store's lock and epoch say. Raises
    :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def beat(self, server: Server) -> None:
        """A server is there, as it says now. Servers that were not heard of for a day are forgotten."""
        ...

    def leave(self, server_id: str) -> None:
        """A server ends in order. Harmless for one that is not known."""
        ...

    def present(self) -> Sequence[SeenServer]:
        """All servers that did not leave, in the order in which they came."""
        ...
