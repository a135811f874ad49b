"""The door to how much the store keeps of the past, and what became of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from icewright.model.work.retention import Pruned, RowKind, Rows


class Prunings(Protocol):
    """What was removed of each kind of row, counted since the store was made.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def rows(self) -> Mapping[RowKind, Rows]:
        """What there is of each kind at this moment; it is counted, so nothing for every scrape."""
        ...

    def note(self, removed: Mapping[RowKind, int], left: Mapping[RowKind, Rows]) -> None:
        """Add what was removed, and that it was, at the store's time. What is not in ``left`` stays as it was noted."""
        ...

    def pruned(self) -> Mapping[RowKind, Pruned]:
        """What was noted, of the kinds of which anything was."""
        ...
