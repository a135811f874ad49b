"""Tasks that have ended are copied into a table of the user's own catalog, each end once, whatever dies when."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

import structlog

from icewright.domain.errors import Conflict, IcewrightError, Unknown
from icewright.domain.history import ended
from icewright.ports.history import History
from icewright.ports.store import TaskStore

_log = structlog.get_logger("icewright.history")

ROWS_MAX: Final = 5_000
"""Of one commit."""
SETTLED_MS: Final = 300_000
"""How long ago a task has to have ended.

Transactions of a store end in another order than they read its clock. None lasts longer than a statement may (a
minute), so that behind five nothing comes in any more before what was copied.
"""
EVERY_S: Final = 600.0
"""How often there is a commit, at most: each is a file more, and it is a table like any other."""


@dataclass(frozen=True, slots=True)
class HistoryKeeper:
    """Copies what has ended. Any number of servers may do so: the table lets one of them win."""

    tasks: TaskStore
    history: History

    def copy(self) -> int:
        """Add the next rows; how many they were. Raises what the store and the history raise."""
        after = self.history.end()
        found = self.tasks.ended(after, self.tasks.now() - SETTLED_MS, ROWS_MAX)
        if found:
            self.history.append([ended(task) for task in found], after)
        return len(found)

    def run(self, stop: threading.Event) -> None:
        """Copy until told to stop. Nothing that fails ends it: the table says where to go on."""
        while not stop.is_set():
            if self._step() < ROWS_MAX:
                stop.wait(EVERY_S)

    def _step(self) -> int:
        try:
            return self.copy()
        except (Conflict, Unknown) as error:
            _log.info("history looked at again", code=error.code, detail=error.message)
        except IcewrightError as error:
            _log.warning("history put off", code=error.code, detail=error.message)
        except Exception:  # noqa: BLE001 - the thread's outermost edge: the server goes on without a history
            _log.exception("history failed")
        return 0
