"""What is kept up of a table by itself, beside work on its files: what is due, said and queued.

In modes other than ``auto`` that is what only reads.
Each kind goes by itself: its own interval, its own breaker, its own reason why nothing is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from icewright.actions.compute_statistics.service import STATISTICS_NEW
from icewright.actions.expire_data.plan import NOTHING_EXPIRES
from icewright.actions.expire_snapshots.expirer import holds_of_tasks
from icewright.actions.expire_snapshots.plan import automatic_rule
from icewright.actions.rewrite_manifests.due import may_be_in_danger
from icewright.core.times import NEVER, Instant, Window
from icewright.inventory.snapshot_retention import retained_snapshots
from icewright.maintenance.dispatch.dispatcher import Dispatcher
from icewright.maintenance.first_run_approval import FirstRunApproval
from icewright.maintenance.planner import Planner
from icewright.maintenance.registry.planning import automatic_kinds
from icewright.maintenance.registry.services import DUE_RULES
from icewright.model.actions.actions import ActionKind, traits_of
from icewright.model.iceberg.names import TableId
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Mode
from icewright.model.policy.time_windows import spread, window_of
from icewright.model.work.breaker import DEFAULT_THRESHOLDS, PARKED, Thresholds, is_half_open, parked
from icewright.model.work.tasks import TaskHead, TaskState
from icewright.model.work.why import Considered
from icewright.plans.action_types import Rest
from icewright.plans.due import Due
from icewright.plans.policy_digest import plan_digest
from icewright.plans.repository import PlanRejected
from icewright.plans.upkeep_due import (
    DANGER_PRIORITY,
    INTERVAL_MS,
    UPKEEP_PRIORITY,
    last_done,
    pause,
)
from icewright.plans.window import Closed, closed, was_left_out
from icewright.ports.store import Enqueued, TableStore, TaskFilter, TaskStore
from icewright.ports.table_records import BeforeLook

LOOKED_LATELY: Final = "looked-lately"
"""The code of a reason that says: it was passed over, since nothing can have become due."""
_REMEMBERED_MAX: Final = 200_000


@dataclass(frozen=True, slots=True)
class Look:
    """A look at a table.

    ``now`` is by the store's clock. ``is_worked_on`` is whether a task on its data files waits or is under way. With
    ``tell`` a person asks, and nothing is passed over because it was looked into lately.
    """

    observation: Observation
    now: Instant
    is_worked_on: bool
    tell: bool
    found: BeforeLook
    limits: Thresholds = DEFAULT_THRESHOLDS
    """Of the breaker."""


@dataclass(frozen=True, slots=True)
class KeptUp:
    """What came of keeping a table up: what was queued, what was said of each kind, and what went wrong."""

    enqueued: tuple[Enqueued, ...] = ()
    considered: tuple[Considered, ...] = ()
    problem: Reason | None = None
    look_at: Instant | None = None
    """When to look again without a commit: as the table's window opens."""
    quiet_until: Instant | None = NEVER
    """Until when nothing becomes due of a table that is as it was; None where something may at any time."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """What is to be said of each kind, where nobody sees which one it is said of."""
        return tuple(
            Reason(
                one.reason.code,
                f"{DUE_RULES[one.kind].said}: {one.reason.text}",
                {**one.reason.figures, "kind": one.kind.value},
            )
            for one in self.considered
        )

    def remembered(self, before: Sequence[Considered]) -> tuple[Considered, ...]:
        """What is to be kept of it: where a kind was passed over, what was said when it was looked into."""
        earlier = {one.kind: one for one in before}
        return tuple(earlier.get(one.kind, one) if one.reason.code == LOOKED_LATELY else one for one in self.considered)


NOTHING_KEPT_UP: Final = KeptUp()


@dataclass(frozen=True, slots=True)
class _Turn:
    """One kind, its latest tasks, its window where that is shut, and why a person has to begin."""

    kind: ActionKind
    latest: Sequence[TaskHead]
    shut: Closed | None
    wanted: Reason | None


@dataclass(frozen=True, slots=True)
class _Nothing:
    """When nothing of a kind was to be done last, by which settings, and by which metadata where these alone told."""

    at: Instant
    digest: str
    location: str = ""


class Upkeep:
    """Finds out what is due, of each kind that a table's owner lets happen by itself, and queues it."""

    def __init__(
        self,
        planner: Planner,
        dispatcher: Dispatcher,
        tables: TableStore,
        tasks: TaskStore,
        first_runs: FirstRunApproval,
    ) -> None:
        self._planner, self._dispatcher, self._tables, self._tasks = planner, dispatcher, tables, tasks
        self._first_runs = first_runs
        self._filling = threading.Lock()
        """Held while tasks of a kind are counted and one is queued, where not any number may wait."""
        self._nothing_at: dict[tuple[TableId, ActionKind], _Nothing] = {}

    def keep_up(self, look: Look, latest: Callable[[ActionKind], Sequence[TaskHead]]) -> KeptUp:
        """Queue what is due. ``latest`` gives the table's last tasks of one kind, the newest first."""
        policy = self._planner.policy(look.observation.metadata)
        window, kept = window_of(policy), NOTHING_KEPT_UP
        acts, wanted_kinds = policy.mode is Mode.AUTO, automatic_kinds(policy)
        if acts and policy.removes_orphan_files:  # looked for elsewhere, of tables looked at while their window is open
            kept = _looked_at(kept, _closed(window, look, latest(ActionKind.REMOVE_ORPHAN_FILES)))
        if acts:
            self._first_runs.forget_others(look.observation.metadata.table_id, wanted_kinds, look.found)
        for kind, rule in DUE_RULES.items():
            may_run = kind in wanted_kinds and (acts or traits_of(kind).in_mode_observe)
            if not may_run or not rule.is_possible(self._planner):
                continue
            metadata, restored_at = look.observation.metadata, look.found.restored_at
            wanted = self._first_runs.reason_for_approval(kind, metadata, latest, restored_at)
            tasks = latest(kind) if wanted is None else self._first_runs.withdraw(latest(kind), wanted)
            shut = _closed(window, look, tasks)
            kept = _looked_at(kept, shut)
            try:
                back = self._first_runs.rests(kind, latest, look.now)
                back = back or self._first_runs.refused(kind, policy, look.found)
                turn = _Turn(kind, tasks, shut, wanted)
                reason, enqueued = self._keep_up(look, turn) if back is None else (back, None)
            except PlanRejected as error:
                reason, enqueued = Reason(error.code, error.message), None
                kept = replace(kept, problem=reason)
            if reason.code == PARKED:
                kept = replace(kept, problem=kept.problem or reason)
            said, queued = Considered(kind, reason, look.now), () if enqueued is None else (enqueued,)
            kept = replace(kept, enqueued=(*kept.enqueued, *queued), considered=(*kept.considered, said))
            if kept.quiet_until is not None:
                until = self._quiet_until(said, look)
                kept = replace(kept, quiet_until=None if until is None else min(until, kept.quiet_until))
        return kept

    def _keep_up(self, look: Look, turn: _Turn) -> tuple[Reason, Enqueued | None]:
        """What is to be said of one kind, and what was queued. Where the window is shut only a person is told."""
        resting = self._rests(look, turn)
        return self._looked_into(look, turn) if resting is None else (resting, None)

    def _rests(self, look: Look, turn: _Turn) -> Reason | None:
        """Why it is not looked into what is due."""
        kind, latest, now = turn.kind, turn.latest, look.now
        key, metadata = (look.observation.metadata.table_id, kind), look.observation.metadata
        resting = (
            parked(latest, now, look.limits)
            or pause(latest, now)
            or self._fits(look, kind, latest)
            or self._waits(look, kind)
        )
        if resting is None and turn.shut is not None and not look.tell:
            resting = turn.shut.reason()
        if resting is None and not look.tell and self._is_known(key, look):
            resting = Reason(LOOKED_LATELY, "nothing was due when it was last looked into")
        if resting is None and (turn.wanted is not None or kind is ActionKind.EXPIRE_DATA):  # what came back waits, too
            policy = self._planner.policy(metadata)
            resting = self._first_runs.still_waits(metadata.table_id, kind, policy, now, latest, look.found)
            if resting is not None:
                self._remember(key, look)
        return resting

    def _looked_into(self, look: Look, turn: _Turn) -> tuple[Reason, Enqueued | None]:
        """What is due, and what was queued of it; or kept, to wait for a person."""
        kind, now = turn.kind, look.now
        key = (look.observation.metadata.table_id, kind)
        others = DUE_RULES[kind].other_reasons
        done = [task for task in turn.latest if task.reason.code not in others]
        done_at = last_done(done) if turn.wanted is None else None  # a plan that waits is in nobody's way
        rested_ms = None if done_at is None else now - done_at
        rest = Rest(now, rested_ms, lambda: holds_of_tasks(self._tasks, key[0]))
        due = DUE_RULES[kind].due(self._planner, look.observation, rest)
        if turn.shut is not None:
            return (due.reason if due.keep is None else turn.shut.reason(due)), None
        if due.keep is None:
            self._remember(key, look, look.observation.metadata.metadata_location)
            if turn.wanted is not None or due.reason.code == NOTHING_EXPIRES:
                self._first_runs.forget(key[0], kind, look.found)
            return due.reason, None
        if kind is ActionKind.REWRITE_MANIFESTS and look.is_worked_on and not due.in_danger:
            self._remember(key, look)
            return _after_data_files(f"{due.reason.text}; "), None
        if DUE_RULES[kind].waiting_max is not None:
            with self._filling:
                return self._queued_within(DUE_RULES[kind].waiting_max or 0, due, look, turn)
        plan = due.keep()
        waits = self._first_runs.let_wait(plan, turn.wanted, turn.latest, look.found)
        if waits is not None:
            self._remember(key, look)
            return waits, None
        return due.reason, self._queue(plan, due, look, turn)

    def _queue(self, plan: Plan, due: Due, look: Look, turn: _Turn) -> Enqueued | None:
        own = DUE_RULES[turn.kind].priority
        priority = DANGER_PRIORITY if due.in_danger else UPKEEP_PRIORITY if own is None else own
        tries = 1 if is_half_open(turn.latest, look.now, look.limits) else None
        return self._dispatcher.enqueue(plan, priority=priority, attempts_max=tries)

    def _queued_within(self, most: int, due: Due, look: Look, turn: _Turn) -> tuple[Reason, Enqueued | None]:
        """As :meth:`_queue`, unless so many of the kind wait; what this table has waiting takes no further place."""
        only = TaskFilter(states=frozenset({TaskState.QUEUED}), kind=turn.kind)
        waiting = self._tasks.listed(only, limit=most)
        own = look.observation.metadata.table_id
        if len(waiting) >= most and all(task.table_id != own for task in waiting):
            text = f"not now: {most} tasks of this kind wait in the queue, which is the limit"
            return Reason("queue-full", text, {"waiting": most}), None
        if due.keep is None:
            return due.reason, None
        return due.reason, self._queue(due.keep(), due, look, turn)

    def _fits(self, look: Look, kind: ActionKind, latest: Sequence[TaskHead]) -> Reason | None:
        """Why a task that waits untried need not be planned anew: its table and the settings are as for its plan."""
        if kind is ActionKind.EXPIRE_SNAPSHOTS or not latest or latest[0].state is not TaskState.QUEUED:
            return None  # more snapshots come of age meanwhile
        planned = self._tables.plan(latest[0].plan_id)
        if planned.snapshot_id != look.observation.metadata.current_snapshot_id:
            return None
        if planned.settings_digest != self._digest(look, kind):
            return None
        return Reason("upkeep-lately", f"task {latest[0].task_id} waits for its turn")

    def _waits(self, look: Look, kind: ActionKind) -> Reason | None:
        """Why nothing needs to be looked into: work on data files writes manifests itself, and takes planned ones."""
        if kind is not ActionKind.REWRITE_MANIFESTS or not look.is_worked_on or look.tell:
            return None
        return None if may_be_in_danger(look.observation.inventory.manifests) else _after_data_files()

    def _is_known(self, key: tuple[TableId, ActionKind], look: Look) -> bool:
        """Whether nothing can have become due: in less time than it would be done again, or of what is as it was.

        Snapshots come of age by themselves; manifests do not.
        """
        known, location = self._nothing_at.get(key), look.observation.metadata.metadata_location
        if known is None or known.digest != self._digest(look, key[1]):
            return False
        as_it_was = key[1] is ActionKind.REWRITE_MANIFESTS and known.location == location
        return as_it_was or 0 <= look.now - known.at < INTERVAL_MS

    def _quiet_until(self, said: Considered, look: Look) -> Instant | None:
        """Until when nothing becomes due of a kind, if the table stays as it is; None where that is not known."""
        metadata, policy = look.observation.metadata, self._planner.policy(look.observation.metadata)
        known = self._nothing_at.get((metadata.table_id, said.kind))
        if known is None or known.digest != self._digest(look, said.kind):
            return None
        match said.kind:
            case ActionKind.REWRITE_MANIFESTS:
                depends_on_time = known.location != metadata.metadata_location
            case ActionKind.EXPIRE_SNAPSHOTS:  # the next one that comes of age is told by its own time
                stays = retained_snapshots(metadata, automatic_rule(policy), max(look.now, known.at))
                depends_on_time = len(stays) < len(metadata.snapshots)
            case ActionKind.COMPUTE_STATISTICS:
                before = () if look.found.record is None else look.found.record.considered
                (kept,) = KeptUp(considered=(said,)).remembered(before)
                depends_on_time = kept.reason.code != STATISTICS_NEW
            case _:
                depends_on_time = True
        return known.at + INTERVAL_MS if depends_on_time else NEVER

    def _remember(self, key: tuple[TableId, ActionKind], look: Look, location: str = "") -> None:
        if len(self._nothing_at) >= _REMEMBERED_MAX:
            self._nothing_at.clear()
        self._nothing_at[key] = _Nothing(look.now, self._digest(look, key[1]), location)

    def _digest(self, look: Look, kind: ActionKind) -> str:
        return plan_digest(kind, self._planner.policy(look.observation.metadata))


def _looked_at(kept: KeptUp, shut: Closed | None) -> KeptUp:
    """With a look at the table as its window opens."""
    opens_at = None if shut is None else shut.opens_at
    return kept if opens_at is None else replace(kept, look_at=min(opens_at, kept.look_at or opens_at))


def _closed(window: Window | None, look: Look, latest: Sequence[TaskHead]) -> Closed | None:
    if window is None:
        return None
    its = spread(window, look.observation.metadata.table_id, was_left_out=was_left_out(latest))
    return closed(its, look.now)


def _after_data_files(said: str = "") -> Reason:
    return Reason("after-data-files", f"{said}not before the work on data files that is under way, which changes them")
