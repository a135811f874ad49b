"""The history of tasks in memory."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from icewright.core.errors import Conflict
from icewright.model.work.history import EndedTask, Ending


class MemoryHistory:
    """Rows in a list."""

    def __init__(self) -> None:
        self.rows: list[EndedTask] = []
        self._end: Ending | None = None
        self._lock = Lock()

    def end(self) -> Ending | None:
        return self._end

    def append(self, rows: Sequence[EndedTask], after: Ending | None) -> None:
        with self._lock:
            if self._end != after:
                raise Conflict("the history has another end now")
            self.rows.extend(rows)
            self._end = rows[-1].ending
