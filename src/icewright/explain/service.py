"""Gathers what is known of a table, for the answer to "why does nothing happen to it?". Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from icewright.actions.remove_files.expired_files import GRACE_MS
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.remove_files.quarantine_scheduler import PASS_INTERVAL_MS
from icewright.actions.rewrite_data_files.executors import table_obstacle
from icewright.approvals.service import Approvals
from icewright.core import wording
from icewright.core.errors import IcewrightError
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.explain.inputs import Known, WaitingForAPerson, last_tried
from icewright.explain.plan import why
from icewright.maintenance.dispatch.task_gate import TaskGate
from icewright.maintenance.registry.planning import UPKEEP_KEYS
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policy import Policy
from icewright.model.policy.time_windows import WINDOW_CLOSED
from icewright.model.work.breaker import TASKS_LOOKED_AT, Thresholds, alarmed, parked
from icewright.model.work.lifecycle import LIVE_STATES
from icewright.model.work.tasks import Attempt, ListedTask, TaskState
from icewright.model.work.why import Considered, Wait, Why
from icewright.observation.observer import Observer
from icewright.plans.policy_digest import plan_digest
from icewright.plans.upkeep_due import INTERVAL_MS
from icewright.ports.store import TableRecord, TableStore, TaskFilter, TaskStore
from icewright.recommendations.benefit import Benefit
from icewright.work.groups.queue_waits import QueueWaits
from icewright.work.tasks.start_estimates import StartEstimates


class Explanations:
    """Answers for all tables, over the ports."""

    def __init__(
        self,
        tables: TableStore,
        tasks: TaskStore,
        sightings: SqlSightings,
        observer: Observer,
        policy: Callable[[TableMetadata], Policy],
        leave: TaskGate,
        queue_waits: QueueWaits,
        starts: StartEstimates,
        *,
        approvals: Approvals,
        benefit: Benefit,
        never: frozenset[ActionKind] = frozenset(),
    ) -> None:
        """``never`` is what this server does not do without a request."""
        self._tables, self._tasks, self._sightings = tables, tasks, sightings
        self._observer, self._policy, self._leave = observer, policy, leave
        self._queue_waits, self._starts, self._approvals = queue_waits, starts, approvals
        self._never = never
        self._benefit = benefit

    def why(self, record: TableRecord) -> Why:
        """How it stands with a table that is known. What its catalog does not answer is said, and not raised."""
        metadata, away = self._metadata(record)
        policy = None if metadata is None else self._policy(metadata)
        now = self._tasks.now()
        limits = Thresholds(unparked_at=record.unparked_at)
        if policy is not None:
            limits = Thresholds.of(policy, record.unparked_at)
        latest = self._latest(record.table_id)
        queued = [task for task in latest if task.state is TaskState.QUEUED]
        waits = {task.task_id: self._waits(task, metadata) for task in queued}
        not_asked = () if away is None else (Wait(away),)
        found = why(
            Known(
                table_id=record.table_id,
                name=record.name,
                now=now,
                snapshot_id=record.snapshot_id,
                looked_at=record.observed_at,
                changed_at=record.changed_at,
                next_look_at=record.next_look_at,
                policy=policy,
                away=away,
                problem=record.problem,
                obstacle=None if metadata is None or policy is None else table_obstacle(metadata, policy),
                alarm=alarmed(latest, now, limits),
                plan=None if record.plan_id is None else self._tables.plan(record.plan_id),
                considered=self._considered(record),
                tasks=tuple(latest),
                parked=self._parked(record.table_id, latest, now, limits),
                waiting=self._waiting(record),
                refused=self._refused(record, policy),
                waits=waits,
                starts={task.task_id: self._starts.of(task, (*not_asked, *waits[task.task_id])) for task in queued},
                last_attempts=self._last_attempts(latest),
                due_at=self._due_at(record),
                could_start={task.resource_group: self._could_start(task.resource_group) for task in queued},
                interval_ms=INTERVAL_MS,
                never=self._never,
            )
        )
        return replace(found, says=(*found.says, *self._benefit.says(record.table_id)))

    def _metadata(self, record: TableRecord) -> tuple[TableMetadata | None, Reason | None]:
        """The table as it is now, or why it cannot be asked."""
        try:
            metadata = self._observer.present(record)
        except IcewrightError as error:
            before = record.problem
            return None, Reason(error.code, error.message) if before is None or before.code != error.code else before
        return metadata, None

    def _latest(self, table_id: TableId) -> Sequence[ListedTask]:
        """A table's latest tasks, and all that have not ended however long ago they were made; the newest first."""
        found = self._tasks.listed(TaskFilter(table_id=table_id), limit=TASKS_LOOKED_AT)
        live = self._tasks.listed(TaskFilter(LIVE_STATES, table_id), limit=len(ActionKind))
        by_id = {task.task_id: task for task in (*live, *found)}
        return [by_id[task_id] for task_id in sorted(by_id, reverse=True)]

    def _parked(
        self, table_id: TableId, latest: Sequence[ListedTask], now: Instant, limits: Thresholds
    ) -> Mapping[ActionKind, Reason]:
        """What the breaker keeps back, by kind."""
        found: dict[ActionKind, Reason] = {}
        for kind in (ActionKind.REWRITE_DATA_FILES, *UPKEEP_KEYS):
            tasks: Sequence[ListedTask] = [task for task in latest if task.kind is kind]
            if len(latest) >= TASKS_LOOKED_AT and len(tasks) < TASKS_LOOKED_AT:
                tasks = self._tasks.listed(TaskFilter(table_id=table_id, kind=kind), limit=TASKS_LOOKED_AT)
            reason = parked(tasks, now, limits)
            if reason is not None:
                found[kind] = reason
        return found

    def _waiting(self, record: TableRecord) -> Mapping[ActionKind, WaitingForAPerson]:
        return {
            kind: WaitingForAPerson(one.plan_id, self._tables.plan(one.plan_id).reason, one.reason, one.since)
            for kind, one in self._tables.waits(record.table_id).items()
            if kind in UPKEEP_KEYS and self._tables.refusal(one.plan_id) is None
        }

    def _refused(self, record: TableRecord, policy: Policy | None) -> Mapping[ActionKind, Considered]:
        """What a person refused, as long as that is why nothing waits; nothing while the policy is not known."""
        found: dict[ActionKind, Considered] = {}
        if policy is None:
            return found
        for kind, refusal in self._tables.refusals(record.table_id).items():
            digest = refusal.settings_digest and plan_digest(kind, policy)
            reason = self._approvals.refused(record.table_id, kind, digest, record.snapshot_id)
            if reason is not None:
                found[kind] = Considered(kind, reason, refusal.refused_at)
        return found

    def _considered(self, record: TableRecord) -> Mapping[ActionKind, Considered]:
        """What was said of upkeep at the last look, and what the last pass over the table's files saw."""
        found = {one.kind: one for one in record.considered}
        last = self._sightings.finished(record.table_id)
        if last is not None:
            seen = wording.count(last.files, "file")
            text = f"pass {last.number} saw {seen} ({wording.size(last.size_bytes)}) that nothing needs"
            if last.seen is not None:
                text += f", {last.seen.removable.files:,} of them for long enough to be removed"
            figures = {"files": last.files, "bytes": last.size_bytes, "pass": last.number}
            kind = ActionKind.REMOVE_ORPHAN_FILES
            found[kind] = Considered(kind, Reason("orphans-seen", text, figures), last.finished_at)
        return found

    def _last_attempts(self, latest: Sequence[ListedTask]) -> Mapping[str, Attempt]:
        """The last try at the newest task of each kind that an optimizer worked at."""
        tried = [task for task in (last_tried(latest, kind) for kind in ActionKind) if task is not None]
        return {task.task_id: self._tasks.attempts(task.task_id)[-1] for task in tried}

    def _could_start(self, resource_group: str) -> int:
        return self._tasks.claimable(resource_group, self._observer.catalog_names)

    def _due_at(self, record: TableRecord) -> Mapping[ActionKind, tuple[Instant | None, Reason]]:
        """When files that nothing needs are looked for again: that is done beside looks at tables, one by one."""
        last = self._sightings.finished(record.table_id)
        every = wording.duration(PASS_INTERVAL_MS)
        text = f"passes over a table begin after a look at it, {every} apart, one table after the other"
        orphans = None if last is None else last.finished_at + PASS_INTERVAL_MS, Reason("next-pass", text)
        text = f"what expired snapshots have left is looked for from {wording.duration(GRACE_MS)} after their expiry on"
        expired = None, Reason("after-expiry", text, {"grace_ms": GRACE_MS})
        return {ActionKind.REMOVE_ORPHAN_FILES: orphans, ActionKind.REMOVE_EXPIRED_FILES: expired}

    def _waits(self, task: ListedTask, metadata: TableMetadata | None) -> tuple[Wait, ...]:
        """What a queued task waits for."""
        found = list(self._queue_waits.of(task))
        if metadata is not None:
            obstacle = self._leave.obstacle(self._tasks.get(task.task_id), metadata)
            opens_at = None if obstacle is None else obstacle.figures.get("opens_at")
            if obstacle is not None and obstacle.code == WINDOW_CLOSED and isinstance(opens_at, int):
                found.append(Wait(obstacle, opens_at))
            elif obstacle is not None:
                text = f"the next look withdraws it: {obstacle.text}"
                found.append(Wait(Reason(obstacle.code, text, obstacle.figures)))
        return tuple(found)
