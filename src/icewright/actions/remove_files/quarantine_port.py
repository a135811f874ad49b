"""The door through which files go, and come back: the only one that changes anything but metadata.

It belongs to :mod:`icewright.actions.remove_files.deleter`; a test keeps all others from it.
"""

from collections.abc import Sequence
from typing import Protocol

from icewright.model.actions.deletion import Held, Whereabouts
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import ListedObject


class Quarantine(Protocol):
    """Files moved out of the way and back, one at a time. ``run_id`` and path decide where to.

    Each step either happens or does not. Its errors say which: :class:`~icewright.core.errors.Rejected` and
    :class:`~icewright.core.errors.Conflict` mean that nothing happened; after everything else nobody knows, and
    :meth:`look` is the way to find out.
    """

    @property
    def roots(self) -> Sequence[CanonicalPath]:
        """All quarantines, as configured: one per bucket or file system, outside of every table."""

    def check(self, path: CanonicalPath) -> None:
        """Whether a file there could be quarantined at all.

        Raises :class:`~icewright.core.errors.NotAllowed` when its bucket or file system has no quarantine, and
        :class:`~icewright.core.errors.Unsupported` for a storage on which nothing is deleted yet.
        """

    def quarantine(self, run_id: str, expected: ListedObject) -> Held:
        """Move a file out of the way, if it is still what it was.

        Raises :class:`~icewright.core.errors.Conflict` when it is gone or another one; nothing was moved then.
        """

    def restore(self, run_id: str, expected: ListedObject, held: Held) -> None:
        """Put a file back, byte for byte. Raises ``Conflict`` when something is at its place now, or it is not held."""

    def purge(self, run_id: str, expected: ListedObject, held: Held) -> None:
        """Delete a held file for good; one that is gone already is no error."""

    def look(self, run_id: str, expected: ListedObject) -> Whereabouts:
        """Where a file is now. Changes nothing."""
