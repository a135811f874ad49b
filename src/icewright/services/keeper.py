"""Looking after one table: observe it, plan it, queue what the plan says if the owner lets us act."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from icewright.domain.errors import IcewrightError, NotFound, Rejected, Unreadable
from icewright.domain.names import TableId, TableName
from icewright.domain.observation import Observation
from icewright.domain.plans import Plan, Reason
from icewright.domain.policy import Mode
from icewright.domain.tasks import TERMINAL_STATES, Task, TaskState
from icewright.ports.clock import Clock
from icewright.ports.store import Enqueued, TableRecord, TableStore, TaskFilter, TaskStore
from icewright.scheduling.breaker import FAILURES_MAX, parked
from icewright.scheduling.sweep import INTERVAL_MAX_MS, next_look
from icewright.services.dispatcher import Dispatcher
from icewright.services.observer import Observer
from icewright.services.planner import Planner, PlanRefused

_TASKS_LOOKED_AT = 4 * FAILURES_MAX
_LOCKS = 64


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look at a table came to: its plan, whether that was made just now, and what was queued."""

    plan: Plan
    is_new: bool
    enqueued: Enqueued | None


class TableKeeper:
    """One look at one table, whatever made us look: an event, the sweep, a task that ended, or a person."""

    def __init__(
        self,
        observer: Observer,
        planner: Planner,
        dispatcher: Dispatcher,
        tables: TableStore,
        tasks: TaskStore,
        clock: Clock,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._observer, self._planner, self._dispatcher = observer, planner, dispatcher
        self._tables, self._tasks, self._clock, self._chance = tables, tasks, clock, chance
        self._locks = tuple(threading.Lock() for _ in range(_LOCKS))

    def look(self, name: TableName, *, plan_anew: bool = False) -> Looked:
        """Observe the table; plan when its present plan does not stand any more; queue where the owner lets us.

        A table that cannot be read or planned keeps the reason in its record and is looked at again later; a dropped
        one is marked so; both errors pass through. Raises :class:`~icewright.domain.errors.Unavailable` when the
        catalog is away; then nothing changes.
        """
        # The inventory moves forward from what is stored: two looks at one table must not do so at the same time.
        with self._locks[hash(name) % _LOCKS]:
            return self._look(name, plan_anew=plan_anew)

    def _look(self, name: TableName, *, plan_anew: bool) -> Looked:
        before = self._tables.record_by_name(name)
        try:
            observation = self._observer.observe(name)
            plan = None if plan_anew else self._standing_plan(observation, before)
            is_new = plan is None
            if plan is None:
                plan = self._planner.plan_observed(observation).plan
        except (NotFound, Rejected, Unreadable, PlanRefused) as error:
            if before is not None:
                self._put_aside(before, error)
            raise
        reason = self._breaker(plan.table_id)
        enqueued = self._dispatcher.enqueue(plan) if is_new and plan.mode is Mode.AUTO and reason is None else None
        self._save(observation, plan, reason)
        return Looked(plan, is_new, enqueued)

    def _standing_plan(self, observation: Observation, before: TableRecord | None) -> Plan | None:
        """The plan that still stands: the table is as it was, its time has not come, and its work is in hand."""
        metadata = observation.metadata
        if before is None or before.plan_id is None or before.metadata_location != metadata.metadata_location:
            return None
        plan = self._tables.plan(before.plan_id)
        due = plan.look_again_at is not None and plan.look_again_at <= self._clock.now()
        if due or (plan.actions and plan.mode is Mode.AUTO and self._work_is_lost(plan)):
            return None
        return plan

    def _work_is_lost(self, plan: Plan) -> bool:
        """Whether nothing became of the plan: it was never queued, or its task was superseded."""
        latest = self._latest(plan.table_id)
        if any(task.state not in TERMINAL_STATES for task in latest):
            return False
        own = [task for task in latest if task.plan_id == plan.plan_id]
        return not own or own[0].state is TaskState.SUPERSEDED

    def _breaker(self, table_id: TableId) -> Reason | None:
        return parked(self._latest(table_id), self._tasks.now())

    def _latest(self, table_id: TableId) -> list[Task]:
        return list(self._tasks.tasks(TaskFilter(table_id=table_id), limit=_TASKS_LOOKED_AT))

    def _save(self, observation: Observation, plan: Plan, problem: Reason | None) -> None:
        record = self._tables.record(observation.metadata.table_id)
        if record is None:
            return  # replaced in the same moment; the next sweep sees it
        look_at = next_look(
            self._clock.now(),
            commit_interval_ms=observation.commit_interval_ms,
            changed_at=record.changed_at,
            jitter=self._chance(),
            look_again_at=plan.look_again_at,
        )
        self._tables.save_record(replace(record, next_look_at=look_at, problem=problem))

    def _put_aside(self, record: TableRecord, error: IcewrightError) -> None:
        now = self._clock.now()
        aside = replace(record, problem=Reason(error.code, error.message), next_look_at=now + INTERVAL_MAX_MS)
        self._tables.save_record(replace(aside, dropped_at=now) if isinstance(error, NotFound) else aside)
