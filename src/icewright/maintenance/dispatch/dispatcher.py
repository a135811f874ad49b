"""Plans become tasks, tasks go out to optimizers, and what optimizers say is taken down.

The database decides who may do what (constraints, leases, fencing tokens); this is what is said to people and
optimizers around it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from icewright.actions.expire_data.plan import planned_ahead
from icewright.approvals.service import Approvals
from icewright.core.clock import Ids
from icewright.core.errors import (
    Conflict,
    InvalidMessage,
    LeaseLost,
    NotAllowed,
    NotFound,
    Rejected,
    ServerUnavailable,
    Unavailable,
)
from icewright.core.fault_points import Fault, fault
from icewright.core.servers import BEAT_MS
from icewright.core.times import Instant
from icewright.core.wording import duration
from icewright.maintenance.dispatch.task_gate import APPROVED, NOT_OBSERVE, TaskGate
from icewright.maintenance.registry.planning import done_by_others, effect_of, obstacle_of, still_applies
from icewright.model.actions.actions import EVERY_KIND, ActionKind, traits_of, understood
from icewright.model.plans.observation import WorkerAccess
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Mode
from icewright.model.policy.resource_groups import OWN
from icewright.model.work.admission import FREE, Terms
from icewright.model.work.breaker import TRIES_CARRIED_OUT
from icewright.model.work.jobs import (
    ANY_TASK,
    PROTOCOL_VERSION,
    ClaimRequest,
    Heartbeat,
    HeartbeatReply,
    OptimizerHello,
    TaskReport,
    TaskSpec,
    check_protocol,
)
from icewright.model.work.storage import ProbeReports, Probes
from icewright.model.work.tasks import (
    ASKED_FOR,
    ASKING_LEAVE,
    AttemptState,
    Lease,
    LogLines,
    Outcome,
    Task,
    TaskHead,
    TaskState,
)
from icewright.observation.access import AccessBook
from icewright.observation.executor_exclusions import ExecutorExclusions
from icewright.observation.observer import Observer
from icewright.plans.policy_digest import POLICY_CHANGED, policy_changed
from icewright.policy.groups.definitions import Groups
from icewright.policy.source import PolicySource
from icewright.ports.store import Change, Enqueued, TableStore, TaskFilter, TaskStore
from icewright.ports.telemetry import watched
from icewright.work.groups.queue_places import QueuePlaces
from icewright.work.halts.rules import catalogs_going_on, halted_within
from icewright.work.optimizers.backlog import understood_in
from icewright.work.tasks.attempt_outcomes import AttemptOutcomes

OUTAGE_MS_MIN: Final = 3 * BEAT_MS
"""A server that did not answer itself for so long was away for optimizers as well."""
STALE_MAX: Final = 100
"""Tasks that may end on the way to one that may run, in one claim: when a window closes on many there are thousands."""


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """How tasks are tried. ``chance`` gives numbers in [0, 1) that spread retries, and looks at tables."""

    lease_ms: int = 30_000
    attempts_max: int = 3
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class NextRound:
    """The next round of the server's loop, which sees what was reported."""

    begin: Callable[[], None]
    """Have it begin at once, where the loop turns in this process."""


