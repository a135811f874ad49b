"""Commits that arrive when their task has ended already, by an optimizer that everybody thought dead.

Nothing can call such a commit back, and nothing is lost by it: it was validated from its base like any other. But a
task that is said to have come to nothing has taken effect, or one that has succeeded with some of its groups has done
so with others besides (decision 0016), and nobody has verified that. So it is taken up again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from icewright.core.errors import Conflict, NotAllowed, NotFound
from icewright.maintenance.dispatch.verification import COMMIT_NOT_FOUND
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import Snapshot, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.work.tasks import TERMINAL_STATES, AttemptState, Outcome, Task, TaskState
from icewright.ports.store import Change, TaskStore

FOUND_LATE: Final = "found-late"
"""The code of a reason that says: the task had ended without a commit, and its commit is there."""
_LOOKED_AT: Final = 20
"""So many of icewright's own snapshots of a table are compared with their tasks, the newest first."""
_KNOWN_MAX: Final = 10_000


class LateCommits:
    """Finds them among the snapshots of a table that was just observed."""

    def __init__(self, tasks: TaskStore) -> None:
        self._tasks = tasks
        self._known: set[tuple[TableId, int]] = set()
        """Snapshots whose tasks know of them. Forgotten with the process, at the price of asking again."""

    def take_up(self, metadata: TableMetadata) -> list[Task]:
        """The tasks that had ended and are to be verified now.

        One whose table has another task under way in its slot waits for a later look.
        """
        own = [snapshot for snapshot in reversed(metadata.snapshots) if snapshot.task_id is not None][:_LOOKED_AT]
        found: list[Task] = []
        for snapshot in own:
            if (metadata.table_id, snapshot.snapshot_id) not in self._known:
                task = self._task(metadata, snapshot)
                # Waits for the table's other task, or somebody else was faster: the next look comes by again.
                with suppress(Conflict, NotAllowed):
                    found += [] if task is None else [self._tasks.change(_taken_up(task, snapshot))]
        return found

    def _task(self, metadata: TableMetadata, snapshot: Snapshot) -> Task | None:
        """The task that has ended and knows nothing of its snapshot; None where all is well, or it goes on."""
        try:
            task = self._tasks.get(str(snapshot.task_id))
        except NotFound:
            task = None  # of another store, or not one of ours at all
        if task is not None and task.state not in TERMINAL_STATES:
            return None
        if task is None or task.table_id != metadata.table_id or _knows(task, metadata, snapshot):
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known.add((metadata.table_id, snapshot.snapshot_id))
            return None
        return task


def _knows(task: Task, metadata: TableMetadata, snapshot: Snapshot) -> bool:
    """Whether a task that has ended did so with this commit verified, or known to be beyond that.

    A verification is of all commits of the task that are there, so only one that came behind its own is news.
    """
    its = None if task.outcome is None else task.outcome.snapshot_id
    if task.state is TaskState.SUCCEEDED:
        order = [each.snapshot_id for each in metadata.snapshots]
        return its not in order or order.index(snapshot.snapshot_id) <= order.index(its)
    return task.outcome is not None and its is not None and task.outcome.reason.code != COMMIT_NOT_FOUND


def _taken_up(task: Task, snapshot: Snapshot) -> Change:
    text = f"the task had ended as {task.state}; its commit arrived later, as snapshot {snapshot.snapshot_id}"
    outcome = Outcome(Reason(FOUND_LATE, text), snapshot.snapshot_id)
    own = snapshot.attempt == task.attempt
    return Change(task.task_id, task.version, TaskState.COMMITTED, outcome, AttemptState.COMMITTED if own else None)
