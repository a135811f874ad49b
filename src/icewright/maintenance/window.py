"""Whether the maintenance window of a table is closed, and what is said of what waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icewright.core import wording
from icewright.core.times import Instant, Window
from icewright.model.plans.plans import Reason
from icewright.model.policy import time_windows as windows
from icewright.model.work.tasks import TaskHead
from icewright.plans.due import Due


@dataclass(frozen=True, slots=True)
class Closed:
    """The window of a table is closed; ``opens_at`` is None where it never opens again."""

    opens_at: Instant | None

    def reason(self, due: Due | None = None) -> Reason:
        """Why nothing is done now, of what is known to be ``due``."""
        opens = "never opens" if self.opens_at is None else f"opens at {wording.instant(self.opens_at)}"
        figures: dict[str, int | float | str] = {} if self.opens_at is None else {"opens_at": self.opens_at}
        if due is None:
            return Reason(windows.WINDOW_CLOSED, f"nothing before the window that {opens}", figures)
        since = "" if due.since is None else f"due since {wording.instant(due.since)}, "
        if due.since is not None:
            figures["due_since"] = due.since
        return Reason(windows.WINDOW_CLOSED, f"{due.reason.text}; {since}waits for the window that {opens}", figures)


def closed(window: Window | None, now: Instant) -> Closed | None:
    """What is said where there is a window and it is closed, else None."""
    opens_at = now if window is None else windows.opens_at(window, now)
    return None if opens_at == now else Closed(opens_at)


def was_left_out(latest: Sequence[TaskHead]) -> bool:
    """Whether the window was too short for a table the last time, by its last tasks of one kind, the newest first."""
    outcome = latest[0].outcome if latest else None
    return outcome is not None and outcome.reason.code == windows.WINDOW_CLOSED
