"""The order in which waiting tasks are started: urgency, fairness between owners, priority that ages.

All of it is computed from rows at the moment of a claim; nothing is kept but what tasks are and since when they wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from icewright.core.times import Instant
from icewright.model.work.admission import NO_LANE, Lane, Urgency

AGEING_MS = 10 * 60 * 1000
"""Waiting this long is worth one point of priority.

Ten minutes: a task one point below the others is passed over for ten minutes at most, while bursts, which last
minutes, are still worked off in order of priority.
"""

AGED_MS: Final = 6 * 60 * 60 * 1000
"""Whoever has waited this long counts as urgent as a real-time table, and is older than what is so by itself.

Six hours are a night: what is not urgent may wait for the end of a bad one, and no longer.
"""


class Waiting(Protocol):
    """What the order depends on; every :class:`~icewright.model.work.tasks.Task` has it."""

    @property
    def task_id(self) -> str:
        """Ids sort by the time they were made."""

    @property
    def priority(self) -> int:
        """Points; higher goes first."""

    @property
    def created_at(self) -> Instant:
        """Since when the task waits."""

    @property
    def lane(self) -> Lane:
        """How urgent it is, and whose table it is of."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """As much of a waiting task as its turn needs, for stores that would rather not read the whole task."""

    task_id: str
    priority: int
    created_at: Instant
    lane: Lane = NO_LANE


def ranked_at(priority: int, created_at: Instant) -> Instant:
    """When a task of priority 0 must have been created to rank the same. Earlier goes first.

    Ageing is linear and the same for all, so the order of two tasks of a lane never changes while they wait, and a
    store can keep this one number in an index.
    """
    return created_at - priority * AGEING_MS


def rank(task: Waiting) -> tuple[Instant, str]:
    """The sort key within a lane: smallest starts first; ties go to the smaller id.

    A task is only ever overtaken by tasks of its lane that were created less than ``AGEING_MS`` after it per point
    that they are above it.
    """
    return ranked_at(task.priority, task.created_at), task.task_id


@dataclass(frozen=True, slots=True)
class Served:
    """What tenants of a group have had: how many of their tasks run, and a number that grows with each that starts."""

    running: Mapping[str, int]
    last: Mapping[str, int]


def turn(task: Waiting, served: Served, now: Instant) -> tuple[int, int, int, Instant, str]:
    """The sort key between all that waits in a group: smallest starts first.

    What a person expedites is first, then real-time tables with all that has waited for ``AGED_MS``, then the rest.
    Among the equally urgent it is the turn of the tenant with the fewest running tasks, then of the one whose last
    turn is longest ago; of the tasks of one tenant, that of the best :func:`rank`.

    Nothing starves. A task that has aged and whose tenant has nothing running is started when each other tenant has
    had a turn for each task of its own tenant that ranks before it; what a person expedites comes on top.
    """
    tenant = task.lane.tenant
    return (
        band(task.lane.urgency, is_aged=is_aged(task, now)),
        served.running.get(tenant, 0),
        served.last.get(tenant, 0),
        *rank(task),
    )


def is_aged(task: Waiting, now: Instant) -> bool:
    """Whether a task has waited for ``AGED_MS``, its priority counted in."""
    return ranked_at(task.priority, task.created_at) <= now - AGED_MS


def band(urgency: Urgency, *, is_aged: bool) -> int:
    """What comes before all questions of fairness: all of a smaller number is started first."""
    if urgency is Urgency.EXPEDITED:
        return 0
    return 1 if is_aged or urgency is Urgency.REAL_TIME else 2
