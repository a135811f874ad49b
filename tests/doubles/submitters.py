"""The submitters of a store in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from icewright.core.clock import Clock
from icewright.model.work.optimizers import SeenSubmitter, Submitter
from icewright.ports.submitters import SUBMITTERS_KEPT_MS, SUBMITTERS_MAX


class MemorySubmitters:
    """A :class:`~icewright.ports.submitters.Submitters` that is gone with the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[str, SeenSubmitter] = {}

    def note(self, submitter: Submitter) -> None:
        """See the port."""
        with self._lock:
            now = self._clock.now()
            self._seen.pop(submitter.submitting.submitter_id, None)  # the last ones stand at the end
            self._seen[submitter.submitting.submitter_id] = SeenSubmitter(submitter, now)
            while len(self._seen) > SUBMITTERS_MAX:
                del self._seen[next(iter(self._seen))]
            for one in [one for one, seen in self._seen.items() if seen.asked_at < now - SUBMITTERS_KEPT_MS]:
                del self._seen[one]

    def noted(self) -> Sequence[SeenSubmitter]:
        """See the port."""
        with self._lock:
            return [self._seen[one] for one in sorted(self._seen)]
