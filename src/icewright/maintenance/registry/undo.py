"""How tasks are taken back, for each kind of action: what a task did is planned the other way round.

What cannot be taken back is refused, with what can be done instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from icewright.actions.expire_data.plan import by_hand
from icewright.actions.rollback.plan import decide_forward, decide_rollback
from icewright.actions.undo.data_undo_service import decide_data_undo
from icewright.actions.undo.expiry_undo import decide_undo
from icewright.actions.undo.second_tables_service import SecondTabler
from icewright.catalogs.table_files_port import TableFiles
from icewright.core import wording
from icewright.core.clock import Ids
from icewright.core.errors import NotAllowed, TableReplaced
from icewright.core.times import Instant
from icewright.maintenance.registry.effects import snapshot_made_by
from icewright.model.actions.actions import Action
from icewright.model.actions.expire_data import ExpireData
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.actions.remove_files import RemoveExpiredFiles, RemoveOrphanFiles
from icewright.model.actions.rollback import Rollback
from icewright.model.actions.undo import UNDO_WINDOW_MS, Kept, UndoExpiry
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Plan, Prediction
from icewright.model.policy.policy import Policy
from icewright.model.work.breaker import UNVERIFIED, VERIFICATION_FAILED
from icewright.model.work.tasks import TERMINAL_STATES, Task, TaskState
from icewright.observation.observer import Observer
from icewright.plans.action_types import cannot_be_undone
from icewright.plans.repository import keep_plan
from icewright.plans.standalone_plan import Decided, build_standalone_plan
from icewright.ports.carriers import MayGoOn
from icewright.ports.snapshot_expiry import SnapshotExpiry
from icewright.ports.store import TableStore, TaskStore
from icewright.ports.undo_records import UndoRecordStore

if TYPE_CHECKING:
    from icewright.ports.carriers import MayGoOn

_TOOK_EFFECT: Final = frozenset({UNVERIFIED, VERIFICATION_FAILED})
"""The codes of failures after a commit: what it took is to be had back all the more."""


BringFilesBack: TypeAlias = "Callable[[Task, MayGoOn], None]"
"""Whoever moved files away because of a task has each at its place again; nothing to do is fine.

Asked before anything else is undone, and tells how far it is: there may be tens of thousands. Raises ``Conflict`` when
one cannot be brought back, which refuses the undo, and ``Unavailable``; what it is told passes through.
"""


@dataclass(frozen=True, slots=True)
class Undoing:
    """The doors that undoing goes through, by catalog; ``kept`` is what tasks took.

    ``restore`` plans to put back the files that a task removed, ``seconds`` registers tables beside others.
    """

    expiries: Mapping[str, SnapshotExpiry]
    files: Mapping[str, TableFiles]
    kept: UndoRecordStore
    restore: Callable[[Task], Plan]
    bring_files_back: BringFilesBack
    seconds: SecondTabler


class UndoPlanner:
    """Plans to take tasks back, one method for each way to."""

    def __init__(
        self,
        doors: Undoing,
        observer: Observer,
        tables: TableStore,
        tasks: TaskStore,
        ids: Ids,
        policy: Callable[[TableMetadata], Policy],
    ) -> None:
        self._doors, self._observer, self._tables, self._tasks = doors, observer, tables, tasks
        self._ids, self._policy = ids, policy

    def expiry(self, task: Task, expiry: ExpireSnapshots) -> Plan:
        """Put back what it took, or register it as a second table where the catalog takes no snapshots back."""
        until = self._open_until(task)
        kept = self.kept(task.task_id)
        now = self._load(task)
        policy = self._policy(now)
        taken = self._doors.expiries[task.table_name.catalog].read_taken(now.name, kept.content)
        if not self._observer.catalog(now.name.catalog).takes_snapshots_back:
            decision = self._doors.seconds.decide(task.task_id, expiry, taken, now, policy, until)
            return self._saved(now, policy, decision)
        return self._saved(now, policy, decide_undo(task.task_id, expiry, taken, now, policy, until))

    def data(self, task: Task, expiry: ExpireData) -> Plan:
        """Set the table back to right before the commit, if that was the last one: what came since is never lost.

        Else the rows are inserted again.
        """
        self._open_until(task)
        now = self._load(task)
        made, policy = snapshot_made_by(task, now), self._policy(now)
        if made is None:
            raise cannot_be_undone(task, "the snapshot that it made has expired", by_hand(task.task_id))
        decision: Decided[Action, Prediction]
        if made == now.current_snapshot and made.parent_id is not None:
            decision = decide_rollback(now, policy, to_snapshot=made.parent_id)
        else:
            catalog = self._observer.catalog(now.name.catalog)
            decision = decide_data_undo(catalog, task.task_id, expiry, made, now, policy)
        if decision.action is None:
            raise cannot_be_undone(task, decision.reason.text, by_hand(task.task_id))
        return self._saved(now, policy, decision)

    def rollback(self, task: Task, rollback: Rollback) -> Plan:
        """Set ``main`` forward again, but for a rollback that did just that."""
        if rollback.undone_task_id is not None:
            raise cannot_be_undone(task, "it was an undo", "set the table back again: `icewright rollback`")
        self._open_until(task)
        now = self._load(task)
        policy = self._policy(now)
        return self._saved(now, policy, decide_forward(task.task_id, rollback, now, policy))

    def expiry_undo(self, task: Task, undo: UndoExpiry) -> NoReturn:
        """An undo is not undone: what can be done instead."""
        raise cannot_be_undone(task, "it was an undo", _expire_again(undo))

    def removal(self, task: Task, _removal: RemoveOrphanFiles | RemoveExpiredFiles) -> Plan:
        """Put back the files that it removed."""
        return self._doors.restore(task)

    def _saved(self, now: TableMetadata, policy: Policy, decision: Decided[Action, Prediction]) -> Plan:
        plan = build_standalone_plan(self._ids.new("plan"), now, policy, decision, self._tasks.now(), asked=True)
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

    def kept(self, task_id: str) -> Kept:
        """What a task took. Raises :class:`NotAllowed` where that is not kept."""
        kept = self._doors.kept.kept(task_id)
        if kept is None:
            raise NotAllowed(f"task {task_id} cannot be undone: what it took is not kept (any more)")
        return kept

    def _load(self, task: Task) -> TableMetadata:
        record = self._tables.record(task.table_id)
        name = task.table_name if record is None else record.name
        metadata = self._observer.catalog(name.catalog).load(name)
        if metadata.table_id != task.table_id:
            raise TableReplaced(f"{name} is another table now (uuid {metadata.table_id.uuid})")
        return metadata


def _expire_again(action: UndoExpiry) -> str:
    if action.second is not None:
        return f"drop {action.second.name}, without PURGE"
    return "expire the snapshots again: `icewright expire-snapshots`"
