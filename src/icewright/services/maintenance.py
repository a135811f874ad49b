"""Whether the maintenance window of a table is closed, and what is said of what waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from icewright.domain.plans import Reason
from icewright.domain.policy import Policy
from icewright.domain.tables import Instant, TableMetadata
from icewright.planning import windows, wording
from icewright.services.due import Due


@dataclass(frozen=True, slots=True)
class Closed:
    """The window of a table is closed; ``opens_at`` is None where it never opens again."""

    opens_at: Instant | None

    def reason(self, due: Due | None = None) -> Reason:
        """Why nothing is done now, of what is known to be ``due``."""
        opens = "never opens" if self.opens_at is None else f"opens at {wording.instant(self.opens_at)}"
        figures: dict[str, int | float | str] = {} if self.opens_at is None else {"opens_at": self.opens_at}
        if due is None:
            return Reason("window-closed", f"nothing before the window that {opens}", figures)
        since = "" if due.since is None else f"due since {wording.instant(due.since)}, "
        if due.since is not None:
            figures["due_since"] = due.since
        return Reason("window-closed", f"{due.reason.text}; {since}waits for the window that {opens}", figures)


def closed(metadata: TableMetadata, policy: Policy, now: Instant) -> Closed | None:
    """What is said where the table has a window and it is closed, else None."""
    window = windows.window_of(metadata, policy)
    opens_at = now if window is None else windows.opens_at(window, now)
    return None if opens_at == now else Closed(opens_at)
