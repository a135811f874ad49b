"""The door to policies as they were applied, revision by revision."""

from collections.abc import Sequence
from typing import Protocol

from icewright.core.times import Instant
from icewright.model.policy.policies import NewRevision, PolicyRevision


class PolicyStore(Protocol):
    """Revisions, which never change. Each method is one transaction, the same for all servers of a store.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def present(self) -> int:
        """The number of the latest revision; 0 before the first. Asked for at each look: cheap."""

    def revision(self, number: int) -> PolicyRevision:
        """One revision; 0 is empty. Raises :class:`~icewright.core.errors.NotFound`, also where it is forgotten."""

    def revisions(self, *, limit: int, before: int | None = None) -> Sequence[PolicyRevision]:
        """Revisions, newest first; ``before`` is the number that the last page ended with."""

    def apply(self, new: NewRevision, expected: int) -> PolicyRevision:
        """Make these policies the present ones, all at once, with an entry in the audit.

        Raises :class:`~icewright.core.errors.Conflict`, and changes nothing, when the present revision is another
        one than ``expected``.
        """

    def prune(self, replaced_before: Instant, limit: int) -> int:
        """Forget at most so many that were replaced before an instant, oldest first; how many."""
