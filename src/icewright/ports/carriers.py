"""The doors to what the server carries out itself: the hands for each kind of action, and the leave for each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from icewright.model.plans.plans import Plan
from icewright.model.work.jobs import Result
from icewright.model.work.tasks import COMMITTING, Progress, Task

COMMITS: Final = Progress(COMMITTING, 1, 1)


class MayGoOn(Protocol):
    """The leave to take the next step that changes something."""

    def __call__(self, progress: Progress = COMMITS) -> None:
        """Tell how far it is, and ask whether to go on. What it raises passes through."""


class Carrier(Protocol):
    """Carries out the actions of one kind, on the tables of any catalog."""

    def carry_out(self, task: Task, may_commit: MayGoOn) -> Result:
        """Do what the task's action says: all of it or nothing, or in steps, so that the next attempt goes on.

        ``may_commit`` is called right before the commit, or before each step; what it raises passes through, and
        nothing is committed then. What else is raised says that nothing was committed, but for
        :class:`~icewright.core.errors.OutcomeUnknown`.
        """


class ServerTasks(Protocol):
    """Carries out the removals that are queued."""

    def work(self, most: int, catalogs: Callable[[], frozenset[str]]) -> Iterator[Task]:
        """Carry out what waits, at most so many tasks of these ``catalogs``; each as its report left it."""


class ServerQueue(Protocol):
    """Queues removals."""

    def enqueue(self, plan: Plan, *, priority: int = 0, attempts_max: int | None = None) -> object:
        """Queue what a plan says; ``attempts_max`` is how often it is tried, None for as often as any."""
