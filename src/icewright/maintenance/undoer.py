"""Tasks taken back: what a task did is planned the other way round, and carried out as a task of its own.

What is planned for each kind of action says :mod:`icewright.maintenance.registry.undo`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from icewright.actions.undo.expiry_undo import only_back
from icewright.actions.undo.missing_files import first_missing
from icewright.core.clock import Ids
from icewright.core.errors import Conflict, NotFound, Unsupported
from icewright.core.times import Instant
from icewright.maintenance.registry.services import plan_undo
from icewright.maintenance.registry.undo import Undoing, UndoPlanner
from icewright.model.actions.undo import Kept, SecondTable, UndoExpiry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import Roots
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Policy
from icewright.model.work.breaker import UNVERIFIED, VERIFICATION_FAILED
from icewright.model.work.jobs import Committed, Result
from icewright.model.work.tasks import Task
from icewright.observation.observer import Observer
from icewright.ports.carriers import MayGoOn
from icewright.ports.store import TableStore, TaskStore


class NothingKept:
    """A :class:`~.undo_records_port.KeptStore` for those who change no table: it refuses whatever would be taken."""

    def keep(self, kept: Kept) -> None:
        """See the port."""
        raise Unsupported(f"nothing would keep what task {kept.task_id} removes, so that it could not be undone")

    def kept(self, _task_id: str) -> None:
        """See the port."""

    def forget(self, _kept_before: Instant, _limit: int) -> int:
        """See the port."""
        return 0


class Undoer:
    """Plans to take tasks back, and carries out those that need no rows."""

    def __init__(
        self,
        doors: Undoing,
        observer: Observer,
        tables: TableStore,
        tasks: TaskStore,
        ids: Ids,
        policy: Callable[[TableMetadata], Policy],
        namesakes: Callable[[TableName, str], Collection[TableName]] = lambda _name, _uuid: (),
    ) -> None:
        self._doors, self._tasks = doors, tasks
        self._namesakes = namesakes
        self._plans = UndoPlanner(doors, observer, tables, tasks, ids, policy)

    def plan(self, task_id: str) -> Plan:
        """The plan that takes a task back. It is kept to be applied, and never queued by itself.

        Raises ``NotFound``, :class:`NotAllowed` where the task cannot be undone (any more), and what loading the table
        raises; ``TableReplaced`` where its name now leads to another table.
        """
        return plan_undo(self._plans, self._tasks.get(task_id))

    def carry_out(self, task: Task, may_commit: MayGoOn) -> Result:
        """Put back what the action names: files first, then a look at each of them, then the commit.

        Raises as :meth:`SnapshotExpiry.put_back`. What somebody else put back before anybody tried is ``Conflict``.
        """
        action, name = _action(task), task.table_name
        if name.catalog not in self._doors.expiries or name.catalog not in self._doors.files:
            raise NotFound(f"no catalog {name.catalog!r} is configured")
        if action.second is not None:
            return self._carry_out_beside(task, action, action.second, may_commit)
        self._check_time(action)
        kept = self._plans.kept(action.undone_task_id)
        files, tried = self._doors.files[name.catalog], list[bool]()
        self._doors.bring_files_back(self._tasks.get(action.undone_task_id), may_commit)

        def may_try() -> None:
            others = self._namesakes(name, task.table_id.uuid)
            if others:
                raise Conflict(f"the table is now also known as {min(map(str, others))}")
            may_commit()
            tried.append(True)

        def missing(table: Roots) -> str | None:
            return first_missing(files, table, action.snapshot_ids)

        self._doors.expiries[name.catalog].put_back(
            name,
            task.table_id,
            action,
            kept.content,
            task_id=task.task_id,
            may_commit=may_try,
            first_missing=missing,
        )
        if not tried and task.attempt == 1:
            raise Conflict("another writer put all of it back")
        return Committed(None)

    def _carry_out_beside(self, task: Task, action: UndoExpiry, second: SecondTable, may_commit: MayGoOn) -> Result:
        """As :meth:`carry_out`, as a second table. Where that is there already, no time is too late to guard it."""
        kept = self._plans.kept(action.undone_task_id)
        taken = self._doors.expiries[task.table_name.catalog].read_taken(task.table_name, kept.content)
        is_there = self._doors.seconds.go_on(task, taken, second, may_commit)
        if not is_there:
            self._check_time(action)
        self._doors.bring_files_back(self._tasks.get(action.undone_task_id), may_commit)
        if is_there:
            self._doors.seconds.check(task, second)
        else:
            self._doors.seconds.register(task, taken, second, may_commit)
        return Committed(None)

    def _check_time(self, action: UndoExpiry) -> None:
        if self._tasks.now() > action.until:
            raise Conflict(f"task {action.undone_task_id} can no longer be undone: its window has ended")

    def problem(self, task: Task, metadata: TableMetadata) -> Reason | None:
        """What came back otherwise than it went; None when all is as it was, or has gone again since."""
        action = _action(task)
        kept = self._doors.kept.kept(action.undone_task_id)
        if kept is None:
            return Reason(UNVERIFIED, "what was put back is not kept any more: nothing to compare with")
        expiry = self._doors.expiries.get(task.table_name.catalog)
        if expiry is None:
            raise NotFound(f"no catalog {task.table_name.catalog!r} is configured")
        taken = expiry.read_taken(metadata.name, kept.content)
        if action.second is not None:
            return self._doors.seconds.problem(taken, action.second, metadata)
        back = only_back(action, taken)
        for one in back.snapshots:
            if metadata.snapshot(one.snapshot_id) not in (None, one):
                return Reason(VERIFICATION_FAILED, f"snapshot {one.snapshot_id} was not restored as it was")
        return None


def _action(task: Task) -> UndoExpiry:
    if not isinstance(task.action, UndoExpiry):
        raise TypeError(f"task {task.task_id} undoes no expiry")
    return task.action
