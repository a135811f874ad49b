"""Tasks taken back: what a task did is planned the other way round, and carried out as a task of its own.

One case for each kind of action. What there is none for is refused, with what can be done instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from icewright.domain.actions import RewriteDataFiles, UndoExpireData
from icewright.domain.compute_statistics import ComputeStatistics
from icewright.domain.errors import Conflict, NotAllowed, NotFound, TableReplaced, Unsupported
from icewright.domain.expire_data import ExpireData
from icewright.domain.expire_snapshots import ExpireSnapshots
from icewright.domain.jobs import Committed, Result
from icewright.domain.names import TableName
from icewright.domain.plans import Plan, Reason
from icewright.domain.policy import Policy
from icewright.domain.reachable import Roots
from icewright.domain.remove_dangling_deletes import RemoveDanglingDeletes
from icewright.domain.remove_expired_files import RemoveExpiredFiles
from icewright.domain.remove_orphan_files import RemoveOrphanFiles
from icewright.domain.restore_files import RestoreFiles
from icewright.domain.rewrite_manifests import RewriteManifests
from icewright.domain.rewrite_position_deletes import RewritePositionDeletes
from icewright.domain.rollback import Rollback
from icewright.domain.tables import Instant, TableMetadata
from icewright.domain.tasks import TERMINAL_STATES, Task, TaskState
from icewright.domain.undo import UNDO_WINDOW_MS, Kept, SecondTable, UndoExpiry
from icewright.planning import wording
from icewright.planning.data_undo import DataUndoDecision
from icewright.planning.effects import snapshot_made_by
from icewright.planning.expire_data import by_hand
from icewright.planning.expiry_undo import UndoDecision, decide_undo, only_back
from icewright.planning.plan_beside import plan_beside
from icewright.planning.rollback import RollbackDecision, decide_forward, decide_rollback
from icewright.ports.clock import Ids
from icewright.ports.expiry import SnapshotExpiry
from icewright.ports.kept import KeptStore
from icewright.ports.store import TableStore, TaskStore
from icewright.ports.table_files import TableFiles
from icewright.scheduling.breaker import UNVERIFIED, VERIFICATION_FAILED
from icewright.services.data_undo import decide_data_undo
from icewright.services.housekeeper import MayGoOn
from icewright.services.kept_plans import keep_plan
from icewright.services.missing_files import first_missing
from icewright.services.observer import Observer
from icewright.services.second_tables import SecondTabler

_TOOK_EFFECT: Final = frozenset({UNVERIFIED, VERIFICATION_FAILED})
"""The codes of failures after a commit: what it took is to be had back all the more."""


BringFilesBack: TypeAlias = Callable[[Task, MayGoOn], None]
"""Whoever moved files away because of a task has each at its place again; nothing to do is fine.

