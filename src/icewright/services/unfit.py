"""Tables whose files turned out not to be such as an executor needs: only their files tell, not their manifests.

An executor is the planner's choice, so that an attempt whose executor cannot do it fails, and the next plan uses
another one. Kept in memory: a server that has forgotten it plans one more attempt, which commits nothing either.
"""

from __future__ import annotations

import threading
from typing import Final

from icewright.domain.actions import Action, RewriteDataFiles
from icewright.domain.errors import NotSorted, NotStitchable
from icewright.domain.layouts import Level
from icewright.domain.names import TableId
from icewright.domain.tables import Instant
from icewright.ports.clock import Clock

NOT_STITCHABLE: Final = NotStitchable.code
"""Code of failed attempts that found files which cannot be put under one footer."""

NOT_SORTED: Final = NotSorted.code
"""Code of failed attempts that found files which cannot be merged by their key."""

UNFIT_CODES: Final = frozenset({NOT_STITCHABLE, NOT_SORTED})
"""What is remembered."""

REMEMBERED_MS: Final = 24 * 3_600_000
"""By then the files of another writer, or of an older schema, may have been merged away."""

REMEMBERED_MAX: Final = 10_000
"""Findings remembered at most, one for a table and a code; the oldest are forgotten first."""


def has_another_executor(code: str, action: Action) -> bool:
    """Whether a group of an action that failed with this code is given to another executor by the next plan.

    Row groups that cannot be copied are merged, and files that cannot be merged by their key are shuffled. A file that
    Level 0 was to keep in its order, for its deletes alone, has no other executor.
    """
    if not isinstance(action, RewriteDataFiles):
        return False
    return code == NOT_STITCHABLE or (code == NOT_SORTED and action.level is not Level.LEVEL_0)


class UnfitFiles:
    """What is known of tables. Safe for use by several threads at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[tuple[TableId, str], tuple[Instant, str]] = {}

    def note(self, table_id: TableId, code: str, detail: str) -> None:
        """Take down what an executor found the files of a table to be, by one of :data:`UNFIT_CODES`."""
        with self._lock:
            self._found.pop((table_id, code), None)
            self._found[table_id, code] = self._clock.now(), detail
            if len(self._found) > REMEMBERED_MAX:
                del self._found[next(iter(self._found))]

    def why(self, table_id: TableId, code: str) -> str:
        """What was found lately, empty where nothing is known against the table's files."""
        with self._lock:
            at, detail = self._found.get((table_id, code), (0, ""))
        return detail if detail and self._clock.now() - at < REMEMBERED_MS else ""
