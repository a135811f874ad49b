"""Tasks that have ended are copied into a table of the user's own catalog, each end once, whatever dies when."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Final

import structlog

from icewright.core.errors import Conflict, IcewrightError, OutcomeUnknown
from icewright.core.times import Instant
from icewright.model.work.history import ended
from icewright.model.work.retention import DAY_MS, HISTORY_HOLD_DAYS
from icewright.ports.store import TaskStore
from icewright.retention.history_port import History

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


LATE_MS: Final = 3_600_000
"""A history that is further behind is in trouble: six times as long as it takes to copy what there is."""
HOLD_MS: Final = HISTORY_HOLD_DAYS * DAY_MS


@dataclass(frozen=True, slots=True)
class HistoryStatus:
    """How far the table of tasks that ended is behind.

    All tasks that ended before ``through`` are in it, null before it was known; ``lag_ms`` is for how long tasks have
    not come into it, null before it was asked. ``is_late``: it is more behind than it should be. ``is_waited_for``:
    tasks are old enough to be forgotten and stay because they are not in it, for ``hold_ms`` at most.
    """

    through: Instant | None
    lag_ms: int | None
    is_late: bool
    is_waited_for: bool
    hold_ms: int


class HistoryProgress:
    """How far the history is, for who forgets tasks and for who looks. One for each time that a server leads.

    Not in the store: the table alone says where it ends (decision 0052), and a table that was dropped is behind again.
    """

    def __init__(self, hold_ms: int = HOLD_MS) -> None:
        """Tasks that are not in the table yet are kept for ``hold_ms`` beyond their time, at most."""
        self._hold_ms = hold_ms
        self._begun_at: Instant | None = None
        self._through: Instant | None = None

    @property
    def through(self) -> Instant | None:
        """All tasks that ended before that are in the table; None as long as that is not known."""
        return self._through

    def begun(self, now: Instant) -> None:
        """The table is about to be asked where it ends."""
        if self._begun_at is None:
            self._begun_at = now

    def copied(self, through: Instant) -> None:
        """All tasks that ended before that are in the table. It may be earlier than what was said before."""
        self._through = through

    def may_go(self, old: Instant) -> Instant:
        """Before which tasks must have ended that are forgotten, where those before ``old`` would be without it."""
        return min(old, max(self._through or 0, old - self._hold_ms))

    def lag_ms(self, now: Instant) -> int | None:
        """For how long tasks that ended have not come into the table; None before it was ever asked."""
        since = self._begun_at if self._through is None else self._through
        return None if since is None else max(0, now - since)

    def status(self, now: Instant, kept_ms: int) -> HistoryStatus:
        """How far it is, where tasks are forgotten that ended ``kept_ms`` ago."""
        lag_ms, old = self.lag_ms(now), now - kept_ms
        return HistoryStatus(
            through=self._through,
            lag_ms=lag_ms,
            is_late=(lag_ms or 0) > LATE_MS,
            is_waited_for=self.may_go(old) < old,
            hold_ms=self._hold_ms,
        )


@dataclass(frozen=True, slots=True)
class HistoryWriter:
    """Copies what has ended. Any number of servers may do so: the table lets one of them win."""

    tasks: TaskStore
    history: History
    progress: HistoryProgress = field(default_factory=HistoryProgress)

    def copy(self) -> int:
        """Add the next rows; how many they were. Raises what the store and the history raise."""
        now = self.tasks.now()
        self.progress.begun(now)
        after, settled_at = self.history.end(), now - SETTLED_MS
        found = self.tasks.ended(after, settled_at, ROWS_MAX)
        if found:
            self.history.append([ended(task) for task in found], after)
        # Of those that ended in the same instant as the last one, others may not have been among so many.
        self.progress.copied(settled_at if len(found) < ROWS_MAX else found[-1].updated_at)
        return len(found)

    def run(self, stop: threading.Event) -> None:
        """Copy until told to stop. Nothing that fails ends it: the table says where to go on."""
        while not stop.is_set():
            if self._step() < ROWS_MAX:
                stop.wait(EVERY_S)

    def _step(self) -> int:
        try:
            return self.copy()
        except (Conflict, OutcomeUnknown) as error:
            _log.info("history looked at again", code=error.code, detail=error.message)
        except IcewrightError as error:
            _log.warning("history put off", code=error.code, detail=error.message)
        except Exception:  # noqa: BLE001 - the thread's outermost edge: the server goes on without a history
            _log.exception("history failed")
        return 0
