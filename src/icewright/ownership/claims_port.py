"""The door to the claims that were seen of tables, so that a server that starts again need not read them all first."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from icewright.model.iceberg.names import TableName
from icewright.ownership.model import SeenClaim


class ClaimStore(Protocol):
    """Claims by the names of tables, durable. One uuid may have several: that is what they are kept to tell.

    Raises :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def claims(self) -> Iterator[SeenClaim]:
        """All claims, one after the other, in no particular order."""
        ...

    def keep(self, seen: Sequence[SeenClaim], forget: Iterable[TableName] = ()) -> None:
        """Insert or replace claims, and forget those of further names, in one transaction.

        Forgetting what is not there is harmless.
        """
        ...
