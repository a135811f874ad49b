"""Watches the clock by which files grow old, from note to note in the store: a jump begins all graces again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.core.clock import Uptime, noted
from icewright.core.times import Instant

NOTED_EVERY_MS: Final = 10 * 60_000
"""How old a note may become before the next is kept."""
_log = structlog.get_logger("icewright.clock")


class ClockWatch:
    """Compares the store's clock with what the machine counts; without ``uptime`` nothing is compared."""

    def __init__(self, store: SqlSightings, uptime: Callable[[], Uptime] | None) -> None:
        self._store, self._uptime = store, uptime

    def graces_since(self) -> Instant:
        """When the clock jumped last, as far as anybody noticed; 0 for never. Raises ``Unavailable``."""
        if self._uptime is None:
            return 0
        before, now, uptime = self._store.clock_note(), self._store.now(), self._uptime()
        note = noted(before, now, uptime)
        if before is not None and note.graces_since != before.graces_since:
            _log.warning("clock jumped: all graces begin again", noted_at=before.at, now=now)
        elif before is not None and uptime.boot == before.uptime.boot and 0 <= now - before.at < NOTED_EVERY_MS:
            return note.graces_since
        self._store.keep_clock_note(note)
        return note.graces_since
