"""When what is kept up of a table beside its files is due again.

Tables are looked at once an hour at least, and each look may find something due. So nothing sleeps until a time comes,
and after a restart nothing is due twice: the tasks themselves tell when it was last done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from icewright.domain.tables import Instant
from icewright.domain.tasks import TERMINAL_STATES, TaskHead

UPKEEP_PRIORITY: Final = -1
"""Behind all work on data files."""
INTERVAL_MS: Final = 3_600_000
"""At most once an hour for each table."""


def is_due(tasks: Iterable[TaskHead], now: Instant) -> bool:
    """Whether it may be done again, by the latest tasks of its kind: none is under way, or was tried lately."""
    return all(task.state in TERMINAL_STATES and now - task.updated_at >= INTERVAL_MS for task in tasks)