class Dispatcher:
    """The way of a task from plan to report."""

    def __init__(
        self,
        tasks: TaskStore,
        tables: TableStore,
        observer: Observer,
        access: AccessBook,
        ids: Ids,
        limits: DispatchLimits,
        policies: PolicySource,
        *,
        exclusions: ExecutorExclusions,
        approvals: Approvals,
        groups: Groups,
    ) -> None:
        self._tasks, self._tables, self._observer, self._ids, self._limits = tasks, tables, observer, ids, limits
        self._access, self._policies, self._approvals = access, policies, approvals
        self.endings = AttemptOutcomes(tasks, access, exclusions, limits.chance)
        self._answered_s: float | None = None
        self._answering_since: Instant | None = None
        self._groups, self._places = groups, QueuePlaces(tasks, tables, policies)
        self.leave = TaskGate(tables, observer, policies, tasks.now)

    @property
    def lease_ms(self) -> int:
        """How long a lease runs from one heartbeat to the next."""
        return self._limits.lease_ms

    def enqueue(
        self, plan: Plan, *, priority: int = 0, delay_ms: int = 0, attempts_max: int | None = None
    ) -> Enqueued | None:
        """Queue what a plan says, to be tried after ``delay_ms``; None when it says to do nothing.

        ``attempts_max`` is how often, None for as often as any.
        """
        if not plan.actions or plan.prediction is None:
            return None
        most, task_id = attempts_max or self._limits.attempts_max, self._ids.new("task")
        new = self._places.new_task(task_id, plan, priority=priority, attempts_max=most)
        fault(Fault.ENQUEUE_BEFORE)
        enqueued = self._tasks.enqueue(replace(new, delay_ms=delay_ms))
        fault(Fault.ENQUEUE_AFTER)
        return enqueued

    def apply(self, plan_id: str) -> Task:
        """Queue exactly that plan, because a person says so.

        Raises ``NotFound``; :class:`NotAllowed` when there is nothing to do, when the mode was ``observe`` for the plan
        or is (files come back all the same), and when it has to be approved first; and :class:`Conflict` when the table
        has moved on so that it would not be the plan that was looked at, or ages were told by a clock that was ahead,
        or settings that the plan was made from have changed.
        """
        plan = self._tables.plan(plan_id)
        if not plan.actions:
            raise NotAllowed(f"plan {plan_id} is to do nothing: {plan.reason.text}")
        metadata = self._observer.catalog(plan.table_name.catalog).load(plan.table_name)
        policy = self._policies.policy(metadata)
        (action,) = plan.actions
        if Mode.OBSERVE in (plan.mode, policy.mode) and not traits_of(action.kind).in_mode_observe:
            raise NotAllowed(f"{plan.table_name} is in mode observe: plans and explanations only", hint=NOT_OBSERVE)
        missing = self._approvals.missing(plan)
        if missing is not None:
            hint = f"review the plan, then `icewright approve {plan_id}`"
            raise NotAllowed(f"plan {plan_id} has to be approved first: {missing.text}", hint=hint)
        now = self._tasks.now()
        obstacle = still_applies(action, plan.table_id, metadata) or obstacle_of(action, metadata, policy, now)
        obstacle = obstacle or planned_ahead(action, now) or self._approvals.unwanted(plan, policy)
        obstacle = obstacle or policy_changed(action.kind, plan.settings_digest, policy)
        _require(plan, obstacle)
        # The approval goes with the action: a newer candidate that takes the task's place was approved by nobody.
        figures = {**plan.reason.figures, APPROVED: 1, **self._approvals.figures(plan)}
        if plan.migration is not None:
            figures[ASKED_FOR] = plan.migration.value
        elif plan.asked:
            figures[ASKED_FOR] = action.kind
        approved = replace(plan.reason, figures=figures)
        enqueued = self.enqueue(replace(plan, reason=approved), priority=1)
        if enqueued is None or enqueued.task.plan_id != plan_id:
            raise Conflict(f"{plan.table_name} has a task under way already", hint="see `icewright tasks list`")
        self._approvals.wait_no_more(plan)
        return enqueued.task

    def approve(self, plan_id: str, approved_by: str) -> Task:
        """Let a plan that waits for somebody go because they say so, who are remembered with it; and queue it.

        Raises as :meth:`apply`, ``NotAllowed`` for a plan that waits for nobody, since whoever may approve need not be
        one who may apply, and ``InvalidMessage`` where nobody is named. What was planned by other settings is not
        approved. What cannot be queued for another reason is, and may be applied later.
        """
        plan = self._tables.plan(plan_id)
        if not plan.actions:
            raise NotAllowed(f"plan {plan_id} is to do nothing: {plan.reason.text}")
        if not self._approvals.may_be_given(plan):
            hint = f"`icewright approve` lists what waits; `icewright apply {plan_id}` runs any other plan now"
            raise NotAllowed(f"plan {plan_id} needs no approval", hint=hint)
        policy = self._policies.policy(self._observer.catalog(plan.table_name.catalog).load(plan.table_name))
        changed = policy_changed(plan.actions[0].kind, plan.settings_digest, policy)
        _require(plan, self._approvals.unwanted(plan, policy) or changed)
        self._approvals.give(plan, approved_by)
        return self.apply(plan_id)

    def hello(self, hello: OptimizerHello) -> None:
        """An optimizer introduces itself. Raises :class:`VersionMismatch`, and :class:`NotAllowed` for the server's."""
        check_protocol(hello.protocol_version, "this optimizer")
        for own in {hello.optimizer_id, hello.resource_group} & set(OWN):
            raise NotAllowed(f"{own!r} is the server's own name", hint="call optimizer and resource group otherwise")
        self._tables.optimizer_seen(hello)

    def claim(self, optimizer_id: str, request: ClaimRequest = ANY_TASK) -> TaskSpec | None:
        """The next task for an optimizer, of those that it asks for and whose actions it understands.

        Only what its owner still allows and the table still fits is given out; the rest is superseded on the way.
        Raises :class:`NotAllowed` for one that has not said hello, and :class:`VersionMismatch` for one that did so
        to a server of another version.
        """
        hello = self._introduced(optimizer_id)
        reached = self._observer.catalog_names.intersection(hello.catalogs)
        most = request.shareable_bytes_max
        terms = self._groups.terms_of(hello, self._tasks.now, joins=most is not None)
        kinds = understood(hello.actions)
        known = understood_in(self._tables, hello.resource_group, self._tasks.now, hello.actions)
        terms = replace(terms, understood=known)
        task = self._next(optimizer_id, hello.resource_group, reached, kinds, most, terms)
        return None if task is None or task.lease is None else self._spec(task, task.lease)

    def claim_own(self, group: str, catalogs: frozenset[str]) -> Task | None:
        """The next task of these catalogs that the server carries out itself, as :meth:`claim` gives out the others.

        ``group`` is one of the server's own.
        """
        return self._next(group, group, catalogs, EVERY_KIND)

    def _next(
        self,
        claimer: str,
        group: str,
        catalogs: frozenset[str],
        kinds: frozenset[ActionKind],
        most: int | None = None,
        terms: Terms = FREE,
    ) -> Task | None:
        """The best task that may run, claimed; those that may not any more end on the way, some at a time."""
        for _ in range(STALE_MAX):
            fault(Fault.CLAIM_BEFORE)
            task = self._tasks.claim(
                claimer,
                resource_group=group,
                catalogs=catalogs,
                lease_ms=self._limits.lease_ms,
                shareable_bytes_max=most,
                terms=terms,
                kinds=kinds,
            )
            if task is None:
                return None
            fault(Fault.CLAIM_AFTER)
            if self._may_start(task):
                return task
        return None

    def _may_start(self, task: Task) -> bool:
        """Whether a task that was just claimed may run; else it ends here."""
        with watched("claim", task):
            change = self._stale(task)
        fault(Fault.CLAIM_CHECKED)
        if change is None:
            return True
        if not self._goes_round(task, change):
            self._tables.look_at_once(task.table_name)
        with suppress(Conflict):  # cancelled in the same moment: its lease runs out, and then it ends so
            self._tasks.change(change)
        return False

    def _goes_round(self, task: Task, change: Change) -> bool:
        """Whether the one before it ended likewise, because of the policy: the table is looked at when it is due then.

        Else servers of two releases, which read the policy differently, would plan and refuse without end.
        """
        if change.outcome is None or change.outcome.reason.code != POLICY_CHANGED:
            return False
        latest = self._tasks.listed(TaskFilter(table_id=task.table_id, kind=task.kind), limit=2)
        ended = (one.outcome for one in latest if one.task_id != task.task_id)
        return any(outcome is not None and outcome.reason.code == POLICY_CHANGED for outcome in ended)

    def _introduced(self, optimizer_id: str) -> OptimizerHello:
        """How an optimizer introduced itself. Raises :class:`NotAllowed` and :class:`VersionMismatch`."""
        known = next((o for o in self._tables.optimizers() if o.hello.optimizer_id == optimizer_id), None)
        if known is None:
            raise NotAllowed(f"optimizer {optimizer_id} has not introduced itself")
        check_protocol(known.hello.protocol_version, "this optimizer")
        return known.hello

    def probes(self, optimizer_id: str) -> Probes:
        """What an optimizer shall find out of storages. Raises as :meth:`claim` does."""
        hello = self._introduced(optimizer_id)
        reached = self._observer.catalog_names.intersection(hello.catalogs)
        halted = [halt.part for halt in self._tasks.halts.present()]
        return Probes(self._access.requests(optimizer_id, catalogs_going_on(halted, hello.resource_group, reached)))

    def probed(self, optimizer_id: str, reports: ProbeReports) -> None:
        """What an optimizer found out; the tables concerned are looked at next. Raises as :meth:`claim` does.

        Raises :class:`InvalidMessage` for a report that says nothing.
        """
        self._introduced(optimizer_id)
        for report in reports.reports:
            if report.access is WorkerAccess.UNKNOWN:
                raise InvalidMessage(f"a probe of {report.root!r} that found out nothing is left out of a report")
        for report in reports.reports:
            changed = self._access.settle(optimizer_id, report)
            if changed is not None:
                self._tables.look_at_once(changed)

    def _stale(self, task: Task) -> Change | None:
        """What becomes of a task that was just claimed and must not run, None when it may."""
        try:
            metadata = self._observer.catalog(task.table_name.catalog).load(task.table_name)
        except NotFound as error:
            reason: Reason | None = Reason("table-gone", error.message)
        except (Unavailable, Rejected):
            reason = self.leave.known_obstacle(task)
        else:
            found = effect_of(task, metadata) if metadata.table_id == task.table_id else None
            others = done_by_others(task) if task.attempt == 1 else None
            if found is not None and others is not None:
                reason = others
            elif found is not None:
                # An attempt thought dead did commit. Never again the same: also not when that was rolled back since.
                outcome = Outcome(Reason("found", f"an earlier attempt was faster: {found.text}"), found.snapshot_id)
                return Change(task.task_id, task.version, TaskState.IN_DOUBT, outcome, AttemptState.CONFLICT)
            else:
                reason = self.leave.obstacle(task, metadata)
        if reason is None:
            return None
        figures = {**reason.figures, TRIES_CARRIED_OUT: task.attempt - 1}
        outcome = Outcome(replace(reason, figures=figures))
        return Change(task.task_id, task.version, TaskState.SUPERSEDED, outcome, AttemptState.CANCELLED)

    def _spec(self, task: Task, lease: Lease) -> TaskSpec:
        return TaskSpec(
            protocol_version=PROTOCOL_VERSION,
            task_id=task.task_id,
            attempt=task.attempt,
            fencing_token=lease.fencing_token,
            table_id=task.table_id,
            table_name=task.table_name,
            action=task.action,
            lease_ms=self._limits.lease_ms,
            action_version=task.kind.traits.protocol_version,
        )

    def heartbeat(self, task_id: str, heartbeat: Heartbeat) -> HeartbeatReply:
        """Somebody is still at it; before a commit, or more files go, they are told to stop where the owner wants that.

        And at any time where it was stopped with what it is in.

        Raises :class:`LeaseLost`; before these also what loading the table raises, and then nothing is done.
        """
        fault(Fault.HEARTBEAT_BEFORE)
        task = self._tasks.heartbeat(
            task_id,
            heartbeat.fencing_token,
            progress=heartbeat.progress,
            lease_ms=self._limits.lease_ms,
            log=heartbeat.log,
        )
        fault(Fault.HEARTBEAT_AFTER)
        if heartbeat.progress.phase in ASKING_LEAVE and not task.cancel_requested:
            veto = self.leave.veto(task)
            if veto is not None:
                task = self._tasks.request_cancel(task_id, veto)
            fault(Fault.LEAVE_GIVEN)
        stops = halted_within(self._tasks.halts.present(), task, heartbeat.progress.phase)
        return HeartbeatReply(self._limits.lease_ms, task.cancel_requested or stops)

    def report(self, report: TaskReport, log: LogLines | None = None) -> Task:
        """An attempt has ended, with that log. Raises :class:`LeaseLost` when its task is not its own any more."""
        check_protocol(report.protocol_version, "this report")
        task = self._tasks.check_lease(report.task_id, report.fencing_token)
        fault(Fault.REPORT_BEFORE)
        try:
            task = self._tasks.change(replace(self.endings.reported(task, report), log=log))
        except Conflict as error:
            raise LeaseLost(f"task {report.task_id} changed meanwhile: {error.message}") from error
        fault(Fault.REPORT_AFTER)
        if task.state is TaskState.SUPERSEDED:
            self._tables.look_at_once(task.table_name)
        return task

    def cancel(self, task_id: str, version: int | None = None) -> Task:
        """Cancel a task because a person says so. Raises as the store's ``request_cancel`` does."""
        return self._tasks.request_cancel(task_id, Reason("cancelled", "cancelled on request"), version)

    def retry(self, task_id: str, version: int | None = None) -> Task:
        """Queue a failed or cancelled task again because a person says so. Raises as the store's ``change`` does.

        One that has committed is not repeated: what its owner may have rolled back must not come again.
        """
        task = self._tasks.get(task_id)
        if task.outcome is not None and task.outcome.snapshot_id is not None:
            committed = f"task {task_id} has been committed, as snapshot {task.outcome.snapshot_id}"
            raise NotAllowed(f"{committed}, and cannot be tried again", hint="plan the table again")
        reason = Reason("retried", "queued again on request")
        seen = task.version if version is None else version
        return self._tasks.change(Change(task_id, seen, TaskState.QUEUED, Outcome(reason)))

    def expedite(self, task_id: str) -> Task:
        """Have a waiting task started first because a person says so. Raises ``NotFound``, ``NotAllowed``."""
        return self._tasks.expedite(task_id, Reason("expedited", "expedited on request"))

    def withdraw(self, task: TaskHead, reason: Reason) -> Task:
        """Take back a waiting task that must not be tried any more. Raises :class:`Conflict` once it is claimed."""
        return self._tasks.change(Change(task.task_id, task.version, TaskState.SUPERSEDED, Outcome(reason)))

    def answers(self) -> None:
        """The server and its store answer; told every :data:`~icewright.core.servers.BEAT_MS` by whoever watches.

        Where it was not told for longer, optimizers could not keep their leases: the server or its store was away, or
        just began.
        """
        now_s = time.monotonic()
        gap_ms = None if self._answered_s is None else 1000 * (now_s - self._answered_s)
        if gap_ms is None or gap_ms > max(OUTAGE_MS_MIN, self._limits.lease_ms / 2):
            self._answering_since = self._tasks.now()
        self._answered_s = now_s

    def lease_expired(self, task: Task) -> Task:
        """An attempt was not heard of for as long as its lease ran: nobody knows how far it came."""
        silent = duration(self._limits.lease_ms)
        reason = Reason("lease-expired", f"attempt {task.attempt} was not heard of for {silent}")
        heard_at = None if task.lease is None else task.lease.expires_at - self._limits.lease_ms
        if self._answering_since is not None and heard_at is not None and heard_at < self._answering_since:
            text = f"attempt {task.attempt} was last heard of before the server or its store was away"
            reason = Reason(ServerUnavailable.code, text)
        change = Change(task.task_id, task.version, TaskState.IN_DOUBT, Outcome(reason), AttemptState.LOST)
        fault(Fault.EXPIRE_BEFORE)
        task = self._tasks.change(change)
        fault(Fault.EXPIRE_AFTER)
        return task


def _require(plan: Plan, obstacle: Reason | None) -> None:
    """Raise :class:`Conflict` where something is in the way of a plan by now."""
    if obstacle is not None:
        raise Conflict(f"plan {plan.plan_id} does not hold any more: {obstacle.text}", hint="plan again")
