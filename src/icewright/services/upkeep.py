"""What is kept up of a table by itself, beside work on its files: what is due, said and queued.

Each kind goes by itself: its own interval, its own breaker, its own reason why nothing is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from icewright.domain.actions import ActionKind
from icewright.domain.names import TableId
from icewright.domain.observation import Observation
from icewright.domain.plans import Reason
from icewright.domain.tables import Instant
from icewright.domain.tasks import TaskHead
from icewright.ports.store import Enqueued, TableStore, TaskStore
from icewright.scheduling.breaker import parked
from icewright.scheduling.upkeep import INTERVAL_MS, UPKEEP_PRIORITY, last_done, pause
from icewright.services.dispatcher import Dispatcher
from icewright.services.due import Due
from icewright.services.expirer import holds_of_tasks
from icewright.services.planner import Planner
from icewright.services.refused import PlanRefused

_REMEMBERED_MAX: Final = 200_000
_SAID: Final = {ActionKind.EXPIRE_SNAPSHOTS: "Snapshots expire by themselves"}


@dataclass(frozen=True, slots=True)
class KeptUp:
    """What came of keeping a table up: what was queued, what is to be said of each kind, and what went wrong."""

    enqueued: tuple[Enqueued, ...] = ()
    reasons: tuple[Reason, ...] = ()
    problem: Reason | None = None


NOTHING_KEPT_UP: Final = KeptUp()


class Upkeep:
    """Finds out what is due, of each kind that a table's owner lets happen by itself, and queues it."""

    def __init__(self, planner: Planner, dispatcher: Dispatcher, tables: TableStore, tasks: TaskStore) -> None:
        self._planner, self._dispatcher, self._tables, self._tasks = planner, dispatcher, tables, tasks
        self._nothing_at: dict[tuple[TableId, ActionKind], Instant] = {}
        """When nothing was due last: looked into again no sooner than it would be done again."""

    def keep_up(
        self,
        observation: Observation,
        latest: Callable[[ActionKind], Sequence[TaskHead]],
        now: Instant,
        *,
        tell: bool = False,
    ) -> KeptUp:
        """Queue what is due of a table in mode ``auto``.

        ``latest`` gives its last tasks of one kind, the newest first; ``now`` is by the store's clock, as they are.
        With ``tell`` nothing is passed over because it was looked into lately: a person asks.
        """
        kept = NOTHING_KEPT_UP
        for kind in self._wanted(observation):
            try:
                reason, enqueued = self._keep_up(observation, kind, latest(kind), now, tell=tell)
            except PlanRefused as error:
                reason, enqueued = Reason(error.code, error.message), None
                kept = replace(kept, problem=reason)
            said = Reason(reason.code, f"{_SAID[kind]}: {reason.text}", {**reason.figures, "kind": kind.value})
            queued = () if enqueued is None else (enqueued,)
            kept = replace(kept, enqueued=(*kept.enqueued, *queued), reasons=(*kept.reasons, said))
        return kept

    def _wanted(self, observation: Observation) -> list[ActionKind]:
        """What the owner lets happen by itself."""
        policy = self._planner.policy(observation.metadata)
        return [ActionKind.EXPIRE_SNAPSHOTS] if policy.expires_snapshots else []

    def _keep_up(
        self, observation: Observation, kind: ActionKind, latest: Sequence[TaskHead], now: Instant, *, tell: bool
    ) -> tuple[Reason, Enqueued | None]:
        """What is to be said of one kind, and what was queued."""
        key = (observation.metadata.table_id, kind)
        resting = parked(latest, now) or pause(latest, now)
        if resting is not None:
            return resting, None
        if not tell and 0 <= now - self._nothing_at.get(key, now - INTERVAL_MS) < INTERVAL_MS:
            return Reason("looked-lately", "nothing was due less than an hour ago"), None
        done_at = last_done(latest)
        due = self._due(observation, None if done_at is None else now - done_at)
        if due.keep is None:
            self._remember(key, now)
            return due.reason, None
        return due.reason, self._dispatcher.enqueue(due.keep(), priority=UPKEEP_PRIORITY)

    def _due(self, observation: Observation, rested_ms: int | None) -> Due:
        metadata = observation.metadata
        record = self._tables.record(metadata.table_id)
        if record is None:
            return Due(Reason("table-replaced", "nothing, because the name leads to another table by now"))
        holds = holds_of_tasks(self._tasks, metadata.table_id)
        return self._planner.expiry_due(metadata, record.marks, holds, rested_ms)

    def _remember(self, key: tuple[TableId, ActionKind], now: Instant) -> None:
        if len(self._nothing_at) >= _REMEMBERED_MAX:
            self._nothing_at.clear()
        self._nothing_at[key] = now