Asked before anything else is undone, and tells how far it is: there may be tens of thousands. Raises ``Conflict`` when
one cannot be brought back, which refuses the undo, and ``Unavailable``; what it is told passes through.
"""


class NothingKept:
    """A :class:`~icewright.ports.kept.KeptStore` for those who change no table: it refuses whatever would be taken."""

    def keep(self, kept: Kept) -> None:
        """See the port."""
        raise Unsupported(f"nobody would keep what task {kept.task_id} takes, so that it could not be undone")

    def kept(self, _task_id: str) -> None:
        """See the port."""

    def forget(self, _kept_before: Instant, _limit: int) -> int:
        """See the port."""
        return 0


@dataclass(frozen=True, slots=True)
class Undoing:
    """The doors that undoing goes through, by catalog; ``kept`` is what tasks took.

    ``restore`` plans to put back the files that a task removed, ``seconds`` registers tables beside others.
    """

    expiries: Mapping[str, SnapshotExpiry]
    files: Mapping[str, TableFiles]
    kept: KeptStore
    restore: Callable[[Task], Plan]
    bring_files_back: BringFilesBack
    seconds: SecondTabler


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
        self._doors, self._observer, self._tables, self._tasks = doors, observer, tables, tasks
        self._ids, self._policy, self._namesakes = ids, policy, namesakes

    def plan(self, task_id: str) -> Plan:  # noqa: C901 - one case for each action
        """The plan that takes a task back. It is kept to be applied, and never queued by itself.

        Raises ``NotFound``, :class:`NotAllowed` where the task cannot be undone (any more), and what loading the table
        raises; ``TableReplaced`` where its name leads to another table by now.
        """
        task = self._tasks.get(task_id)
        match task.action:
            case ExpireSnapshots() as action:
                return self._plan_expiry(task, action)
            case RewriteDataFiles() | RewriteManifests() | RemoveDanglingDeletes() | RewritePositionDeletes():
                raise _never(task, "it changed no row", "`icewright rollback` sets a table back to an earlier snapshot")
            case ComputeStatistics():
                raise _never(task, "it changed no row", "readers may ignore statistics, and expiry takes them away")
            case ExpireData() as action:
                return self._plan_data(task, action)
            case UndoExpireData():
                raise _never(task, "it was an undo", "let the data expire again: `icewright plan --action expire-data`")
            case Rollback(undone_task_id=None) as action:
                return self._plan_rollback(task, action)
            case Rollback():
                raise _never(task, "it was an undo", "set the table back again: `icewright rollback`")
            case UndoExpiry() as action:
                raise _never(task, "it was an undo", _expire_again(action))
            case RemoveOrphanFiles() | RemoveExpiredFiles():
                return self._doors.restore(task)
            case RestoreFiles():
                raise _never(task, "it was an undo", "remove the files again: `icewright remove-orphan-files`")

    def _plan_expiry(self, task: Task, expiry: ExpireSnapshots) -> Plan:
        until = self._open_until(task)
        kept = self._kept(task.task_id)
        now = self._load(task)
        policy = self._policy(now)
        taken = self._doors.expiries[task.table_name.catalog].read_taken(now.name, kept.content)
        if not self._observer.catalog(now.name.catalog).takes_snapshots_back:
            decision = self._doors.seconds.decide(task.task_id, expiry, taken, now, policy, until)
            return self._saved(now, policy, decision)
        return self._saved(now, policy, decide_undo(task.task_id, expiry, taken, now, policy, until))

    def _plan_data(self, task: Task, expiry: ExpireData) -> Plan:
        """Set the table back to right before the commit, if that was the last one: what came since is never lost.

        Else the rows are inserted again.
        """
        self._open_until(task)
        now = self._load(task)
        made, policy = snapshot_made_by(task, now), self._policy(now)
        if made is None:
            raise _never(task, "the snapshot that it made has expired", by_hand(task.task_id))
        decision: RollbackDecision | DataUndoDecision
        if made == now.current_snapshot and made.parent_id is not None:
            decision = decide_rollback(now, policy, to_snapshot=made.parent_id)
        else:
            catalog = self._observer.catalog(now.name.catalog)
            decision = decide_data_undo(catalog, task.task_id, expiry, made, now, policy)
        if decision.action is None:
            raise _never(task, decision.reason.text, by_hand(task.task_id))
        return self._saved(now, policy, decision)

    def _plan_rollback(self, task: Task, rollback: Rollback) -> Plan:
        self._open_until(task)
        now = self._load(task)
        policy = self._policy(now)
        return self._saved(now, policy, decide_forward(task.task_id, rollback, now, policy))

    def _saved(
        self, now: TableMetadata, policy: Policy, decision: UndoDecision | RollbackDecision | DataUndoDecision
    ) -> Plan:
        at = self._tasks.now()
        plan = plan_beside(self._ids.new("plan"), now, policy, decision, at, asked=True, notes=decision.notes)
        return keep_plan(self._tables, plan)

    def _open_until(self, task: Task) -> Instant:
        """The end of the window. Raises :class:`NotAllowed` outside of it."""
        if task.state not in TERMINAL_STATES:
            raise NotAllowed(f"task {task.task_id} is {task.state}: it can be undone once it is verified")
        code = "" if task.outcome is None else task.outcome.reason.code
        if task.state is not TaskState.SUCCEEDED and (task.state is not TaskState.FAILED or code not in _TOOK_EFFECT):
            raise NotAllowed(f"task {task.task_id} is {task.state}: it did nothing that could be undone")
        until = task.updated_at + UNDO_WINDOW_MS
        if self._tasks.now() > until:
            said = f"task {task.task_id} could be undone until {wording.instant(until)}"
            raise NotAllowed(f"{said}, {wording.duration(UNDO_WINDOW_MS)} after it was verified")
        return until

    def _kept(self, task_id: str) -> Kept:
        kept = self._doors.kept.kept(task_id)
        if kept is None:
            raise NotAllowed(f"task {task_id} cannot be undone: what it took is not kept (any more)")
        return kept

    def _load(self, task: Task) -> TableMetadata:
        record = self._tables.record(task.table_id)
        name = task.table_name if record is None else record.name
        metadata = self._observer.catalog(name.catalog).load(name)
        if metadata.table_id != task.table_id:
            raise TableReplaced(f"{name} is another table by now (uuid {metadata.table_id.uuid})")
        return metadata

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
        kept = self._kept(action.undone_task_id)
        files, tried = self._doors.files[name.catalog], list[bool]()
        self._doors.bring_files_back(self._tasks.get(action.undone_task_id), may_commit)

        def may_try() -> None:
            others = self._namesakes(name, task.table_id.uuid)
            if others:
                raise Conflict(f"the table is also known as {min(map(str, others))} by now")
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
            raise Conflict("somebody else put all of it back")
        return Committed(None)

    def _carry_out_beside(self, task: Task, action: UndoExpiry, second: SecondTable, may_commit: MayGoOn) -> Result:
        """As :meth:`carry_out`, as a second table. Where that is there already, no time is too late to guard it."""
        kept = self._kept(action.undone_task_id)
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
            raise Conflict(f"the time to undo task {action.undone_task_id} is over")

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
                return Reason(VERIFICATION_FAILED, f"snapshot {one.snapshot_id} did not come back as it was")
        return None


def _never(task: Task, because: str, instead: str) -> NotAllowed:
    return NotAllowed(f"task {task.task_id} ({task.action.kind}) cannot be undone: {because}", hint=instead)


def _expire_again(action: UndoExpiry) -> str:
    if action.second is not None:
        return f"drop {action.second.name}, without PURGE"
    return "let the snapshots expire again: `icewright expire-snapshots`"


def _action(task: Task) -> UndoExpiry:
    if not isinstance(task.action, UndoExpiry):
        raise TypeError(f"task {task.task_id} undoes no expiry")
    return task.action
