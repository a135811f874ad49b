"""The door to the history of tasks: a table that only grows, and that knows itself how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from icewright.model.work.history import EndedTask, Ending


class History(Protocol):
    """A table of ended tasks. Where it ends is part of it, so that no crash makes it say anything twice.

    Both methods raise :class:`~icewright.core.errors.Unavailable` when catalog or storage do not answer.
    """

    def end(self) -> Ending | None:
        """Behind which task it ends, None where nothing is in it. Raises ``Unreadable`` where it says nonsense."""
        ...

    def append(self, rows: Sequence[EndedTask], after: Ending | None) -> None:
        """Add rows, the last of which is its end from then on: both in one commit, or neither.

        Raises :class:`~icewright.core.errors.Conflict` where it does not end at ``after`` any more, or somebody else
        committed at the same time, and :class:`~icewright.core.errors.OutcomeUnknown` where nobody can tell: then it is
        asked where it ends.
        """
        ...
