"""Claims of tables in memory: the plainest statement of the port."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence

from icewright.model.iceberg.names import TableName
from icewright.ownership.model import SeenClaim


class MemoryClaims:
    """A :class:`~icewright.ownership.claims_port.ClaimStore` that is gone with the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claims: dict[TableName, SeenClaim] = {}

    def claims(self) -> Iterator[SeenClaim]:
        """See the port."""
        with self._lock:
            return iter(tuple(self._claims.values()))

    def keep(self, seen: Sequence[SeenClaim], forget: Iterable[TableName] = ()) -> None:
        """See the port."""
        with self._lock:
            for name in forget:
                self._claims.pop(name, None)
            self._claims.update({one.claim.name: one for one in seen})
