"""The order in which waiting tasks are started: priority that ages, so that nothing waits for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from icewright.domain.tables import Instant

AGEING_MS = 10 * 60 * 1000
"""Waiting this long is worth one point of priority.

Ten minutes: a task one point below the others is passed over for ten minutes at most, while bursts, which last
minutes, are still worked off in order of priority.
"""


class Waiting(Protocol):
    """What the order depends on; every :class:`~icewright.domain.tasks.Task` has it."""

    @property
    def task_id(self) -> str:
        """Ids sort by the time they were made."""
        ...

    @property
    def priority(self) -> int:
        """Points; higher goes first."""
        ...

    @property
    def created_at(self) -> Instant:
        """Since when the task waits."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """As much of a waiting task as its rank needs, for stores that would rather not read the whole task."""

    task_id: str
    priority: int
    created_at: Instant


def ranked_at(priority: int, created_at: Instant) -> Instant:
    """When a task of priority 0 must have been created to rank the same. Earlier goes first.

    Ageing is linear and the same for all, so the order of two tasks never changes while they wait, and a store can
    keep this one number in an index.
    """
    return created_at - priority * AGEING_MS


def rank(task: Waiting, now: Instant) -> tuple[int, str]:
    """The sort key of a waiting task: smallest starts first.

    Its first part is minus the aged priority, in points times :data:`AGEING_MS`; ties go to the smaller id. A task
    is only ever overtaken by tasks created less than ``AGEING_MS`` after it per point that they are above it: nothing
    starves.
    """
    return ranked_at(task.priority, task.created_at) - now, task.task_id
