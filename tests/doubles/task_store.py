"""The queue in memory, for the simulation and what shares its lakehouse.

SQLite makes the simulation sixteen times slower. Tests of the contracts compare this queue with that in a database,
step by step. It writes no audit, and counts nothing for metrics.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from icewright.core.clock import Clock
from icewright.core.errors import Conflict, NotAllowed, NotFound
from icewright.core.times import Instant
from icewright.feed.task_events import fact_of
from icewright.model.access.permissions import EVERYWHERE, Scope, Scopes, covers
from icewright.model.actions.actions import EVERY_KIND, ActionKind, shareable_bytes
from icewright.model.actions.traits import BESIDE, TableSlot
from icewright.model.iceberg.names import TableId
from icewright.model.plans.plans import Reason
from icewright.model.policy.resource_groups import OWN, Queue
from icewright.model.work import lifecycle
from icewright.model.work.admission import FREE, Blocker, Facts, InLane, Lane, Line, Terms, Took
from icewright.model.work.breaker import TASKS_LOOKED_AT
from icewright.model.work.halts import Part, PartKind, halt_over
from icewright.model.work.history import Ending
from icewright.model.work.lifecycle import LIVE_STATES
from icewright.model.work.tasks import (
    ACTIVE_STATES,
    TERMINAL_STATES,
    Attempt,
    AttemptState,
    HistoryEntry,
    ListedTask,
    LogLines,
    NewTask,
    Progress,
    Task,
    TaskState,
)
from icewright.ports.admissions import AHEAD_MAX, CLAIMABLE_MAX, LANES_MAX, TOOK_MAX
from icewright.ports.store import AttemptOfTask, Change, Enqueued, TaskFilter
from icewright.work.groups.admission import HELD_MS, Admission, chosen, in_turn, use_of
from icewright.work.groups.rank import AGED_MS, rank, ranked_at
from tests.doubles.feed import MemoryFeed
from tests.doubles.halts import MemoryHalts


class MemoryTaskStore:
    """What the services need of a :class:`~icewright.ports.store.TaskStore`; one lock makes it thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._feed = MemoryFeed(clock)
        self._lock = threading.RLock()
        self._halts = MemoryHalts(clock, self._feed, self._lock)
        self._tasks: dict[str, Task] = {}
        self._logs: dict[tuple[str, int], tuple[Instant, LogLines]] = {}
        self._history: dict[str, list[HistoryEntry]] = {}
        self._attempts: dict[str, list[Attempt]] = {}
        self._fencing_token = 0
        self._turns: dict[tuple[str, str], int] = {}
        self.restored: Instant | None = None

    @property
    def feed(self) -> MemoryFeed:
        return self._feed

    @property
    def halts(self) -> MemoryHalts:
        return self._halts

    def now(self) -> Instant:
        return self._clock.now()

    def enqueue(self, new: NewTask) -> Enqueued:
        with self._lock:
            live = self._live(new.table_id, new.action.kind)
            if live is not None and not lifecycle.may_coalesce(live):
                return Enqueued(live, created=False, coalesced=False)
            if live is not None:
                return Enqueued(self._write(lifecycle.coalesce(live, new, self.now())), created=False, coalesced=True)
            if new.task_id in self._tasks:
                raise Conflict(f"there is a task {new.task_id} already")
            task = self._write(lifecycle.create(new, self.now()))
            return Enqueued(task, created=True, coalesced=False)

    def claim(
        self,
        optimizer_id: str,
        *,
        resource_group: str,
        catalogs: frozenset[str],
        lease_ms: int,
        shareable_bytes_max: int | None = None,
        terms: Terms = FREE,
        kinds: frozenset[ActionKind] = EVERY_KIND,
    ) -> Task | None:
        with self._lock:
            now = self.now()
            ready = self._ready(now, resource_group, catalogs, shareable_bytes_max, kinds)
            admission = Admission(terms, optimizer_id, self.facts(resource_group, terms.understood))
            best = next(iter(in_turn(admission, ready, now)), None)
            if best is None:
                return None
            self._fencing_token += 1
            self._turns[resource_group, best.lane.tenant] = self._fencing_token
            return self._write(
                lifecycle.claim(
                    best,
                    optimizer_id=optimizer_id,
                    fencing_token=self._fencing_token,
                    now=now,
                    lease_ms=lease_ms,
                    holding=admission.holding,
                )
            )

    def claimable(
        self,
        resource_group: str,
        catalogs: frozenset[str],
        terms: Terms = FREE,
        kinds: frozenset[ActionKind] = EVERY_KIND,
    ) -> int:
        with self._lock:
            now = self.now()
            ready = self._ready(now, resource_group, catalogs, None, kinds)
            found = chosen(terms, self.facts(resource_group, terms.understood), ready, now)
            return sum(1 for _ in islice(found, CLAIMABLE_MAX))

    def facts(self, resource_group: str, understood: frozenset[ActionKind] = EVERY_KIND) -> Facts:
        with self._lock:
            now = self.now()
            own = [task for task in self._tasks.values() if task.resource_group == resource_group]
            uses = tuple(
                use_of(task.lane, task.lease.optimizer_id, task.lease.holding)
                for task in own
                if task.lease is not None and (task.state is TaskState.RUNNING or task.lease.expires_at + HELD_MS > now)
            )
            waiting = frozenset(
                task.lane
                for task in own
                if task.state is TaskState.QUEUED and (task.lane.queue is not Queue.LARGE or task.kind in understood)
            )
            last = {tenant: token for (group, tenant), token in self._turns.items() if group == resource_group}
            return Facts(uses, waiting, last)

    def line(self, task_id: str) -> Line:
        with self._lock:
            own, since = self.get(task_id), self.now() - AGED_MS
            waiting = [
                task
                for task in sorted(self._tasks.values(), key=rank)
                if task.state is TaskState.QUEUED
                and (task.resource_group, task.lane.queue) == (own.resource_group, own.lane.queue)
            ]
            left = AHEAD_MAX
            ahead = len([task for task in waiting if task.lane == own.lane and rank(task) < rank(own)][:left])
            left -= ahead
            lanes = sorted({task.lane for task in waiting} - {own.lane}, key=lambda lane: (lane.urgency, lane.tenant))
            others = []
            for lane in lanes[:LANES_MAX]:
                found = [ranked_at(task.priority, task.created_at) for task in waiting if task.lane == lane][:left]
                if not found:
                    break
                left -= len(found)
                others.append(InLane(lane, len(found), sum(at <= since for at in found)))
            return Line(ahead, tuple(others), left > 0 and len(lanes) <= LANES_MAX)

    def lanes(self, resource_group: str) -> Sequence[InLane]:
        with self._lock:
            since, found = self.now() - AGED_MS, defaultdict[Lane, list[Instant]](list)
            for task in self._tasks.values():
                if task.state is TaskState.QUEUED and task.resource_group == resource_group:
                    found[task.lane].append(ranked_at(task.priority, task.created_at))
            lanes = [InLane(lane, len(at), sum(one <= since for one in at)) for lane, at in found.items()]
            by_name = sorted(lanes, key=lambda one: (one.lane.queue, one.lane.urgency, one.lane.tenant))
            return sorted(by_name, key=lambda one: -one.waiting)

    def took(self, resource_group: str) -> Sequence[Took]:
        with self._lock:
            ended = [
                task
                for task in self._tasks.values()
                if task.state in TERMINAL_STATES and task.resource_group == resource_group
            ]
            ended.sort(key=lambda task: (task.updated_at, task.task_id), reverse=True)
            last = [attempts[-1] for task in ended[:TOOK_MAX] if (attempts := self._attempts.get(task.task_id))]
            return [Took(one.ended_at, one.ended_at - one.started_at) for one in last if one.ended_at is not None]

    def expedite(self, task_id: str, reason: Reason) -> Task:
        with self._lock:
            task = self.get(task_id)
            step = lifecycle.expedite(task, reason, self.now())
            if step is None:
                return task
            return self._write(step)

    def _ready(
        self,
        now: Instant,
        resource_group: str,
        catalogs: frozenset[str],
        shareable_bytes_max: int | None,
        kinds: frozenset[ActionKind],
    ) -> list[Task]:
        halts = self._halts.present()
        return [
            task
            for task in self._tasks.values()
            if task.state is TaskState.QUEUED
            and task.resource_group == resource_group
            and task.table_id.catalog in catalogs
            and task.kind in kinds
            and task.not_before_at <= now
            and not self._blockers(task)
            and halt_over(halts, task.resource_group, task.table_id) is None
            and (shareable_bytes_max is None or _fits_batch(task, shareable_bytes_max))
        ]

    def heartbeat(
        self, task_id: str, fencing_token: int, *, progress: Progress, lease_ms: int, log: LogLines | None = None
    ) -> Task:
        with self._lock:
            task = lifecycle.beat(
                self.get(task_id), fencing_token, progress=progress, now=self.now(), lease_ms=lease_ms
            )
            self._tasks[task_id] = task
            self._put_attempt(replace(self._attempts[task_id][-1], progress=progress))
            self._keep_log(task_id, task.attempt, log)
            return task

    def check_lease(self, task_id: str, fencing_token: int) -> Task:
        with self._lock:
            task = self.get(task_id)
            lifecycle.require_lease(task, fencing_token, self.now())
            return task

    def change(self, change: Change) -> Task:
        with self._lock:
            task = self.get(change.task_id)
            lifecycle.require_version(task, change.version)
            attempts = self._attempts.get(task.task_id)
            step = lifecycle.change(
                task,
                attempts[-1] if attempts else None,
                state=change.state,
                outcome=change.outcome,
                end=lifecycle.attempt_end(change.attempt_state, change.report_json),
                delay_ms=change.delay_ms,
                now=self.now(),
            )
            live = self._live(task.table_id, task.action.kind)
            if step.task.state in lifecycle.LIVE_STATES and live is not None and live.task_id != task.task_id:
                raise NotAllowed(lifecycle.SECOND_LIVE_TASK.format(task_id=task.task_id))
            if (
                step.task.state in ACTIVE_STATES
                and task.state not in ACTIVE_STATES
                and any(one.is_active for one in self._blockers(task))
            ):
                raise NotAllowed(lifecycle.SECOND_ACTIVE_TASK.format(task_id=task.task_id))
            self._keep_log(task.task_id, task.attempt, change.log)
            return self._write(step)

    def _keep_log(self, task_id: str, attempt: int, more: LogLines | None) -> None:
        if more is not None:
            found = self._logs.get((task_id, attempt))
            lines = more if found is None else found[1].followed_by(more)
            if found is None or lines is not found[1]:
                self._logs[task_id, attempt] = self.now(), lines

    def log(self, task_id: str, attempt: int) -> LogLines | None:
        with self._lock:
            found = self._logs.get((task_id, attempt))
            return None if found is None else found[1]

    def prune_logs(self, written_before: Instant, limit: int) -> int:
        with self._lock:
            old = sorted((at, key) for key, (at, _) in self._logs.items() if at < written_before)[:limit]
            for _, key in old:
                del self._logs[key]
            return len(old)

    def expired(self, limit: int) -> Sequence[Task]:
        with self._lock:
            now = self.now()
            lost = [
                (task.lease.expires_at, task.task_id)
                for task in self._tasks.values()
                if task.state is TaskState.RUNNING and task.lease is not None and task.lease.expires_at <= now
            ]
            return [self._tasks[task_id] for _, task_id in sorted(lost)[:limit]]

    def request_cancel(self, task_id: str, reason: Reason, version: int | None = None) -> Task:
        with self._lock:
            task = self.get(task_id)
            lifecycle.require_version(task, task.version if version is None else version)
            step = lifecycle.cancel(task, reason, self.now())
            if step is None:
                return task
            return self._write(step)

    def get(self, task_id: str) -> Task:
        with self._lock:
            task = self._tasks.get(task_id)
            if task is None:
                raise NotFound(f"no task {task_id}")
            return task

    def head(self, task_id: str) -> ListedTask:
        return self.get(task_id).listed()

    def tasks(self, only: TaskFilter, *, limit: int, before: str | None = None) -> Sequence[Task]:
        with self._lock:
            found = [
                task
                for task_id, task in sorted(self._tasks.items(), reverse=True)
                if (before is None or task_id < before)
                and (only.states is None or task.state in only.states)
                and (only.table_id is None or task.table_id == only.table_id)
                and (only.kind is None or task.kind is only.kind)
                and only.resource_group in (None, task.resource_group)
                and covers(only.within, Scope.of(task.table_name))
            ]
            return found[:limit]

    def ids_like(self, part: str, within: Scopes, limit: int) -> Sequence[str]:
        found = [task.task_id for task in self.tasks(TaskFilter(within=within), limit=10**9)]
        return [one for one in found if one.startswith(f"task-{part}") or one.endswith(part)][:limit]

    def listed(self, only: TaskFilter, *, limit: int, before: str | None = None) -> Sequence[ListedTask]:
        return [task.listed() for task in self.tasks(only, limit=limit, before=before)]

    def history(self, task_id: str) -> Sequence[HistoryEntry]:
        with self._lock:
            self.get(task_id)
            return list(self._history[task_id])

    def attempts(self, task_id: str, *, limit: int | None = None, after: int = 0) -> Sequence[Attempt]:
        with self._lock:
            self.get(task_id)
            return [one for one in self._attempts.get(task_id, ()) if one.attempt > after][:limit]

    def attempts_of(self, task_ids: Sequence[str]) -> Mapping[str, Sequence[Attempt]]:
        with self._lock:
            return {one: list(self._attempts[one]) for one in task_ids if self._attempts.get(one)}

    def latest_attempts(
        self,
        only: TaskFilter,
        *,
        states: frozenset[AttemptState] | None = None,
        limit: int,
        before: int | None = None,
        among: int | None = None,
    ) -> Sequence[AttemptOfTask]:
        with self._lock:
            found = [
                AttemptOfTask(
                    replace(one, progress=None, report_json=None),
                    task.table_name,
                    task.table_id,
                    task.kind,
                    task.resource_group,
                    task.created_at,
                )
                for task in self.tasks(only, limit=len(self._tasks))
                for one in self._attempts.get(task.task_id, ())
                if (states is None or one.state in states) and (before is None or one.fencing_token < before)
                if among is None or one.fencing_token > self._fencing_token - among
            ]
        return sorted(found, key=lambda one: -one.attempt.fencing_token)[:limit]

    def counts(self, within: Scopes = EVERYWHERE) -> Mapping[TaskState, int]:
        with self._lock:
            counted = Counter(t.state for t in self._tasks.values() if covers(within, Scope.of(t.table_name)))
            return {state: counted[state] for state in TaskState}

    def versions(self, table_id: TableId) -> frozenset[tuple[str, int]]:
        """The latest tasks of a table, and all that have not ended, as ids and versions."""
        with self._lock:
            own = sorted((t for t in self._tasks.values() if t.table_id == table_id), key=lambda t: t.task_id)[::-1]
        found = [*own[:TASKS_LOOKED_AT], *(task for task in own if task.state in LIVE_STATES)]
        return frozenset((task.task_id, task.version) for task in found)

    def restored_at(self) -> Instant | None:
        """See the port: what is in memory is in no backup, but for what a test says."""
        return self.restored

    def ended(self, after: Ending | None, before: Instant, limit: int) -> Sequence[ListedTask]:
        with self._lock:
            found = [
                task
                for task in self._tasks.values()
                if task.state in TERMINAL_STATES
                and task.updated_at < before
                and (after is None or Ending(task.updated_at, task.task_id) > after)
            ]
        found.sort(key=lambda task: Ending(task.updated_at, task.task_id))
        return [task.listed() for task in found[:limit]]

    def prune(self, ended_before: Instant, limit: int) -> int:
        with self._lock:
            ended = sorted(
                (task.updated_at, task.task_id)
                for task in self._tasks.values()
                if task.state in TERMINAL_STATES and task.updated_at < ended_before
            )[:limit]
            for _, task_id in ended:
                del self._tasks[task_id]
                del self._history[task_id]
                self._attempts.pop(task_id, None)
                self._logs = {key: log for key, log in self._logs.items() if key[0] != task_id}
            return len(ended)

    def plan_ids(self) -> frozenset[str]:
        """The plans that tasks were made from."""
        with self._lock:
            return frozenset(task.plan_id for task in self._tasks.values())

    def has_tasks(self, table_id: TableId) -> bool:
        """Whether there are tasks of a table."""
        with self._lock:
            return any(task.table_id == table_id for task in self._tasks.values())

    def blockers(self, task_id: str) -> Sequence[Blocker]:
        with self._lock:
            return self._blockers(self.get(task_id))

    def _blockers(self, task: Task) -> Sequence[Blocker]:
        wanted = task.kind.traits.slot
        found = []
        for one in self._tasks.values():
            slot, is_active = one.kind.traits.slot, one.state in ACTIVE_STATES
            is_other = one.table_id == task.table_id and one.task_id != task.task_id
            if is_other and (slot not in BESIDE[wanted] if is_active else self._goes_first(one, task)):
                found.append(Blocker(one.task_id, one.kind.value, slot, wanted, is_active=is_active))
        return sorted(found, key=lambda blocker: blocker.task_id)

    def _goes_first(self, one: Task, task: Task) -> bool:
        return (
            (one.kind.traits.slot, task.kind.traits.slot) == (TableSlot.TABLE, TableSlot.METADATA)
            and one.state is TaskState.QUEUED
            and one.resource_group in OWN
            and one.not_before_at <= self.now()
            and (one.created_at, one.task_id) < (task.created_at, task.task_id)
            and not any(halt.part == Part(PartKind.GROUP, one.resource_group) for halt in self._halts.present())
        )

    def _live(self, table_id: TableId, kind: str) -> Task | None:
        return next(
            (
                task
                for task in self._tasks.values()
                if task.table_id == table_id and task.action.kind == kind and task.state in lifecycle.LIVE_STATES
            ),
            None,
        )

    def _write(self, step: lifecycle.Step) -> Task:
        before = self._tasks.get(step.task.task_id)
        self._tasks[step.task.task_id] = step.task
        self._history.setdefault(step.task.task_id, []).append(step.entry)
        if step.attempt is not None:
            self._put_attempt(step.attempt)
        fact = fact_of(None if before is None else before.state, step)
        if fact is not None:
            self._feed.append(fact)
        return step.task

    def _put_attempt(self, attempt: Attempt) -> None:
        attempts = self._attempts.setdefault(attempt.task_id, [])
        del attempts[attempt.attempt - 1 :]
        attempts.append(attempt)


def _fits_batch(task: Task, shareable_bytes_max: int) -> bool:
    size_bytes = shareable_bytes(task.action)
    return task.attempt == 0 and size_bytes is not None and size_bytes <= shareable_bytes_max
