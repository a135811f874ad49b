"""Policies as they were applied, in memory: the plainest statement of the port."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from icewright.audit.model import of_policies
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, NotFound
from icewright.core.times import Instant
from icewright.model.policy.policies import NO_REVISION, NewRevision, PolicyRevision
from icewright.model.work.retention import RowKind
from tests.doubles.audit import MemoryAudit


class MemoryPolicies:
    """A :class:`~icewright.policy.rules.port.PolicyStore` that is gone with the process."""

    def __init__(self, clock: Clock, audit: MemoryAudit | None = None) -> None:
        """``audit`` is where it is written what is done here, one of its own by default."""
        self._clock = clock
        self._audit = audit or MemoryAudit(clock)
        self._lock = threading.Lock()
        self._revisions: dict[int, PolicyRevision] = {NO_REVISION.number: NO_REVISION}
        self._replaced_at: dict[int, Instant] = {}

    def present(self) -> int:
        """See the port."""
        return max(self._revisions)

    def revision(self, number: int) -> PolicyRevision:
        """See the port."""
        found = self._revisions.get(number)
        if found is None:
            raise NotFound(f"there is no revision {number} of the policies")
        return found

    def revisions(self, *, limit: int, before: int | None = None) -> Sequence[PolicyRevision]:
        """See the port."""
        with self._lock:
            found = [
                one for number, one in self._revisions.items() if number > 0 and (before is None or number < before)
            ]
        return sorted(found, key=lambda one: one.number, reverse=True)[:limit]

    def apply(self, new: NewRevision, expected: int) -> PolicyRevision:
        """See the port."""
        with self._lock:
            if self.present() != expected:
                raise Conflict(f"the policies are at revision {self.present()} now, not at {expected}")
            made = PolicyRevision(expected + 1, new.policies, self._clock.now(), new.applied_by, new.note)
            self._audit.append(of_policies(made))
            if expected != NO_REVISION.number:
                self._replaced_at[expected] = made.applied_at
            self._revisions[made.number] = made
            return made

    def prune(self, replaced_before: Instant, limit: int) -> int:
        """See the port."""
        with self._lock:
            old = sorted(number for number, at in self._replaced_at.items() if at < replaced_before)[:limit]
            for number in old:
                del self._revisions[number], self._replaced_at[number]
            return len(old)

    def ages(self) -> Mapping[RowKind, Sequence[Instant]]:
        """When those that are not present any more were replaced."""
        with self._lock:
            return {RowKind.POLICIES: list(self._replaced_at.values())}
