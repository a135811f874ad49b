"""Tables whose row groups turned out not to be such as can be copied: only their files tell, not their manifests.

An executor is the planner's choice, so that an attempt that cannot stitch fails, and the next plan uses another one.
Kept in memory: a server that has forgotten it plans one more attempt, which fails before it writes anything.
"""

from __future__ import annotations

import threading
from typing import Final

from icewright.domain.errors import NotStitchable
from icewright.domain.names import TableId
from icewright.domain.tables import Instant
from icewright.ports.clock import Clock

NOT_STITCHABLE: Final = NotStitchable.code
"""Code of failed attempts that found files which cannot be put under one footer."""

REMEMBERED_MS: Final = 24 * 3_600_000
"""By then the files of another writer, or of an older schema, may have been merged away."""

REMEMBERED_MAX: Final = 10_000
"""Tables remembered at most; the oldest are forgotten first."""


class Unstitched:
    """Safe for use by several threads at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[TableId, tuple[Instant, str]] = {}

    def note(self, table_id: TableId, detail: str) -> None:
        """Take down why row groups of a table could not be copied."""
        with self._lock:
            self._found.pop(table_id, None)
            self._found[table_id] = self._clock.now(), detail
            if len(self._found) > REMEMBERED_MAX:
                del self._found[next(iter(self._found))]

    def why(self, table_id: TableId) -> str:
        """Why row groups of a table could not be copied lately, empty where nothing is known against it."""
        with self._lock:
            at, detail = self._found.get(table_id, (0, ""))
        return detail if detail and self._clock.now() - at < REMEMBERED_MS else ""
