"""The door to what tasks took from tables, kept for as long as they can be undone."""

from typing import Protocol

from icewright.core.times import Instant
from icewright.model.actions.undo import Kept


class UndoRecordStore(Protocol):
    """What each task took, durable before the task takes it.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def keep(self, kept: Kept) -> None:
        """Write down what a task is about to take; a later try of the same task replaces it.

        Raises :class:`~icewright.core.errors.Unsupported` beyond :data:`~icewright.model.actions.undo.KEPT_BYTES_MAX`.
        """

    def kept(self, task_id: str) -> Kept | None:
        """What is kept of a task; None where nothing is, or not any more."""

    def forget(self, kept_before: Instant, limit: int) -> int:
        """Forget at most so many that were kept before an instant, the oldest first; how many there were."""
