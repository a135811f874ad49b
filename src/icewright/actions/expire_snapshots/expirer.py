"""Expiries of snapshots as the server carries them out itself: what holds snapshots, and the commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from icewright.actions.expire_snapshots.commit import problem_of_expiry
from icewright.core.errors import Conflict, NotFound
from icewright.core.fault_points import Fault, fault
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshots, Hold
from icewright.model.actions.undo import Kept
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.work.jobs import Committed, Result
from icewright.model.work.tasks import TERMINAL_STATES, Task, TaskState
from icewright.ports.snapshot_expiry import SnapshotExpiry
from icewright.ports.store import TaskFilter, TaskStore
from icewright.ports.undo_records import KeptStore

_TASKS_LOOKED_AT: Final = 2 * len(ActionKind)
"""At most one task of a table and kind of action has not ended."""


class Expirer:
    """Carries out expiries on the tables of all catalogs that can be written to."""

    def __init__(
        self,
        expiries: Mapping[str, SnapshotExpiry],
        tasks: TaskStore,
        kept: KeptStore,
        namesakes: Callable[[TableName, str], Collection[TableName]] = lambda _name, _uuid: (),
    ) -> None:
        """``kept`` is where it is written down what goes, before it does.

        ``namesakes`` tells under which other names a table of that uuid was seen.
        """
        self._expiries, self._tasks, self._kept, self._namesakes = dict(expiries), tasks, kept, namesakes

    def carry_out(self, task: Task, may_commit: Callable[[], None]) -> Result:
        """Remove what the action names from the table's metadata. Raises as :meth:`SnapshotExpiry.expire`.

        What was gone before anybody tried is ``Conflict``: whose commit that was, and what else it took, is not ours.
        """
        action = _action(task)
        holds = [hold for hold in holds_of_tasks(self._tasks, task.table_id) if hold.by != _by(task.task_id)]
        expiry = self._expiry(task.table_name.catalog)
        tried: list[bool] = []

        def may_try() -> None:
            others = self._namesakes(task.table_name, task.table_id.uuid)
            if others:
                raise Conflict(f"the table is now also known as {min(map(str, others))}")
            may_commit()
            tried.append(True)

        def keep(content: bytes) -> None:
            self._kept.keep(Kept(task.task_id, task.table_id, self._tasks.now(), content))
            fault(Fault.EXPIRY_KEPT)

        expiry.expire(task.table_name, task.table_id, action, may_commit=may_try, keep=keep, holds=holds)
        if not tried and task.attempt == 1:
            raise Conflict("another writer removed everything that was to expire")
        return Committed(None)

    def problem(self, task: Task, metadata: TableMetadata) -> Reason | None:
        """What the commit took away that it should not have, by the table's own log; ``metadata`` is the table now."""
        action = _action(task)
        found = self._expiry(task.table_name.catalog).commit_of(metadata.name, task.table_id, action)
        return None if found is None else problem_of_expiry(found.before, found.after, action)

    def _expiry(self, catalog: str) -> SnapshotExpiry:
        if catalog not in self._expiries:
            raise NotFound(f"no catalog {catalog!r} is configured")
        return self._expiries[catalog]


def holds_of_tasks(tasks: TaskStore, table_id: TableId) -> tuple[Hold, ...]:
    """The snapshots that tasks of a table which have not ended go on from: a rewrite is validated from its base on."""
    live = TaskFilter(states=frozenset(TaskState) - TERMINAL_STATES, table_id=table_id)
    return tuple(
        Hold(_by(task.task_id), task.figures.base_snapshot_id)
        for task in tasks.listed(live, limit=_TASKS_LOOKED_AT)
        if task.kind is not ActionKind.EXPIRE_SNAPSHOTS and task.figures.base_snapshot_id is not None
    )


def _by(task_id: str) -> str:
    return f"task {task_id}"


def _action(task: Task) -> ExpireSnapshots:
    if not isinstance(task.action, ExpireSnapshots):
        raise TypeError(f"task {task.task_id} expires no snapshots")
    return task.action
