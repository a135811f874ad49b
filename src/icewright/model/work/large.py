"""Which queue tasks of a table wait in: the large one after one ran out of memory, until enough have succeeded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from icewright.core.errors import OutOfMemory
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.tasks import Outcome, TaskHead, TaskState

TASKS_LOOKED_AT: Final = 20
"""Beside as many as have to succeed: so many that ended otherwise may lie between them."""


def ran_out_of_memory(outcome: Outcome | None) -> bool:
    """Whether an attempt, or a task, came to nothing since a process at work got no more memory."""
    return outcome is not None and outcome.reason.code == OutOfMemory.code


def queue_after(latest: Iterable[TaskHead], successes: int) -> Queue:
    """In which queue the next task of a table and kind of action waits.

    ``latest`` are those before it, the newest first, as far back as they count; ``successes`` is how many have to
    succeed in the large queue, after the last one that ran out of memory, for the table to come back.
    """
    was_large, succeeded = False, 0
    for task in latest:
        if ran_out_of_memory(task.outcome):
            return Queue.LARGE
        if task.lane.queue is Queue.LARGE:
            was_large = True
            succeeded += task.state is TaskState.SUCCEEDED
            if succeeded >= successes:
                return Queue.NORMAL
        elif task.state is TaskState.SUCCEEDED:
            break
    return Queue.LARGE if was_large else Queue.NORMAL
