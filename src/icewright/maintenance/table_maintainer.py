"""Looking after one table: observe it, plan it, queue what the plan says if the owner lets us act."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final

from icewright.actions.expire_snapshots.expirer import holds_of_tasks
from icewright.actions.remove_files.orphans.planner import OrphanPlanner
from icewright.actions.rewrite_data_files.triggers.triggers import unworthy_files
from icewright.core.clock import Clock
from icewright.core.errors import (
    Conflict,
    IcewrightError,
    InvalidMessage,
    LookLost,
    NotFound,
    Rejected,
    TableReplaced,
    Unreadable,
)
from icewright.core.reasons import lasting
from icewright.core.times import NEVER, Instant
from icewright.feed.publisher import FeedPublisher
from icewright.inventory.arithmetic import avoidable_files
from icewright.maintenance.dispatch.dispatcher import Dispatcher
from icewright.maintenance.dispatch.late_commits import LateCommits
from icewright.maintenance.first_run_approval import FirstRunApproval
from icewright.maintenance.lost_work import work_is_lost
from icewright.maintenance.planner import Planner
from icewright.maintenance.quiet_tables import QuietTables, quiet_until
from icewright.maintenance.registry.planning import effect_of
from icewright.maintenance.registry.services import plan_asked
from icewright.maintenance.upkeep import NOTHING_KEPT_UP, KeptUp, Look, Upkeep
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.remove_files import RemoveOrphanFilesRequest
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.snapshot_sightings import MARK_GAP_MS, thinned
from icewright.model.iceberg.tables import Snapshot, TableMetadata
from icewright.model.plans.observation import Observation, WorkerAccess
from icewright.model.plans.plans import Plan, Reason
from icewright.model.plans.requests import PlanRequest
from icewright.model.policy.policy import Mode, Policy, Trigger
from icewright.model.work.breaker import TASKS_LOOKED_AT, Thresholds, alarmed, is_half_open, parked
from icewright.model.work.figures import Listed, SeriesPoint
from icewright.model.work.lifecycle import may_coalesce
from icewright.model.work.tasks import TERMINAL_STATES, Task, TaskHead, TaskState
from icewright.observation.access import AccessBook
from icewright.observation.health import listed, listed_with_problem, series_point
from icewright.observation.observer import Observer, Seen, why_gone
from icewright.observation.sweep import INTERVAL_MAX_MS, next_look
from icewright.plans.evidence.written_files import written
from icewright.plans.policy_digest import POLICY_CHANGED, look_digest
from icewright.plans.repository import PlanRejected
from icewright.ports.store import Enqueued, TableRecord, TableStore, TaskFilter, TaskStore
from icewright.ports.table_records import BeforeLook, DueLook
from icewright.ports.telemetry import note_look, watched
from icewright.work.optimizers.file_backoff import with_failed_files
from icewright.work.tasks.retry import conflict_backoff_ms, conflicts_in_a_row
from icewright.work.tasks.task_throughput import experience

_LOCKS = 64
LOOKS_MAX: Final = 3
"""How often a table is looked at for one look, when other servers look at it meanwhile."""
_MadeFrom = tuple[str, WorkerAccess, str, str, str]
"""The metadata, the workers' access to its files, and what speaks against copying their row groups, and against
merging them by key, and the digest of the table's policy."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look at a table came to: its plan, whether that was made just now, and what was queued.

    ``late`` are tasks that had ended, and whose commits came all the same; they are verified next. ``upkeep`` is what
    was found out and queued besides. ``snapshots`` are those that the table has.
    """

    plan: Plan
    is_new: bool
    enqueued: Enqueued | None
    late: tuple[Task, ...] = ()
    upkeep: KeptUp = NOTHING_KEPT_UP
    snapshots: tuple[Snapshot, ...] = ()


class TableMaintainer:
    """One look at one table, whatever made us look: an event, the sweep, a task that ended, or a person."""

    def __init__(
        self,
        observer: Observer,
        planner: Planner,
        dispatcher: Dispatcher,
        access: AccessBook,
        tables: TableStore,
        tasks: TaskStore,
        clock: Clock,
        *,
        orphans: OrphanPlanner,
        want_pass: Callable[[TableMetadata, Policy, Thresholds, BeforeLook], Instant | None],
        first_runs: FirstRunApproval,
        quiet: QuietTables,
        tidings: FeedPublisher,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """``want_pass`` is told of each table that was looked at and may be acted on: orphan files are due, perhaps.

        It says until when it need not be told again of a table that stays as it is, None where it has to be.
        """
        self._observer, self._planner, self._dispatcher, self._access = observer, planner, dispatcher, access
        self._tables, self._tasks, self._clock, self._chance = tables, tasks, clock, chance
        self._orphans, self._want_pass, self._first_runs, self._tidings = orphans, want_pass, first_runs, tidings
        self._quiet = quiet
        self._latecomers = LateCommits(tasks)
        self._upkeep = Upkeep(planner, dispatcher, tables, tasks, first_runs)
        self._locks = tuple(threading.Lock() for _ in range(_LOCKS))
        self._planned_from: dict[TableId, tuple[str, _MadeFrom]] = {}
        """A table's present plan, if it is of this process, and what it was made from."""

    def look(self, name: TableName, *, plan_anew: bool = False) -> Looked:
        """Observe the table; plan when its present plan does not stand any more; queue where the owner lets us.

        A waiting task is withdrawn where its owner does not let us any more, and where it would come to nothing.
        A table that cannot be read or planned keeps the reason in its record and is looked at again later; a dropped
        one is marked so; both errors pass through. Raises :class:`~icewright.core.errors.Unavailable` when the
        catalog is away; then nothing changes. Raises :class:`~icewright.core.errors.LookLost` when other servers
        wrote first, again and again.
        """
        # Spares the looks of this process the comparison in the store, which one of two would lose.
        with self._lock(name), watched("look", table=name):
            for number in range(LOOKS_MAX - 1):
                with suppress(LookLost):
                    return self._look_once(name, plan_anew=plan_anew, is_again=number > 0)
            return self._look_once(name, plan_anew=plan_anew, is_again=True)

    def plan_asked(self, name: TableName, asked: PlanRequest, table_id: TableId | None = None) -> Plan:
        """The plan of what a person asks for. It is kept to be applied, and never queued by itself.

        A search for orphan files takes as long as it takes, and keeps nobody from looking at tables meanwhile.
        Raises as :meth:`look`, and ``TableReplaced`` where the name leads to another table than ``table_id`` by now.
        """
        if isinstance(asked, RemoveOrphanFilesRequest):
            return self._orphans.plan(name, asked, table_id)
        with self._lock(name):
            observation = self._observer.observe(name)
            if table_id is not None and observation.metadata.table_id != table_id:
                raise TableReplaced(f"{name} is another table now (uuid {observation.metadata.table_id.uuid})")
            latest = self._tasks_of(observation.metadata.table_id, ActionKind.REWRITE_DATA_FILES)
            holds = holds_of_tasks(self._tasks, observation.metadata.table_id)
            observation = with_failed_files(observation, self._tasks, latest)
            return plan_asked(self._planner, observation, asked, holds).plan

    def pass_over(self, due: Sequence[DueLook], answering: AbstractSet[str]) -> Sequence[DueLook]:
        """Those that have to be looked at; the others are put off: see :meth:`QuietTables.pass_over`."""
        return self._quiet.pass_over(due, answering)

    def put_aside(self, name: TableName, problem: Reason) -> None:
        """Keep why a table cannot be looked after, and look again later. Harmless for a table without a record."""
        with self._lock(name):
            self._change_record(name, next_look_at=self._clock.now() + INTERVAL_MAX_MS, problem=problem)

    def postpone(self, name: TableName, until: Instant) -> None:
        """Look at a table later than planned. Harmless for a table without a record."""
        with self._lock(name):
            self._change_record(name, next_look_at=until)

    def _lock(self, name: TableName) -> threading.Lock:
        return self._locks[hash(name) % _LOCKS]

    def _look_once(self, name: TableName, *, plan_anew: bool, is_again: bool) -> Looked:
        is_unseen = not (is_again or self._observer.has_seen(name))
        try:
            found = self._tables.before_look(name, is_new=is_unseen)
        except Unreadable as error:
            self._note(name, error)
            raise
        if found.record is not None:
            self._quiet.forget(found.record.table_id)
        try:
            # Should the policies change now, the look is lost.
            with self._tables.gathered(), self._planner.policies.held(found.policies) as present:
                return self._look(name, found, present.revision, plan_anew=plan_anew, is_unseen=is_unseen)
        except InvalidMessage as error:  # what was gathered the store cannot hold
            self._note(name, error)
            raise

    def _look(self, name: TableName, found: BeforeLook, policies: int, *, plan_anew: bool, is_unseen: bool) -> Looked:
        before = found.record
        try:
            metadata = self._observer.load(name)
            # A name that nobody has seen is taken for that of a new table; where it is none, the look is lost.
            if (before is None and not is_unseen) or (before is not None and before.table_id != metadata.table_id):
                found = replace(self._tables.before_look_at(metadata.table_id), policies=found.policies)
            seen = self._observer.seen(metadata, found.stored)
            observation, record = seen.observation, seen.record
            if before is not None:
                note_look(metadata, before.snapshot_id, self._clock)
            late = tuple(self._latecomers.take_up(metadata))
            everything, now = self._tasks_of(metadata.table_id) if late else found.tasks, found.now
            latest = self._of_kind(everything, metadata.table_id, ActionKind.REWRITE_DATA_FILES)
            limits = Thresholds.of(self._planner.policy(metadata), record.unparked_at)
            alarm = alarmed(everything, now, limits)
            problem = alarm or parked(latest, now, limits)
            half_open = is_half_open(latest, now, limits)
            made_from = _made_from(observation, self._planner.policy(observation.metadata))
            stands = not plan_anew and not (half_open and all(task.state in TERMINAL_STATES for task in latest))
            plan = self._standing_plan(found, made_from, metadata, latest, problem) if stands else None
            is_planned = plan is None
            if plan is None:
                with watched("plan"):
                    plan = self._planner.plan_observed(self._with_experience(observation, latest)).plan
                record = replace(record, plan_id=plan.plan_id, revision=record.revision + 1)  # it was saved with it
        except (NotFound, Rejected, Unreadable, PlanRejected) as error:
            self._note(name, error)
            raise
        self._planned_from[metadata.table_id] = plan.plan_id, made_from
        if before is not None and before.table_id != metadata.table_id:
            self._gone(before.table_id, f"{name} is another table now (uuid {metadata.table_id.uuid})")
        if plan.mode is not Mode.OBSERVE and plan.verdicts:  # without any the whole table is left alone
            self._access.want(metadata, found.stored)
        acts = is_planned and plan.mode is Mode.AUTO and problem is None and not plan.is_empty
        self._withdraw(everything, plan, metadata, replaceable=acts)
        tries, rest_ms = (1 if half_open else None), self._rest_ms(latest) if acts else 0
        enqueued = self._dispatcher.enqueue(plan, delay_ms=rest_ms, attempts_max=tries) if acts else None
        is_worked_on = enqueued is not None or any(task.state not in TERMINAL_STATES for task in latest)
        look = Look(observation, now, is_worked_on, plan_anew, found, limits)
        kept, refused = self._keep_up(look, plan, latest, everything, is_alarmed=alarm is not None)
        # A refused plan is said, and looked at again when it is time, not in each round.
        problem, seen = kept.problem or problem, replace(seen, record=record)
        changes = self._save(seen, found, plan, kept, problem, everything, limits, refused)
        # Not before: a look that is lost may have gone by another table's record, or by none.
        may_go = plan.mode is Mode.AUTO and alarm is None
        passes = self._want_pass(metadata, self._planner.policy(metadata), limits, found) if may_go else NEVER
        if not (late or changes) and problem is None:
            until = quiet_until(seen, found, plan, kept, self._planner.policy(metadata), everything, passes)
            self._quiet.note(seen, found, policies, until)
        had = None if before is None or before.table_id != metadata.table_id else before.problem
        self._tidings.problem(metadata.table_id, metadata.name, had, problem)
        return Looked(plan, is_planned, enqueued, late, kept, metadata.snapshots)

    def _keep_up(
        self, look: Look, plan: Plan, latest: Sequence[TaskHead], everything: Sequence[TaskHead], *, is_alarmed: bool
    ) -> tuple[KeptUp, Reason | None]:
        """What came of upkeep, and why a plan does not wait."""
        of_kind = cache(partial(self._with_last_done, everything, look.observation.metadata.table_id))  # in this look
        kept = NOTHING_KEPT_UP if is_alarmed else self._upkeep.keep_up(look, of_kind)
        return kept, None if plan.mode is Mode.AUTO else self._first_runs.keep_by_mode(plan, latest, look.found)

    def unpark(self, table_id: TableId) -> None:
        """Resume a table that was parked: what came to nothing until now does not count any more.

        Raises ``NotFound``, and :class:`~icewright.core.errors.LookLost` when others wrote first again and again.
        """
        for tries_left in reversed(range(LOOKS_MAX)):
            record = self._tables.record(table_id)
            if record is None or record.dropped_at is not None:
                raise NotFound(f"no table {table_id}")
            try:
                self._tables.save_record(replace(record, unparked_at=self._tasks.now()))
            except LookLost:
                if not tries_left:
                    raise
            else:
                return

    def _rest_ms(self, latest: Sequence[TaskHead]) -> int:
        """How long the next task waits, since writers were faster than the last ones."""
        conflicts = conflicts_in_a_row(latest)
        if not conflicts:
            return 0
        met_at = next(task.updated_at for task in latest if task.state in TERMINAL_STATES)
        return max(0, met_at + conflict_backoff_ms(conflicts, jitter=self._chance()) - self._tasks.now())

    def _with_experience(self, observation: Observation, latest: Sequence[TaskHead]) -> Observation:
        """The observation with what the table's latest tasks tell."""
        observation = replace(with_failed_files(observation, self._tasks, latest), written=written(latest))
        if not observation.removals.any:
            return observation
        return replace(observation, experience=experience(self._tasks, latest))

    def _standing_plan(
        self,
        found: BeforeLook,
        made_from: _MadeFrom,
        metadata: TableMetadata,
        latest: Sequence[TaskHead],
        parked_by: Reason | None,
    ) -> Plan | None:
        """The plan that still stands: the table is as it was, its time has not come, and its work is in hand."""
        plan = found.plan
        if plan is None or self._planned_from.get(metadata.table_id) != (plan.plan_id, made_from):
            return None
        if plan.table_name != metadata.name:
            return None
        due = plan.look_again_at is not None and plan.look_again_at <= self._clock.now()
        acts = plan.mode is Mode.AUTO and not plan.is_empty and parked_by is None
        return None if due or (acts and work_is_lost(plan, latest, found.now)) else plan

    def _withdraw(self, latest: Sequence[TaskHead], plan: Plan, metadata: TableMetadata, *, replaceable: bool) -> None:
        """Take back a waiting task that must not run; one that the new plan takes the place of stays (coalescing)."""
        for task in latest:
            replaced = replaceable and task.kind is ActionKind.REWRITE_DATA_FILES and may_coalesce(task)
            if task.state is not TaskState.QUEUED or replaced:
                continue
            reason = self._obstacle(task, plan, metadata)
            if reason is not None:
                self._take_back(task, reason)

    def _obstacle(self, task: TaskHead, plan: Plan, metadata: TableMetadata) -> Reason | None:
        whole = self._tasks.get(task.task_id)
        if effect_of(whole, metadata) is not None:
            return None  # an attempt thought dead did commit: the next claim finds out, and the task ends as it should
        obstacle = self._dispatcher.leave.obstacle(whole, metadata)
        replanned = plan.is_empty and task.kind is ActionKind.REWRITE_DATA_FILES and not task.was_asked_for
        if replanned and (obstacle is None or obstacle.code == POLICY_CHANGED):
            return Reason("replanned", f"the table was planned again: {plan.reason.text}")
        return obstacle

    def _gone(self, table_id: TableId, why: str) -> None:
        self._planned_from.pop(table_id, None)
        for task in self._tasks_of(table_id):
            if task.state is TaskState.QUEUED:
                self._take_back(task, Reason("table-gone", why))

    def _take_back(self, task: TaskHead, reason: Reason) -> None:
        # Claimed in the same moment: then its attempt finds out, and the commit is validated in any case.
        with suppress(Conflict):
            self._dispatcher.withdraw(task, reason)

    def _of_kind(self, everything: Sequence[TaskHead], table_id: TableId, kind: ActionKind) -> Sequence[TaskHead]:
        """A table's latest tasks of one kind; asked for only where ``everything`` has no room for them all."""
        found = [task for task in everything if task.kind is kind]
        if len(everything) < TASKS_LOOKED_AT or len(found) == len(everything):
            return found
        return self._tasks_of(table_id, kind)

    def _with_last_done(
        self, everything: Sequence[TaskHead], table_id: TableId, kind: ActionKind
    ) -> Sequence[TaskHead]:
        """A table's latest tasks of one kind, and the last that succeeded however many came to nothing since."""
        found = self._of_kind(everything, table_id, kind)
        if len(found) < TASKS_LOOKED_AT or any(task.state is TaskState.SUCCEEDED for task in found):
            return found
        only = TaskFilter(states=frozenset({TaskState.SUCCEEDED}), table_id=table_id, kind=kind)
        return [*found, *self._tasks.listed(only, limit=1)]

    def _tasks_of(self, table_id: TableId, kind: ActionKind | None = None) -> Sequence[TaskHead]:
        return self._tasks.listed(TaskFilter(table_id=table_id, kind=kind), limit=TASKS_LOOKED_AT)

    def _save(
        self,
        seen: Seen,
        found: BeforeLook,
        plan: Plan,
        kept: KeptUp,
        problem: Reason | None,
        latest: Sequence[TaskHead],
        limits: Thresholds,
        refused: Reason | None,
    ) -> bool:
        """Write what the look came to, once; whether some of that depends on the clock and on what queries are counted.

        Raises ``LookLost`` where somebody has written the record since.
        """
        observation, record = seen.observation, seen.record
        look_at = next_look(
            self._clock.now(),
            commit_interval_ms=observation.commit_interval_ms,
            changed_at=record.changed_at,
            jitter=self._chance(),
            look_again_at=min((at for at in (plan.look_again_at, kept.look_at) if at is not None), default=None),
        )
        policy = self._planner.policy(observation.metadata)
        judged = self._judged_by(observation, policy)
        shown = listed(
            observation,
            plan,
            policy,
            latest,
            problem=problem,
            limits=limits,
            before=record.listed,
            refused=refused,
            analyzed=found.analyzed,
            unworthy_files=0 if judged is None else unworthy_files(observation, judged, self._clock.now()),
        )
        shown, series = self._noted(record, shown, observation.observed_at, is_first=found.record is None)
        considered = kept.remembered(record.considered)
        record = replace(record, next_look_at=look_at, problem=problem, considered=considered, listed=shown)
        self._tables.save_record(record, policies=found.policies, series=series)
        return judged is not None and judged.trigger is Trigger.COST_BENEFIT

    def _judged_by(self, observation: Observation, policy: Policy) -> Policy | None:
        """The policy with what is known of queries, by which small files are judged; None where there are none."""
        small_bytes, least = policy.small_file_size_bytes, policy.min_input_files
        if not any(
            avoidable_files(each.counts, small_file_size_bytes=small_bytes, min_input_files=least)
            for each in observation.inventory.partitions
        ):
            return None
        return self._planner.with_queries(policy, observation.metadata, is_queried=observation.is_queried)

    def _noted(
        self, record: TableRecord, shown: Listed, at: Instant, *, is_first: bool
    ) -> tuple[Listed, Sequence[SeriesPoint] | None]:
        """What is shown, and the series with a point of it where it changed and the last point is old enough."""
        had = record.listed
        if had is not None and had.noted_at is not None:
            point, before = series_point(shown, at), series_point(had, at)
            if point == before or at - had.noted_at < MARK_GAP_MS:
                return shown, None
        stored = () if is_first else self._tables.lists.series(record.table_id)  # none without a record
        points = [point for point in stored if point.at < at]
        return replace(shown, noted_at=at), [*thinned(points, at), series_point(shown, at)]

    def _note(self, name: TableName, error: IcewrightError) -> None:
        """Keep in the record why the look failed. Read anew: it may have been observed before the failure."""
        record = self._tables.record_by_name(name)
        if record is None:
            return
        now = self._clock.now()
        problem = lasting(Reason(error.code, error.message), record.problem, now)
        self._tidings.problem(record.table_id, name, record.problem, problem)
        why = why_gone(record, error)
        if why is not None:
            self._gone(record.table_id, why)
        self._change_record(
            name,
            problem=problem,
            next_look_at=now + INTERVAL_MAX_MS,
            dropped_at=None if why is None else now,
            listed=listed_with_problem(record.listed, problem, now),
        )

    def _change_record(self, name: TableName, **changes: Any) -> None:
        record = self._tables.record_by_name(name)
        if record is not None:
            with suppress(LookLost):  # somebody else has seen more of it meanwhile
                self._tables.save_record(replace(record, **changes))


def _made_from(observation: Observation, policy: Policy) -> _MadeFrom:
    metadata, access = observation.metadata, observation.worker_access
    return metadata.metadata_location, access, observation.not_stitched, observation.not_sorted, look_digest(policy)
