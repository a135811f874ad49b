"""What expires by itself waits for a person the first time, and after somebody took it back (decision 0033).

In mode ``approve`` every plan for data files waits as well. Whoever approves a plan lets exactly that one go, an expiry
however the table has moved on since; what goes by itself afterwards needs nobody's word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from icewright.approvals.service import RESTORED_SINCE, Approvals, waits_by_mode
from icewright.core.errors import Conflict
from icewright.core.times import Instant
from icewright.maintenance.dispatch.dispatcher import Dispatcher
from icewright.maintenance.dispatch.task_gate import APPROVED
from icewright.maintenance.registry.services import ACTION_TYPES
from icewright.model.actions.actions import TAKE_BACK, ActionKind, UndoExpireData
from icewright.model.actions.expire_data import ExpireData
from icewright.model.actions.undo import UNDO_WINDOW_MS
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Mode, Policy
from icewright.model.work.lifecycle import may_coalesce
from icewright.model.work.tasks import TERMINAL_STATES, TaskHead, TaskState
from icewright.plans.action_types import no_longer_wanted
from icewright.plans.policy_digest import plan_digest
from icewright.plans.upkeep_due import person_wanted, rolled_back, taken_back
from icewright.ports.store import TableStore, TaskFilter, TaskStore, WaitingPlan
from icewright.ports.table_records import BeforeLook

_MAY_WAIT: Final = (
    *TAKE_BACK,
    ActionKind.REMOVE_ORPHAN_FILES,
    ActionKind.REMOVE_EXPIRED_FILES,
    ActionKind.REWRITE_DATA_FILES,
)
_REMEMBERED_MAX: Final = 200_000

_UNDOS_MAX: Final = 20
"""So many of the latest undos of expiries of data are asked."""

RENEWED_MS: Final = 20 * 3_600_000
"""How long a plan waits before it is planned anew: once a day, also within a window."""

LatestOf = Callable[[ActionKind], Sequence[TaskHead]]
"""The latest tasks of a table by their kind, the newest first."""


class FirstRunApproval:
    """Tells what a person has to begin, and keeps its plan waiting."""

    def __init__(self, tables: TableStore, tasks: TaskStore, dispatcher: Dispatcher, approvals: Approvals) -> None:
        self._tables, self._tasks, self._dispatcher, self._approvals = tables, tasks, dispatcher, approvals
        self._wanted: dict[TableId, frozenset[ActionKind]] = {}
        """What happens by itself, for which no plan of another kind was found to wait."""

    def reason_for_approval(
        self, kind: ActionKind, metadata: TableMetadata, latest: LatestOf, restored_at: Instant | None
    ) -> Reason | None:
        """Why a person has to begin this; None where it goes by itself. ``restored_at``: when the store was."""
        if kind not in TAKE_BACK:
            return None
        tasks = latest(kind)
        if restored_at is not None and not any(
            task.state is TaskState.SUCCEEDED and task.created_at >= restored_at for task in tasks
        ):
            return RESTORED_SINCE
        reason = person_wanted(tasks, _undos(kind, latest))
        if reason is None and kind is ActionKind.EXPIRE_DATA:
            reason = rolled_back(tasks, metadata)
        return reason

    def refused(self, kind: ActionKind, policy: Policy, found: BeforeLook) -> Reason | None:
        """Why it is left alone: a person refused a plan of it, and neither the policy nor the time says otherwise."""
        if kind not in TAKE_BACK:
            return None
        return self._approvals.still_refused(found.refusals.get(kind), plan_digest(kind, policy), None)

    def rests(self, kind: ActionKind, latest: LatestOf, now: Instant) -> Reason | None:
        """Why it is left alone: somebody is about to take it back; snapshots, also for a week after somebody did."""
        rest_ms = UNDO_WINDOW_MS if kind is ActionKind.EXPIRE_SNAPSHOTS else 0
        return taken_back(_undos(kind, latest), now, rest_ms)

    def withdraw(self, tasks: Sequence[TaskHead], reason: Reason) -> Sequence[TaskHead]:
        """Take back what waits in the queue and nobody approved: a person has to begin. The other tasks are told."""
        others: list[TaskHead] = []
        for task in tasks:
            if not may_coalesce(task) or APPROVED in task.reason.figures:
                others.append(task)
                continue
            try:
                self._dispatcher.withdraw(task, reason)
            except Conflict:  # claimed in the same moment
                others.append(self._tasks.get(task.task_id))
        return others

    def still_waits(
        self,
        table_id: TableId,
        kind: ActionKind,
        policy: Policy,
        now: Instant,
        latest: Sequence[TaskHead],
        found: BeforeLook,
    ) -> Reason | None:
        """What is said where nothing needs to be planned anew: a plan waits, or was approved and waits for its turn.

        ``now`` is by the store's clock. What the owner does not want any more waits no more, and what was planned by
        other settings is planned anew.
        """
        if latest and latest[0].state not in TERMINAL_STATES and APPROVED in latest[0].reason.figures:
            return Reason("upkeep-lately", f"task {latest[0].task_id} waits for its turn")
        waiting = found.waits.get(kind)
        if waiting is None:
            return None
        plan = self._tables.plan(waiting.plan_id)
        if no_longer_wanted(ACTION_TYPES, plan, policy) is not None:
            self.forget(table_id, kind, found)
            return None
        if plan.settings_digest != plan_digest(kind, policy):
            return None
        return _said(waiting) if abs(now - waiting.since) < RENEWED_MS else None

    def forget(self, table_id: TableId, kind: ActionKind, found: BeforeLook) -> None:
        """Nothing is to be done any more: no plan waits."""
        if kind in TAKE_BACK and kind in found.waits:
            self._tables.waits_no_more(table_id, kind)

    def forget_others(self, table_id: TableId, wanted: frozenset[ActionKind], found: BeforeLook) -> None:
        """No plan waits of a kind that the owner does not let happen by itself any more: ``wanted`` are the others.

        Looked for once by each process, and whenever that has changed.
        """
        if found.record is None or self._wanted.get(table_id) == wanted:
            return  # none waits of a new table, and what waits of one that is known by another name is told next
        for kind in found.waits:
            if kind in _MAY_WAIT and kind not in wanted:
                self._tables.waits_no_more(table_id, kind)
        if len(self._wanted) >= _REMEMBERED_MAX:
            self._wanted.clear()
        self._wanted[table_id] = wanted

    def keep_by_mode(self, plan: Plan, latest: Sequence[TaskHead], found: BeforeLook) -> Reason | None:
        """In mode ``approve`` the table's present plan waits for a person; in mode ``observe`` none does.

        None waits beside a task of its kind that has not ended: what that leaves is planned again. ``latest`` are the
        table's tasks on data files. Gives why none waits although there is one: a person refused it.
        """
        waits = (
            plan.mode is Mode.APPROVE and not plan.is_empty and all(task.state in TERMINAL_STATES for task in latest)
        )
        kind = ActionKind.REWRITE_DATA_FILES
        self.forget_others(plan.table_id, frozenset({kind} if waits else ()), found)
        before = found.waits.get(kind) if waits else None
        reason, refusal = waits_by_mode(plan), found.refusals.get(kind)
        if refusal is not None and (before is None or refusal.plan_id != before.plan_id):
            refusal = None  # of another plan
        if not waits or reason is None or (refusal is None and before is not None and before.plan_id == plan.plan_id):
            return None
        refused = self._approvals.still_refused(found.refusals.get(kind), plan.settings_digest, plan.snapshot_id)
        if refused is None:
            self._approvals.wait(plan, reason, is_news=before is None or refusal is not None)
        return refused

    def let_wait(
        self, plan: Plan, wanted: Reason | None, latest: Sequence[TaskHead], found: BeforeLook
    ) -> Reason | None:
        """Let a plan wait, in place of one that did, and tell what is said of it; None where it may go by itself."""
        if not plan.actions:
            return None  # what was due is not there any more
        reason = wanted or self._came_back(plan, latest)
        (action,) = plan.actions
        if reason is None:
            self.forget(plan.table_id, ActionKind(action.kind), found)
            return None
        self._approvals.wait(plan, reason)
        waiting = self._tables.waits(plan.table_id).get(ActionKind(action.kind))
        return reason if waiting is None else _said(waiting)

    def _came_back(self, plan: Plan, latest: Sequence[TaskHead]) -> Reason | None:
        """Why a person has to let data go that would expire: it did so before, and somebody took that back.

        Told by its files, which the table has for longer than the snapshot that they went with; and by a plan that
        waits for this already, whatever became of those files since.
        """
        for action in plan.actions:
            inserted = self._inserted_again(plan.table_id, action, latest) if isinstance(action, ExpireData) else None
            if inserted is not None:
                return inserted
        files = {file.path for action in plan.actions if isinstance(action, ExpireData) for file in action.files}
        for task in latest if files else ():
            if task.outcome is None or task.outcome.snapshot_id is None:
                continue
            before = self._tasks.get(task.task_id).action
            if isinstance(before, ExpireData) and not files.isdisjoint(file.path for file in before.files):
                text = f"files that task {task.task_id} removed were restored: review the plan, and approve it"
                return Reason("taken-back", text)
        waiting = self._tables.waits(plan.table_id).get(ActionKind.EXPIRE_DATA) if files else None
        return None if waiting is None else waiting.reason

    def _inserted_again(self, table_id: TableId, action: ExpireData, latest: Sequence[TaskHead]) -> Reason | None:
        """Why a person has to let data go whose rows somebody had inserted again, in its partitions or in that commit.

        In a partition of another spec they may be whatever its value: the undo put them there, or a rewrite did since.
        Not what a person let expire since all the same.
        """
        only = TaskFilter(table_id=table_id, kind=ActionKind.UNDO_EXPIRE_DATA)
        for undo in self._tasks.listed(only, limit=_UNDOS_MAX):
            if undo.outcome is None or undo.outcome.snapshot_id is None:
                continue
            before = self._tasks.get(undo.task_id).action
            number = undo.outcome.reason.figures.get("sequence_number")
            partitions = before.partitions if isinstance(before, UndoExpireData) else frozenset()
            specs = {partition.spec_id for partition in partitions}
            may_go: set[Partition] = set()
            for task in latest:
                by_a_person = APPROVED in task.reason.figures and task.updated_at > undo.updated_at
                if task.state is TaskState.SUCCEEDED and by_a_person:
                    since = self._tasks.get(task.task_id).action
                    may_go |= {p.partition for p in since.partitions} if isinstance(since, ExpireData) else set()
            going = {each.partition for each in action.partitions} - may_go
            by_place = any(partition in partitions or specs - {partition.spec_id} for partition in going)
            by_number = number and any(file.data_sequence_number == number for file in action.files)
            if by_place or by_number:
                text = f"task {undo.task_id} inserted rows again that may be of it: review the plan, and approve it"
                return Reason("taken-back", text)
        return None


def _undos(kind: ActionKind, latest: LatestOf) -> list[TaskHead]:
    return [task for undo in TAKE_BACK.get(kind, ()) for task in latest(undo)]


def _said(waiting: WaitingPlan) -> Reason:
    text = f"plan {waiting.plan_id} waits for a person: {waiting.reason.text} (`icewright approve {waiting.plan_id}`)"
    return Reason(waiting.reason.code, text, {**waiting.reason.figures, "plan_id": waiting.plan_id})
