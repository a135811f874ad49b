"""Policies as they were applied, in memory: the plainest statement of the port."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from icewright.adapters.memory.audit import MemoryAudit
from icewright.domain.audit import of_policies
from icewright.domain.errors import Conflict, NotFound
from icewright.domain.policies import NO_REVISION, NewRevision, PolicyRevision
from icewright.ports.clock import Clock


class MemoryPolicies:
    """A :class:`~icewright.ports.policies.PolicyStore` that is gone with the process."""

    def __init__(self, clock: Clock, audit: MemoryAudit | None = None) -> None:
        """``audit`` is where it is written what is done here, one of its own by default."""
        self._clock = clock
        self._audit = audit or MemoryAudit(clock)
        self._lock = threading.Lock()
        self._revisions = [NO_REVISION]

    def present(self) -> int:
        """See the port."""
        return len(self._revisions) - 1

    def revision(self, number: int) -> PolicyRevision:
        """See the port."""
        if not 0 <= number < len(self._revisions):
            raise NotFound(f"there is no revision {number} of the policies")
        return self._revisions[number]

    def revisions(self, *, limit: int, before: int | None = None) -> Sequence[PolicyRevision]:
        """See the port."""
        found = self._revisions[1:] if before is None else self._revisions[1 : max(1, before)]
        return found[::-1][:limit]

    def apply(self, new: NewRevision, expected: int) -> PolicyRevision:
        """See the port."""
        with self._lock:
            if self.present() != expected:
                raise Conflict(f"the policies are at revision {self.present()} by now, not at {expected}")
            made = PolicyRevision(expected + 1, new.policies, self._clock.now(), new.applied_by, new.note)
            self._audit.append(of_policies(made))
            self._revisions.append(made)
            return made
