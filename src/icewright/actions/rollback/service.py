"""Rollbacks of ``main``: planned because a person asks, and carried out by the server itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from icewright.actions.rollback.plan import decide_rollback
from icewright.actions.rollback.port import Rollbacks
from icewright.core import wording
from icewright.core.clock import Clock, Ids
from icewright.core.errors import InvalidMessage, NotFound
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.actions.rollback import Rollback, RollbackRequest
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Plan
from icewright.model.policy.policy import Policy
from icewright.model.work.jobs import Committed, Result
from icewright.model.work.tasks import Task
from icewright.plans.repository import keep_plan
from icewright.plans.standalone_plan import build_standalone_plan
from icewright.ports.store import TableStore

_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_HINT: Final = "either a snapshot id, or an instant with its zone: 2026-11-22T10:00:00Z"


class RollbackPlanner:
    """Makes plans of rollbacks, and keeps them in the store."""

    def __init__(self, tables: TableStore, clock: Clock, ids: Ids, policy: Callable[[TableMetadata], Policy]) -> None:
        self._tables, self._clock, self._ids, self._policy = tables, clock, ids, policy

    def plan_asked(self, metadata: TableMetadata, asked: RollbackRequest, holds: Sequence[Hold]) -> tuple[Plan, Policy]:
        """The plan of a rollback, and the policy that it goes by. ``holds`` are of tasks that have not ended.

        Raises :class:`InvalidMessage` for what says no place to go back to.
        """
        if (asked.to_snapshot is None) == (asked.to_time is None):
            raise InvalidMessage("a rollback is to a snapshot or to an instant", hint=_HINT)
        policy = self._policy(metadata)
        to_time = None if asked.to_time is None else _instant(asked.to_time)
        decision = decide_rollback(metadata, policy, to_snapshot=asked.to_snapshot, to_time=to_time, holds=holds)
        plan = build_standalone_plan(self._ids.new("plan"), metadata, policy, decision, self._clock.now(), asked=True)
        return keep_plan(self._tables, plan), policy


class Rollbacker:
    """Carries out rollbacks on the tables of all catalogs that can be written to."""

    def __init__(self, rollbacks: Mapping[str, Rollbacks]) -> None:
        self._rollbacks = dict(rollbacks)

    def carry_out(self, task: Task, may_commit: Callable[[], None]) -> Result:
        """Set ``main`` as the action says. Raises as :meth:`Rollbacks.roll_back`."""
        if not isinstance(task.action, Rollback):
            raise TypeError(f"task {task.task_id} rolls nothing back")
        rollbacks = self._rollbacks.get(task.table_name.catalog)
        if rollbacks is None:
            raise NotFound(f"no catalog {task.table_name.catalog!r} is configured")
        rollbacks.roll_back(task.table_name, task.table_id, task.action, task_id=task.task_id, may_commit=may_commit)
        return Committed(None)


def _instant(text: str) -> Instant:
    if not _INSTANT.fullmatch(text):
        raise InvalidMessage(f"{wording.quoted(text)} is no instant with a zone", hint=_HINT)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise InvalidMessage(f"{wording.quoted(text)} is no instant", hint=_HINT) from error
